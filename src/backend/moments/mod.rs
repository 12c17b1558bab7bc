//! Neurons along the axes: after one pass over the points, none is ever needed again.
//!
//! With ω = ±eᵢ and knots on the edges of bins, a neuron is a polynomial in xᵢ on every bin. Products of
//! two neurons are then fixed by the moments Σ w a δᵢᵖ δⱼ^q of each pair of bins: every score, load and
//! Gram entry follows exactly from [tables](MomentTables), at a cost that does not depend on the number
//! of points. Boundary terms, if there are any, are added the usual way.

mod block;
mod device;
mod file;
mod tables;

pub use block::AxisBins;
pub use file::TableStore;
pub use tables::{MomentTables, PassOptions};

use super::{Backend, BackendReport, CpuBackend, LocalScore};
use crate::activation::{Activation, falling_factorial};
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::ridge::taylor_shift;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// [`Backend`] by moment tables.
pub struct MomentBackend {
    tables: MomentTables,
    /// What is not in the tables.
    rest: Option<CpuBackend>,
    points: usize,
    load: Stack,
    notes: Vec<String>,
    /// ∇²L v of the neurons met so far.
    known: HashMap<(usize, bool, u64), Arc<Stack>>,
}

/// A functional on functions of one axis: per axis and bin the Taylor coefficients from which a sweep
/// gets the scores of all knots (see [`crate::ridge::Sweep`]).
#[derive(Debug, Clone)]
struct Stack {
    axes: Vec<Vec<f64>>,
}

/// A neuron along an axis: σ(x − τ), or σ(τ − x) if mirrored.
#[derive(Debug, Clone, Copy)]
struct AxisNeuron {
    axis: usize,
    mirrored: bool,
    knot: f64,
}

impl AxisNeuron {
    fn key(self) -> (usize, bool, u64) {
        (self.axis, self.mirrored, self.knot.to_bits())
    }
}

