//! Sums over the points for all lines of a plan.

use super::{CpuSums, RUNS, Scratch};
use crate::cluster::CHUNK;
use crate::error::SolveError;
use crate::loss::{Loss, Term, TermTile};
use crate::points::TILE;
use crate::ridge::{LineSum, Plan, blocks, combine, project};
use std::borrow::Cow;
use std::ops::Range;

/// The sums of a group of lines over one run of points take at most this many bytes: they stay in a cache
/// while points go by, and all runs together take little memory.
const GROUP_BYTES: usize = 1 << 20;
/// The same where every group has the points generated anew.
const STREAMED_GROUP_BYTES: usize = 16 << 20;

/// The memory that the sums of a scan of a loss take, in bytes, for `times` as many lines as a plan has.
pub fn scan_bytes(loss: &Loss, streamed: bool, plan: &Plan, times: f64) -> usize {
    let group = if streamed {
        STREAMED_GROUP_BYTES
    } else {
        GROUP_BYTES
    };
    let all = plan.bytes() as f64 * times;
    // A line is never cut.
    let held = all.min(plan.widest().max(group) as f64);
    let tiles = loss
        .terms
        .iter()
        .map(|term| term.points.len().div_ceil(TILE))
        .sum();
    // The last one is where all are added up.
    ((runs_of(tiles).len() * windows(RUNS) + 1) as f64 * held) as usize
}

/// The tiles of each run.
pub(super) fn runs_of(tiles: usize) -> Vec<Range<usize>> {
    let length = tiles.div_ceil(RUNS).max(1);
    (0..tiles)
        .step_by(length)
        .map(|start| start..(start + length).min(tiles))
        .collect()
}

/// With more threads than runs several groups are at work at once.
fn windows(runs: usize) -> usize {
    rayon::current_num_threads().div_ceil(runs.max(1))
}

/// Numbers at the points of a tile, column by column; none where they vanish.
pub(super) type ColumnsAt<'a> =
    dyn Fn(&Term, &TermTile, &mut Scratch) -> Result<Cow<'a, [Vec<f64>]>, SolveError> + Sync + 'a;

/// Scores Σ_points Σ_c p_c(ω) ρ_c σ^(m_c)(ω·x + b) for columns ρ_c of orders m_c.
pub(super) struct LineScan<'a> {
    sums: &'a CpuSums,
    plan: &'a Plan,
    /// m_c for each term.
    orders: Vec<Vec<usize>>,
    /// p_c(ω) for each term and line.
    factors: Vec<Vec<Vec<f64>>>,
}

impl<'a> LineScan<'a> {
    pub(super) fn new(
        sums: &'a CpuSums,
        plan: &'a Plan,
        orders: &dyn Fn(&Term) -> Vec<usize>,
        factors: &dyn Fn(&Term, &[f64]) -> Vec<f64>,
    ) -> Self {
        let terms = &sums.loss.terms;
        let of_term = |term: &Term| plan.directions().map(|omega| factors(term, omega)).collect();
        Self {
            sums,
            plan,
            orders: terms.iter().map(orders).collect(),
            factors: terms.iter().map(of_term).collect(),
        }
    }

    /// The lines in groups that are scanned one after the other.
    pub(super) fn groups(sums: &CpuSums, plan: &Plan) -> Vec<Range<usize>> {
        plan.groups(match sums.kept {
            Some(_) => GROUP_BYTES,
            None => STREAMED_GROUP_BYTES,
        })
    }

    /// The scores, of the neurons' derivative of this order along their line.
    pub(super) fn scores(&self, derivative: usize, columns: &ColumnsAt) -> Result<Vec<f64>, SolveError> {
        let sums = self.sums;
        let at_once = match sums.cluster.is_alone() {
            true => windows(RUNS),
            false => windows(sums.runs.len()),
        };
        let mut scores = vec![0.0; self.plan.count()];
        for window in Self::groups(sums, self.plan).chunks(at_once) {
            let pieces: Vec<(Range<usize>, Range<usize>)> = window
                .iter()
                .flat_map(|group| sums.runs.iter().map(|run| (group.clone(), run.clone())))
                .collect();
            let done = sums.work(pieces, |scratch, (group, run)| {
                self.line_sums(derivative, columns, group, run, scratch)
            });
            let mut done = done.map(Vec::into_iter);
            for group in window {
                let of_group = match &mut done {
                    Ok(done) => Ok(done.by_ref().take(sums.runs.len()).collect()),
                    Err(error) => Err(error.clone()),
                };
                match sums.cluster.is_alone() {
                    true => self.put(group.clone(), of_group?, &mut scores),
                    false => self.put_shared(group.clone(), of_group, &mut scores)?,
                }
            }
        }
        Ok(scores)
    }

