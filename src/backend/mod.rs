//! Whatever does the sums over the points.
//!
//! The greedy algorithms know the points only through [`Backend`]: every score, load, Gram entry and
//! loss is one of its reductions.

mod cpu;
mod device_term;
mod device_tile;
mod gpu;
mod local;
mod moments;
mod plan;
mod rows;

pub use cpu::{CpuBackend, CpuOptions};
pub use gpu::{GpuBackend, GpuOptions, PrecisionChoice};
pub use local::LocalScore;
pub use moments::{AxisBins, MomentBackend, MomentTables, PassOptions, TableStore};

use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::{Network, Neuron};

/// The reductions over the points that the greedy algorithms need.
///
/// Laws, checked on every implementor by one test suite:
/// - `gradient` is affine in u for a quadratic loss, and its slope is `curvature`;
/// - `curvature` is symmetric: ⟨∇²L v, g⟩ = ⟨∇²L g, v⟩;
/// - the derivative of `risk` along g is `gradient` at g;
/// - `embedding_adjoint` is the adjoint of `embedding`: applied to E(v) it is `curvature`;
/// - `local_scores` has the values of `gradient`, and its derivatives are those of that value;
/// - a grid and the list of its neurons have the same scores.
pub trait Backend {
    /// σ of the dictionary.
    fn activation(&self) -> Activation;

    /// N, over all terms of the loss.
    fn points(&self) -> usize;

    /// ⟨∇L(u), g⟩ for each candidate g.
    fn gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// ⟨∇²L(u) v, g⟩ for each candidate g: a column of the Gram matrix.
    fn curvature(&mut self, u: &Network, v: &Neuron, along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// L(u).
    fn risk(&mut self, u: &Network) -> Result<f64, SolveError>;

    /// The scores at some neurons with their derivatives in (ω, b), for Newton's method.
    fn local_scores(&mut self, u: &Network, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError>;

    /// Numbers E(v) with ⟨∇²L v, g⟩ = E(v)·E(g), if the loss is quadratic and they are to be had.
    fn embedding(&mut self, v: &Neuron) -> Result<Option<Vec<f64>>, SolveError>;

    /// E(g)·values for each candidate g: the adjoint of the embedding.
    fn embedding_adjoint(&mut self, values: &[f64], along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// How many numbers an embedding has, if there is one.
    fn embedding_length(&self) -> Option<usize>;

    /// What this backend is and what it has to tell.
    fn report(&self) -> BackendReport;
}

/// What a backend is, for the run's report.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendReport {
    /// `cpu` or `gpu`.
    pub backend: &'static str,
    /// The GPU's name.
    pub adapter: Option<String>,
    /// In which precision scores are computed.
    pub precision: &'static str,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Any backend, behind a reference.
pub type AnyBackend = dyn Backend;

impl BackendReport {
    /// The CPU, in double precision.
    fn cpu() -> Self {
        Self {
            backend: "cpu",
            adapter: None,
            precision: "f64",
            notes: Vec::new(),
        }
    }
}