impl MomentBackend {
    /// A backend from tables of one term and the other terms.
    pub fn new(tables: MomentTables, points: usize, rest: Option<CpuBackend>) -> Self {
        let load = load_stack(&tables);
        Self {
            tables,
            points: points + rest.as_ref().map_or(0, Backend::points),
            rest,
            load,
            notes: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// With something that the user should know.
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    fn neuron(&self, neuron: &Neuron) -> Result<AxisNeuron, SolveError> {
        let mut found = neuron.omega.iter().enumerate().filter(|(_, o)| **o != 0.0);
        match (found.next(), found.next()) {
            (Some((axis, &o)), None) if o.abs() == 1.0 => Ok(AxisNeuron {
                axis,
                mirrored: o < 0.0,
                knot: -o * neuron.bias,
            }),
            _ => Err(SolveError::Unsupported(
                "directions other than the axes in moment tables",
            )),
        }
    }

    /// The curvature stack of a neuron, from the cache or from the tables.
    fn stack(&mut self, neuron: &Neuron) -> Result<Arc<Stack>, SolveError> {
        let neuron = self.neuron(neuron)?;
        if let Some(stack) = self.known.get(&neuron.key()) {
            return Ok(Arc::clone(stack));
        }
        let stack = Arc::new(curvature_stack(&self.tables, neuron)?);
        self.known.insert(neuron.key(), Arc::clone(&stack));
        Ok(stack)
    }

    /// The gradient's stack at u: Σ a (∇²L g) − l.
    fn gradient_stack(&mut self, u: &Network) -> Result<Stack, SolveError> {
        let mut sum = self.load.scaled(-1.0);
        for (neuron, &a) in u.neurons.iter().zip(&u.coefficients) {
            let stack = self.stack(neuron)?;
            sum.add(a, &stack);
        }
        Ok(sum)
    }

    fn scores(&self, stack: &Stack, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let sums: Vec<EdgeSums> = stack
            .axes
            .iter()
            .zip(&self.tables.axes)
            .map(|(moments, bins)| EdgeSums::new(self.tables.power, *bins, moments))
            .collect();
        let score = |neuron: &Neuron| {
            let neuron = self.neuron(neuron)?;
            sums[neuron.axis].score(neuron)
        };
        match along {
            Candidates::Grid(grid) => (0..grid.len()).map(|index| score(&grid.neuron(index))).collect(),
            Candidates::List(list) => list.iter().map(score).collect(),
        }
    }

    fn with_rest(
        &mut self,
        mut scores: Vec<f64>,
        rest: impl FnOnce(&mut CpuBackend) -> Result<Vec<f64>, SolveError>,
    ) -> Result<Vec<f64>, SolveError> {
        if let Some(backend) = &mut self.rest {
            let more = rest(backend)?;
            scores
                .iter_mut()
                .zip(more)
                .for_each(|(score, more)| *score += more);
        }
        Ok(scores)
    }
}

impl Backend for MomentBackend {
    fn activation(&self) -> Activation {
        Activation::Relu(self.tables.power as u32)
    }

    fn points(&self) -> usize {
        self.points
    }

    fn gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let stack = self.gradient_stack(u)?;
        let scores = self.scores(&stack, along)?;
        self.with_rest(scores, |rest| rest.gradient(u, along))
    }

    fn curvature(&mut self, u: &Network, v: &Neuron, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let stack = self.stack(v)?;
        let column = self.scores(&stack, along)?;
        self.with_rest(column, |rest| rest.curvature(u, v, along))
    }

    fn risk(&mut self, u: &Network) -> Result<f64, SolveError> {
        // ½⟨Au, u⟩ − l(u) = ½(⟨∇L(u), u⟩ − l(u)).
        let stack = self.gradient_stack(u)?;
        let list = Candidates::List(&u.neurons);
        let (gradient, load) = (self.scores(&stack, list)?, self.scores(&self.load, list)?);
        let terms = u.coefficients.iter().zip(gradient.iter().zip(&load));
        let inside: f64 = terms.map(|(a, (g, l))| 0.5 * a * (g - l)).sum();
        match &mut self.rest {
            Some(rest) => Ok(inside + rest.risk(u)?),
            None => Ok(inside),
        }
    }

    fn local_scores(&mut self, _: &Network, _: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        Err(SolveError::Unsupported("refinement of neurons along the axes"))
    }

    fn embedding(&mut self, _: &Neuron) -> Result<Option<Vec<f64>>, SolveError> {
        Ok(None)
    }

    fn embedding_adjoint(&mut self, _: &[f64], _: Candidates) -> Result<Vec<f64>, SolveError> {
        Err(SolveError::Unsupported("embeddings by moment tables"))
    }

    fn embedding_length(&self) -> Option<usize> {
        None
    }

    fn report(&self) -> BackendReport {
        let report = match &self.tables.adapter {
            Some(adapter) => BackendReport {
                backend: "gpu",
                adapter: Some(adapter.clone()),
                precision: "i64",
                notes: Vec::new(),
            },
            None => BackendReport::cpu(),
        };
        BackendReport {
            notes: self.notes.clone(),
            ..report
        }
    }
}

impl Stack {
    fn scaled(&self, factor: f64) -> Self {
        let axes = self
            .axes
            .iter()
            .map(|axis| axis.iter().map(|value| factor * value).collect());
        Self { axes: axes.collect() }
    }

    fn add(&mut self, factor: f64, other: &Stack) {
        for (sums, terms) in self.axes.iter_mut().zip(&other.axes) {
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += factor * term);
        }
    }
}

/// Sums over all points above (below) each edge, as Taylor coefficients there.
struct EdgeSums {
    power: usize,
    bins: AxisBins,
    above: Vec<f64>,
    below: Vec<f64>,
}

impl EdgeSums {
    fn new(power: usize, bins: AxisBins, moments: &[f64]) -> Self {
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

    fn score(&self, neuron: AxisNeuron) -> Result<f64, SolveError> {
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

fn load_stack(tables: &MomentTables) -> Stack {
    let axes = tables.loads.iter().zip(&tables.slope_loads);
    Stack {
        axes: axes
            .map(|(loads, slopes)| sweep_moments(tables.power, loads, Some(slopes)))
            .collect(),
    }
}

fn curvature_stack(tables: &MomentTables, neuron: AxisNeuron) -> Result<Stack, SolveError> {
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
