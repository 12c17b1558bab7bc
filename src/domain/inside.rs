//! The part of a box where a function is negative.

use super::DomainError;
use crate::expression::{Graph, NodeId, Program, Workspace};

/// Points by which the volume is estimated.
const VOLUME_POINTS: usize = 1 << 18;
/// Lines along each axis by which the boundary is.
const BOUNDARY_LINES: usize = 1 << 12;
/// Places looked at along a line, to see where it crosses the boundary.
const SAMPLES: usize = 96;
/// Halvings of a step between two of them.
const HALVINGS: usize = 50;
/// Points that are looked at together.
const BLOCK: usize = 1024;

/// {x in a box: f(x) < 0}.
#[derive(Debug, Clone)]
pub struct Inside {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// f.
    value: Program,
    /// ∇f.
    gradient: Program,
    measure: f64,
    /// The standard deviation of the measure, as a part of it, if its points were random.
    uncertainty: f64,
    boundary: f64,
    /// Some point inside.
    center: Vec<f64>,
}

/// A place on the boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct Crossing {
    /// Where.
    pub point: Vec<f64>,
    /// The outer unit normal.
    pub normal: Vec<f64>,
}

impl Inside {
    /// Where the formula `f` is negative between `lower` and `upper`.
    pub fn new(graph: &mut Graph, f: NodeId, lower: Vec<f64>, upper: Vec<f64>) -> Result<Self, DomainError> {
        let d = lower.len();
        let slopes: Vec<NodeId> = (0..d).map(|axis| graph.differentiate(f, axis)).collect();
        let mut inside = Self {
            center: Vec::new(),
            measure: 0.0,
            uncertainty: 0.0,
            boundary: 0.0,
            value: Program::new(graph, &[f], d, &[]),
            gradient: Program::new(graph, &slopes, d, &[]),
            lower,
            upper,
        };
        let mut found = 0;
        let mut workspace = Workspace::default();
        for start in (0..VOLUME_POINTS).step_by(BLOCK) {
            let columns = inside.spread(start..start + BLOCK);
            let accepted = inside.accepts(&columns, &mut workspace);
            if inside.center.is_empty()
                && let Some(first) = accepted.iter().position(|accepted| *accepted)
            {
                inside.center = columns.iter().map(|column| column[first]).collect();
            }
            found += accepted.iter().filter(|accepted| **accepted).count();
        }
        if found == 0 {
            return Err(DomainError::new(format!(
                "is negative at none of {VOLUME_POINTS} points of the box: there is no domain"
            ))
            .help("the domain is where the formula is negative, as x^2 + y^2 - 1 in a disk; look at `lower` and `upper`"));
        }
        let part = found as f64 / VOLUME_POINTS as f64;
        inside.measure = part * inside.volume();
        inside.uncertainty = ((1.0 - part) / found as f64).sqrt();
        inside.boundary = inside.estimated_boundary();
        Ok(inside)
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.lower.len()
    }

    /// The box around it.
    pub fn side(&self, axis: usize) -> (f64, f64) {
        (self.lower[axis], self.upper[axis])
    }

    /// The volume of the box.
    pub fn volume(&self) -> f64 {
        self.lower.iter().zip(&self.upper).map(|(l, u)| u - l).product()
    }

    /// The estimated volume.
    pub fn measure(&self) -> f64 {
        self.measure
    }

    /// How uncertain the volume is, as a part of it.
    pub fn uncertainty(&self) -> f64 {
        self.uncertainty
    }

    /// The estimated size of the boundary.
    pub fn boundary(&self) -> f64 {
        self.boundary
    }

    /// Some point inside.
    pub fn inner_point(&self) -> &[f64] {
        &self.center
    }

    /// Whether each of some points is inside.
    pub fn accepts(&self, columns: &[Vec<f64>], workspace: &mut Workspace) -> Vec<bool> {
        let count = columns[0].len();
        let mut values = vec![0.0; count];
        let inputs: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        self.value
            .evaluate(workspace, &inputs, count, &mut [values.as_mut_slice()]);
        values.iter().map(|value| *value < 0.0).collect()
    }

