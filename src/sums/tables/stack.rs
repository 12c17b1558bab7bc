//! Functionals on functions of one axis, from tables of moments.

use super::{AxisNeuron, MomentTables};
use crate::activation::falling_factorial;
use crate::candidates::AxisBins;
use crate::error::SolveError;
use crate::ridge::taylor_shift;
use rayon::prelude::*;

/// A functional on functions of one axis: per axis and bin the Taylor coefficients from which a sweep
/// gets the scores of all knots (see [`crate::ridge::Sweep`]).
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) axes: Vec<Vec<f64>>,
}

impl Stack {
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let axes = self
            .axes
            .iter()
            .map(|axis| axis.iter().map(|value| factor * value).collect());
        Self { axes: axes.collect() }
    }

    pub(super) fn add(&mut self, factor: f64, other: &Stack) {
        for (sums, terms) in self.axes.iter_mut().zip(&other.axes) {
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += factor * term);
        }
    }
}

/// Sums over all points above (below) each edge, as Taylor coefficients there.
pub(super) struct EdgeSums {
    power: usize,
    bins: AxisBins,
    above: Vec<f64>,
    below: Vec<f64>,
}

impl EdgeSums {
    pub(super) fn new(power: usize, bins: AxisBins, moments: &[f64]) -> Self {
        let size = power + 1;
        let mut above = vec![0.0; (bins.count + 1) * size];
        let mut running = vec![0.0; size];
        for bin in (0..bins.count).rev() {
            taylor_shift(&mut running, bins.edge(bin + 1) - bins.edge(bin));
            running
                .iter_mut()
                .zip(&moments[bin * size..])
                .for_each(|(sum, term)| *sum += term);
            above[bin * size..][..size].copy_from_slice(&running);
        }
        let mut below = vec![0.0; (bins.count + 1) * size];
        let mut running = vec![0.0; size];
        for bin in 0..bins.count {
            running
                .iter_mut()
                .zip(&moments[bin * size..])
                .for_each(|(sum, term)| *sum += term);
            taylor_shift(&mut running, bins.edge(bin) - bins.edge(bin + 1));
            below[(bin + 1) * size..][..size].copy_from_slice(&running);
        }
        Self {
            power,
            bins,
            above,
            below,
        }
    }

    pub(super) fn score(&self, neuron: AxisNeuron) -> Result<f64, SolveError> {
        let place = edge_of(&self.bins, neuron.knot)?;
        let size = self.power + 1;
        let sums = if neuron.mirrored { &self.below } else { &self.above };
        let mut taylor = sums[place * size..][..size].to_vec();
        // Seen from a knot outside the domain all points are further away.
        taylor_shift(&mut taylor, self.bins.edge(place) - neuron.knot);
        let flip = if neuron.mirrored && !self.power.is_multiple_of(2) {
            -1.0
        } else {
            1.0
        };
        Ok(flip * taylor[0])
    }
}

/// The edge at a knot; for a knot outside, the nearest end of the domain.
fn edge_of(bins: &AxisBins, knot: f64) -> Result<usize, SolveError> {
    let place = (knot - bins.low) / bins.step;
    let nearest = place.round().clamp(0.0, bins.count as f64);
    let inside = (0.0..=bins.count as f64).contains(&place);
    if inside && (place - nearest).abs() > 1e-6 {
        return Err(SolveError::Unsupported(
            "knots off the bins' edges in moment tables",
        ));
    }
    Ok(nearest as usize)
}

fn binomial(n: usize, r: usize) -> f64 {
    falling_factorial(n, r) / falling_factorial(r, r)
}

