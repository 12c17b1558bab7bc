//! The best coefficients for the neurons chosen so far.
//!
//! Minimising the quadratic loss over the span of g₁ … gₙ is the linear system G a = l with the Gram
//! matrix G and the load l. Both ways to solve it grow by one neuron at a time in O(n²) and can take
//! the last one back; so does Newton's method for losses that are not quadratic.

mod anchor;
mod cholesky;
mod kind;
mod newton;
mod orthogonal;
mod triangle;

pub use anchor::Anchor;
pub use cholesky::Cholesky;
pub use kind::ProjectionKind;
pub use newton::Newton;
pub use orthogonal::Orthogonal;
pub use triangle::Triangle;

use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::{LocalScore, PointValues, Rho, Sums};
use crate::vector::add_scaled;
use std::time::{Duration, Instant};

/// A neuron is refused when less than this part of its square norm is new: the rest is rounding.
pub const MIN_RELATIVE_PIVOT: f64 = 1e-13;

/// What became of a neuron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Addition {
    /// It is in.
    Added,
    /// The others span it.
    Dependent {
        /// The part of the neuron's square norm that they do not span.
        relative_pivot: f64,
    },
}

/// ‖P⊥g‖² of a neuron g and ∇²L P⊥g.
pub type Remainder<'a> = (f64, Box<dyn Rho + 'a>);

/// What the neuron added last brought: q, its normalised part that is new, as the functional ∇²L q, and the
/// component y of the solution along it.
pub struct Newest<'a> {
    /// ∇²L q.
    pub rho: Box<dyn Rho + 'a>,
    /// y.
    pub component: f64,
}

/// The projection onto the span of the chosen neurons.
pub struct Projection<'a> {
    sums: &'a dyn Sums,
    way: Way<'a>,
    /// Where the gradient is taken on more points than the curvature.
    anchor: Option<Anchor<'a>>,
    gram_time: Duration,
}

enum Way<'a> {
    /// By the Gram matrix: no memory that grows with the points.
    Cholesky(Cholesky),
    /// By orthogonal values at the points: twice the digits.
    Orthogonal(Orthogonal, &'a dyn PointValues),
    /// By Newton's method: for losses that are not quadratic.
    Newton(Newton),
}

impl<'a> Projection<'a> {
    /// By the Gram matrix.
    pub fn cholesky(sums: &'a dyn Sums) -> Self {
        Self::new(sums, Way::Cholesky(Cholesky::default()))
    }

    /// By orthogonal values at the points.
    pub fn orthogonal(sums: &'a dyn Sums, values: &'a dyn PointValues) -> Self {
        Self::new(sums, Way::Orthogonal(Orthogonal::default(), values))
    }

    /// By Newton's method, with the Hessian factored from orthogonal values at the points if `by_values`.
    pub fn newton(sums: &'a dyn Sums, by_values: bool) -> Self {
        Self::new(sums, Way::Newton(Newton::new(by_values)))
    }

    fn new(sums: &'a dyn Sums, way: Way<'a>) -> Self {
        Self {
            sums,
            way,
            anchor: None,
            gram_time: Duration::ZERO,
        }
    }

    /// The same with gradients from `fine`, which has more points than the sums of the curvature: taken there
    /// at u = 0 now, and at the u of every [correction](Self::correct).
    pub fn anchored(mut self, fine: &'a dyn Sums, dimension: usize) -> Result<Self, SolveError> {
        let zero = Network::zero(self.sums.activation(), dimension);
        self.anchor = Some(Anchor::new(fine, &zero)?);
        Ok(self)
    }

    /// Takes the gradient afresh on the many points at u, the projection onto the neurons added, and the
    /// projection's step against it; twice what that takes off the loss. The coefficients are to be asked for
    /// again.
    pub fn correct(&mut self, u: &Network) -> Result<f64, SolveError> {
        let (Some(anchor), Way::Cholesky(cholesky)) = (&mut self.anchor, &mut self.way) else {
            return Ok(0.0);
        };
        *anchor = anchor.moved(u)?;
        Ok(cholesky.correct(&anchor.scores(&u.neurons)?))
    }

