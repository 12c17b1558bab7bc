//! The scores of all offsets of a direction in one pass over the points.

use super::knots::{Ladder, Rungs};
use super::taylor_shift;
use crate::activation::falling_factorial;

/// Sums over the points, bin by bin, from which the score of ReLU^k at every knot follows exactly.
///
/// A point at t with channels q_m adds P(t − τ) = Σ_m q_m k!/(k−m)! (t − τ)^(k−m) to the score of each
/// knot τ below it. Every bin keeps the sums of the Taylor coefficients of P at the bin's origin; a
/// recursion from the top adds up the bins above each knot (one from the bottom serves the mirrored
/// neurons). The cost is O(points) + O(knots), whatever the number of knots.
#[derive(Debug, Clone)]
pub struct Sweep {
    power: usize,
    moments: Vec<f64>,
}

impl Sweep {
    /// Empty sums for ReLU^`power` over the bins of a ladder with `knots` knots.
    pub fn new(power: usize, knots: usize) -> Self {
        Self {
            power,
            moments: vec![0.0; (knots + 1) * (power + 1)],
        }
    }

    /// Adds points: their t and, per order m, their channel q_m (empty where there is none).
    pub fn add(&mut self, ladder: &Ladder, t: &[f64], channels: &[Vec<f64>]) {
        match ladder {
            Ladder::Even(knots) => self.add_on(knots, t, channels),
            Ladder::Sorted(knots) => self.add_on(knots, t, channels),
        }
    }

    fn add_on(&mut self, rungs: &impl Rungs, t: &[f64], channels: &[Vec<f64>]) {
        let has = |m: usize| channels.get(m).is_some_and(|q| !q.is_empty());
        let top = (0..channels.len()).rev().find(|&m| has(m));
        match (self.power, top) {
            (2, Some(0 | 1)) => self.add_quadratic(rungs, t, &channels[0], channels.get(1)),
            _ => self.add_general(rungs, t, channels),
        }
    }

    /// k = 2 with values and first derivatives, the common case, written out.
    fn add_quadratic(&mut self, rungs: &impl Rungs, t: &[f64], values: &[f64], slopes: Option<&Vec<f64>>) {
        let mut bin = 0;
        for (i, &t) in t.iter().enumerate() {
            bin = rungs.bin(t, bin);
            let delta = t - rungs.origin(bin);
            let value = values.get(i).copied().unwrap_or(0.0);
            let slope = slopes.and_then(|q| q.get(i)).copied().unwrap_or(0.0);
            let moments = &mut self.moments[3 * bin..3 * bin + 3];
            let inner = value * delta + slope;
            moments[0] += delta * (inner + slope);
            moments[1] += 2.0 * inner;
            moments[2] += value;
        }
    }

    fn add_general(&mut self, rungs: &impl Rungs, t: &[f64], channels: &[Vec<f64>]) {
        let size = self.power + 1;
        let factors: Vec<f64> = (0..size).map(|m| falling_factorial(self.power, m)).collect();
        let mut polynomial = vec![0.0; size];
        let mut bin = 0;
        for (i, &t) in t.iter().enumerate() {
            bin = rungs.bin(t, bin);
            polynomial.fill(0.0);
            for (m, q) in channels
                .iter()
                .enumerate()
                .filter(|(m, q)| !q.is_empty() && *m < size)
            {
                polynomial[self.power - m] = factors[m] * q[i];
            }
            taylor_shift(&mut polynomial, t - rungs.origin(bin));
            for (sum, c) in self.moments[bin * size..][..size].iter_mut().zip(&polynomial) {
                *sum += c;
            }
        }
    }

    /// Adds the sums of another part of the points.
    pub fn merge(&mut self, other: &Sweep) {
        for (sum, term) in self.moments.iter_mut().zip(&other.moments) {
            *sum += term;
        }
    }

    /// The scores of σ(t − τ) at every knot τ.
    pub fn scores(&self, rungs: &impl Rungs, out: &mut [f64]) {
        let size = self.power + 1;
        let mut running = vec![0.0; size];
        for j in (0..rungs.count()).rev() {
            if j + 1 < rungs.count() {
                // Seen from a knot further down every point is further away.
                taylor_shift(&mut running, rungs.at(j + 1) - rungs.at(j));
            }
            for (sum, term) in running.iter_mut().zip(&self.moments[(j + 1) * size..][..size]) {
                *sum += term;
            }
            out[j] = running[0];
        }
    }

    /// The scores of σ(τ − t) at every knot τ.
    pub fn mirrored_scores(&self, rungs: &impl Rungs, out: &mut [f64]) {
        let size = self.power + 1;
        // Σ_m (−1)^m q_m k!/(k−m)! (τ − t)^(k−m) = (−1)^k P(t − τ).
        let flip = if self.power.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut running = vec![0.0; size];
        for (j, score) in out.iter_mut().enumerate().take(rungs.count()) {
            for (sum, term) in running.iter_mut().zip(&self.moments[j * size..][..size]) {
                *sum += term;
            }
            if j > 0 {
                taylor_shift(&mut running, rungs.at(j - 1) - rungs.at(j));
            }
            *score = flip * running[0];
        }
    }
}
