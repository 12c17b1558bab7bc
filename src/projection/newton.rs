//! The best coefficients where the loss is not quadratic.

use super::Addition;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::Sums;
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// Hessians per neuron, at most, where an older one does not serve.
const HESSIANS: usize = 8;
/// Steps with one Hessian.
const CHORDS: usize = 3;
/// Steps with an older Hessian.
const OLD_CHORDS: usize = 16;
/// After so many neurons the Hessian is computed anew.
const REFRESH: usize = 16;
/// Newton's decrement is small enough at this part of what the neuron gained.
const ENOUGH: f64 = 1e-8;
/// A step is halved at most so often.
const HALVINGS: usize = 30;

/// Minimises a convex loss over the span of the neurons by Newton's method, starting from the
/// coefficients before the last neuron came.
///
/// u moves little from neuron to neuron, so the Hessian at an earlier u, with a column for each neuron that
/// came since, serves as well: steps are cheap, and one Hessian lasts for many neurons.
#[derive(Debug, Clone, Default)]
pub struct Newton {
    /// The coefficients after each neuron.
    history: Vec<Vec<f64>>,
    /// Twice what each took off the loss at zero.
    explained: Vec<f64>,
    /// Column j up to its diagonal of the Hessian in use when neuron j came.
    columns: Vec<Vec<f64>>,
    /// Earlier networks with their Hessians; the last one is in use.
    bases: Vec<(Network, DMatrix<f64>)>,
}

/// A way down that ended.
enum Descent {
    /// At the minimum.
    Done,
    /// Somewhere on the way.
    Unfinished,
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

    /// Takes the last neuron back.
    pub fn pop(&mut self) {
        self.history.pop();
        self.explained.pop();
        self.columns.pop();
        let n = self.len();
        self.bases.retain(|(base, _)| base.len() <= n);
    }

    /// Finds the coefficients for the neurons of u and one more.
    pub fn try_add(&mut self, sums: &dyn Sums, u: &Network, neuron: &Neuron) -> Result<Addition, SolveError> {
        let zero = Network::zero(u.activation, u.dimension);
        let mut u = u.clone();
        u.coefficients = self.coefficients();
        u = u.advanced(1.0, neuron, 0.0);
        let n = u.len();
        let loss_of_zero = sums.risk(&zero)?;
        let before = sums.risk(&u)?;
        let mut loss = before;
        let base = self.bases.last().map_or(&zero, |(base, _)| base);
        let column = sums.at(base)?.curvature(neuron)?.list_scores(&u.neurons)?;
        let old = self.old_hessian(&column).cholesky();
        let mut descent = Descent::Unfinished;
        if let Some(factor) = &old {
            descent = chords(sums, &mut u, (&mut loss, before), factor, OLD_CHORDS)?;
        }
        let mut hessians = 0;
        while matches!(descent, Descent::Unfinished) && hessians < HESSIANS {
            let Some(factor) = hessian(sums, &u)?.cholesky() else {
                return Ok(Addition::Dependent { relative_pivot: 0.0 });
            };
            descent = chords(sums, &mut u, (&mut loss, before), &factor, CHORDS)?;
            hessians += 1;
        }
        if n.is_multiple_of(REFRESH) || n < REFRESH {
            self.bases.push((u.clone(), hessian(sums, &u)?));
            // Neurons are taken back one by one, never past two Hessians.
            if self.bases.len() > 2 && n > REFRESH {
                self.bases.remove(0);
            }
        }
        self.columns.push(column);
        self.history.push(u.coefficients);
        self.explained.push(2.0 * (loss_of_zero - loss));
        Ok(Addition::Added)
    }

    /// The Hessian at the last base, in the span of all neurons and of one more.
    fn old_hessian(&self, newest: &[f64]) -> DMatrix<f64> {
        let n = newest.len();
        let mut hessian = DMatrix::zeros(n, n);
        let whole = self.bases.last().map_or(0, |(base, _)| base.len());
        if let Some((_, base)) = self.bases.last() {
            hessian.view_mut((0, 0), (whole, whole)).copy_from(base);
        }
        let columns = self.columns[whole..].iter().map(Vec::as_slice);
        for (j, column) in (whole..n).zip(columns.chain([newest])) {
            for (i, &product) in column.iter().enumerate() {
                hessian[(i, j)] = product;
                hessian[(j, i)] = product;
            }
        }
        hessian
    }
}

/// Steps with one factor of a Hessian, until the decrement is small.
fn chords(
    sums: &dyn Sums,
    u: &mut Network,
    (loss, before): (&mut f64, f64),
    factor: &Cholesky<f64, Dyn>,
    steps: usize,
) -> Result<Descent, SolveError> {
    for _ in 0..steps {
        let gradient = DVector::from_vec(sums.gradient(u)?.list_scores(&u.neurons)?);
        let step = factor.solve(&gradient);
        let decrement = step.dot(&gradient);
        if decrement.is_nan() || decrement <= ENOUGH * (before - *loss).max(f64::MIN_POSITIVE) {
            return Ok(Descent::Done);
        }
        let Some((better, smaller)) = descend(sums, u, &step, *loss)? else {
            return Ok(Descent::Done);
        };
        (u.coefficients, *loss) = (better, smaller);
    }
    Ok(Descent::Unfinished)
}

/// ⟨∇²L(u) gᵢ, gⱼ⟩.
fn hessian(sums: &dyn Sums, u: &Network) -> Result<DMatrix<f64>, SolveError> {
    let n = u.len();
    let mut hessian = DMatrix::zeros(n, n);
    let field = sums.at(u)?;
    for (i, neuron) in u.neurons.iter().enumerate() {
        let column = field.curvature(neuron)?.list_scores(&u.neurons)?;
        hessian.set_column(i, &DVector::from_vec(column));
    }
    Ok((&hessian + hessian.transpose()) * 0.5)
}

/// The coefficients u − t·step with a smaller loss, for the first t = 1, ½, ¼ … that has one.
fn descend(
    sums: &dyn Sums,
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
        match sums.risk(&trial) {
            Ok(smaller) if smaller < loss => return Ok(Some((trial.coefficients, smaller))),
            Ok(_) | Err(SolveError::NotFinite { .. }) => part *= 0.5,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
