//! Which projection.

use serde::{Deserialize, Serialize};

/// How the best coefficients are computed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectionKind {
    /// By Cholesky's factor; by orthogonalisation where a penalty or a breakdown asks for it and memory allows.
    #[default]
    Auto,
    /// Always by Cholesky's factor of the Gram matrix.
    Cholesky,
    /// Always by orthogonalising the values at the points.
    Orthogonal,
}
