//! Solves partial differential equations with shallow neural networks trained by greedy algorithms.
//!
//! A solution is a sum of neurons, u(x) = Σ aᵢ σ(ωᵢ·x + bᵢ). Each step adds the neuron that maximises
//! |⟨g, ∇L(u)⟩| over a dictionary and then takes the best coefficients for all of them
//! (Siegel, Hong, Jin, Hao, Xu: *Greedy Training Algorithms for Neural Networks and Applications to PDEs*).
//!
//! The modules, in the order in which they build on each other:

// What a solution is made of.
pub mod activation;
pub mod network;
pub mod network_file;

// What is known about the solution.
pub mod domain;
pub mod expression;
pub mod symbol;

// Where integrals are taken, and the loss that is minimised.
pub mod error;
pub mod loss;
pub mod points;
pub mod problem;

// Sums over the points: along one direction, for all candidates.
pub mod backend;
pub mod candidates;
pub mod evaluate;
pub mod gpu;
pub mod ridge;
pub mod vector;

// The method: find the best neuron, project, repeat.
pub mod greedy;
pub mod projection;
pub mod refine;
pub mod search;

// What it is compared with.
pub mod train;

// Errors, and the run as a whole.
pub mod norms;
pub mod report;
pub mod run;

// What people look at.
pub mod page;
pub mod plot;
pub mod sample;
