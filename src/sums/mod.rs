//! Sums over the points, as values.
//!
//! The algorithms know the points only through three values, each made from the one before and each
//! staying where the sums are made:
//!
//! - [`Sums`]: a loss on its points;
//! - [`Field`]: a function u at these points, [`Sums::at`];
//! - [`Rho`]: a linear functional there, ∇L(u) or ∇²L(u) v, whose value at a neuron is the neuron's score.
//!
//! Every score, load, Gram entry and loss of the greedy algorithms is one of their reductions.

mod cpu;
mod held;
mod pinned;
mod tables;
pub mod whole;

pub(crate) use cpu::{CpuField, CpuRho};
pub use cpu::{CpuOptions, CpuSums, scan_bytes};
pub use held::HeldSums;
pub use pinned::PinnedSums;
#[cfg(feature = "gpu")]
pub(crate) use tables::{Block, PASS_BLOCK, PairTable, Unit, add_cells, axis_pairs};
pub use tables::{MomentTables, PairSums, PassOptions, TableStore, TableSums, WholePass};
pub use whole::WholeSums;

use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::cluster::{Cluster, Share};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
pub use crate::ridge::LocalScore;
use crate::vector::dot;

/// A loss L on its points, with whatever does the sums over them.
///
/// Laws, checked on every implementor by one test suite:
/// - the gradient is affine in u for a quadratic loss, and its slope is the curvature;
/// - the curvature is symmetric: ⟨∇²L v, g⟩ = ⟨∇²L g, v⟩;
/// - the square of a neuron's norm is its curvature along itself;
/// - the derivative of the risk along g is the gradient's score of g;
/// - a field that was advanced is the field of the network it then stands for;
/// - [values](CurvatureRoot) have the curvature as their scalar product, and the gradient made from
///   [those of u](PointValues) is ∇L(u);
/// - [slopes](Slopes) have the values of the scores, and their derivatives are those of that value;
/// - a grid and the list of its neurons have the same scores, up to the error that comes with them;
/// - a list is always scored to rounding in double precision: its error is zero.
pub trait Sums {
    /// σ of the dictionary.
    fn activation(&self) -> Activation;

    /// N, over all terms of the loss.
    fn points(&self) -> usize;

    /// u at the points.
    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError>;

    /// The values of functions at the points, where they are to be had: not where the points were met only
    /// once, nor where the loss is no square.
    fn values(&self) -> Option<&dyn PointValues>;

    /// What neurons leave when they are projected, many at once, where the points are at hand and the loss is
    /// quadratic.
    fn remainders(&self) -> Option<&dyn Remainders>;

    /// The multipliers by which conditions are held, where there are any.
    fn multipliers(&self) -> Option<&dyn Multipliers> {
        None
    }

    /// What does the sums and what it has to tell.
    fn report(&self) -> SumsReport;

    /// ∇L(u).
    fn gradient<'a>(&'a self, u: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.at(u)?.gradient()
    }

    /// L(u).
    fn risk(&self, u: &Network) -> Result<f64, SolveError> {
        self.at(u)?.risk()
    }

    /// ⟨∇²L v, g⟩ at u = 0 for each g in a list: a column of the Gram matrix.
    fn gram_column(&self, v: &Neuron, list: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        let zero = Network::zero(self.activation(), v.omega.len());
        let v = Network::single(self.activation(), v);
        self.at(&zero)?.curvature(&v)?.list_scores(list)
    }

    /// ⟨∇²L v, g⟩ at u = 0 for all pairs of a list, row by row up to the diagonal.
    fn gram(&self, neurons: &[Neuron]) -> Result<Vec<Vec<f64>>, SolveError> {
        gram_by_columns(self, neurons)
    }
}

/// The Gram matrix neuron by neuron.
fn gram_by_columns<S: Sums + ?Sized>(sums: &S, neurons: &[Neuron]) -> Result<Vec<Vec<f64>>, SolveError> {
    let column = |n: usize| sums.gram_column(&neurons[n], &neurons[..=n]);
    (0..neurons.len()).map(column).collect()
}

/// A function u at the points.
pub trait Field<'a> {
    /// ρ = ∇L(u).
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError>;

    /// ρ = ∇²L(u) v.
    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError>;

    /// ⟨∇²L(u) g, g⟩ for each candidate g: the squares of their norms.
    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// L(u).
    fn risk(&self) -> Result<f64, SolveError>;

    /// A square root of ∇²L(u), where one is to be had.
    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>>;

    /// u ← factor · u + coefficient · g.
    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError>;
}

/// A linear functional ρ on functions, known by what it does at the points.
pub trait Rho {
    /// ⟨ρ, g⟩ for each candidate g.
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError>;

    /// The scores as functions of (ω, b), where they are to be had.
    fn slopes(&self) -> Option<&dyn Slopes>;

