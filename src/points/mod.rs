//! Points and weights as a pure function of their index.
//!
//! A [`PointSet`] stores no points: any range of indices can be generated anywhere, in any order,
//! again and again, so that work streams over tiles and memory does not grow with N.

mod cells;
mod fractions;
mod gauss;
mod halton;
mod lattice;
mod listed;
mod parallel;
mod philox;
mod pieces;
mod region;
mod simplex;

pub use fractions::{Fractions, HaltonAxis, LatticeAxis};
pub use gauss::CompositeGauss;
pub use halton::{Halton, MAX_HALTON_DIMENSION, radical_inverse};
pub use lattice::{Lattice, MAX_LATTICE_DIMENSION, MAX_LATTICE_POINTS};
pub use listed::Listed;
pub use parallel::in_parallel;
pub use philox::{MonteCarlo, philox, uniforms as philox_uniforms};
pub use pieces::cells_of;
pub use region::unit_vector;
pub use simplex::{cube_rule, simplex_rule};

use crate::domain::{Domain, Face, Region};
use cells::{CellGauss, CellSequence};
use listed::Sieve;
use pieces::Pieces;
use region::RegionMap;
use std::ops::Range;
use std::sync::Arc;

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
    source: Source,
    count: usize,
    dimension: usize,
    /// How many columns of [attributes](Tile::attributes) there are.
    attributes: usize,
}

/// What makes points from their indices.
#[derive(Debug, Clone)]
enum Source {
    /// A map from the unit cube.
    Mapped(UnitRule, RegionMap),
    /// Boxes one after the other.
    Pieces(Pieces),
    /// Elements of a mesh, each with a rule of its own.
    Cells(CellGauss),
    /// Elements of a mesh with a sequence spread over them.
    Sequence(CellSequence),
    /// A sequence with the outside left out.
    Sieve(Sieve),
    /// Points that are kept.
    Listed(Arc<Listed>),
    /// Each point of a set followed by the same point with another value of a coordinate.
    Pairs(Box<PointSet>, usize, f64),
}

/// A run of points, column by column.
#[derive(Debug, Clone, Default)]
pub struct Tile {
    /// `coordinates[i]` holds the i-th coordinate of every point.
    pub coordinates: Vec<Vec<f64>>,
    /// What else is known of every point, column by column: the outer normal on a face where it differs from point to
    /// point, a measured value. A formula has them as coordinates d, d + 1, …
    pub attributes: Vec<Vec<f64>>,
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

    /// What formulas know of one point: coordinates and attributes.
    pub fn inputs(&self, index: usize) -> Vec<f64> {
        let columns = self.coordinates.iter().chain(&self.attributes);
        columns.map(|column| column[index]).collect()
    }

