//! Which neurons a step looks at.

use super::{AxisBins, Dictionary, DirectionKind, Grid, Knots, Line, Resolution};
use crate::domain::Domain;
use crate::points::{Halton, Rule, philox_uniforms};
use std::f64::consts::PI;

/// Above two dimensions: steps per mean distance of the points, and the least across the domain.
const OFFSETS_PER_DISTANCE: f64 = 4.0;
const FEWEST_OFFSETS: usize = 32;
/// The part of that distance which refinement tells apart.
const REFINED_PART: f64 = 1.0 / 1024.0;
/// Steps across a bias range that the domain cannot be reached from.
const FAR_STEPS: usize = 16;
/// Steps across the domain where neither the problem nor the mesh says how many.
pub const DEFAULT_OFFSETS: usize = 1024;

/// Which directions to take of a dictionary that has more than a step can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Fixes every random number.
    pub seed: u64,
    /// The step, numbered from 0, whose random directions are other ones than those of the rest; none where all
    /// steps have the same: on the sphere a pool that covers it evenly.
    pub step: Option<u64>,
}

/// The grid of directions × offsets of a dictionary.
pub fn grid(dictionary: &Dictionary, domain: &Domain, rule: &Rule, draw: Draw) -> Grid {
    let lines = directions(dictionary, domain.dimension(), draw)
        .into_iter()
        .map(|omega| {
            let knots = knots(dictionary, domain, rule, &omega, draw.step.is_none());
            Line { omega, knots }
        })
        .collect();
    let mirrored = dictionary.activation.has_sweep() && dictionary.directions != DirectionKind::Box;
    Grid::new(lines, mirrored)
}

/// Whether a dictionary's grid is the same in every step, whichever is drawn.
pub fn is_fixed(dictionary: &Dictionary, dimension: usize) -> bool {
    match dictionary.directions {
        DirectionKind::Axes | DirectionKind::Pairs => true,
        DirectionKind::Sphere => dimension <= 2,
        DirectionKind::Box => false,
    }
}

fn directions(dictionary: &Dictionary, dimension: usize, draw: Draw) -> Vec<Vec<f64>> {
    let count = dictionary.candidates;
    let number = |j: usize| draw.step.unwrap_or(0) * count as u64 + j as u64;
    match dictionary.directions {
        DirectionKind::Axes => axes(dimension),
        DirectionKind::Pairs => planes(dimension, count),
        DirectionKind::Sphere if dimension == 1 => axes(1),
        DirectionKind::Sphere if dimension == 2 => (0..count)
            .map(|j| {
                // Half a turn: −ω is looked at together with ω.
                let angle = PI * j as f64 / count as f64;
                vec![angle.cos(), angle.sin()]
            })
            .collect(),
        DirectionKind::Sphere if draw.step.is_none() => direction_pool(dimension, count),
        DirectionKind::Sphere => (0..count)
            .map(|j| {
                let s = philox_uniforms(draw.seed, 1, number(j), dimension);
                crate::points::unit_vector(&s, dimension)
            })
            .collect(),
        DirectionKind::Box => (0..count)
            .map(|j| {
                let [low, high] = dictionary.weights;
                philox_uniforms(draw.seed, 2, number(j), dimension)
                    .into_iter()
                    .map(|s| low + (high - low) * s)
                    .collect()
            })
            .collect(),
    }
}

/// Directions that cover the sphere evenly, ω and −ω being one: the axes, which make sums of functions of one
/// variable exact, (eᵢ ± eⱼ)/√2 where they take at most half of the room, and a low-discrepancy sequence.
fn direction_pool(dimension: usize, count: usize) -> Vec<Vec<f64>> {
    let mut pool = axes(dimension);
    if pool.len() + dimension * (dimension - 1) <= count / 2 {
        for (i, j) in (0..dimension).flat_map(|i| (i + 1..dimension).map(move |j| (i, j))) {
            for sign in [1.0, -1.0] {
                let mut omega = vec![0.0; dimension];
                omega[i] = std::f64::consts::FRAC_1_SQRT_2;
                omega[j] = sign * std::f64::consts::FRAC_1_SQRT_2;
                pool.push(omega);
            }
        }
    }
    let rest = count.saturating_sub(pool.len());
    let sequence = Halton::new(rest + 1, dimension, None);
    let mut columns = vec![vec![0.0; rest]; dimension];
    sequence.fill(1..rest + 1, &mut columns, &mut vec![0.0; rest]);
    pool.extend((0..rest).map(|k| {
        let s: Vec<f64> = columns.iter().map(|column| column[k]).collect();
        crate::points::unit_vector(&s, dimension)
    }));
    pool.truncate(count.max(1));
    pool
}

/// Directions in the planes of two coordinates: the axes, and in each plane a grid of angles with eᵢ ± eⱼ among
/// them, about `count` in all.
fn planes(dimension: usize, count: usize) -> Vec<Vec<f64>> {
    let mut directions = axes(dimension);
    let pairs = dimension * (dimension - 1) / 2;
    // Half a turn, in multiples of a quarter: 45° is always there.
    let angles = 4 * (count / (4 * pairs.max(1))).max(1);
    for (i, j) in (0..dimension).flat_map(|i| (i + 1..dimension).map(move |j| (i, j))) {
        for k in (1..angles).filter(|k| 2 * k != angles) {
            let angle = PI * k as f64 / angles as f64;
            let mut omega = vec![0.0; dimension];
            (omega[i], omega[j]) = (angle.cos(), angle.sin());
            directions.push(omega);
        }
    }
    directions
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
fn knots(dictionary: &Dictionary, domain: &Domain, rule: &Rule, omega: &[f64], pool: bool) -> Knots {
    let (low, step, steps) = steps_inside(dictionary, domain, rule, omega);
    // A knot τ serves σ(ω·x − τ), bias −τ, and σ(τ − ω·x), bias τ.
    let [bias_low, bias_high] = dictionary.bias;
    let first = ((bias_low.min(-bias_high) - low) / step).ceil();
    let last = ((bias_high.max(-bias_low) - low) / step).floor();
    // Outside the domain all neurons are polynomials: one domain's width of them on each side is plenty, and a
    // few span them all.
    let outside = match dictionary.activation.relu_power() {
        Some(power) if pool && domain.dimension() > 2 => steps.min(power + 1),
        _ => steps,
    };
    let (nearest, farthest) = (-(outside as f64), (steps + outside) as f64);
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
                .map(|(i, _)| domain.cell_width(i, *cells))
                .fold(f64::INFINITY, f64::min);
            ((high - low) / cell).round().max(1.0) as usize
        }
        (None, _) if domain.dimension() > 2 => {
            // No finer than the points can tell apart.
            let distance = resolution(domain, rule).offset / REFINED_PART;
            ((OFFSETS_PER_DISTANCE * (high - low) / distance) as usize).clamp(FEWEST_OFFSETS, DEFAULT_OFFSETS)
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
            let widths = (0..d).map(|axis| domain.cell_width(axis, *cells));
            widths.fold(f64::INFINITY, f64::min)
        }
        // In many dimensions the mean distance is a large part of the domain, while sums over all points tell
        // neurons apart that are far closer.
        Rule::Halton { points, .. } | Rule::Lattice { points, .. } | Rule::MonteCarlo { points, .. } => {
            let part = if d > 2 { REFINED_PART } else { 1.0 };
            widest * (*points as f64).powf(-1.0 / d as f64) * part
        }
    };
    Resolution {
        offset,
        angle: offset / widest,
    }
}
