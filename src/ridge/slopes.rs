//! A score as a function of (ω, b) near a neuron, for the refinement.

use super::{blocks, direct, project};
use crate::activation::Activation;
use crate::network::Neuron;
use crate::points::Tile;
use crate::symbol::Symbol;
use crate::vector::{dot, multiply};

/// ⟨∇L(u), σ(ω·x + b)⟩ and its derivatives in (ω₁ … ω_d, b).
#[derive(Debug, Clone, PartialEq)]
pub struct LocalScore {
    /// The score.
    pub value: f64,
    /// Its d + 1 first derivatives.
    pub gradient: Vec<f64>,
}

/// How many sums per neuron and symbol a local score is made of: Σρσ^(m), Σρσ^(m+1), Σρxσ^(m+1).
pub fn sums_per_symbol(dimension: usize) -> usize {
    2 + dimension
}

impl LocalScore {
    /// Nothing summed yet.
    pub fn zero(dimension: usize) -> Self {
        Self {
            value: 0.0,
            gradient: vec![0.0; dimension + 1],
        }
    }

    /// Adds the part of a term from its sums, symbol after symbol.
    pub fn add(&mut self, symbols: &[Symbol], neuron: &Neuron, sums: &[f64]) {
        let d = neuron.omega.len();
        for (symbol, sums) in symbols.iter().zip(sums.chunks(sums_per_symbol(d))) {
            let p = symbol.at(&neuron.omega);
            let dp = symbol.gradient_at(&neuron.omega);
            self.value += p * sums[0];
            self.gradient[d] += p * sums[1];
            for i in 0..d {
                self.gradient[i] += dp[i] * sums[0] + p * sums[2 + i];
            }
        }
    }
}

/// Adds the sums of a local score over a tile with channels `rho`, symbol after symbol.
pub fn add_local_sums(
    (activation, neuron): (Activation, &Neuron),
    symbols: &[Symbol],
    tile: &Tile,
    rho: &[Vec<f64>],
    t: &mut Vec<f64>,
    sums: &mut [f64],
) {
    let top = symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
    for block in blocks(tile.len()) {
        project(&neuron.omega, tile, block.clone(), t);
        let mut derivatives = vec![vec![0.0; block.len()]; top + 1];
        direct::add_derivatives(activation, (1.0, 1.0, neuron.bias), t, &mut derivatives);
        let per_symbol = sums.chunks_mut(sums_per_symbol(neuron.omega.len()));
        for ((symbol, rho), sums) in symbols.iter().zip(rho).zip(per_symbol) {
            let rho = &rho[block.clone()];
            sums[0] += dot(rho, &derivatives[symbol.order()]);
            let mut slope = derivatives[symbol.order() + 1].clone();
            multiply(&mut slope, rho);
            sums[1] += slope.iter().sum::<f64>();
            for (sum, x) in sums[2..].iter_mut().zip(&tile.coordinates) {
                *sum += dot(&slope, &x[block.clone()]);
            }
        }
    }
}
