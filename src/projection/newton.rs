//! The best coefficients where the loss is not quadratic.

use super::{Addition, Orthogonal};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::Sums;
use crate::vector::dot;
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
#[derive(Default)]
pub struct Newton {
    /// The coefficients after each neuron.
    history: Vec<Vec<f64>>,
    /// Twice what each took off the loss at zero.
    explained: Vec<f64>,
    /// Earlier networks with their Hessians; the last one is in use.
    bases: Vec<Base>,
    /// Whether Hessians are factored from values at the points, which keeps twice the digits: a stiff penalty
    /// needs them.
    by_values: bool,
}

/// The Hessian at some u, for the neurons of u and those that came since.
struct Base {
    u: Network,
    hessian: Hessian,
}

enum Hessian {
    /// At the neurons of u; then, for each that came since, its column up to the diagonal.
    Matrix(DMatrix<f64>, Vec<Vec<f64>>),
    /// As a triangular factor, from orthogonalised values.
    Values(Orthogonal),
}

/// A Hessian that equations can be solved with.
enum Factor<'a> {
    Matrix(Cholesky<f64, Dyn>),
    Values(&'a Orthogonal),
}

impl Factor<'_> {
    fn solve(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Factor::Matrix(factor) => factor.solve(&DVector::from_column_slice(v)).data.into(),
            Factor::Values(factor) => factor.solve(v),
        }
    }
}

/// A way down that ended.
enum Descent {
    /// At the minimum.
    Done,
    /// Somewhere on the way.
    Unfinished,
}

impl Newton {
    /// With Hessians factored from values at the points, if `by_values`, where there is a
    /// [root](crate::sums::Field::root).
    pub fn new(by_values: bool) -> Self {
        Self {
            by_values,
            ..Self::default()
        }
    }

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
        let n = self.len();
        self.bases.retain(|base| base.u.len() <= n);
        for base in &mut self.bases {
            base.pop_to(n);
        }
    }

    /// Finds the coefficients for the neurons of u and one more.
    pub fn try_add(&mut self, sums: &dyn Sums, u: &Network, neuron: &Neuron) -> Result<Addition, SolveError> {
        let zero = Network::zero(u.activation, u.dimension);
        let mut u = u.clone();
        u.coefficients = self.coefficients();
        if self.bases.is_empty() {
            self.bases.extend(Base::new(sums, zero.clone(), self.by_values)?);
        }
        let added = self.extend(sums, &u, neuron)?;
        if added != Addition::Added {
            return Ok(added);
        }
        u = u.advanced(1.0, neuron, 0.0);
        let n = u.len();
        let loss_of_zero = sums.risk(&zero)?;
        let before = sums.risk(&u)?;
        let mut loss = before;
        let mut descent = Descent::Unfinished;
        if let Some(factor) = self.bases.last().and_then(Base::factor) {
            descent = chords(sums, &mut u, (&mut loss, before), &factor, OLD_CHORDS)?;
        }
        let mut hessians = 0;
        while matches!(descent, Descent::Unfinished) && hessians < HESSIANS {
            let here = Base::new(sums, u.clone(), self.by_values)?;
            let Some(factor) = here.as_ref().and_then(Base::factor) else {
                self.retract(n - 1);
                return Ok(Addition::Dependent { relative_pivot: 0.0 });
            };
            descent = chords(sums, &mut u, (&mut loss, before), &factor, CHORDS)?;
            hessians += 1;
        }
        if n.is_multiple_of(REFRESH) || n < REFRESH {
            self.bases.extend(Base::new(sums, u.clone(), self.by_values)?);
            // Neurons are taken back one by one, never past two Hessians.
            if n > REFRESH {
                self.bases.drain(..self.bases.len().saturating_sub(2));
            }
        }
        self.history.push(u.coefficients);
        self.explained.push(2.0 * (loss_of_zero - loss));
        Ok(Addition::Added)
    }

    /// Adds a neuron to the Hessian in use.
    fn extend(&mut self, sums: &dyn Sums, u: &Network, neuron: &Neuron) -> Result<Addition, SolveError> {
        match self.bases.last_mut() {
            Some(base) => base.extend(sums, u, neuron),
            None => Ok(Addition::Added),
        }
    }

    /// Takes what was added back from the Hessian in use.
    fn retract(&mut self, n: usize) {
        if let Some(base) = self.bases.last_mut() {
            base.pop_to(n);
        }
    }
}

