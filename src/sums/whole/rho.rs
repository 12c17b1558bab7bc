//! Scores from sums of whole numbers.

use super::engine::{Functional, LineValues, NeuronList, SUM_BITS};
use super::fixed::{ONE_BITS, exponent, fixed, power_of_two};
use super::runs::{LARGEST_DOUBLINGS, LineSums, Runs};
use super::term::WholeTerm;
use super::{BLOCK, WholeSums};
use crate::activation::falling_factorial;
use crate::candidates::{Candidates, Grid, Knots, Line};
use crate::error::SolveError;
use crate::network::Neuron;
use crate::ridge::LocalScore;
use crate::sums::{Accuracy, Rho, Scores, Slopes};
use rayon::prelude::*;

/// The sums of a device are over blocks of points: as many as fit 64 bits.
const _: () = assert!(BLOCK <= 1 << (SUM_BITS - 1));

/// [`Rho`] in whole numbers.
pub(super) struct WholeRho<'a> {
    pub(super) sums: &'a WholeSums,
    pub(super) functional: Functional,
}

/// What one stands for in a neuron's argument, and the argument; nothing where the neuron vanishes.
type Argument = Option<(f64, Vec<i64>)>;

/// A neuron of a list that lies on a knot: its place in the list, its knot and its sign.
type OnKnot = (usize, usize, f64);

impl WholeRho<'_> {
    /// By what a term's channels are multiplied along some lines.
    fn values(&self, term: &WholeTerm, runs: &Runs, which: &[usize]) -> LineValues {
        let (power, symbols) = (term.power, &term.term.symbols);
        let mut all = LineValues {
            mantissas: Vec::with_capacity(which.len() * symbols.len()),
            powers: Vec::with_capacity(which.len() * symbols.len()),
            doublings: Vec::with_capacity(which.len()),
            among_others: self.sums.others.are_there(),
        };
        for &line in which {
            let line = &runs.lines[line];
            let doublings = doublings(term, line);
            let length = line.knots.step * power_of_two(doublings as i32);
            for symbol in symbols {
                let m = symbol.order();
                let value = match m <= power {
                    true => {
                        let scale = length.powi((power - m) as i32);
                        symbol.at(&line.omega) * falling_factorial(power, m) * scale
                    }
                    false => 0.0,
                };
                let e = exponent(value.abs());
                all.mantissas.push(fixed(value, e));
                all.powers.push(e);
            }
            all.doublings.push(doublings);
        }
        all
    }

    /// What follows from the sums of each of some lines, one after the other: `of_line` makes so many numbers of the
    /// sums of a line under each term. Processes that share the points share the lines, too.
    fn by_line(
        &self,
        runs: &Runs,
        (which, lengths): (&[usize], &[usize]),
        of_line: impl Fn(usize, &[&LineSums]) -> Vec<f64> + Sync,
    ) -> Result<Vec<f64>, SolveError> {
        let (terms, others) = (self.sums.terms.iter(), &self.sums.others);
        let values: Vec<LineValues> = terms.map(|term| self.values(term, runs, which)).collect();
        let engine = &*self.sums.engine;
        others.agree_on(&self.functional, engine)?;
        let sums = engine.line_sums(&self.functional, runs, which, &values);
        let (share, sums) = others.lines(runs, which, sums)?;
        let own = share.clone().into_par_iter().flat_map_iter(|place| {
            let of_terms: Vec<&LineSums> = sums.iter().map(|lines| &lines[place - share.start]).collect();
            of_line(place, &of_terms)
        });
        let of_rank = |rank| lengths[others.cluster.share_of(rank, which.len())].iter().sum();
        let of_ranks: Vec<usize> = (0..others.cluster.size()).map(of_rank).collect();
        Ok(others.cluster.gathered(&own.collect::<Vec<_>>(), &of_ranks))
    }

    fn grid_scores(&self, grid: &Grid) -> Result<Vec<f64>, SolveError> {
        let runs = self.sums.runs_of(grid);
        let which: Vec<usize> = (0..grid.lines.len()).collect();
        let size = self.sums.power + 1;
        let length = |line: &Line| line.knots.count * if grid.mirrored { 2 } else { 1 };
        let lengths: Vec<usize> = grid.lines.iter().map(length).collect();
        self.by_line(&runs, (&which, &lengths), |line, sums| {
            let count = grid.lines[line].knots.count;
            let mut scores = vec![0.0; lengths[line]];
            let (plus, minus) = scores.split_at_mut(count);
            for of_term in sums {
                of_term.add_scores(size, count, plus);
                if grid.mirrored {
                    of_term.add_mirrored_scores(size, count, minus);
                }
            }
            scores
        })
    }

    /// Neurons on the knots of the grid at hand by the runs of their lines, the others one by one.
    fn scores_of_list(&self, list: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        let mut scores = vec![0.0; list.len()];
        let Some(runs) = self.sums.kept_runs() else {
            self.add_neurons(list, &(0..list.len()).collect::<Vec<_>>(), &mut scores)?;
            return Ok(scores);
        };
        let mut on_lines: Vec<Vec<OnKnot>> = vec![Vec::new(); runs.lines.len()];
        let mut others = Vec::new();
        for (index, neuron) in list.iter().enumerate() {
            match runs.place_of(neuron) {
                Some((line, knot, sign)) => on_lines[line].push((index, knot, sign)),
                None => others.push(index),
            }
        }
        let which: Vec<usize> = (0..on_lines.len())
            .filter(|&line| !on_lines[line].is_empty())
            .collect();
        let lengths: Vec<usize> = which.iter().map(|&line| on_lines[line].len()).collect();
        if !which.is_empty() {
            let size = self.sums.power + 1;
            let of_line = |place: usize, sums: &[&LineSums]| {
                let line = which[place];
                scores_on(size, runs.lines[line].knots.count, sums, &on_lines[line])
            };
            let by_line = self.by_line(&runs, (&which, &lengths), of_line)?;
            let members = which.iter().flat_map(|&line| &on_lines[line]);
            members
                .zip(by_line)
                .for_each(|((index, ..), score)| scores[*index] = score);
        }
        self.add_neurons(list, &others, &mut scores)?;
        Ok(scores)
    }

    fn add_neurons(&self, list: &[Neuron], which: &[usize], scores: &mut [f64]) -> Result<(), SolveError> {
        if which.is_empty() {
            return Ok(());
        }
        let neurons: Vec<Neuron> = which.iter().map(|&index| list[index].clone()).collect();
        for (&index, score) in which.iter().zip(self.local_scores(&neurons, false)?) {
            scores[index] = score.value;
        }
        Ok(())
    }

    /// Scores of neurons one by one, with their slopes if asked for.
    fn local_scores(&self, neurons: &[Neuron], slopes: bool) -> Result<Vec<LocalScore>, SolveError> {
        let (engine, others) = (&*self.sums.engine, &self.sums.others);
        let dimension = self.sums.terms.first().map_or(0, WholeTerm::dimension);
        // Those that vanish in the box have no part in the sums.
        let arguments = |term: &WholeTerm| {
            neurons
                .iter()
                .map(|neuron| term.frame().argument(neuron))
                .collect()
        };
        let arguments: Vec<Vec<Argument>> = self.sums.terms.iter().map(arguments).collect();
        let lists: Vec<NeuronList> = arguments
            .iter()
            .map(|arguments| NeuronList {
                arguments: arguments
                    .iter()
                    .flatten()
                    .flat_map(|(_, argument)| argument.clone())
                    .collect(),
                count: arguments.iter().flatten().count(),
                slopes,
            })
            .collect();
        others.agree_on(&self.functional, engine)?;
        let sums = others.neurons(engine.neuron_sums(&self.functional, &lists))?;
        let mut scores = vec![LocalScore::zero(dimension); neurons.len()];
        for (index, term) in self.sums.terms.iter().enumerate() {
            let width = term.term.symbols.len() * lists[index].sums(dimension);
            let active = (0..neurons.len()).filter_map(|n| Some((n, arguments[index][n].as_ref()?.0)));
            let (exponents, sums) = &sums[index];
            for ((n, scale), sums) in active.zip(sums.chunks(width)) {
                let real = real_sums(term, exponents, scale, sums);
                scores[n].add_by_symbol(&term.term.symbols, &neurons[n], &real);
            }
        }
        Ok(scores)
    }
}

