//! Points and weights as a pure function of their index.
//!
//! A [`PointSet`] stores no points: any range of indices can be generated anywhere, in any order,
//! again and again, so that work streams over tiles and memory does not grow with N.

mod gauss;
mod halton;
mod lattice;
mod parallel;
mod philox;
mod region;

pub use gauss::CompositeGauss;
pub use halton::{Halton, MAX_HALTON_DIMENSION, radical_inverse};
pub use lattice::{Lattice, MAX_LATTICE_DIMENSION, MAX_LATTICE_POINTS};
pub use parallel::in_parallel;
pub use philox::{MonteCarlo, philox, uniforms as philox_uniforms};
pub use region::unit_vector;

use crate::domain::{Domain, Region};
use region::RegionMap;
use std::ops::Range;

/// How many points a tile holds: its columns fit the second-level cache.
pub const TILE: usize = 4096;

/// The quadrature rule of a problem.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Composite Gauss-Legendre: `cells` per direction, `order` points per cell and direction.
    Gauss {
        /// Cells per direction.
        cells: usize,
        /// Points per cell and direction.
        order: usize,
    },
    /// The Halton sequence, moved by a random shift if `shift` is given.
    Halton {
        /// N.
        points: usize,
        /// The seed of the shift.
        shift: Option<u64>,
    },
    /// A rank-1 lattice, moved by a random shift and folded.
    Lattice {
        /// N, a power of two.
        points: usize,
        /// The seed of the shift.
        shift: u64,
    },
    /// Independent uniform points.
    MonteCarlo {
        /// N.
        points: usize,
        /// The seed.
        seed: u64,
    },
}

/// A rule on the unit cube, weights adding up to 1.
#[derive(Debug, Clone)]
enum UnitRule {
    Gauss(CompositeGauss),
    Halton(Halton),
    Lattice(Lattice),
    MonteCarlo(MonteCarlo),
}

/// Quadrature points with weights in a region.
#[derive(Debug, Clone)]
pub struct PointSet {
    rule: UnitRule,
    map: RegionMap,
    count: usize,
    dimension: usize,
}

/// A run of points, column by column.
#[derive(Debug, Clone, Default)]
pub struct Tile {
    /// `coordinates[i]` holds the i-th coordinate of every point.
    pub coordinates: Vec<Vec<f64>>,
    /// The quadrature weights.
    pub weights: Vec<f64>,
}

impl Tile {
    /// The number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The coordinates of one point.
    pub fn point(&self, index: usize) -> Vec<f64> {
        self.coordinates.iter().map(|column| column[index]).collect()
    }

    /// The columns as slices.
    pub fn columns(&self) -> Vec<&[f64]> {
        self.coordinates.iter().map(Vec::as_slice).collect()
    }
}

/// Why a rule cannot be used in a region.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointsError {
    /// Too many points to count.
    #[error("{cells} cells × {order} points in {dimension} dimensions are more points than can be counted")]
    TooMany {
        /// Cells per direction.
        cells: usize,
        /// Points per cell.
        order: usize,
        /// Dimensions.
        dimension: usize,
    },
    /// Halton's bases run out.
    #[error(
        "the Halton sequence is provided up to {MAX_HALTON_DIMENSION} dimensions, {0} are needed; use monte_carlo"
    )]
    HaltonDimension(usize),
    /// Lattices are made for fewer dimensions or other numbers of points.
    #[error("{}", lattice_message(*points, *dimension))]
    Lattice {
        /// N.
        points: usize,
        /// Dimensions.
        dimension: usize,
    },
    /// No tensor coordinates.
    #[error("gauss points in a ball are provided for 2 and 3 dimensions, not {0}; use halton or monte_carlo")]
    GaussBall(usize),
}

fn lattice_message(points: usize, dimension: usize) -> String {
    match dimension > MAX_LATTICE_DIMENSION {
        true => format!(
            "lattices are provided up to {MAX_LATTICE_DIMENSION} dimensions, {dimension} are needed; use monte_carlo"
        ),
        false => format!(
            "a lattice has a power of two of points, up to {MAX_LATTICE_POINTS}, not {points}; near by is {}",
            near_power_of_two(points)
        ),
    }
}

fn near_power_of_two(points: usize) -> usize {
    let above = points
        .clamp(1, MAX_LATTICE_POINTS)
        .next_power_of_two()
        .min(MAX_LATTICE_POINTS);
    // The nearer one on a logarithmic scale.
    if (above as f64) < std::f64::consts::SQRT_2 * points as f64 {
        above
    } else {
        (above / 2).max(1)
    }
}

impl PointSet {
    /// The points of `rule` in a region. `stream` tells apart the random points of several regions.
    pub fn new(domain: &Domain, region: Region, rule: Rule, stream: u32) -> Result<Self, PointsError> {
        let map = RegionMap::new(domain, region, matches!(rule, Rule::Gauss { .. }))?;
        let parameters = map.parameters();
        let (rule, count) = match rule {
            _ if parameters == 0 => (UnitRule::Gauss(CompositeGauss::new(1, 1, 0)), 1),
            Rule::Gauss { cells, order } => {
                let count = (0..parameters)
                    .try_fold(1usize, |count, _| count.checked_mul(cells.checked_mul(order)?))
                    .filter(|&count| count < usize::MAX / 64)
                    .ok_or(PointsError::TooMany {
                        cells,
                        order,
                        dimension: parameters,
                    })?;
                (
                    UnitRule::Gauss(CompositeGauss::new(cells, order, parameters)),
                    count,
                )
            }
            Rule::Halton { points, shift } => {
                if parameters > MAX_HALTON_DIMENSION {
                    return Err(PointsError::HaltonDimension(parameters));
                }
                let shift = shift.map(|seed| (seed, stream));
                (UnitRule::Halton(Halton::new(points, parameters, shift)), points)
            }
            Rule::Lattice { points, shift } => {
                let fits = points.is_power_of_two() && points <= MAX_LATTICE_POINTS;
                if !fits || parameters > MAX_LATTICE_DIMENSION {
                    return Err(PointsError::Lattice {
                        points,
                        dimension: parameters,
                    });
                }
                let lattice = Lattice::new(points, parameters, shift, stream);
                (UnitRule::Lattice(lattice), points)
            }
            Rule::MonteCarlo { points, seed } => (
                UnitRule::MonteCarlo(MonteCarlo::new(points, parameters, seed, stream)),
                points,
            ),
        };
        Ok(Self {
            rule,
            map,
            count,
            dimension: domain.dimension(),
        })
    }

    /// N.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Generates the points with these indices.
    pub fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let length = range.len();
        tile.weights.resize(length, 0.0);
        tile.coordinates.resize(self.dimension, Vec::new());
        tile.coordinates
            .iter_mut()
            .for_each(|column| column.resize(length, 0.0));
        let mut parameters = vec![vec![0.0; length]; self.map.parameters()];
        match &self.rule {
            UnitRule::Gauss(rule) => rule.fill(range, &mut parameters, &mut tile.weights),
            UnitRule::Halton(rule) => rule.fill(range, &mut parameters, &mut tile.weights),
            UnitRule::Lattice(rule) => rule.fill(range, &mut parameters, &mut tile.weights),
            UnitRule::MonteCarlo(rule) => rule.fill(range, &mut parameters, &mut tile.weights),
        }
        self.map.apply(&mut parameters, tile);
    }

    /// The ranges of indices that make up the set, tile by tile.
    pub fn tiles(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<> {
        let count = self.count;
        (0..count.div_ceil(TILE)).map(move |tile| tile * TILE..((tile + 1) * TILE).min(count))
    }
}