impl Base {
    /// The Hessian at u, for its neurons; none if their values depend on each other there.
    fn new(sums: &dyn Sums, u: Network, by_values: bool) -> Result<Option<Self>, SolveError> {
        let field = sums.at(&u)?;
        let hessian = match field.root().filter(|_| by_values) {
            Some(root) => {
                let mut factor = Orthogonal::default();
                for neuron in &u.neurons {
                    if factor.try_add(&*root, root.of(neuron)?, 0.0) != Addition::Added {
                        return Ok(None);
                    }
                }
                Hessian::Values(factor)
            }
            None => {
                let n = u.len();
                let mut hessian = DMatrix::zeros(n, n);
                for (i, neuron) in u.neurons.iter().enumerate() {
                    let v = Network::single(u.activation, neuron);
                    let column = field.curvature(&v)?.list_scores(&u.neurons)?;
                    hessian.set_column(i, &DVector::from_vec(column));
                }
                Hessian::Matrix((&hessian + hessian.transpose()) * 0.5, Vec::new())
            }
        };
        drop(field);
        Ok(Some(Self { u, hessian }))
    }

    /// Adds a neuron to those of `all`.
    fn extend(&mut self, sums: &dyn Sums, all: &Network, neuron: &Neuron) -> Result<Addition, SolveError> {
        let field = sums.at(&self.u)?;
        match &mut self.hessian {
            Hessian::Matrix(_, columns) => {
                let mut list = all.neurons.clone();
                list.push(neuron.clone());
                let v = Network::single(all.activation, neuron);
                columns.push(field.curvature(&v)?.list_scores(&list)?);
                Ok(Addition::Added)
            }
            Hessian::Values(factor) => match field.root() {
                Some(root) => Ok(factor.try_add(&*root, root.of(neuron)?, 0.0)),
                None => Ok(Addition::Dependent { relative_pivot: 0.0 }),
            },
        }
    }

    /// Takes neurons back until n are left.
    fn pop_to(&mut self, n: usize) {
        match &mut self.hessian {
            Hessian::Matrix(_, columns) => columns.truncate(n - self.u.len()),
            Hessian::Values(factor) => {
                while factor.len() > n {
                    factor.pop();
                }
            }
        }
    }

    /// Its factor, if it is positive definite to rounding.
    fn factor(&self) -> Option<Factor<'_>> {
        match &self.hessian {
            Hessian::Values(factor) => Some(Factor::Values(factor)),
            Hessian::Matrix(base, columns) => {
                let whole = base.nrows();
                let n = whole + columns.len();
                let mut hessian = DMatrix::zeros(n, n);
                hessian.view_mut((0, 0), (whole, whole)).copy_from(base);
                for (j, column) in (whole..n).zip(columns) {
                    for (i, &product) in column.iter().enumerate() {
                        hessian[(i, j)] = product;
                        hessian[(j, i)] = product;
                    }
                }
                hessian.cholesky().map(Factor::Matrix)
            }
        }
    }
}

/// Steps with one factor of a Hessian, until the decrement is small.
fn chords(
    sums: &dyn Sums,
    u: &mut Network,
    (loss, before): (&mut f64, f64),
    factor: &Factor,
    steps: usize,
) -> Result<Descent, SolveError> {
    for _ in 0..steps {
        let gradient = sums.gradient(u)?.list_scores(&u.neurons)?;
        let step = factor.solve(&gradient);
        let decrement = dot(&step, &gradient);
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

/// The coefficients u − t·step with a smaller loss, for the first t = 1, ½, ¼ … that has one.
fn descend(
    sums: &dyn Sums,
    u: &Network,
    step: &[f64],
    loss: f64,
) -> Result<Option<(Vec<f64>, f64)>, SolveError> {
    let mut trial = u.clone();
    let mut part = 1.0;
    for _ in 0..HALVINGS {
        for ((a, start), s) in trial.coefficients.iter_mut().zip(&u.coefficients).zip(step) {
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