    /// Whether a point is inside.
    pub fn contains(&self, point: &[f64]) -> bool {
        let in_box = point
            .iter()
            .zip(self.lower.iter().zip(&self.upper))
            .all(|(x, (l, u))| (l..=u).contains(&x));
        in_box && self.value.evaluate_at(point)[0] <= 0.0
    }

    /// Evenly spread points of the box: frac(k αᵢ), α the powers of the generalised golden ratio.
    fn spread(&self, range: std::ops::Range<usize>) -> Vec<Vec<f64>> {
        let alphas = golden(self.dimension());
        let sides = self.lower.iter().zip(&self.upper);
        alphas
            .iter()
            .zip(sides)
            .map(|(alpha, (l, u))| {
                let place = |k: usize| (0.5 + (k + 1) as f64 * alpha).fract();
                range.clone().map(|k| l + (u - l) * place(k)).collect()
            })
            .collect()
    }

    /// Σᵢ ∫ |nᵢ|² dS, each as the sum of |nᵢ| over the crossings of lines along the axis.
    fn estimated_boundary(&self) -> f64 {
        let d = self.dimension();
        let mut sum = 0.0;
        for axis in 0..d {
            // In one dimension there is one line.
            let lines = if d == 1 { 1 } else { BOUNDARY_LINES };
            let through = self.spread(0..lines);
            let mut part = 0.0;
            for line in 0..lines {
                let point: Vec<f64> = through.iter().map(|column| column[line]).collect();
                let crossings = self.crossings(axis, &point);
                part += crossings
                    .iter()
                    .map(|crossing| crossing.normal[axis].abs())
                    .sum::<f64>();
            }
            sum += part * self.cross_section(axis) / lines as f64;
        }
        sum
    }

    /// The size of the box seen along an axis.
    pub fn cross_section(&self, axis: usize) -> f64 {
        let widths = (0..self.dimension()).filter(|&i| i != axis);
        widths.map(|i| self.upper[i] - self.lower[i]).product()
    }

    /// Where the line through a point along an axis enters and leaves the domain; the box ends it, too.
    pub fn crossings(&self, axis: usize, through: &[f64]) -> Vec<Crossing> {
        let (low, high) = self.side(axis);
        let mut point = through.to_vec();
        let mut value = |x: f64| {
            point[axis] = x;
            self.value.evaluate_at(&point)[0] < 0.0
        };
        let step = (high - low) / SAMPLES as f64;
        let mut found = Vec::new();
        let mut before = value(low);
        if before {
            found.push((low, true));
        }
        for k in 1..=SAMPLES {
            let (mut left, mut right) = (low + (k - 1) as f64 * step, low + k as f64 * step);
            let now = value(right);
            if now != before {
                for _ in 0..HALVINGS {
                    let middle = 0.5 * (left + right);
                    match value(middle) == before {
                        true => left = middle,
                        false => right = middle,
                    }
                }
                found.push((0.5 * (left + right), false));
            }
            before = now;
        }
        if before {
            found.push((high, true));
        }
        found
            .into_iter()
            .map(|(x, at_end)| {
                let mut point = through.to_vec();
                point[axis] = x;
                let normal = match at_end {
                    true => (0..point.len())
                        .map(|i| match (i == axis, x == high) {
                            (false, _) => 0.0,
                            (true, true) => 1.0,
                            (true, false) => -1.0,
                        })
                        .collect(),
                    false => self.normal(&point),
                };
                Crossing { point, normal }
            })
            .collect()
    }

    fn normal(&self, point: &[f64]) -> Vec<f64> {
        let slopes = self.gradient.evaluate_at(point);
        let length = slopes.iter().map(|s| s * s).sum::<f64>().sqrt();
        match length > 0.0 && length.is_finite() {
            true => slopes.iter().map(|s| s / length).collect(),
            false => vec![0.0; slopes.len()],
        }
    }
}

/// αᵢ = φ^−i with φ^(d+1) = φ + 1.
fn golden(dimension: usize) -> Vec<f64> {
    let mut phi = 1.5_f64;
    for _ in 0..64 {
        phi = (1.0 + phi).powf(1.0 / (dimension + 1) as f64);
    }
    (1..=dimension).map(|i| phi.powi(-(i as i32))).collect()
}
