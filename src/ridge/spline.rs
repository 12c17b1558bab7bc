//! Many ReLU^k neurons along one direction, evaluated as one piecewise polynomial.

use super::knots::Rungs;
use super::taylor_shift;
use crate::activation::falling_factorial;

/// S(t) = Σ aⱼ σ(sⱼ t + bⱼ) with signs sⱼ = ±1 and σ = ReLU^k.
#[derive(Debug, Clone)]
pub struct Spline {
    power: usize,
    knots: Vec<f64>,
    /// Per bin the coefficients of powers of the distance from the bin's origin.
    pieces: Vec<f64>,
}

impl Spline {
    /// The spline of neurons given as (coefficient, sign, bias).
    pub fn new(power: usize, neurons: &[(f64, f64, f64)]) -> Self {
        let mut sorted: Vec<(f64, f64, f64)> = neurons
            .iter()
            .map(|&(a, sign, bias)| (-sign * bias, sign, a))
            .collect();
        sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
        let knots: Vec<f64> = sorted.iter().map(|&(knot, ..)| knot).collect();
        let size = power + 1;
        let mut pieces = vec![0.0; (knots.len() + 1) * size];
        // Neurons with sign + live to the right of their knot: carry them from left to right.
        let mut running = vec![0.0; size];
        for (j, &(knot, sign, a)) in sorted.iter().enumerate() {
            if j > 0 {
                taylor_shift(&mut running, knot - knots[j - 1]);
            }
            if sign > 0.0 {
                running[power] += a;
            }
            add(&mut pieces[(j + 1) * size..][..size], &running);
        }
        // Those with sign − live to the left: (τ − t)^k = (−1)^k (t − τ)^k, carried from right to left.
        let flip = if power.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut running = vec![0.0; size];
        for (j, &(knot, sign, a)) in sorted.iter().enumerate().rev() {
            if sign < 0.0 {
                running[power] += flip * a;
            }
            if j > 0 {
                taylor_shift(&mut running, knots[j - 1] - knot);
            }
            add(&mut pieces[j * size..][..size], &running);
        }
        Self { power, knots, pieces }
    }

    /// The pieces between 0 and 1: where each begins, and its coefficients of powers of the distance from there.
    pub fn pieces_within_one(&self) -> Vec<(f64, Vec<f64>)> {
        let size = self.power + 1;
        let first = self.knots.partition_point(|&knot| knot <= 0.0);
        let last = self.knots.partition_point(|&knot| knot < 1.0);
        let piece = |bin: usize| self.pieces[bin * size..][..size].to_vec();
        let mut at_zero = piece(first);
        if !self.knots.is_empty() {
            taylor_shift(&mut at_zero, -self.knots.origin(first));
        }
        let others = (first..last).map(|knot| (self.knots[knot], piece(knot + 1)));
        std::iter::once((0.0, at_zero)).chain(others).collect()
    }

    /// Adds S^(m)(t) to `out[m]` for each m asked for by a non-empty column.
    pub fn add_derivatives(&self, t: &[f64], out: &mut [Vec<f64>]) {
        let size = self.power + 1;
        let mut bin = 0;
        let places: Vec<(u32, f64)> = t
            .iter()
            .map(|&t| {
                bin = self.knots.bin(t, bin);
                (bin as u32, t - self.knots.origin(bin))
            })
            .collect();
        for (m, column) in out.iter_mut().enumerate() {
            if column.is_empty() || m > self.power {
                continue;
            }
            let factors: Vec<f64> = (m..size).map(|r| falling_factorial(r, m)).collect();
            for (sum, &(bin, delta)) in column.iter_mut().zip(&places) {
                let piece = &self.pieces[bin as usize * size + m..(bin as usize + 1) * size];
                *sum += piece
                    .iter()
                    .zip(&factors)
                    .rev()
                    .fold(0.0, |value, (c, factor)| value * delta + factor * c);
            }
        }
    }
}

fn add(sum: &mut [f64], terms: &[f64]) {
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
}