/// The scores of neurons on the `count` knots of a line.
fn scores_on(size: usize, count: usize, sums: &[&LineSums], members: &[OnKnot]) -> Vec<f64> {
    let (mut plus, mut minus) = (vec![0.0; count], vec![0.0; count]);
    for of_term in sums {
        of_term.add_scores(size, count, &mut plus);
        of_term.add_mirrored_scores(size, count, &mut minus);
    }
    let score = |&(_, knot, sign): &OnKnot| if sign > 0.0 { plus[knot] } else { minus[knot] };
    members.iter().map(score).collect()
}

/// How often the width of a bin is doubled to be the largest distance between a point and a knot of a line.
fn doublings(term: &WholeTerm, line: &Line) -> u32 {
    let (low, length) = term.frame().range(&line.omega);
    let Knots { first, step, count } = line.knots;
    let last = first + step * count as f64;
    let widths = ((low + length).max(last) - low.min(first)) / step;
    widths.log2().ceil().clamp(0.0, f64::from(LARGEST_DOUBLINGS)) as u32
}

/// A neuron's sums as real numbers: Σρσ^(m), Σρσ^(m+1), Σρxσ^(m+1) for each symbol, the last two zero where they were
/// not asked for. `scale` is what one stands for in its argument.
fn real_sums(term: &WholeTerm, exponents: &[i32], scale: f64, sums: &[i128]) -> Vec<f64> {
    let (k, symbols) = (term.power, &term.term.symbols);
    let per_symbol = sums.len() / symbols.len();
    let frame = term.frame();
    let mut real = Vec::new();
    for ((symbol, sums), &e) in symbols.iter().zip(sums.chunks(per_symbol)).zip(exponents) {
        let m = symbol.order();
        let unit = power_of_two(e + SUM_BITS as i32 - ONE_BITS as i32);
        let of_order = |m: usize, sum: i128| match m <= k {
            true => sum as f64 * unit * falling_factorial(k, m) * scale.powi((k - m) as i32),
            false => 0.0,
        };
        real.push(of_order(m, sums[0]));
        let asked = sums.len() > 1;
        let slope = if asked {
            of_order(m + 1, sums[sums.len() - 1])
        } else {
            0.0
        };
        real.push(slope);
        let axes = frame.lower.iter().zip(&frame.width).enumerate();
        real.extend(axes.map(|(axis, (low, width))| {
            low * slope + width * of_order(m + 1, if asked { sums[1 + axis] } else { 0 })
        }));
    }
    real
}

impl Rho for WholeRho<'_> {
    fn scores(&self, along: Candidates, _: Accuracy) -> Result<Scores, SolveError> {
        match along {
            Candidates::Grid(grid) => self.grid_scores(grid),
            Candidates::List(list) => self.scores_of_list(list),
        }
        .map(Scores::exact)
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        Some(self)
    }
}

impl Slopes for WholeRho<'_> {
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        self.local_scores(neurons, true)
    }
}
