//! 𝔻, the dictionary.

use crate::activation::Activation;
use serde::{Deserialize, Serialize};

/// 𝔻: the neurons to choose from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dictionary {
    /// σ.
    pub activation: Activation,
    /// Which ω.
    pub directions: DirectionKind,
    /// The range of b.
    pub bias: [f64; 2],
    /// The range of ω's components, for `box`.
    pub weights: [f64; 2],
    /// Steps between the knots across the domain; `None`: one per cell of the quadrature.
    pub offsets: Option<usize>,
    /// Directions looked at per step.
    pub candidates: usize,
    /// Whether the best are refined by Newton's method.
    pub refine: bool,
}

/// Which directions a dictionary has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectionKind {
    /// ±eᵢ.
    Axes,
    /// Unit vectors in the planes of two coordinates.
    Pairs,
    /// Unit vectors.
    Sphere,
    /// Vectors in a box.
    Box,
}
