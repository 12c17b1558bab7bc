//! Cholesky's factor of the Gram matrix, one row per neuron.

use super::{Addition, MIN_RELATIVE_PIVOT, Triangle};
use crate::activation::Activation;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::Rho;
use crate::vector::{add_scaled, dot};

/// Below this relative pivot, coefficients are polished.
const DELICATE_PIVOT: f64 = 1e-9;

/// Conjugate gradients end after so many products at the most.
const DESCENTS: usize = 20;

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

    /// Conjugate gradients, with this factor, against a gradient whose scores of the neurons are these, until no more than
    /// about `enough` is left to take off twice the loss, or this part of what there was; `curvature` multiplies by the Gram matrix of the loss that is
    /// minimised. The change of the coefficients, and whether it got there.
    pub fn descend(
        &self,
        mut scores: Vec<f64>,
        (enough, part): (f64, f64),
        curvature: impl Fn(&[f64]) -> Result<Vec<f64>, SolveError>,
    ) -> Result<(Vec<f64>, bool), SolveError> {
        let mut change = vec![0.0; scores.len()];
        let mut direction = self.solve(&scores);
        let mut square = dot(&scores, &direction);
        let enough = enough.max(part * square);
        for _ in 0..DESCENTS {
            if square <= enough {
                return Ok((change, true));
            }
            let bend = curvature(&direction)?;
            let length = square / dot(&direction, &bend);
            if !length.is_finite() || length <= 0.0 {
                break;
            }
            add_scaled(-length, &direction, &mut change);
            add_scaled(-length, &bend, &mut scores);
            let next = self.solve(&scores);
            let before = std::mem::replace(&mut square, dot(&scores, &next));
            let kept = square / before;
            let parts = direction.iter_mut().zip(next);
            parts.for_each(|(direction, next)| *direction = next + kept * *direction);
        }
        Ok((change, square <= enough))
    }

    /// The coefficients change by this.
    pub fn shift(&mut self, change: &[f64]) {
        let back: Vec<f64> = self.triangle.times(change).iter().map(|step| -step).collect();
        self.triangle.subtract(&back);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A factor whose matrix is a third of the one that counts: plain corrections run away, conjugate gradients do not.
    #[test]
    fn conjugate_gradients_settle_where_corrections_run_away() {
        let gram = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]];
        let times = |v: &[f64]| -> Vec<f64> { gram.iter().map(|row| dot(row, v)).collect() };
        let load = [0.3, -1.0, 2.0];
        let mut cholesky = Cholesky::default();
        for (n, row) in gram.iter().enumerate() {
            // One neuron is seen well, the others are not.
            let part = |i: usize| if i == n && n == 0 { 1.0 } else { 1.0 / 3.0 };
            let row: Vec<f64> = (0..=n).map(|i| part(i) * row[i]).collect();
            assert_eq!(cholesky.try_add(&row, 0.0), Addition::Added);
        }
        let scores_at = |a: &[f64]| -> Vec<f64> { times(a).iter().zip(load).map(|(g, l)| g - l).collect() };
        let mut runaway = cholesky.clone();
        let gains: Vec<f64> = (0..6)
            .map(|_| {
                let a = runaway.triangle.coefficients();
                runaway.correct(&scores_at(&a))
            })
            .collect();
        assert!(gains[5] > 4.0 * gains[1], "{gains:?}");
        let (change, settled) = cholesky
            .descend(scores_at(&[0.0; 3]), (1e-6, 0.0), |v| Ok(times(v)))
            .unwrap();
        assert!(settled);
        assert!(
            scores_at(&change).iter().all(|score| score.abs() < 1e-2),
            "{change:?}"
        );
        cholesky.shift(&change);
        let coefficients = cholesky.triangle.coefficients();
        assert!(
            coefficients
                .iter()
                .zip(&change)
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
    }
}
