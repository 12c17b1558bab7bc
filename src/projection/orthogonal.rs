//! Orthogonalisation of the neurons' values at the points.

use super::{Addition, Triangle};
use crate::sums::CurvatureRoot;
use rayon::prelude::*;

/// A neuron is refused when less than this part of its norm is new.
const MIN_RELATIVE_NORM: f64 = 1e-10;

/// Gram-Schmidt, twice, on the embeddings E(g) with E(v)·E(g) = ⟨∇²L v, g⟩.
///
/// Forming G = EᵀE squares the condition number; this does not. It holds one column of numbers per
/// neuron, so it is for problems whose points fit.
#[derive(Debug, Clone, Default)]
pub struct Orthogonal {
    columns: Vec<Vec<f64>>,
    /// E(u) = Q y.
    solution: Vec<f64>,
    triangle: Triangle,
}

impl Orthogonal {
    /// Adds a neuron by its embedding.
    pub fn try_add(&mut self, products_of: &dyn CurvatureRoot, mut values: Vec<f64>, score: f64) -> Addition {
        let square = products_of.square(&values);
        let mut row = self.orthogonalise(products_of, &mut values);
        let norm = products_of.square(&values).sqrt();
        let relative_pivot = norm * norm / square;
        // The values themselves carry the digits here, so that the norm, not its square, may be small.
        if relative_pivot.is_nan() || relative_pivot.sqrt() <= MIN_RELATIVE_NORM {
            return Addition::Dependent { relative_pivot };
        }
        values.iter_mut().for_each(|value| *value /= norm);
        let y = -score / norm;
        self.solution.resize(values.len(), 0.0);
        self.solution
            .iter_mut()
            .zip(&values)
            .for_each(|(u, q)| *u += y * q);
        self.columns.push(values);
        row.push(norm);
        self.triangle.push(row, y);
        Addition::Added
    }

    /// Takes the part that the others span off the values; what was taken off.
    fn orthogonalise(&self, products_of: &dyn CurvatureRoot, values: &mut [f64]) -> Vec<f64> {
        let mut row = vec![0.0; self.columns.len()];
        for _ in 0..2 {
            let products = products_of.products(&self.columns, values);
            self.subtract(&products, values);
            row.iter_mut()
                .zip(&products)
                .for_each(|(sum, product)| *sum += product);
        }
        row
    }

    /// The part of the values that the others do not span.
    pub fn remainder(&self, products_of: &dyn CurvatureRoot, mut values: Vec<f64>) -> Vec<f64> {
        self.orthogonalise(products_of, &mut values);
        values
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

    /// y −= R⁻ᵀ s: the step against a gradient whose scores of the neurons are s.
    pub fn correct(&mut self, scores: &[f64]) {
        let step = self.triangle.forward(scores);
        self.triangle.subtract(&step);
        for (q, step) in self.columns.iter().zip(&step) {
            self.solution.iter_mut().zip(q).for_each(|(u, q)| *u -= step * q);
        }
    }

    /// E(u).
    pub fn solution(&self) -> &[f64] {
        &self.solution
    }

    /// Takes the last neuron back.
    pub fn pop(&mut self) {
        if let (Some(q), Some(y)) = (self.columns.pop(), self.triangle.pop()) {
            self.solution.iter_mut().zip(&q).for_each(|(u, q)| *u -= y * q);
        }
    }

    /// The coefficients of the best approximation.
    pub fn coefficients(&self) -> Vec<f64> {
        self.triangle.coefficients()
    }

    /// The values of the normalised part that the last neuron added, and the solution's component.
    pub fn newest(&self) -> Option<(&[f64], f64)> {
        Some((self.columns.last()?, self.triangle.last()?))
    }

    /// G⁻¹ v.
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        self.triangle.backward(&self.triangle.forward(v))
    }

    /// How many neurons there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// lᵀ G⁻¹ l.
    pub fn explained(&self) -> f64 {
        self.triangle.explained()
    }
}