    /// The projection on the many points, by conjugate gradients with the factor of the few, until no more than about `enough`
    /// is left to take off the loss, or this part of what there was at first; whether it got there. Unlike
    /// [corrections](Self::correct) it converges however few the few are. Where there is an anchor it is at u then.
    pub fn settle(&mut self, u: &mut Network, enough: f64, part: f64) -> Result<bool, SolveError> {
        let Way::Cholesky(cholesky) = &mut self.way else {
            return Ok(true);
        };
        let fine = self.anchor.as_ref().map_or(self.sums, Anchor::sums);
        let zero = Network::zero(u.activation, u.dimension);
        let curvature = |v: &[f64]| {
            let along = fine.at(&zero)?.curvature(&u.with_coefficients(v))?;
            along.list_scores(&u.neurons)
        };
        let scores = fine.gradient(u)?.list_scores(&u.neurons)?;
        let (change, settled) = cholesky.descend(scores, (2.0 * enough, part), curvature)?;
        cholesky.shift(&change);
        add_scaled(1.0, &change, &mut u.coefficients);
        if self.anchor.is_some() {
            self.anchor = Some(Anchor::new(fine, u)?);
        }
        Ok(settled)
    }

    /// The coefficients change by this, where the Gram matrix is factored.
    pub fn shift(&mut self, change: &[f64]) {
        if let Way::Cholesky(cholesky) = &mut self.way {
            cholesky.shift(change);
        }
    }

    /// Takes the projection's step against a gradient whose scores of the neurons added are these: the load has
    /// changed. Newton's method takes it with the next neuron. The coefficients are to be asked for again.
    pub fn follow_load(&mut self, scores: &[f64]) {
        match &mut self.way {
            Way::Cholesky(cholesky) => {
                cholesky.correct(scores);
            }
            Way::Orthogonal(orthogonal, _) => orthogonal.correct(scores),
            Way::Newton(_) => {}
        }
    }

    /// Whether it goes by the Gram matrix.
    pub fn is_cholesky(&self) -> bool {
        matches!(self.way, Way::Cholesky(_))
    }

    /// The same with the time that another one spent: it takes that one's place.
    pub fn instead_of(mut self, other: &Projection) -> Self {
        self.gram_time = other.gram_time;
        self
    }

    /// R of the Gram matrix G = RᵀR, where that is factored.
    pub fn factor(&self) -> Option<&Triangle> {
        match &self.way {
            Way::Cholesky(cholesky) => Some(cholesky.factor()),
            Way::Orthogonal(..) | Way::Newton(_) => None,
        }
    }

    /// The time spent on sums over the points.
    pub fn gram_time(&self) -> Duration {
        self.gram_time
    }

    /// Adds a neuron to those of u, the projection onto their span; `score` is ⟨∇L(u), g⟩.
    ///
    /// The gradient at u is orthogonal to the span, so the new component of the solution is −score over the
    /// norm of what the neuron adds: no cancellation.
    pub fn try_add(&mut self, u: &Network, neuron: &Neuron, score: f64) -> Result<Addition, SolveError> {
        let started = Instant::now();
        match &mut self.way {
            Way::Cholesky(cholesky) => {
                let mut list = u.neurons.clone();
                list.push(neuron.clone());
                let column = self.sums.gram_column(neuron, &list)?;
                self.gram_time += started.elapsed();
                Ok(cholesky.try_add(&column, score))
            }
            Way::Orthogonal(orthogonal, values) => {
                let column = values.of(neuron)?;
                self.gram_time += started.elapsed();
                Ok(orthogonal.try_add(*values, column, score))
            }
            Way::Newton(newton) => newton.try_add(self.sums, u, neuron),
        }
    }

    /// Adds a neuron by its row of the Gram matrix, where that is factored; its part of the load is to be
    /// [corrected](Self::correct).
    pub fn try_add_row(&mut self, row: &[f64]) -> Option<Addition> {
        match &mut self.way {
            Way::Cholesky(cholesky) => Some(cholesky.try_add(row, 0.0)),
            Way::Orthogonal(..) | Way::Newton(_) => None,
        }
    }

    /// G v, where the Gram matrix G is factored.
    pub fn times_gram(&self, v: &[f64]) -> Option<Vec<f64>> {
        match &self.way {
            Way::Cholesky(cholesky) => Some(cholesky.times_gram(v)),
            Way::Orthogonal(..) | Way::Newton(_) => None,
        }
    }

    /// Takes the last neuron back.
    pub fn pop(&mut self) {
        match &mut self.way {
            Way::Cholesky(cholesky) => cholesky.pop(),
            Way::Orthogonal(orthogonal, _) => orthogonal.pop(),
            Way::Newton(newton) => newton.pop(),
        }
    }

    /// The coefficients of the best approximation by these neurons, which are those added.
    pub fn coefficients(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        match &self.way {
            Way::Cholesky(cholesky) => {
                let gradient = |u: &Network| self.gradient(u);
                cholesky.polished_coefficients(self.sums.activation(), neurons, gradient)
            }
            Way::Orthogonal(orthogonal, _) => Ok(orthogonal.coefficients()),
            Way::Newton(newton) => Ok(newton.coefficients()),
        }
    }

