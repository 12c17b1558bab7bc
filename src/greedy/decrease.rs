//! The choice by decrease: the neuron that lowers the loss most after the projection.
//!
//! Adding g to the span lowers a quadratic loss by exactly ½⟨∇L(u), g⟩² / ‖P⊥g‖², P⊥ the projection off the
//! span of the neurons chosen so far in the inner product of the energy. With q the normalised new part of the
//! neuron added last and p = ⟨∇²L q, g⟩ for all candidates g, one sweep, both parts follow from those of the
//! step before: ⟨∇L(u), g⟩ changes by y p, where u changed by y q, and ‖P⊥g‖² by −p².

use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::{Addition, Cholesky, Newest};
use crate::sums::{Accuracy, Rho, Sums};

/// Candidates of whose square norm less than this part is new are closed: the difference has no digits below.
const CLOSED: f64 = 1e-7;
/// Scores are taken afresh after so many neurons, to keep their digits.
pub(crate) const REFRESH: usize = 32;

/// What is known of every candidate of a grid that stays the same.
pub(super) struct Board {
    /// ⟨∇L(u), g⟩.
    scores: Vec<f64>,
    /// ‖g‖².
    squares: Vec<f64>,
    /// ‖P⊥g‖².
    left: Vec<f64>,
    /// The neurons of u that are accounted for.
    neurons: usize,
}

impl Board {
    /// The candidates at u = 0.
    pub(super) fn new(sums: &dyn Sums, grid: &Grid, dimension: usize) -> Result<Self, SolveError> {
        let zero = Network::zero(sums.activation(), dimension);
        let field = sums.at(&zero)?;
        let squares = field.squares(Candidates::Grid(grid))?;
        let mut board = Self {
            scores: Vec::new(),
            left: squares.clone(),
            squares,
            neurons: 0,
        };
        board.refresh(&*field.gradient()?, grid)?;
        Ok(board)
    }

    /// How many neurons are accounted for.
    pub(super) fn neurons(&self) -> usize {
        self.neurons
    }

    /// Whether scores are to be taken afresh.
    pub(super) fn is_due(&self) -> bool {
        self.neurons.is_multiple_of(REFRESH) && self.neurons > 0
    }

    /// Takes the scores of ∇L(u) afresh.
    pub(super) fn refresh(&mut self, gradient: &dyn Rho, grid: &Grid) -> Result<(), SolveError> {
        self.scores = gradient.scores(Candidates::Grid(grid), Accuracy::Full)?.values;
        match self.scores.iter().all(|score| score.is_finite()) {
            true => Ok(()),
            false => Err(SolveError::Breakdown {
                neurons: self.neurons,
            }),
        }
    }

    /// Accounts for the neuron added last.
    pub(super) fn absorb(&mut self, newest: &Newest, grid: &Grid) -> Result<(), SolveError> {
        let along = newest.rho.scores(Candidates::Grid(grid), Accuracy::Full)?.values;
        let candidates = self.scores.iter_mut().zip(&mut self.left);
        for ((score, left), p) in candidates.zip(along) {
            *score += newest.component * p;
            *left -= p * p;
        }
        self.neurons += 1;
        Ok(())
    }

    /// The squares of the norms under another curvature, with no neuron accounted for.
    fn restart(&mut self, squares: Vec<f64>) {
        self.left = squares.clone();
        self.squares = squares;
        self.neurons = 0;
    }

    /// The scores of all candidates.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// 1/‖P⊥g‖ of all candidates, zero for those that are closed: |score| times it is the root of twice the
    /// decrease.
    pub(super) fn weights(&self) -> Vec<f64> {
        let weight = |(&left, &square): (&f64, &f64)| match left > CLOSED * square {
            true => left.sqrt().recip(),
            false => 0.0,
        };
        self.left.iter().zip(&self.squares).map(weight).collect()
    }
}

/// For losses that are not quadratic: the inner product ∇²L at an earlier u, with the chosen neurons
/// orthonormalised in it. It is taken anew when the neurons have doubled.
pub(super) struct Metric {
    u: Network,
    factor: Cholesky,
}

impl Metric {
    /// Brings the board up to the neurons of u.
    pub(super) fn account(
        place: &mut Option<Metric>,
        board: &mut Board,
        sums: &dyn Sums,
        u: &Network,
        grid: &Grid,
    ) -> Result<(), SolveError> {
        if board.neurons < u.len() {
            if u.len().is_power_of_two() || place.is_none() {
                *place = Some(Metric {
                    u: u.clone(),
                    factor: Cholesky::default(),
                });
                board.restart(sums.at(u)?.squares(Candidates::Grid(grid))?);
            }
            if let Some(metric) = place {
                while board.neurons < u.len() {
                    metric.add(board, sums, &u.neurons[..=board.neurons], grid)?;
                }
            }
        }
        board.refresh(&*sums.gradient(u)?, grid)
    }

    /// Accounts for the last of these neurons.
    fn add(
        &mut self,
        board: &mut Board,
        sums: &dyn Sums,
        neurons: &[Neuron],
        grid: &Grid,
    ) -> Result<(), SolveError> {
        let field = sums.at(&self.u)?;
        let single = Network::single(self.u.activation, &neurons[neurons.len() - 1]);
        let column = field.curvature(&single)?.list_scores(neurons)?;
        board.neurons += 1;
        // What the others span in this metric takes nothing off any candidate.
        let orthogonal = self.factor.try_add(&column, 0.0);
        if let (Addition::Added, Some((coefficients, _))) = (orthogonal, self.factor.newest()) {
            let q = Network {
                neurons: neurons.to_vec(),
                coefficients,
                ..Network::zero(self.u.activation, self.u.dimension)
            };
            let along = field
                .curvature(&q)?
                .scores(Candidates::Grid(grid), Accuracy::Full)?;
            let parts = board.left.iter_mut().zip(along.values);
            parts.for_each(|(left, p)| *left -= p * p);
        }
        Ok(())
    }
}
