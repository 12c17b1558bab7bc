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
pub mod expression;

pub mod domain;
pub mod symbol;

// Where integrals are taken, and the loss that is minimised.
pub mod points;
pub mod vector;

pub mod error;

// The processes that share the sums.
pub mod cluster;

pub mod loss;

// The neurons to choose from, and neurons along one direction, all at once.
pub mod candidates;

pub mod ridge;

// Sums over the points, for all candidates.
pub mod sums;

#[cfg(feature = "gpu")]
pub mod gpu;

// The method: find the best neuron, project, repeat.
pub mod projection;
pub mod refine;

pub mod greedy;

// The same in time, step by step.
pub mod flow;

// What it is compared with.
pub mod train;

// The problem file.
pub mod problem;

// Errors, and the run as a whole.
pub mod estimate;
pub mod norms;
pub mod report;
pub mod run;

// What it is held against.
pub mod paper;

// What people look at.
pub mod plot;
pub mod sample;

pub mod page;

// A run on disk. Nothing above knows of it.
pub mod results;
