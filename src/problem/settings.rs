//! The parts of a problem that say how it is solved.

use super::file::Algorithm;
use crate::domain::{Domain, Region};
use crate::greedy::{Selection, StepRule};
use crate::points::Rule;
use crate::projection::ProjectionKind;
use serde::Serialize;

/// The quadrature.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quadrature {
    /// The rule inside.
    pub rule: Rule,
    /// The cells (Gauss) or points on which the inner products of neurons are taken, where they are fewer.
    pub curvature: Option<usize>,
    /// Points on each piece of the boundary (for rules that have a number of points).
    pub boundary_points: usize,
    /// Whether the number of points depends on n.
    pub points_follow_n: bool,
    /// Points are kept in memory up to this many bytes.
    pub cache_bytes: usize,
}

/// The algorithm and when it ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Which one.
    pub algorithm: Algorithm,
    /// n, the number of neurons.
    pub neurons: usize,
    /// Fixes every random choice.
    pub seed: u64,
    /// The run ends when the best score is below this.
    pub tolerance: Option<f64>,
    /// M, the bound on Σ|aᵢ| of the relaxed algorithm.
    pub radius: Option<f64>,
    /// How far a step of the relaxed algorithm goes.
    pub step: StepRule,
    /// Whether neurons must lower the loss on independent points.
    pub guard: bool,
    /// How coefficients are computed.
    pub projection: ProjectionKind,
    /// By what neurons are chosen.
    pub selection: Selection,
    /// Steps by which all neurons are moved together, whenever there are twice as many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polish: Option<usize>,
}

/// What flags put in place of the file's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--neurons`.
    pub neurons: Option<usize>,
    /// `--points`.
    pub points: Option<usize>,
    /// `--cells`.
    pub cells: Option<usize>,
    /// `--seed`.
    pub seed: Option<u64>,
}

/// What a set of points is for: sets for different uses have no point in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Selection and projection.
    Training,
    /// The inner products of neurons, where they need fewer points.
    Curvature,
    /// As many other points, which must confirm the norm of what a neuron adds.
    Confirmation,
    /// Many others, once, to know which candidates' norms the points know.
    Norms,
    /// The guard against overfitting the quadrature.
    Validation,
    /// Errors against the exact solution.
    Errors,
}

/// Points for errors in many dimensions: enough for three digits …
const ERROR_POINTS: usize = 1 << 18;
/// … and for a small run so many times its own, which are no limit to it …
const ERROR_FACTOR: usize = 16;
/// … but never fewer.
const LEAST_ERROR_POINTS: usize = 1 << 14;
/// Beyond this many points, a sixteenth of them is enough for validation.
const MANY_POINTS: usize = 1_000_000;
/// Seeds of validation and error points differ from every training seed.
const VALIDATION_SEED: u64 = 0x5EED_0001_0000_0000;
const ERROR_SEED: u64 = 0x5EED_0002_0000_0000;
const NORMS_SEED: u64 = 0x5EED_0003_0000_0000;

