//! Orthogonalisation of the neurons' values at the points.

use super::{Dependent, MIN_RELATIVE_PIVOT, Triangle, dot};
use rayon::prelude::*;

/// Gram-Schmidt, twice, on the embeddings E(g) with E(v)·E(g) = ⟨∇²L v, g⟩.
///
/// Forming G = EᵀE squares the condition number; this does not. It holds one column of numbers per
/// neuron, so it is for problems whose points fit.
#[derive(Debug, Clone, Default)]
pub struct Orthogonal {
    columns: Vec<Vec<f64>>,
    pub(super) triangle: Triangle,
}

impl Orthogonal {
    /// Adds a neuron by its embedding.
    pub fn try_add(&mut self, mut values: Vec<f64>, load: f64) -> Result<(), Dependent> {
        let square = dot(&values, &values);
        let mut row = vec![0.0; self.columns.len()];
        for _ in 0..2 {
            let products: Vec<f64> = self.columns.par_iter().map(|q| dot(q, &values)).collect();
            self.subtract(&products, &mut values);
            row.iter_mut()
                .zip(&products)
                .for_each(|(sum, product)| *sum += product);
        }
        let norm = dot(&values, &values).sqrt();
        let relative_pivot = norm * norm / square;
        // Here the values themselves carry the digits, so the bound is on the norm, not on its square.
        if !(relative_pivot.sqrt() > MIN_RELATIVE_PIVOT) {
            return Err(Dependent { relative_pivot });
        }
        values.iter_mut().for_each(|value| *value /= norm);
        self.columns.push(values);
        row.push(norm);
        self.triangle.push(row, load);
        Ok(())
    }

    /// values −= Q products, block by block.
    fn subtract(&self, products: &[f64], values: &mut [f64]) {
        const BLOCK: usize = 2048;
        values
            .par_chunks_mut(BLOCK)
            .enumerate()
            .for_each(|(block, values)| {
                for (q, &product) in self.columns.iter().zip(products) {
                    let q = &q[block * BLOCK..][..values.len()];
                    for (value, q) in values.iter_mut().zip(q) {
                        *value -= product * q;
                    }
                }
            });
    }

    pub(super) fn pop(&mut self) {
        self.columns.pop();
        self.triangle.pop();
    }
}
