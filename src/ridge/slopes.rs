//! A score as a function of (ω, b) near a neuron, for the refinement.

use super::{blocks, combine, direct, project};
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

/// How many sums per neuron a local score is made of: Σρ_c σ^(m) for each symbol c, and for each order m, with
/// q_m = Σ p_c(ω) ρ_c over its symbols, Σ q_m σ^(m+1) and Σ q_m x σ^(m+1).
pub fn local_width(symbols: &[Symbol], dimension: usize) -> usize {
    symbols.len() + orders(symbols) * (1 + dimension)
}

/// How many sums per neuron and symbol a local score is made of where they are not gathered by order.
pub fn sums_per_symbol(dimension: usize) -> usize {
    2 + dimension
}

fn orders(symbols: &[Symbol]) -> usize {
    symbols.iter().map(|symbol| symbol.order() + 1).max().unwrap_or(0)
}

impl LocalScore {
    /// Nothing summed yet.
    pub fn zero(dimension: usize) -> Self {
        Self {
            value: 0.0,
            gradient: vec![0.0; dimension + 1],
        }
    }

    /// Adds the part of a term from its sums symbol by symbol: Σρσ^(m), Σρσ^(m+1), Σρxσ^(m+1), as a device makes
    /// them.
    pub fn add_by_symbol(&mut self, symbols: &[Symbol], neuron: &Neuron, sums: &[f64]) {
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

    /// Adds the part of a term from its [sums](local_width).
    pub fn add(&mut self, symbols: &[Symbol], neuron: &Neuron, sums: &[f64]) {
        let d = neuron.omega.len();
        let (values, slopes) = sums.split_at(symbols.len());
        for (symbol, value) in symbols.iter().zip(values) {
            self.value += symbol.at(&neuron.omega) * value;
            let dp = symbol.gradient_at(&neuron.omega);
            self.gradient
                .iter_mut()
                .zip(dp)
                .for_each(|(sum, dp)| *sum += dp * value);
        }
        for slopes in slopes.chunks(1 + d) {
            self.gradient[d] += slopes[0];
            let in_omega = self.gradient.iter_mut().zip(&slopes[1..]);
            in_omega.for_each(|(sum, slope)| *sum += slope);
        }
    }
}

/// Adds the sums of a local score over a tile with channels `rho`.
pub fn add_local_sums(
    (activation, neuron): (Activation, &Neuron),
    symbols: &[Symbol],
    tile: &Tile,
    rho: &[Vec<f64>],
    t: &mut Vec<f64>,
    sums: &mut [f64],
) {
    let factors: Vec<f64> = symbols.iter().map(|symbol| symbol.at(&neuron.omega)).collect();
    let of_symbols: Vec<usize> = symbols.iter().map(Symbol::order).collect();
    let (values, slopes) = sums.split_at_mut(symbols.len());
    let mut channels = Vec::new();
    for block in blocks(tile.len()) {
        project(&neuron.omega, tile, block.clone(), t);
        let mut derivatives = vec![vec![0.0; block.len()]; orders(symbols) + 1];
        direct::add_derivatives(activation, (1.0, 1.0, neuron.bias), t, &mut derivatives);
        for ((sum, order), rho) in values.iter_mut().zip(&of_symbols).zip(rho) {
            *sum += dot(&rho[block.clone()], &derivatives[*order]);
        }
        combine(&factors, &of_symbols, rho, block.clone(), &mut channels);
        let per_order = slopes.chunks_mut(1 + neuron.omega.len()).zip(&mut channels);
        for (m, (sums, q)) in per_order.enumerate().filter(|(_, (_, q))| !q.is_empty()) {
            multiply(q, &derivatives[m + 1]);
            sums[0] += q.iter().sum::<f64>();
            for (sum, x) in sums[1..].iter_mut().zip(&tile.coordinates) {
                *sum += dot(q, &x[block.clone()]);
            }
        }
    }
}
