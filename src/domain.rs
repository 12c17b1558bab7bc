//! The domain Ω and its boundary.

use std::f64::consts::PI;

/// Ω.
#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    /// A product of intervals.
    Box {
        /// The lower end in each coordinate.
        lower: Vec<f64>,
        /// The upper end in each coordinate.
        upper: Vec<f64>,
    },
    /// A ball.
    Ball {
        /// Its centre.
        center: Vec<f64>,
        /// Its radius.
        radius: f64,
    },
}

/// A piece of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Face {
    /// The face of a box where the coordinate takes its lower (or upper) end.
    Side {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// Whether it is the upper end.
        upper: bool,
    },
    /// The sphere around a ball.
    Sphere,
}

/// Where points are: inside or on a piece of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Region {
    /// Ω itself.
    Interior,
    /// A piece of ∂Ω.
    Boundary(Face),
}

impl Domain {
    /// d.
    pub fn dimension(&self) -> usize {
        match self {
            Domain::Box { lower, .. } => lower.len(),
            Domain::Ball { center, .. } => center.len(),
        }
    }

    /// The centre.
    pub fn center(&self) -> Vec<f64> {
        match self {
            Domain::Box { lower, upper } => lower.iter().zip(upper).map(|(l, u)| 0.5 * (l + u)).collect(),
            Domain::Ball { center, .. } => center.clone(),
        }
    }

    /// The pieces of the boundary.
    pub fn faces(&self) -> Vec<Face> {
        match self {
            Domain::Box { lower, .. } => (0..lower.len())
                .flat_map(|coordinate| [false, true].map(|upper| Face::Side { coordinate, upper }))
                .collect(),
            Domain::Ball { .. } => vec![Face::Sphere],
        }
    }

    /// The measure of a region: volume, area, length, or 1 for a point.
    pub fn measure(&self, region: Region) -> f64 {
        match (self, region) {
            (Domain::Box { lower, upper }, Region::Interior) => {
                lower.iter().zip(upper).map(|(l, u)| u - l).product()
            }
            (Domain::Box { lower, upper }, Region::Boundary(Face::Side { coordinate, .. })) => (0..lower
                .len())
                .filter(|&i| i != coordinate)
                .map(|i| upper[i] - lower[i])
                .product(),
            (Domain::Ball { center, radius }, Region::Interior) => {
                unit_ball_volume(center.len()) * radius.powi(center.len() as i32)
            }
            (Domain::Ball { center, radius }, Region::Boundary(_)) => {
                let d = center.len();
                d as f64 * unit_ball_volume(d) * radius.powi(d as i32 - 1)
            }
            (Domain::Box { .. }, Region::Boundary(Face::Sphere)) => 0.0,
        }
    }

    /// The smallest and largest value of a coordinate.
    pub fn side(&self, axis: usize) -> (f64, f64) {
        match self {
            Domain::Box { lower, upper } => (lower[axis], upper[axis]),
            Domain::Ball { center, radius } => (center[axis] - radius, center[axis] + radius),
        }
    }

    /// Whether a point is in the domain or on its boundary, to rounding.
    pub fn contains(&self, mut point: impl Iterator<Item = f64>) -> bool {
        const ROUNDING: f64 = 1e-12;
        match self {
            Domain::Box { lower, upper } => {
                let mut sides = lower.iter().zip(upper);
                sides.all(|(l, u)| {
                    let slack = ROUNDING * (u - l);
                    point.next().is_some_and(|x| (l - slack..=u + slack).contains(&x))
                })
            }
            Domain::Ball { center, radius } => {
                let square: f64 = point.zip(center).map(|(x, c)| (x - c) * (x - c)).sum();
                square <= radius * radius * (1.0 + ROUNDING)
            }
        }
    }

    /// The smallest and largest ω·x over the domain.
    pub fn extent(&self, omega: &[f64]) -> (f64, f64) {
        match self {
            Domain::Box { lower, upper } => {
                let ends = omega.iter().zip(lower.iter().zip(upper));
                ends.fold((0.0, 0.0), |(low, high), (&o, (&l, &u))| {
                    (low + (o * l).min(o * u), high + (o * l).max(o * u))
                })
            }
            Domain::Ball { center, radius } => {
                let middle: f64 = omega.iter().zip(center).map(|(o, c)| o * c).sum();
                let reach = radius * omega.iter().map(|o| o * o).sum::<f64>().sqrt();
                (middle - reach, middle + reach)
            }
        }
    }
}

impl Face {
    /// The name used in a problem file: `x[1]-` or `x[2]+`.
    pub fn name(&self) -> String {
        match self {
            Face::Side { coordinate, upper } => {
                format!("x[{}]{}", coordinate + 1, if *upper { '+' } else { '-' })
            }
            Face::Sphere => "sphere".to_string(),
        }
    }
}

/// V₀ = 1, V₁ = 2, V_d = V_(d−2) 2π/d.
fn unit_ball_volume(dimension: usize) -> f64 {
    match dimension {
        0 => 1.0,
        1 => 2.0,
        d => unit_ball_volume(d - 2) * 2.0 * PI / d as f64,
    }
}
