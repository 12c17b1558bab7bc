//! The squares of the candidates' norms.

use super::field::AtPoints;
use super::scan::LineScan;
use super::{CpuSums, Scratch};
use crate::activation::{Activation, falling_factorial};
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::loss::{Term, TermTile};
use crate::network::Neuron;
use crate::ridge::{Plan, blocks, direct, project};
use crate::symbol::Symbol;
use rayon::prelude::*;
use std::borrow::Cow;

/// So many neurons without a sweep at once: every run of points holds a sum for each.
const NEURONS_AT_ONCE: usize = 1 << 16;
/// So many at once where their values at the points are needed.
const VALUES_AT_ONCE: usize = 64;

impl CpuSums {
    /// ⟨∇²L(u) g, g⟩ for each candidate.
    ///
    /// Products of derivatives of ReLU^k are powers again: σ^(m) σ^(m′) is, up to a factor, the derivative of
    /// order m + m′ of ReLU^2k. One sweep with that activation gives the squares for all offsets of a line.
    pub(super) fn squares_at(&self, u: Option<&AtPoints>, along: Candidates) -> Result<Vec<f64>, SolveError> {
        if self.loss.terms.iter().any(Term::is_paired) {
            return self.squares_by_values(along);
        }
        let Some(power) = self.activation.relu_power() else {
            return self.squares_one_by_one(u, along);
        };
        let plan = Plan::new(Activation::Relu(2 * power as u32), along);
        let orders = |term: &Term| {
            let pairs = term.curvature_pairs().into_iter();
            let order = |(c, d): (usize, usize)| term.symbols[c].order() + term.symbols[d].order();
            pairs.map(order).collect()
        };
        let factors = |term: &Term, omega: &[f64]| {
            let at = |c: usize| {
                let order = term.symbols[c].order();
                match order <= power {
                    true => term.symbols[c].at(omega) * falling_factorial(power, order),
                    false => 0.0,
                }
            };
            let of_pair = |((c, d), order): ((usize, usize), usize)| match order <= 2 * power {
                true => at(c) * at(d) / falling_factorial(2 * power, order),
                false => 0.0,
            };
            let pairs = term.curvature_pairs().into_iter();
            pairs.zip(orders(term)).map(of_pair).collect()
        };
        let columns = |term: &Term, tile: &TermTile, scratch: &mut Scratch| {
            if term.is_load_only() {
                return Ok(Cow::Owned(Vec::new()));
            }
            let u = u.map(|u| u.values_at(term, tile, scratch));
            let columns = term.curvature_columns(tile, u.as_deref(), &mut scratch.workspace)?;
            Ok(Cow::Owned(columns))
        };
        LineScan::new(self, &plan, &orders, &factors).scores(0, &columns)
    }

    /// The same from the values at the points, where these come in pairs: the square of a jump is no sum over points.
    fn squares_by_values(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let neuron = |index: usize| match along {
            Candidates::Grid(grid) => grid.neuron(index),
            Candidates::List(list) => list[index].clone(),
        };
        let mut squares = Vec::with_capacity(along.len());
        for start in (0..along.len()).step_by(VALUES_AT_ONCE) {
            let some = (start..(start + VALUES_AT_ONCE).min(along.len())).into_par_iter();
            let values = some.map(|index| self.own_values_of(&neuron(index), None));
            let values = values.collect::<Result<Vec<_>, _>>();
            squares.extend(self.squares_of_values(&self.cluster.agree(values)?));
        }
        Ok(squares)
    }

    /// The same for activations without a sweep, for a part of the candidates at a time.
    fn squares_one_by_one(&self, u: Option<&AtPoints>, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let mut squares = Vec::with_capacity(along.len());
        for start in (0..along.len()).step_by(NEURONS_AT_ONCE) {
            let some = start..(start + NEURONS_AT_ONCE).min(along.len());
            let neurons: Cow<[Neuron]> = match along {
                Candidates::Grid(grid) => some.map(|index| grid.neuron(index)).collect(),
                Candidates::List(list) => Cow::Borrowed(&list[some]),
            };
            squares.extend(self.squares_of(u, &neurons)?);
        }
        Ok(squares)
    }

    fn squares_of(&self, u: Option<&AtPoints>, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        self.sums(neurons.len(), |sums, term, tile, scratch| {
            let u = u.map(|u| u.values_at(term, tile, scratch));
            let columns = term.curvature_columns(tile, u.as_deref(), &mut scratch.workspace)?;
            for (sum, neuron) in sums.iter_mut().zip(neurons) {
                *sum += self.square_at_tile(neuron, term, tile, &columns, &mut scratch.t);
            }
            Ok(())
        })
    }

    /// One neuron's part at a tile.
    fn square_at_tile(
        &self,
        neuron: &Neuron,
        term: &Term,
        tile: &TermTile,
        columns: &[Vec<f64>],
        t: &mut Vec<f64>,
    ) -> f64 {
        let top = term.symbols.iter().map(Symbol::order).max().unwrap_or(0);
        let factors: Vec<f64> = term
            .symbols
            .iter()
            .map(|symbol| symbol.at(&neuron.omega))
            .collect();
        let mut sum = 0.0;
        for block in blocks(tile.tile.len()) {
            project(&neuron.omega, &tile.tile, block.clone(), t);
            let mut derivatives = vec![vec![0.0; block.len()]; top + 1];
            direct::add_derivatives(self.activation, (1.0, 1.0, neuron.bias), t, &mut derivatives);
            for ((c, d), column) in term.curvature_pairs().into_iter().zip(columns) {
                let (a, b) = (term.symbols[c].order(), term.symbols[d].order());
                let products = derivatives[a]
                    .iter()
                    .zip(&derivatives[b])
                    .zip(&column[block.clone()]);
                sum += factors[c] * factors[d] * products.map(|((a, b), w)| w * a * b).sum::<f64>();
            }
        }
        sum
    }
}
