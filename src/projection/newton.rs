//! The best coefficients where the loss is not quadratic.

use super::Dependent;
use crate::backend::AnyBackend;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::Network;
use nalgebra::{DMatrix, DVector};

/// Hessians per neuron, at most.
const HESSIANS: usize = 8;
/// Steps with one Hessian.
const CHORDS: usize = 3;
/// Newton's decrement is small enough at this part of what the neuron gained.
const ENOUGH: f64 = 1e-8;
/// A step is halved at most so often.
const HALVINGS: usize = 30;

/// Minimises a convex loss over the span of the neurons by Newton's method, starting from the
/// coefficients before the last neuron came.
#[derive(Debug, Clone, Default)]
pub struct Newton {
    /// The coefficients after each neuron.
    history: Vec<Vec<f64>>,
    /// Twice what each took off the loss at zero.
    explained: Vec<f64>,
}

impl Newton {
    /// The coefficients found last.
    pub fn coefficients(&self) -> Vec<f64> {
        self.history.last().cloned().unwrap_or_default()
    }

    /// Twice what the network takes off the loss at zero.
    pub fn explained(&self) -> f64 {
        self.explained.last().copied().unwrap_or(0.0)
    }

    /// How many neurons there are.
    pub fn len(&self) -> usize {
        self.history.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    pub(super) fn pop(&mut self) {
        self.history.pop();
        self.explained.pop();
    }

    /// Finds the coefficients of `network`, whose last neuron is new.
    pub fn try_add(
        &mut self,
        backend: &mut AnyBackend,
        network: &Network,
    ) -> Result<Result<(), Dependent>, SolveError> {
        let mut u = network.clone();
        u.coefficients = self.coefficients();
        u.coefficients.push(0.0);
        let zero = Network::zero(u.activation, u.dimension);
        let loss_of_zero = backend.risk(&zero)?;
        let before = backend.risk(&u)?;
        let mut loss = before;
        'hessians: for _ in 0..HESSIANS {
            let Some(factor) = hessian(backend, &u)?.cholesky() else {
                return Ok(Err(Dependent { relative_pivot: 0.0 }));
            };
            for _ in 0..CHORDS {
                let gradient = DVector::from_vec(backend.gradient(&u, Candidates::List(&u.neurons))?);
                let step = factor.solve(&gradient);
                let decrement = step.dot(&gradient);
                if decrement.is_nan() || decrement <= ENOUGH * (before - loss).max(f64::MIN_POSITIVE) {
                    break 'hessians;
                }
                let Some((better, smaller)) = descend(backend, &u, &step, loss)? else {
                    break 'hessians;
                };
                (u.coefficients, loss) = (better, smaller);
            }
        }
        self.history.push(u.coefficients);
        self.explained.push(2.0 * (loss_of_zero - loss));
        Ok(Ok(()))
    }
}

/// ⟨∇²L(u) gᵢ, gⱼ⟩.
fn hessian(backend: &mut AnyBackend, u: &Network) -> Result<DMatrix<f64>, SolveError> {
    let n = u.len();
    let mut hessian = DMatrix::zeros(n, n);
    for (i, neuron) in u.neurons.iter().enumerate() {
        let column = backend.curvature(u, neuron, Candidates::List(&u.neurons))?;
        hessian.set_column(i, &DVector::from_vec(column));
    }
    Ok((&hessian + hessian.transpose()) * 0.5)
}

/// The coefficients u − t·step with a smaller loss, for the first t = 1, ½, ¼ … that has one.
fn descend(
    backend: &mut AnyBackend,
    u: &Network,
    step: &DVector<f64>,
    loss: f64,
) -> Result<Option<(Vec<f64>, f64)>, SolveError> {
    let mut trial = u.clone();
    let mut part = 1.0;
    for _ in 0..HALVINGS {
        for ((a, start), s) in trial
            .coefficients
            .iter_mut()
            .zip(&u.coefficients)
            .zip(step.iter())
        {
            *a = start - part * s;
        }
        // A potential may be too large to be a number that far out.
        match backend.risk(&trial) {
            Ok(smaller) if smaller < loss => return Ok(Some((trial.coefficients, smaller))),
            Ok(_) | Err(SolveError::NotFinite { .. }) => part *= 0.5,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