    /// Twice what the projection takes off the loss at zero.
    pub fn explained(&self) -> f64 {
        match &self.way {
            Way::Cholesky(cholesky) => cholesky.explained(),
            Way::Orthogonal(orthogonal, _) => orthogonal.explained(),
            Way::Newton(newton) => newton.explained(),
        }
    }

    /// The coefficients of q, the normalised part of the last neuron that is new, where the Gram matrix is factored.
    pub fn newest_coefficients(&self) -> Option<Vec<f64>> {
        match &self.way {
            Way::Cholesky(cholesky) => Some(cholesky.newest()?.0),
            Way::Orthogonal(..) | Way::Newton(_) => None,
        }
    }

    /// What the last of these neurons, which are those added, brought; nothing where there is none or the loss
    /// is not quadratic.
    pub fn newest(&self, neurons: &[Neuron]) -> Result<Option<Newest<'a>>, SolveError> {
        let (rho, component) = match &self.way {
            Way::Cholesky(cholesky) => {
                let Some((coefficients, component)) = cholesky.newest() else {
                    return Ok(None);
                };
                let zero = Network::zero(self.sums.activation(), neurons[0].omega.len());
                let q = Network {
                    neurons: neurons.to_vec(),
                    coefficients,
                    ..zero.clone()
                };
                (self.sums.at(&zero)?.curvature(&q)?, component)
            }
            Way::Orthogonal(orthogonal, values) => match orthogonal.newest() {
                Some((q, component)) => (values.curvature_from(q)?, component),
                None => return Ok(None),
            },
            Way::Newton(_) => return Ok(None),
        };
        Ok(Some(Newest { rho, component }))
    }

    /// ‖P⊥g‖² of a neuron off the span of these, which are those added, and ∇²L P⊥g, half its gradient in g;
    /// nothing where the loss is not quadratic.
    pub fn remainder(&self, neurons: &[Neuron], g: &Neuron) -> Result<Option<Remainder<'a>>, SolveError> {
        match &self.way {
            Way::Cholesky(cholesky) => {
                let mut list = neurons.to_vec();
                list.push(g.clone());
                let column = self.sums.gram_column(g, &list)?;
                let (square, mut coefficients) = cholesky.remainder(&column);
                coefficients.push(1.0);
                let zero = Network::zero(self.sums.activation(), g.omega.len());
                let left = Network {
                    neurons: list,
                    coefficients,
                    ..zero.clone()
                };
                Ok(Some((square, self.sums.at(&zero)?.curvature(&left)?)))
            }
            Way::Orthogonal(orthogonal, values) => {
                let left = orthogonal.remainder(*values, values.of(g)?);
                Ok(Some((values.square(&left), values.curvature_from(&left)?)))
            }
            Way::Newton(_) => Ok(None),
        }
    }

    /// The squares ‖P⊥g‖² of a list of neurons off the span of those added, with half their slopes in (ω, b);
    /// nothing where they are not to be had.
    pub fn remainders(
        &self,
        neurons: &[Neuron],
        list: &[Neuron],
    ) -> Result<Option<Vec<LocalScore>>, SolveError> {
        if let (Way::Cholesky(cholesky), Some(remainders)) = (&self.way, self.sums.remainders()) {
            let project = |column: &[f64]| cholesky.remainder(column);
            return remainders.remainders_at(neurons, list, &project).map(Some);
        }
        let mut all = Vec::new();
        for g in list {
            let Some((square, rho)) = self.remainder(neurons, g)? else {
                return Ok(None);
            };
            let Some(slopes) = rho.slopes() else {
                return Ok(None);
            };
            let gradient = slopes.slopes_at(std::slice::from_ref(g))?.swap_remove(0).gradient;
            all.push(LocalScore {
                value: square,
                gradient,
            });
        }
        Ok(Some(all))
    }

    /// ∇L(u) at the projection u, by the most accurate way at hand: with a stiff penalty the coefficients
    /// cannot carry u to the accuracy that its gradient needs; its values at the points can.
    pub fn gradient(&self, u: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        match (&self.way, &self.anchor) {
            (Way::Orthogonal(orthogonal, values), _) if !u.is_empty() => {
                values.gradient_from(orthogonal.solution())
            }
            (_, Some(anchor)) => anchor.gradient(self.sums, u),
            _ => self.sums.gradient(u),
        }
    }
}
