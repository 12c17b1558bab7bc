//! A symmetric matrix that grows by one neuron at a time.

use crate::vector::{add_scaled, dot};

/// The lower half of a symmetric matrix, row by row.
#[derive(Debug, Clone, Default)]
pub(super) struct Gram {
    rows: Vec<Vec<f64>>,
}

impl Gram {
    /// One neuron more: its products with the others and, last, with itself.
    pub(super) fn push(&mut self, row: Vec<f64>) {
        self.rows.push(row);
    }

    pub(super) fn pop(&mut self) {
        self.rows.pop();
    }

    /// G v; v may be shorter than the matrix is wide, and stands for zeros there.
    pub(super) fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.rows.len()];
        for (n, row) in self.rows.iter().enumerate() {
            let known = row.len().min(v.len());
            product[n] += dot(&row[..known], &v[..known]);
            if let Some(&value) = v.get(n) {
                add_scaled(value, &row[..n], &mut product[..n]);
            }
        }
        product
    }

    /// vᵀ G v.
    pub(super) fn square(&self, v: &[f64]) -> f64 {
        dot(&self.times(v)[..v.len()], v)
    }
}
