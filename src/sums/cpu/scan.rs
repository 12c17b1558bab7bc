//! Sums over the points for all lines of a plan.

use super::{CpuSums, RUNS, Scratch};
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
                let total = self.folded(group.clone(), of_group)?;
                self.plan.put_scores(group.clone(), &total, &mut scores);
            }
        }
        Ok(scores)
    }

    /// The sums of a group of lines over all runs, from those over this process's.
    fn folded(
        &self,
        group: Range<usize>,
        runs: Result<Vec<Vec<LineSum>>, SolveError>,
    ) -> Result<Vec<LineSum>, SolveError> {
        let mut total = self.plan.sums(group);
        let sums = self.sums;
        if sums.cluster.is_alone() {
            for run in runs? {
                total
                    .iter_mut()
                    .zip(&run)
                    .for_each(|(total, sum)| total.merge(sum));
            }
            return Ok(total);
        }
        let length = total.iter().map(|sum| sum.numbers().len()).sum();
        let flat =
            |run: Vec<LineSum>| -> Vec<f64> { run.iter().flat_map(LineSum::numbers).copied().collect() };
        let runs = runs.map(|runs| runs.into_iter().map(flat).collect());
        let all = sums.cluster.fold(sums.all_runs, length, runs)?;
        let mut rest = all.as_slice();
        for sum in &mut total {
            let (own, others) = rest.split_at(sum.numbers().len());
            sum.numbers_mut().copy_from_slice(own);
            rest = others;
        }
        Ok(total)
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
