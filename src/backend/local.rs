//! A score as a function of (ω, b) near a neuron: value, gradient and curvature, for Newton's method.

use crate::network::Neuron;
use crate::symbol::Symbol;

/// ⟨∇L(u), σ(ω·x + b)⟩ and its derivatives in (ω₁ … ω_d, b).
///
/// The curvature is that of the sum over points; for ReLU^k with derivatives of order k − 1 or k in
/// the loss it misses what happens when a point crosses the kink.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalScore {
    /// The score.
    pub value: f64,
    /// Its d + 1 first derivatives.
    pub gradient: Vec<f64>,
    /// Its second derivatives, (d + 1)² row by row.
    pub hessian: Vec<f64>,
}

/// How many sums per neuron and symbol a local score is made of.
pub(super) fn sums_per_symbol(dimension: usize) -> usize {
    3 + 2 * dimension + dimension * (dimension + 1) / 2
}

/// The sums over the points for one neuron and one symbol, in this order:
/// Σρσ^(m); Σρσ^(m+1), Σρxσ^(m+1); Σρσ^(m+2), Σρxσ^(m+2), Σρxxᵀσ^(m+2) (upper triangle).
pub(super) struct LocalSums<'a> {
    values: &'a [f64],
    dimension: usize,
}

impl LocalSums<'_> {
    fn slope(&self, i: usize) -> f64 {
        self.values[2 + i]
    }

    fn bend(&self, i: usize) -> f64 {
        self.values[3 + self.dimension + i]
    }

    fn bend2(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.min(j), i.max(j));
        // Rows of the upper triangle before row i: d + (d−1) + … + (d−i+1).
        let before = i * self.dimension - i * i.saturating_sub(1) / 2;
        self.values[3 + 2 * self.dimension + before + j - i]
    }
}

impl LocalScore {
    /// Nothing summed yet.
    pub(super) fn zero(dimension: usize) -> Self {
        Self {
            value: 0.0,
            gradient: vec![0.0; dimension + 1],
            hessian: vec![0.0; (dimension + 1) * (dimension + 1)],
        }
    }

    /// Adds the part of a term from its sums, symbol after symbol.
    pub(super) fn add(&mut self, symbols: &[Symbol], neuron: &Neuron, sums: &[f64]) {
        let d = neuron.omega.len();
        let side = d + 1;
        for (symbol, values) in symbols.iter().zip(sums.chunks(sums_per_symbol(d))) {
            let sums = LocalSums { values, dimension: d };
            let p = symbol.at(&neuron.omega);
            let dp = symbol.gradient_at(&neuron.omega);
            let ddp = symbol.hessian_at(&neuron.omega);
            self.value += p * values[0];
            self.gradient[d] += p * values[1];
            self.hessian[d * side + d] += p * values[2 + d];
            for i in 0..d {
                self.gradient[i] += dp[i] * values[0] + p * sums.slope(i);
                let mixed = dp[i] * values[1] + p * sums.bend(i);
                self.hessian[i * side + d] += mixed;
                self.hessian[d * side + i] += mixed;
                for j in 0..d {
                    self.hessian[i * side + j] += ddp[i * d + j] * values[0]
                        + dp[i] * sums.slope(j)
                        + dp[j] * sums.slope(i)
                        + p * sums.bend2(i, j);
                }
            }
        }
    }
}
