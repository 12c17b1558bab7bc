//! Cholesky's factor of the Gram matrix, one row per neuron.

use super::{Addition, MIN_RELATIVE_PIVOT, Triangle};
use crate::activation::Activation;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::Rho;
use crate::vector::dot;

/// Below this relative pivot, coefficients are polished.
const DELICATE_PIVOT: f64 = 1e-9;

/// G = RᵀR, grown by one row per neuron; nothing is ever factored twice.
#[derive(Debug, Clone)]
pub struct Cholesky {
    triangle: Triangle,
    /// The smallest relative pivot met: a measure of the digits lost.
    smallest_pivot: f64,
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
    pub fn try_add(&mut self, column: &[f64], score: f64) -> Addition {
        let n = column.len() - 1;
        let mut row = self.triangle.forward(&column[..n]);
        let pivot = column[n] - dot(&row, &row);
        let relative_pivot = pivot / column[n];
        if relative_pivot.is_nan() || relative_pivot <= MIN_RELATIVE_PIVOT {
            return Addition::Dependent { relative_pivot };
        }
        let norm = pivot.sqrt();
        row.push(norm);
        self.triangle.push(row, -score / norm);
        self.smallest_pivot = self.smallest_pivot.min(relative_pivot);
        Addition::Added
    }

    /// y −= R⁻ᵀ s: the step against a gradient whose scores of the neurons are s. |R⁻ᵀ s|², twice what it takes
    /// off the loss.
    pub fn correct(&mut self, scores: &[f64]) -> f64 {
        let step = self.triangle.forward(scores);
        self.triangle.subtract(&step);
        dot(&step, &step)
    }

    /// R.
    pub fn factor(&self) -> &Triangle {
        &self.triangle
    }

    /// Takes the last neuron back.
    pub fn pop(&mut self) {
        self.triangle.pop();
    }

    /// The coefficients of the normalised part that the last neuron added, and the solution's component.
    pub fn newest(&self) -> Option<(Vec<f64>, f64)> {
        let component = self.triangle.last()?;
        Some((self.triangle.last_of_inverse(), component))
    }

    /// From a neuron's Gram column: the square of its part that is new, and the coefficients of the others in it.
    pub fn remainder(&self, column: &[f64]) -> (f64, Vec<f64>) {
        let (square, products) = match column.split_last() {
            Some((square, products)) => (*square, products),
            None => return (0.0, Vec::new()),
        };
        let row = self.triangle.forward(products);
        let others = self.triangle.backward(&row);
        (square - dot(&row, &row), others.iter().map(|a| -a).collect())
    }

    /// G⁻¹ v.
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        self.triangle.backward(&self.triangle.forward(v))
    }

    /// G v.
    pub fn times_gram(&self, v: &[f64]) -> Vec<f64> {
        self.triangle.transposed_times(&self.triangle.times(v))
    }

    /// lᵀ G⁻¹ l.
    pub fn explained(&self) -> f64 {
        self.triangle.explained()
    }

    /// The coefficients; where they may have lost digits, after one step of iterative refinement with the
    /// gradient taken at the points.
    pub fn polished_coefficients<'r>(
        &self,
        activation: Activation,
        neurons: &[Neuron],
        gradient: impl Fn(&Network) -> Result<Box<dyn Rho + 'r>, SolveError>,
    ) -> Result<Vec<f64>, SolveError> {
        let mut coefficients = self.triangle.coefficients();
        let Some(first) = neurons.first().filter(|_| self.smallest_pivot < DELICATE_PIVOT) else {
            return Ok(coefficients);
        };
        let u = Network {
            neurons: neurons.to_vec(),
            coefficients: coefficients.clone(),
            ..Network::zero(activation, first.omega.len())
        };
        let residual = gradient(&u)?.list_scores(neurons)?;
        let correction = self.triangle.backward(&self.triangle.forward(&residual));
        coefficients
            .iter_mut()
            .zip(correction)
            .for_each(|(a, correction)| *a -= correction);
        Ok(coefficients)
    }
}
