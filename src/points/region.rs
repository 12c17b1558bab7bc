//! From the unit cube to a region.

use super::{PointsError, Tile};
use crate::domain::{Domain, Face, Region};
use std::f64::consts::PI;

/// Maps points of a unit cube onto a region and turns their weights into a quadrature there.
#[derive(Debug, Clone)]
pub(super) struct RegionMap {
    domain: Domain,
    region: Region,
    /// Gauss rules keep the cube's own measure and multiply the weights by the Jacobian;
    /// random and low-discrepancy points are spread evenly over the region instead.
    jacobian: bool,
}

impl RegionMap {
    pub(super) fn new(domain: &Domain, region: Region, jacobian: bool) -> Result<Self, PointsError> {
        if let (Domain::Ball { center, .. }, true) = (domain, jacobian)
            && center.len() > 3
        {
            return Err(PointsError::GaussBall(center.len()));
        }
        Ok(Self {
            domain: domain.clone(),
            region,
            jacobian,
        })
    }

    /// The dimension of the unit cube.
    pub(super) fn parameters(&self) -> usize {
        let d = self.domain.dimension();
        match (&self.domain, self.region) {
            (Domain::Ball { .. }, Region::Interior) if d <= 3 => d,
            (Domain::Ball { .. }, Region::Interior) => d + 1,
            (Domain::Ball { .. }, _) if d <= 3 => d - 1,
            (Domain::Ball { .. }, _) => d,
            (_, Region::Interior) => d,
            _ => d - 1,
        }
    }

    /// Whether the cube is only stretched.
    pub(super) fn is_inside_of_box(&self) -> bool {
        matches!(self.domain, Domain::Box { .. }) && self.region == Region::Interior
    }

    /// Writes the coordinates and scales the weights.
    pub(super) fn apply(&self, parameters: &mut [Vec<f64>], tile: &mut Tile) {
        let measure = self.domain.measure(self.region);
        match &self.domain {
            Domain::Box { lower, upper } => {
                let fixed = match self.region {
                    Region::Boundary(Face::Side {
                        coordinate,
                        upper: end,
                    }) => Some((
                        coordinate,
                        if end { upper[coordinate] } else { lower[coordinate] },
                    )),
                    _ => None,
                };
                let mut used = parameters.iter();
                for (axis, column) in tile.coordinates.iter_mut().enumerate() {
                    match fixed {
                        Some((coordinate, value)) if coordinate == axis => column.fill(value),
                        _ => {
                            let width = upper[axis] - lower[axis];
                            for (x, &s) in column.iter_mut().zip(used.next().into_iter().flatten()) {
                                *x = lower[axis] + width * s;
                            }
                        }
                    }
                }
                tile.weights.iter_mut().for_each(|w| *w *= measure);
            }
            Domain::Ball { center, radius } => {
                for place in 0..tile.weights.len() {
                    let s: Vec<f64> = parameters.iter().map(|column| column[place]).collect();
                    let (distance, unit, density) = self.polar(&s, center.len());
                    for ((column, c), e) in tile.coordinates.iter_mut().zip(center).zip(unit) {
                        column[place] = c + radius * distance * e;
                    }
                    tile.weights[place] *= measure * density;
                }
            }
            // Their points are made otherwise.
            Domain::Union(_) | Domain::Mesh(_) | Domain::Inside(_) => {}
        }
    }

    /// Distance from the centre (of the unit ball), direction, and density of the weights.
    fn polar(&self, s: &[f64], d: usize) -> (f64, Vec<f64>, f64) {
        let on_sphere = self.region != Region::Interior;
        let (distance, density, angles) = match (on_sphere, self.jacobian) {
            (true, _) => (1.0, 1.0, s),
            (false, true) => (s[0], d as f64 * s[0].powi(d as i32 - 1), &s[1..]),
            (false, false) => (s[0].powf(1.0 / d as f64), 1.0, &s[1..]),
        };
        (distance, unit_vector(angles, d), density)
    }
}

/// An evenly distributed unit vector from evenly distributed parameters.
pub fn unit_vector(s: &[f64], d: usize) -> Vec<f64> {
    match d {
        1 => vec![if s.first().is_none_or(|&s| s >= 0.5) {
            1.0
        } else {
            -1.0
        }],
        2 => {
            let angle = 2.0 * PI * s[0];
            vec![angle.cos(), angle.sin()]
        }
        3 => {
            let height = 2.0 * s[0] - 1.0;
            let reach = (1.0 - height * height).max(0.0).sqrt();
            let angle = 2.0 * PI * s[1];
            vec![reach * angle.cos(), reach * angle.sin(), height]
        }
        _ => {
            // A vector of independent normal numbers points everywhere alike.
            let normal: Vec<f64> = s.iter().map(|&s| inverse_normal(s)).collect();
            let norm = normal
                .iter()
                .map(|x| x * x)
                .sum::<f64>()
                .sqrt()
                .max(f64::MIN_POSITIVE);
            normal.into_iter().map(|x| x / norm).collect()
        }
    }
}

/// The quantile of the normal distribution.
fn inverse_normal(p: f64) -> f64 {
    -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * p)
}