    /// Puts the scores of a group of lines in their places, from the sums over all runs.
    fn put(&self, group: Range<usize>, runs: Vec<Vec<LineSum>>, scores: &mut [f64]) {
        let mut total = self.plan.sums(group.clone());
        for run in runs {
            let lines = total.iter_mut().zip(&run);
            lines.for_each(|(total, sum)| total.merge(sum));
        }
        self.plan.put_scores(group, &total, scores);
    }

    /// The same where each process has some of the runs. What follows from the sums of a line is one process's work, if
    /// it is worth to be told.
    fn put_shared(
        &self,
        group: Range<usize>,
        runs: Result<Vec<Vec<LineSum>>, SolveError>,
        scores: &mut [f64],
    ) -> Result<(), SolveError> {
        let cluster = &self.sums.cluster;
        let mut total = self.plan.sums(group.clone());
        let lengths: Vec<usize> = total.iter().map(|sum| sum.numbers().len()).collect();
        let numbers: usize = lengths.iter().sum();
        if numbers <= CHUNK {
            let runs = runs.map(|runs| runs.iter().map(|run| pieces(run).concat()).collect());
            set(&mut total, &cluster.fold(self.sums.all_runs, numbers, runs)?);
            self.plan.put_scores(group, &total, scores);
            return Ok(());
        }
        let runs = runs.as_ref().map_err(SolveError::clone);
        let own_numbers = cluster.fold_pieces(
            &lengths,
            runs.map(|runs| runs.iter().map(|run| pieces(run)).collect()),
        )?;
        let lines_of = |rank: usize| {
            let share = cluster.share_of(rank, group.len());
            group.start + share.start..group.start + share.end
        };
        let own = lines_of(cluster.rank());
        let total = &mut total[own.start - group.start..own.end - group.start];
        set(total, &own_numbers);
        self.plan.put_scores(own.clone(), total, scores);
        self.tell_scores(own, &lines_of, scores);
        Ok(())
    }

    /// Puts the scores of everybody's lines in their places.
    fn tell_scores(&self, own: Range<usize>, lines_of: &dyn Fn(usize) -> Range<usize>, scores: &mut [f64]) {
        let (plan, cluster) = (self.plan, &self.sums.cluster);
        let told: Vec<&[f64]> = plan.places(own).map(|place| &scores[place]).collect();
        let lengths =
            (0..cluster.size()).map(|rank| plan.places(lines_of(rank)).map(|place| place.len()).sum());
        let all = cluster.gathered(&told.concat(), &lengths.collect::<Vec<_>>());
        let mut rest = all.as_slice();
        for place in (0..cluster.size()).flat_map(|rank| plan.places(lines_of(rank))) {
            let (line, others) = rest.split_at(place.len());
            scores[place].copy_from_slice(line);
            rest = others;
        }
    }

    /// The sums of a group of lines over one run of points.
    fn line_sums(
        &self,
        derivative: usize,
        columns: &ColumnsAt,
        group: Range<usize>,
        run: Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<Vec<LineSum>, SolveError> {
        let mut sums = self.plan.sums(group.clone());
        self.sums.visit(run, scratch, |term, tile, scratch| {
            let rho = columns(term, tile, scratch)?;
            if rho.is_empty() {
                return Ok(());
            }
            let (orders, factors) = (&self.orders[scratch.term], &self.factors[scratch.term]);
            for block in blocks(tile.tile.len()) {
                for (line, sum) in group.clone().zip(&mut sums) {
                    project(self.plan.omega(line), &tile.tile, block.clone(), &mut scratch.t);
                    let channels = &mut scratch.channels;
                    combine(&factors[line], orders, &rho, block.clone(), channels);
                    for _ in 0..derivative {
                        channels.insert(0, Vec::new());
                    }
                    self.plan.add(line, sum, &scratch.t, channels, &mut scratch.sweep);
                }
            }
            Ok(())
        })?;
        Ok(sums)
    }
}

/// The numbers of some lines' sums.
fn pieces(sums: &[LineSum]) -> Vec<&[f64]> {
    sums.iter().map(LineSum::numbers).collect()
}

/// Sums of lines from all their numbers.
fn set(total: &mut [LineSum], numbers: &[f64]) {
    let mut rest = numbers;
    for sum in total {
        let (own, others) = rest.split_at(sum.numbers().len());
        sum.numbers_mut().copy_from_slice(own);
        rest = others;
    }
}