    /// ⟨ρ, g⟩ for each neuron of a list.
    fn list_scores(&self, list: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        Ok(self.scores(Candidates::List(list), Accuracy::Full)?.values)
    }
}

/// Scores with their derivatives in (ω, b).
pub trait Slopes {
    /// Value and slopes at each neuron of a list.
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError>;
}

/// From a neuron's inner products with the chosen ones and, last, with itself: ‖P⊥g‖² and the coefficients of the
/// chosen ones in P⊥g.
pub type Projector<'p> = dyn Fn(&[f64]) -> (f64, Vec<f64>) + 'p;

/// ‖P⊥g‖² as a function of (ω, b), P⊥ the projection off the span of some neurons.
pub trait Remainders {
    /// ‖P⊥g‖² of each neuron of a list, with *half* its derivatives, ⟨∇²L P⊥g, dg⟩.
    fn remainders_at(
        &self,
        chosen: &[Neuron],
        list: &[Neuron],
        project: &Projector,
    ) -> Result<Vec<LocalScore>, SolveError>;
}

/// Multipliers of conditions Bu = g, a part of the load.
pub trait Multipliers {
    /// λ ← λ + s (Bu − g), where the neurons of an earlier u are the first ones of this one. Linear functionals taken before keep
    /// the λ that they were taken with.
    fn update(&self, u: &Network);

    /// λ ← 0.
    fn reset(&self);
}

/// Values E(v) of functions at the points, weighted so that ⟨∇²L(u) v, g⟩ = E(v)·E(g).
///
/// Where sums are spread over processes each holds its part of E(v): what it does with its own numbers is
/// up to who asks, products are not.
pub trait CurvatureRoot {
    /// How many numbers E(v) has, those of all processes together.
    fn length(&self) -> usize;

    /// E(v), as far as it is held here.
    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError>;

    /// The processes that hold it.
    fn cluster(&self) -> &Cluster {
        Cluster::nobody_else()
    }

    /// Which numbers of E(v) are held here, one part after the other.
    fn shares(&self) -> Vec<Share> {
        vec![Share {
            here: 0..self.length(),
            first: 0,
        }]
    }

    /// The scalar products of E(v) with each column.
    fn products(&self, columns: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let all = self.length();
        self.cluster().dots(all, &self.shares(), &columns, values)
    }

    /// |E(v)|².
    fn square(&self, values: &[f64]) -> f64 {
        match self.cluster().is_alone() {
            true => dot(values, values),
            false => self
                .cluster()
                .dots(self.length(), &self.shares(), &[values], values)[0],
        }
    }
}

/// How many numbers of E(v) are held here.
fn held_here(values: &dyn CurvatureRoot) -> usize {
    match values.cluster().is_alone() {
        true => values.length(),
        false => values
            .shares()
            .iter()
            .map(|share| share.here.end)
            .max()
            .unwrap_or(0),
    }
}

/// The shares of what stands behind others.
fn shares_behind(values: &dyn CurvatureRoot, others: &dyn CurvatureRoot) -> Vec<Share> {
    let (here, first) = (held_here(others), others.length());
    let moved = values.shares().into_iter().map(|share| Share {
        here: share.here.start + here..share.here.end + here,
        first: share.first + first,
    });
    moved.collect()
}

/// The values of functions under a quadratic loss, from which its gradient follows.
pub trait PointValues: CurvatureRoot {
    /// ∇L(u), from E(u).
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError>;

    /// ∇²L v, from E(v).
    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError>;
}

/// In which precision a device scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrecisionChoice {
    /// In whole numbers where the dictionary has a sweep; else f32 until the scores come near their noise, then
    /// f64. On the CPU always f64.
    #[default]
    Auto,
    /// Always f32.
    F32,
    /// Always f64.
    F64,
    /// In whole numbers, on the CPU too: the same network everywhere, to the bit.
    Integer,
}

/// How accurate the scores of a grid need to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accuracy {
    /// As is fastest: the error comes with the scores.
    Fast,
    /// To rounding in double precision.
    Full,
}

/// Scores and how far they may be off.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// One per candidate.
    pub values: Vec<f64>,
    /// How far each may be off, beyond the rounding of sums in double precision.
    pub error: f64,
}

impl Scores {
    /// Scores to rounding in double precision.
    pub fn exact(values: Vec<f64>) -> Self {
        Self { values, error: 0.0 }
    }
}

/// What does the sums, for the run's report.
#[derive(Debug, Clone, PartialEq)]
pub struct SumsReport {
    /// `cpu` or `gpu`.
    pub backend: &'static str,
    /// The GPU's name.
    pub adapter: Option<String>,
    /// In which precision scores are computed.
    pub precision: &'static str,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl SumsReport {
    /// The CPU, in double precision.
    pub fn cpu() -> Self {
        Self {
            backend: "cpu",
            adapter: None,
            precision: "f64",
            notes: Vec::new(),
        }
    }
}