impl Quadrature {
    /// The rule for a region and a purpose.
    ///
    /// Validation takes the same cells with two more nodes: exact wherever the training rule is,
    /// and blind to none of its errors. Sequences take another shift or seed.
    pub fn rule(&self, domain: &Domain, region: Region, purpose: Purpose) -> Rule {
        match self.rule {
            Rule::Gauss { cells, order } => match purpose {
                Purpose::Training => self.rule,
                Purpose::Curvature => Rule::Gauss {
                    cells: self.curvature.unwrap_or(cells),
                    order,
                },
                Purpose::Confirmation | Purpose::Norms => Rule::Gauss {
                    cells: self.curvature.unwrap_or(cells),
                    order: order + 1,
                },
                // Nothing is aligned to the parts of a mesh's cells: other parts are blind to nothing, and the same parts
                // with more nodes have been overfitted together.
                Purpose::Validation if matches!(domain, Domain::Mesh(_)) => Rule::Gauss {
                    cells: cells + cells.div_ceil(4),
                    order: order + 1,
                },
                Purpose::Validation => Rule::Gauss {
                    cells,
                    order: order + 2,
                },
                Purpose::Errors => Rule::Gauss {
                    // Half cells keep the training rule's edges, where the knots are.
                    cells: if domain.dimension() == 1 { 2 * cells } else { cells },
                    // In one dimension the points cost nothing.
                    order: if domain.dimension() == 1 {
                        order + 3
                    } else {
                        order + 1
                    },
                },
            },
            Rule::Halton { points, .. } => {
                let points = self.count(points, region, purpose);
                let shift = match purpose {
                    Purpose::Training | Purpose::Curvature => None,
                    Purpose::Validation | Purpose::Confirmation => Some(VALIDATION_SEED),
                    Purpose::Errors => Some(ERROR_SEED),
                    Purpose::Norms => Some(NORMS_SEED),
                };
                Rule::Halton { points, shift }
            }
            Rule::Lattice { points, shift } => Rule::Lattice {
                points: self.count(points, region, purpose).next_power_of_two(),
                shift: match purpose {
                    Purpose::Training | Purpose::Curvature => shift,
                    Purpose::Validation | Purpose::Confirmation => shift ^ VALIDATION_SEED,
                    Purpose::Errors => shift ^ ERROR_SEED,
                    Purpose::Norms => shift ^ NORMS_SEED,
                },
            },
            Rule::MonteCarlo { points, seed } => match purpose {
                Purpose::Errors if domain.dimension() <= 3 && domain.has_cells() => {
                    error_gauss(domain.dimension())
                }
                _ => Rule::MonteCarlo {
                    points: self.count(points, region, purpose),
                    seed: match purpose {
                        Purpose::Training | Purpose::Curvature => seed,
                        Purpose::Validation | Purpose::Confirmation => seed ^ VALIDATION_SEED,
                        Purpose::Errors => seed ^ ERROR_SEED,
                        Purpose::Norms => seed ^ NORMS_SEED,
                    },
                },
            },
        }
    }

    /// The rule whose points tell neurons apart.
    pub fn telling_apart(&self, domain: &Domain) -> Rule {
        self.rule(domain, Region::Interior, Purpose::Curvature)
    }

    fn count(&self, points: usize, region: Region, purpose: Purpose) -> usize {
        match (region, purpose) {
            (Region::Interior, Purpose::Errors) => error_points(points),
            (Region::Interior, Purpose::Norms) => error_points(points).max(points),
            (Region::Boundary(_) | Region::Pairs(_), Purpose::Errors) => error_points(self.boundary_points),
            (Region::Interior, Purpose::Validation) => points.min(MANY_POINTS.max(points / 16)),
            (Region::Interior, Purpose::Training) => points,
            (Region::Interior, Purpose::Curvature | Purpose::Confirmation) => {
                self.curvature.unwrap_or(points)
            }
            // As much fewer as inside.
            (Region::Boundary(_) | Region::Pairs(_), Purpose::Curvature | Purpose::Confirmation) => {
                let part = self.curvature.map_or(1.0, |fewer| fewer as f64 / points as f64);
                ((self.boundary_points as f64 * part) as usize).max(1)
            }
            (Region::Boundary(_) | Region::Pairs(_), _) => self.boundary_points,
        }
    }
}

fn error_points(training: usize) -> usize {
    let wanted = training.saturating_mul(ERROR_FACTOR);
    wanted.clamp(LEAST_ERROR_POINTS, ERROR_POINTS)
}

/// A fine mesh for errors where the training points are random.
fn error_gauss(dimension: usize) -> Rule {
    match dimension {
        1 => Rule::Gauss {
            cells: 20_000,
            order: 3,
        },
        2 => Rule::Gauss { cells: 200, order: 3 },
        _ => Rule::Gauss { cells: 48, order: 3 },
    }
}
