//! Whatever does the sums over the points.
//!
//! The greedy algorithms know the points only through [`Backend`]: every score, load, Gram entry and
//! loss is one of its reductions.

mod cpu;
mod plan;

pub use cpu::{CpuBackend, CpuOptions};

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
/// - a grid and the list of its neurons have the same scores.
pub trait Backend {
    /// σ of the dictionary.
    fn activation(&self) -> Activation;

    /// ⟨∇L(u), g⟩ for each candidate g.
    fn gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// ⟨∇²L(u) v, g⟩ for each candidate g: a column of the Gram matrix.
    fn curvature(&mut self, u: &Network, v: &Neuron, along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// L(u).
    fn risk(&mut self, u: &Network) -> Result<f64, SolveError>;

    /// Numbers E(v) with ⟨∇²L v, g⟩ = E(v)·E(g), if the loss is quadratic and they are to be had.
    fn embedding(&mut self, v: &Neuron) -> Result<Option<Vec<f64>>, SolveError>;

    /// E(g)·values for each candidate g: the adjoint of the embedding.
    fn embedding_adjoint(&mut self, values: &[f64], along: Candidates) -> Result<Vec<f64>, SolveError>;

    /// How many numbers an embedding has, if there is one.
    fn embedding_length(&self) -> Option<usize>;
}

/// Any backend, behind a reference.
pub type AnyBackend = dyn Backend;
