//! A score as a function of (ω, b) near a neuron, for the refinement.

use crate::network::Neuron;
use crate::symbol::Symbol;

/// ⟨∇L(u), σ(ω·x + b)⟩ and its derivatives in (ω₁ … ω_d, b).
#[derive(Debug, Clone, PartialEq)]
pub struct LocalScore {
    /// The score.
    pub value: f64,
    /// Its d + 1 first derivatives.
    pub gradient: Vec<f64>,
}

/// How many sums per neuron and symbol a local score is made of: Σρσ^(m), Σρσ^(m+1), Σρxσ^(m+1).
pub(super) fn sums_per_symbol(dimension: usize) -> usize {
    2 + dimension
}

impl LocalScore {
    /// Nothing summed yet.
    pub(super) fn zero(dimension: usize) -> Self {
        Self {
            value: 0.0,
            gradient: vec![0.0; dimension + 1],
        }
    }

    /// Adds the part of a term from its sums, symbol after symbol.
    pub(super) fn add(&mut self, symbols: &[Symbol], neuron: &Neuron, sums: &[f64]) {
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
