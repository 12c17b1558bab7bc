//! Scores with their slopes in (ω, b).

use super::{CpuBackend, Scratch};
use crate::activation::Activation;
use crate::backend::local::{LocalScore, sums_per_symbol};
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::evaluate::{Evaluator, blocks, project};
use crate::loss::{Term, TermTile};
use crate::network::{Network, Neuron};
use crate::ridge::direct;
use crate::symbol::Symbol;
use crate::vector::{dot, multiply};

impl CpuBackend {
    /// The scores at some neurons with their slopes.
    pub(super) fn scores_with_slopes(
        &mut self,
        u: &Network,
        neurons: &[Neuron],
    ) -> Result<Vec<LocalScore>, SolveError> {
        self.keep_channels(u)?;
        let prepared = Evaluator::new(u);
        let (activation, d) = (self.activation, u.dimension);
        let on_one_line = d == 1 && neurons.iter().all(|neuron| neuron.omega[0] != 0.0);
        if let (Some(power), true) = (activation.relu_power(), on_one_line) {
            return self.local_scores_on_a_line(power, &prepared, neurons);
        }
        // Per term: the sums of every neuron and symbol.
        let new = || {
            let sizes = self.loss.terms.iter().map(|term| term.symbols.len());
            let sums = sizes.map(|symbols| vec![0.0; neurons.len() * symbols * sums_per_symbol(d)]);
            sums.collect::<Vec<Vec<f64>>>()
        };
        let sums = self.reduce(
            new,
            |sums, term, tile, scratch| {
                let rho = self.channels_at(&prepared, term, tile, scratch)?;
                let places = sums[scratch.term].chunks_mut(term.symbols.len() * sums_per_symbol(d));
                for (neuron, sums) in neurons.iter().zip(places) {
                    add_local_sums((activation, neuron), term, tile, &rho, scratch, sums);
                }
                Ok(())
            },
            |total: &mut Vec<Vec<f64>>, sums| {
                for (total, sums) in total.iter_mut().zip(sums) {
                    total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
                }
            },
        )?;
        let mut scores = vec![LocalScore::zero(d); neurons.len()];
        for (term, sums) in self.loss.terms.iter().zip(&sums) {
            let per_neuron = sums.chunks(term.symbols.len() * sums_per_symbol(d));
            for ((score, neuron), sums) in scores.iter_mut().zip(neurons).zip(per_neuron) {
                score.add(&term.symbols, neuron, sums);
            }
        }
        Ok(scores)
    }

    /// Local scores in one dimension, by sweeps. The score s is homogeneous in (ω, b), so Euler's
    /// ω ∂s/∂ω + b ∂s/∂b = k s gives the derivative in ω.
    fn local_scores_on_a_line(
        &self,
        power: usize,
        prepared: &Evaluator,
        neurons: &[Neuron],
    ) -> Result<Vec<LocalScore>, SolveError> {
        let along = Candidates::List(neurons);
        let channels = |term: &Term, tile: &TermTile, scratch: &mut Scratch| {
            self.channels_at(prepared, term, tile, scratch)
        };
        let values = self.scores(along, channels)?;
        let slopes = self.scores_of_derivative(1, along, channels)?;
        let scores = neurons.iter().zip(values).zip(slopes);
        Ok(scores
            .map(|((neuron, value), slope)| {
                let omega = neuron.omega[0];
                let by_bias = slope * omega.signum();
                let by_omega = (power as f64 * value - neuron.bias * by_bias) / omega;
                LocalScore {
                    value,
                    gradient: vec![by_omega, by_bias],
                }
            })
            .collect())
    }
}

/// Adds the sums of a local score over a tile, symbol after symbol.
fn add_local_sums(
    (activation, neuron): (Activation, &Neuron),
    term: &Term,
    tile: &TermTile,
    rho: &[Vec<f64>],
    scratch: &mut Scratch,
    sums: &mut [f64],
) {
    let top = term.symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
    for block in blocks(tile.tile.len()) {
        project(&neuron.omega, &tile.tile, block.clone(), &mut scratch.t);
        let mut derivatives = vec![vec![0.0; block.len()]; top + 1];
        direct::add_derivatives(activation, (1.0, 1.0, neuron.bias), &scratch.t, &mut derivatives);
        let per_symbol = sums.chunks_mut(sums_per_symbol(neuron.omega.len()));
        for ((symbol, rho), sums) in term.symbols.iter().zip(rho).zip(per_symbol) {
            let rho = &rho[block.clone()];
            sums[0] += dot(rho, &derivatives[symbol.order()]);
            let mut slope = derivatives[symbol.order() + 1].clone();
            multiply(&mut slope, rho);
            sums[1] += slope.iter().sum::<f64>();
            for (sum, x) in sums[2..].iter_mut().zip(&tile.tile.coordinates) {
                *sum += dot(&slope, &x[block.clone()]);
            }
        }
    }
}