/// The coefficients of a neuron on every bin of its axis: k + 1 powers of the distance from the edge.
fn pieces(power: usize, bins: &AxisBins, neuron: AxisNeuron) -> Result<Vec<f64>, SolveError> {
    let place = edge_of(bins, neuron.knot)?;
    let size = power + 1;
    let mut coefficients = vec![0.0; bins.count * size];
    let (active, flip) = match neuron.mirrored {
        false => (place..bins.count, 1.0),
        true => (0..place, if power.is_multiple_of(2) { 1.0 } else { -1.0 }),
    };
    for bin in active {
        let distance = bins.edge(bin) - neuron.knot;
        for (q, c) in coefficients[bin * size..][..size].iter_mut().enumerate() {
            *c = flip * binomial(power, q) * distance.powi((power - q) as i32);
        }
    }
    Ok(coefficients)
}

/// Turns sums Σ q₀δᵖ (p ≤ k) and Σ q₁δᵖ (p ≤ k − 1) per bin into the Taylor coefficients of a sweep.
fn sweep_moments(power: usize, values: &[f64], slopes: Option<&[f64]>) -> Vec<f64> {
    let size = power + 1;
    let mut moments = vec![0.0; values.len()];
    for (bin, (out, values)) in moments.chunks_mut(size).zip(values.chunks(size)).enumerate() {
        for (r, out) in out.iter_mut().enumerate() {
            *out = binomial(power, r) * values[power - r];
            if let (Some(slopes), true) = (slopes, r < power) {
                *out += power as f64 * binomial(power - 1, r) * slopes[bin * power + power - 1 - r];
            }
        }
    }
    moments
}

pub(super) fn load_stack(tables: &MomentTables) -> Stack {
    let axes = tables.loads.iter().zip(&tables.slope_loads);
    Stack {
        axes: axes
            .map(|(loads, slopes)| sweep_moments(tables.power, loads, Some(slopes)))
            .collect(),
    }
}

pub(super) fn curvature_stack(tables: &MomentTables, neuron: AxisNeuron) -> Result<Stack, SolveError> {
    let (power, size) = (tables.power, tables.power + 1);
    let coefficients = pieces(power, &tables.axes[neuron.axis], neuron)?;
    let axes: Vec<Vec<f64>> = (0..tables.axes.len())
        .into_par_iter()
        .map(|axis| {
            if axis != neuron.axis {
                return sweep_moments(power, &tables.across(neuron.axis, &coefficients, axis), None);
            }
            let bins = tables.axes[axis].count;
            let (mut values, mut slopes) = (vec![0.0; bins * size], vec![0.0; bins * power]);
            for bin in 0..bins {
                let v = &coefficients[bin * size..][..size];
                let moments = &tables.values[axis][bin * (2 * power + 1)..];
                for p in 0..size {
                    values[bin * size + p] = (0..size).map(|q| v[q] * moments[p + q]).sum();
                }
                let moments = &tables.slopes[axis][bin * (2 * power - 1)..];
                for p in 0..power {
                    slopes[bin * power + p] = (0..power)
                        .map(|q| (q + 1) as f64 * v[q + 1] * moments[p + q])
                        .sum();
                }
            }
            sweep_moments(power, &values, Some(&slopes))
        })
        .collect();
    Ok(Stack { axes })
}

/// ⟨∇²L g, g⟩ of a neuron: only its own axis has a say.
pub(super) fn square_of(tables: &MomentTables, neuron: AxisNeuron) -> Result<f64, SolveError> {
    let (power, size, axis) = (tables.power, tables.power + 1, neuron.axis);
    let coefficients = pieces(power, &tables.axes[axis], neuron)?;
    let mut square = 0.0;
    for (bin, v) in coefficients.chunks_exact(size).enumerate() {
        let values = &tables.values[axis][bin * (2 * power + 1)..];
        let slopes = &tables.slopes[axis][bin * (2 * power - 1)..];
        for p in 0..size {
            for q in 0..size {
                square += v[p] * v[q] * values[p + q];
                if p > 0 && q > 0 {
                    square += (p * q) as f64 * v[p] * v[q] * slopes[p + q - 2];
                }
            }
        }
    }
    Ok(square)
}
