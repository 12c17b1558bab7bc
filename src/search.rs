//! Which neurons a step looks at.

use crate::candidates::{AxisBins, Grid, Knots, Line};
use crate::domain::Domain;
use crate::points::{Rule, philox_uniforms};
use crate::problem::{Dictionary, DirectionKind};
use crate::refine::Resolution;
use std::f64::consts::PI;

/// Steps across a bias range that the domain cannot be reached from.
const FAR_STEPS: usize = 16;
/// Steps across the domain where neither the problem nor the mesh says how many.
pub const DEFAULT_OFFSETS: usize = 1024;

/// The grid of directions × offsets of a dictionary. `draw` numbers the random draws: a dictionary
/// whose directions are drawn at random gives other ones for every step.
pub fn grid(dictionary: &Dictionary, domain: &Domain, rule: &Rule, seed: u64, draw: u64) -> Grid {
    let lines = directions(dictionary, domain.dimension(), seed, draw)
        .into_iter()
        .map(|omega| {
            let knots = knots(dictionary, domain, rule, &omega);
            Line { omega, knots }
        })
        .collect();
    let mirrored = dictionary.activation.has_sweep() && dictionary.directions != DirectionKind::Box;
    Grid::new(lines, mirrored)
}

/// Whether a dictionary's grid is the same in every step.
pub fn is_fixed(dictionary: &Dictionary, dimension: usize) -> bool {
    match dictionary.directions {
        DirectionKind::Axes => true,
        DirectionKind::Sphere => dimension <= 2,
        DirectionKind::Box => false,
    }
}

fn directions(dictionary: &Dictionary, dimension: usize, seed: u64, draw: u64) -> Vec<Vec<f64>> {
    let count = dictionary.candidates;
    match dictionary.directions {
        DirectionKind::Axes => axes(dimension),
        DirectionKind::Sphere if dimension == 1 => axes(1),
        DirectionKind::Sphere if dimension == 2 => (0..count)
            .map(|j| {
                // Half a turn: −ω is looked at together with ω.
                let angle = PI * j as f64 / count as f64;
                vec![angle.cos(), angle.sin()]
            })
            .collect(),
        DirectionKind::Sphere => (0..count)
            .map(|j| {
                let s = philox_uniforms(seed, 1, draw * count as u64 + j as u64, dimension);
                crate::points::unit_vector(&s, dimension)
            })
            .collect(),
        DirectionKind::Box => (0..count)
            .map(|j| {
                let [low, high] = dictionary.weights;
                philox_uniforms(seed, 2, draw * count as u64 + j as u64, dimension)
                    .into_iter()
                    .map(|s| low + (high - low) * s)
                    .collect()
            })
            .collect(),
    }
}

fn axes(dimension: usize) -> Vec<Vec<f64>> {
    (0..dimension)
        .map(|i| {
            let mut unit = vec![0.0; dimension];
            unit[i] = 1.0;
            unit
        })
        .collect()
}

/// Knots at even distances across the domain, on to the ends of the bias range.
///
/// On a Gauss mesh they lie on the cells' own scale and, along an axis, on the cells' edges: a kink
/// inside a cell is what the rule integrates worst, and the argmax would choose by that error.
fn knots(dictionary: &Dictionary, domain: &Domain, rule: &Rule, omega: &[f64]) -> Knots {
    let (low, step, steps) = steps_inside(dictionary, domain, rule, omega);
    // A knot τ serves σ(ω·x − τ), bias −τ, and σ(τ − ω·x), bias τ.
    let [bias_low, bias_high] = dictionary.bias;
    let first = ((bias_low.min(-bias_high) - low) / step).ceil();
    let last = ((bias_high.max(-bias_low) - low) / step).floor();
    // Outside the domain all neurons are polynomials: one domain's width of them on each side is plenty.
    let (nearest, farthest) = (-(steps as f64), 2.0 * steps as f64);
    let (first, last) = (first.max(nearest), last.min(farthest));
    let served = |place: f64| {
        let knot = low + place * step;
        let serves = |bias: f64| (bias_low..=bias_high).contains(&bias);
        serves(knot) || serves(-knot)
    };
    if served(first) || served(last) {
        return Knots {
            first: low + first * step,
            step,
            count: (last - first).max(0.0) as usize + 1,
        };
    }
    // All biases are farther away: a few of these polynomials span all there are.
    Knots {
        first: -bias_high,
        step: (bias_high - bias_low) / FAR_STEPS as f64,
        count: FAR_STEPS + 1,
    }
}

/// The steps between knots along a direction inside the domain: where they begin, their width, how many.
fn steps_inside(dictionary: &Dictionary, domain: &Domain, rule: &Rule, omega: &[f64]) -> (f64, f64, usize) {
    let (low, high) = domain.extent(omega);
    let steps = match (dictionary.offsets, rule) {
        (Some(steps), _) => steps,
        (None, Rule::Gauss { cells, .. }) => {
            let cell = omega
                .iter()
                .enumerate()
                .filter(|(_, o)| o.abs() > 1e-12)
                .map(|(i, _)| cell_width(domain, i, *cells))
                .fold(f64::INFINITY, f64::min);
            ((high - low) / cell).round().max(1.0) as usize
        }
        (None, _) => DEFAULT_OFFSETS,
    };
    (low, (high - low) / steps as f64, steps)
}

/// The bins between the knots of each axis.
pub fn axis_bins(dictionary: &Dictionary, domain: &Domain, rule: &Rule) -> Vec<AxisBins> {
    axes(domain.dimension())
        .iter()
        .map(|omega| {
            let (low, step, count) = steps_inside(dictionary, domain, rule, omega);
            AxisBins { low, step, count }
        })
        .collect()
}

fn cell_width(domain: &Domain, axis: usize, cells: usize) -> f64 {
    match domain {
        Domain::Box { lower, upper } => (upper[axis] - lower[axis]) / cells as f64,
        Domain::Ball { radius, .. } => radius / cells as f64,
    }
}

/// How finely refinement tells neurons apart: by the cells of a mesh, or by the mean distance of the
/// points of a sequence.
pub fn resolution(domain: &Domain, rule: &Rule) -> Resolution {
    let d = domain.dimension();
    let width = |axis: usize| {
        let (low, high) = domain.side(axis);
        high - low
    };
    let widest = (0..d).map(width).fold(0.0, f64::max);
    let offset = match rule {
        Rule::Gauss { cells, .. } => {
            let widths = (0..d).map(|axis| cell_width(domain, axis, *cells));
            widths.fold(f64::INFINITY, f64::min)
        }
        Rule::Halton { points, .. } | Rule::Lattice { points, .. } | Rule::MonteCarlo { points, .. } => {
            widest * (*points as f64).powf(-1.0 / d as f64)
        }
    };
    Resolution {
        offset,
        angle: offset / widest,
    }
}
