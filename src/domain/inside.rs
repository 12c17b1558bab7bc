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
/// Across a boundary that was found by halving, a continuous f changes by less than this part of its size on the line.
const JUMP: f64 = 1e-6;
/// Where ∇f vanishes on the boundary, differences over this part of the box tell the normal.
const NEAR: f64 = 1e-5;

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
            let accepted = inside.accepts(&columns, &mut workspace)?;
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
        inside.boundary = inside.estimated_boundary()?;
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

    /// Whether each of some points is inside; an error where the formula has no value.
    pub fn accepts(&self, columns: &[Vec<f64>], workspace: &mut Workspace) -> Result<Vec<bool>, DomainError> {
        let count = columns[0].len();
        let mut values = vec![0.0; count];
        let inputs: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        self.value
            .evaluate(workspace, &inputs, count, &mut [values.as_mut_slice()]);
        if let Some(place) = values.iter().position(|value| value.is_nan()) {
            let point: Vec<f64> = columns.iter().map(|column| column[place]).collect();
            return Err(DomainError::new(format!("is not a number at x = {point:?}"))
                .help("it must have a value everywhere between `lower` and `upper`, negative inside and positive outside"));
        }
        Ok(values.iter().map(|value| *value < 0.0).collect())
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
    fn estimated_boundary(&self) -> Result<f64, DomainError> {
        let d = self.dimension();
        let mut sum = 0.0;
        for axis in 0..d {
            // In one dimension there is one line.
            let lines = if d == 1 { 1 } else { BOUNDARY_LINES };
            let through = self.spread(0..lines);
            let mut part = 0.0;
            for line in 0..lines {
                let point: Vec<f64> = through.iter().map(|column| column[line]).collect();
                let crossings = self.crossings(axis, &point)?;
                part += crossings
                    .iter()
                    .map(|crossing| crossing.normal[axis].abs())
                    .sum::<f64>();
            }
            sum += part * self.cross_section(axis) / lines as f64;
        }
        Ok(sum)
    }

    /// The size of the box seen along an axis.
    pub fn cross_section(&self, axis: usize) -> f64 {
        let widths = (0..self.dimension()).filter(|&i| i != axis);
        widths.map(|i| self.upper[i] - self.lower[i]).product()
    }

    /// Where the line through a point along an axis enters and leaves the domain; the box ends it, too. An error where the
    /// formula does not say which way is out.
    pub fn crossings(&self, axis: usize, through: &[f64]) -> Result<Vec<Crossing>, DomainError> {
        let (low, high) = self.side(axis);
        let at = |x: f64| {
            let mut point = through.to_vec();
            point[axis] = x;
            point
        };
        let value = |x: f64| self.value.evaluate_at(&at(x))[0];
        let end = |x: f64, sign: f64| {
            let mut normal = vec![0.0; through.len()];
            normal[axis] = sign;
            Crossing { point: at(x), normal }
        };
        let place = |k: usize| low + (high - low) / SAMPLES as f64 * k as f64;
        let values: Vec<f64> = (0..=SAMPLES).map(|k| value(place(k))).collect();
        let size = values.iter().filter(|value| value.is_finite());
        let size = size.fold(0.0_f64, |most, value| most.max(value.abs()));
        let mut found = Vec::new();
        if values[0] < 0.0 {
            found.push(end(low, -1.0));
        }
        for k in 1..=SAMPLES {
            let before = values[k - 1] < 0.0;
            if (values[k] < 0.0) == before {
                continue;
            }
            let (mut left, mut right) = (place(k - 1), place(k));
            for _ in 0..HALVINGS {
                let middle = 0.5 * (left + right);
                match (value(middle) < 0.0) == before {
                    true => left = middle,
                    false => right = middle,
                }
            }
            let point = at(0.5 * (left + right));
            // A NaN on either side is no change either.
            let continuous = (value(right) - value(left)).abs() <= JUMP * size;
            let normal = self.normal(&point).filter(|_| continuous);
            let Some(normal) = normal else {
                return Err(no_normal(&point));
            };
            found.push(Crossing { point, normal });
        }
        if values[SAMPLES] < 0.0 {
            found.push(end(high, 1.0));
        }
        Ok(found)
    }

    /// The outer normal: ∇f, or where that vanishes the differences around the point.
    fn normal(&self, point: &[f64]) -> Option<Vec<f64>> {
        let unit = |slopes: Vec<f64>| {
            let length = slopes.iter().map(|s| s * s).sum::<f64>().sqrt();
            let known = length > 0.0 && length.is_finite();
            known.then(|| slopes.iter().map(|s| s / length).collect())
        };
        let difference = |axis: usize| {
            let step = NEAR * (self.upper[axis] - self.lower[axis]);
            let value = |by: f64| {
                let mut moved = point.to_vec();
                moved[axis] += by;
                self.value.evaluate_at(&moved)[0]
            };
            (value(step) - value(-step)) / (2.0 * step)
        };
        unit(self.gradient.evaluate_at(point)).or_else(|| unit((0..point.len()).map(difference).collect()))
    }
}

fn no_normal(point: &[f64]) -> DomainError {
    DomainError::new(format!(
        "jumps at x = {point:?} where its sign changes: it does not tell the direction of the boundary there"
    ))
    .help(
        "a formula that goes through zero continuously is needed: x^2 + y^2 - 0.5 instead of if(x^2 + y^2 < 0.5, -1, 1); \
         max(f, g) is where both are negative, min(f, g) where one is",
    )
}

/// αᵢ = φ^−i with φ^(d+1) = φ + 1.
fn golden(dimension: usize) -> Vec<f64> {
    let mut phi = 1.5_f64;
    for _ in 0..64 {
        phi = (1.0 + phi).powf(1.0 / (dimension + 1) as f64);
    }
    (1..=dimension).map(|i| phi.powi(-(i as i32))).collect()
}
