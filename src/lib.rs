//! Solves partial differential equations with shallow neural networks trained by greedy algorithms.
//!
//! A solution is a sum of neurons, u(x) = Σ aᵢ σ(ωᵢ·x + bᵢ). Each step adds the neuron that maximises
//! |⟨g, ∇L(u)⟩| over a dictionary and then takes the best coefficients for all of them
//! (Siegel, Hong, Jin, Hao, Xu: *Greedy Training Algorithms for Neural Networks and Applications to PDEs*).
//!
//! The modules, in the order in which they build on each other:

// What a solution is made of, and the file it is kept in.
pub mod activation;
pub mod atomic_file;
pub mod network;
pub mod network_file;

// What is known about the solution.
pub mod domain;
pub mod expression;
pub mod symbol;

// Where integrals are taken, and the loss that is minimised.
pub mod points;

pub mod error;
pub mod loss;

// Neurons along one direction, all at once; the neurons to choose from.
pub mod candidates;
pub mod ridge;
pub mod vector;

// Sums over the points, for all candidates.
pub mod sums;

#[cfg(feature = "gpu")]
pub mod gpu;

// The method: find the best neuron, project, repeat.
pub mod greedy;
pub mod projection;
pub mod refine;

// What it is compared with.
pub mod train;

// The problem file.
pub mod problem;
pub mod search;

// Errors, and the run as a whole.
pub mod estimate;
pub mod norms;
pub mod report;
pub mod run;

// What people look at.
pub mod page;
pub mod plot;
pub mod sample;

// A run on disk. Nothing above knows of it.
pub mod results;
