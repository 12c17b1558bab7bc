//! The best coefficients for the neurons chosen so far.
//!
//! Minimising the quadratic loss over the span of g₁ … gₙ is the linear system G a = l with the Gram
//! matrix G and the load l. Both ways to solve it grow by one neuron at a time in O(n²) and can take
//! the last one back.

mod cholesky;
mod newton;
mod orthogonal;

pub use cholesky::Cholesky;
pub use newton::Newton;
pub use orthogonal::Orthogonal;

use crate::backend::AnyBackend;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::Neuron;
use crate::vector::dot;

/// A neuron is refused when less than this part of its square norm is new: the rest is rounding.
pub const MIN_RELATIVE_PIVOT: f64 = 1e-13;

/// Below this relative pivot, coefficients are polished.
const DELICATE_PIVOT: f64 = 1e-9;

/// Why a neuron was not added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependent {
    /// The part of the neuron's square norm that the others do not span.
    pub relative_pivot: f64,
}

/// The triangular factor that both ways share: G = RᵀR, kept row by row of Rᵀ, and y = R⁻ᵀ l.
#[derive(Debug, Clone, Default)]
struct Triangle {
    rows: Vec<Vec<f64>>,
    rhs: Vec<f64>,
}

impl Triangle {
    fn push(&mut self, row: Vec<f64>, y: f64) {
        self.rows.push(row);
        self.rhs.push(y);
    }

    fn pop(&mut self) {
        self.rows.pop();
        self.rhs.pop();
    }

    /// Rᵀ z = v.
    fn forward(&self, v: &[f64]) -> Vec<f64> {
        let mut z = Vec::with_capacity(v.len());
        for (row, value) in self.rows.iter().zip(v) {
            let n = z.len();
            z.push((value - dot(&row[..n], &z)) / row[n]);
        }
        z
    }

    /// R a = z.
    fn backward(&self, z: &[f64]) -> Vec<f64> {
        let mut a = z.to_vec();
        for n in (0..a.len()).rev() {
            let row = &self.rows[n];
            a[n] /= row[n];
            let (earlier, now) = a.split_at_mut(n);
            for (value, r) in earlier.iter_mut().zip(row) {
                *value -= r * now[0];
            }
        }
        a
    }
}

/// The projection onto the span of the chosen neurons.
#[derive(Debug, Clone)]
pub enum Projection {
    /// By the Gram matrix: no memory that grows with the points.
    Cholesky(Cholesky),
    /// By orthogonal values at the points: twice the digits.
    Orthogonal(Orthogonal),
    /// By Newton's method: for losses that are not quadratic.
    Newton(Newton),
}

impl Projection {
    /// The sums over the points that adding a neuron to those in `chosen` takes: its Gram column, or its
    /// embedding.
    pub fn products(
        &self,
        backend: &mut AnyBackend,
        chosen: &[Neuron],
        neuron: &Neuron,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        match self {
            Projection::Cholesky(_) => {
                let zero = crate::network::Network::zero(backend.activation(), neuron.omega.len());
                let mut list = chosen.to_vec();
                list.push(neuron.clone());
                backend
                    .curvature(&zero, neuron, Candidates::List(&list))
                    .map(Some)
            }
            Projection::Orthogonal(_) => backend.embedding(neuron),
            Projection::Newton(_) => Ok(None),
        }
    }

    /// Adds a neuron by its [`products`](Self::products); `score` is ⟨∇L(u), g⟩ at the projection u onto
    /// those before it.
    ///
    /// The gradient there is orthogonal to the span, so the new component of the solution is −score
    /// over the norm of what the neuron adds: no cancellation.
    pub fn try_add(&mut self, products: Option<Vec<f64>>, score: f64) -> Result<(), Dependent> {
        match (self, products) {
            (Projection::Newton(_), _) | (_, None) => Err(Dependent { relative_pivot: 0.0 }),
            (Projection::Cholesky(cholesky), Some(column)) => cholesky.try_add(&column, score),
            (Projection::Orthogonal(orthogonal), Some(values)) => orthogonal.try_add(values, score),
        }
    }

    /// Takes the last neuron back.
    pub fn pop(&mut self) {
        match self {
            Projection::Cholesky(cholesky) => cholesky.triangle.pop(),
            Projection::Orthogonal(orthogonal) => orthogonal.pop(),
            Projection::Newton(newton) => newton.pop(),
        }
    }

    /// The coefficients of the best approximation.
    pub fn coefficients(&self) -> Vec<f64> {
        match self.triangle() {
            Ok(triangle) => triangle.backward(&triangle.rhs),
            Err(newton) => newton.coefficients(),
        }
    }

    /// G⁻¹ v, for a refinement step.
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        match self.triangle() {
            Ok(triangle) => triangle.backward(&triangle.forward(v)),
            // Its coefficients need no refinement.
            Err(_) => vec![0.0; v.len()],
        }
    }

    /// lᵀ G⁻¹ l, twice what the projection takes off the loss.
    pub fn explained(&self) -> f64 {
        match self.triangle() {
            Ok(triangle) => dot(&triangle.rhs, &triangle.rhs),
            Err(newton) => newton.explained(),
        }
    }

    /// Whether the coefficients may have lost so many digits that a refinement step pays.
    pub fn is_delicate(&self) -> bool {
        match self {
            Projection::Cholesky(cholesky) => cholesky.smallest_pivot < DELICATE_PIVOT,
            // Its scores come from the values at the points, not from the coefficients.
            Projection::Orthogonal(_) | Projection::Newton(_) => false,
        }
    }

    /// E(u), the embedding of the solution, where it is held.
    pub fn embedded(&self) -> Option<&[f64]> {
        match self {
            Projection::Cholesky(_) | Projection::Newton(_) => None,
            Projection::Orthogonal(orthogonal) => Some(orthogonal.solution()),
        }
    }

    /// How many neurons there are.
    pub fn len(&self) -> usize {
        self.triangle()
            .map_or_else(Newton::len, |triangle| triangle.rows.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn triangle(&self) -> Result<&Triangle, &Newton> {
        match self {
            Projection::Cholesky(cholesky) => Ok(&cholesky.triangle),
            Projection::Orthogonal(orthogonal) => Ok(&orthogonal.triangle),
            Projection::Newton(newton) => Err(newton),
        }
    }
}
