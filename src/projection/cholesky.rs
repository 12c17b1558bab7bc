//! Cholesky's factor of the Gram matrix, one row per neuron.

use super::{Dependent, MIN_RELATIVE_PIVOT, Triangle};
use crate::vector::dot;

/// G = RᵀR, grown by one row per neuron; nothing is ever factored twice.
#[derive(Debug, Clone)]
pub struct Cholesky {
    pub(super) triangle: Triangle,
    /// The smallest relative pivot met: a measure of the digits lost.
    pub(super) smallest_pivot: f64,
}

impl Default for Cholesky {
    fn default() -> Self {
        Self {
            triangle: Triangle::default(),
            smallest_pivot: 1.0,
        }
    }
}

impl Cholesky {
    /// Adds a neuron by its Gram column: its products with the earlier ones and, last, with itself.
    pub fn try_add(&mut self, column: &[f64], score: f64) -> Result<(), Dependent> {
        let n = column.len() - 1;
        let mut row = self.triangle.forward(&column[..n]);
        let pivot = column[n] - dot(&row, &row);
        let relative_pivot = pivot / column[n];
        if relative_pivot.is_nan() || relative_pivot <= MIN_RELATIVE_PIVOT {
            return Err(Dependent { relative_pivot });
        }
        let norm = pivot.sqrt();
        row.push(norm);
        self.triangle.push(row, -score / norm);
        self.smallest_pivot = self.smallest_pivot.min(relative_pivot);
        Ok(())
    }
}
