//! Solves partial differential equations with shallow neural networks trained by greedy algorithms.
pub mod activation;
pub mod backend;
pub mod candidates;
pub mod domain;
pub mod error;
pub mod evaluate;
pub mod expression;
pub mod greedy;
pub mod loss;
pub mod network;
pub mod norms;
pub mod points;
pub mod problem;
pub mod projection;
pub mod ridge;
pub mod search;
pub mod symbol;