    /// The columns that formulas know, as slices: coordinates and attributes.
    pub fn columns(&self) -> Vec<&[f64]> {
        let columns = self.coordinates.iter().chain(&self.attributes);
        columns.map(Vec::as_slice).collect()
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
    /// A domain that is known by a formula has no cells.
    #[error("a domain given by `inside` has no cells; use halton, lattice or monte_carlo with `points`")]
    GaussInside,
    /// A sequence that misses the domain.
    #[error("none of {0} points in the box is inside the domain; more are needed")]
    NoneInside(usize),
    /// A formula that does not say what is inside, or which way is out.
    #[error("`inside` {0}")]
    Domain(#[from] crate::domain::DomainError),
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

impl Rule {
    /// The rule with a part of the points.
    fn part(self, share: f64) -> Self {
        let part = |points: usize| ((points as f64 * share).round() as usize).max(1);
        match self {
            Rule::Gauss { .. } => self,
            Rule::Halton { points, shift } => Rule::Halton {
                points: part(points),
                shift,
            },
            Rule::Lattice { points, shift } => Rule::Lattice {
                points: part(points).next_power_of_two(),
                shift,
            },
            Rule::MonteCarlo { points, seed } => Rule::MonteCarlo {
                points: part(points),
                seed,
            },
        }
    }

    /// The rule with the points divided among so many.
    fn divided(self, among: usize) -> Self {
        self.part(1.0 / among as f64)
    }
}

impl UnitRule {
    /// A rule on a cube of so many dimensions, and how many points it has.
    fn new(rule: Rule, parameters: usize, stream: u32) -> Result<(Self, usize), PointsError> {
        Ok(match rule {
            Rule::Gauss { cells, order } => {
                let cells = vec![cells; parameters];
                (
                    UnitRule::Gauss(CompositeGauss::new(&cells, order)),
                    gauss_count(&cells, order)?,
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
        })
    }

    fn fractions(&self) -> Option<Fractions> {
        match self {
            UnitRule::Halton(rule) => Some(Fractions::Halton(rule.fraction_axes())),
            UnitRule::Lattice(rule) => Some(Fractions::Lattice(rule.fraction_axes())),
            UnitRule::Gauss(_) | UnitRule::MonteCarlo(_) => None,
        }
    }

    fn fill(&self, range: Range<usize>, parameters: &mut [Vec<f64>], weights: &mut [f64]) {
        match self {
            UnitRule::Gauss(rule) => rule.fill(range, parameters, weights),
            UnitRule::Halton(rule) => rule.fill(range, parameters, weights),
            UnitRule::Lattice(rule) => rule.fill(range, parameters, weights),
            UnitRule::MonteCarlo(rule) => rule.fill(range, parameters, weights),
        }
    }
}

/// How many points so many cells along each axis have.
fn gauss_count(cells: &[usize], order: usize) -> Result<usize, PointsError> {
    let mut axes = cells.iter();
    let count = axes.try_fold(1usize, |count, cells| {
        count.checked_mul(cells.checked_mul(order)?)
    });
    count
        .filter(|&count| count < usize::MAX / 64)
        .ok_or(PointsError::TooMany {
            cells: cells.iter().copied().max().unwrap_or(1),
            order,
            dimension: cells.len(),
        })
}

impl PointSet {
    /// The points of `rule` in a region. `stream` tells apart the random points of several regions.
    pub fn new(domain: &Domain, region: Region, rule: Rule, stream: u32) -> Result<Self, PointsError> {
        if let Region::Pairs(coordinate) = region {
            return Self::pairs(domain, coordinate, rule, stream);
        }
        let dimension = domain.dimension();
        let is_gauss = matches!(rule, Rule::Gauss { .. });
        let on_boundary = region != Region::Interior;
        let (source, count) = match (domain, rule) {
            (Domain::Box { .. } | Domain::Ball { .. }, _) => {
                let map = RegionMap::new(domain, region, is_gauss)?;
                let (rule, count) = match map.parameters() {
                    0 => (UnitRule::Gauss(CompositeGauss::new(&[], 1)), 1),
                    parameters => UnitRule::new(rule, parameters, stream)?,
                };
                (Source::Mapped(rule, map), count)
            }
            (Domain::Union(union), _) => {
                let pieces = Pieces::new(domain, union, region, rule, stream)?;
                let count = pieces.len();
                (Source::Pieces(pieces), count)
            }
            (Domain::Mesh(mesh), Rule::Gauss { cells, order }) => {
                let points = CellGauss::new(mesh, region, cells, order)?;
                let count = points.len();
                (Source::Cells(points), count)
            }
            (Domain::Mesh(mesh), _) => {
                let (points, count) = CellSequence::new(mesh, region, rule, stream)?;
                (Source::Sequence(points), count)
            }
            (Domain::Inside(_), Rule::Gauss { .. }) => return Err(PointsError::GaussInside),
            (Domain::Inside(inside), _) if on_boundary => {
                let listed = Listed::on_boundary(inside, rule, stream)?;
                let count = listed.weights.len();
                (Source::Listed(Arc::new(listed)), count)
            }
            (Domain::Inside(inside), _) => {
                let sieve = Sieve::new(inside, rule, stream)?;
                let count = sieve.len();
                (Source::Sieve(sieve), count)
            }
        };
        let has_normals = on_boundary && matches!(domain, Domain::Mesh(_) | Domain::Inside(_));
        Ok(Self {
            source,
            count,
            dimension,
            attributes: if has_normals { dimension } else { 0 },
        })
    }

    /// The points of the lower side across a coordinate, each followed by the one opposite.
    fn pairs(domain: &Domain, coordinate: usize, rule: Rule, stream: u32) -> Result<Self, PointsError> {
        let lower = Region::Boundary(Face::Side {
            coordinate,
            upper: false,
        });
        let side = Self::new(domain, lower, rule, stream)?;
        Ok(Self {
            count: 2 * side.count,
            dimension: side.dimension,
            attributes: 0,
            source: Source::Pairs(Box::new(side), coordinate, domain.side(coordinate).1),
        })
    }

    /// Gauss points in a region of a box, with so many cells along each of its axes.
    fn gauss(domain: &Domain, region: Region, cells: &[usize], order: usize) -> Result<Self, PointsError> {
        let map = RegionMap::new(domain, region, true)?;
        let fixed = match region {
            Region::Boundary(Face::Side { coordinate, .. }) => Some(coordinate),
            _ => None,
        };
        let used = cells.iter().enumerate().filter(|(axis, _)| Some(*axis) != fixed);
        let cells: Vec<usize> = used.map(|(_, cells)| *cells).collect();
        let order = if cells.is_empty() { 1 } else { order };
        Ok(Self {
            count: gauss_count(&cells, order)?,
            source: Source::Mapped(UnitRule::Gauss(CompositeGauss::new(&cells, order)), map),
            dimension: domain.dimension(),
            attributes: 0,
        })
    }

    /// Points that are kept.
    pub fn listed(points: Arc<Listed>) -> Self {
        Self {
            count: points.weights.len(),
            dimension: points.coordinates.len(),
            attributes: points.attributes.len(),
            source: Source::Listed(points),
        }
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

    /// How many numbers there are of each point besides its coordinates and its weight.
    pub fn attributes(&self) -> usize {
        self.attributes
    }

    /// How many numbers formulas know of each point: coordinates and attributes.
    pub fn inputs(&self) -> usize {
        self.dimension + self.attributes
    }

    /// Generates the points with these indices.
    pub fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let length = range.len();
        tile.weights.resize(length, 0.0);
        tile.coordinates.resize(self.dimension, Vec::new());
        tile.attributes.resize(self.attributes, Vec::new());
        let columns = tile.coordinates.iter_mut().chain(&mut tile.attributes);
        columns.for_each(|column| column.resize(length, 0.0));
        match &self.source {
            Source::Mapped(rule, map) => {
                let mut parameters = vec![vec![0.0; length]; map.parameters()];
                rule.fill(range, &mut parameters, &mut tile.weights);
                map.apply(&mut parameters, tile);
            }
            Source::Pieces(pieces) => pieces.fill(range, tile),
            Source::Cells(cells) => cells.fill(range, tile),
            Source::Sequence(sequence) => sequence.fill(range, tile),
            Source::Sieve(sieve) => sieve.fill(range, tile),
            Source::Listed(listed) => listed.fill(range, tile),
            Source::Pairs(side, coordinate, opposite) => {
                let mut single = Tile::default();
                side.fill(range.start / 2..range.end.div_ceil(2), &mut single);
                for (place, index) in range.clone().enumerate() {
                    let from = index / 2 - range.start / 2;
                    tile.weights[place] = single.weights[from];
                    for (column, known) in tile.coordinates.iter_mut().zip(&single.coordinates) {
                        column[place] = known[from];
                    }
                    if index % 2 == 1 {
                        tile.coordinates[*coordinate][place] = *opposite;
                    }
                }
            }
        }
    }

    /// The points inside a box in whole numbers, where they are a sequence that has them.
    pub fn fractions(&self) -> Option<Fractions> {
        match &self.source {
            Source::Mapped(rule, map) if map.is_inside_of_box() => rule.fractions(),
            _ => None,
        }
    }

    /// The ranges of indices that make up the set, tile by tile.
    pub fn tiles(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<> {
        let count = self.count;
        (0..count.div_ceil(TILE)).map(move |tile| tile * TILE..((tile + 1) * TILE).min(count))
    }
}
