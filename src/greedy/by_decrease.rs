//! The step of the orthogonal algorithm that takes the neuron which lowers the loss most.

use super::Stopped;
use super::decrease::{Board, DecreaseLandscape, Metric, REFRESH, is_known};
use super::orthogonal::{Found, REFINED, Run};
use super::selection::Ranking;
use crate::candidates::{Grid, Resolution};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::refine::ascend;
use crate::sums::Sums;
use crate::vector::dot;
use std::time::Instant;

/// The gradient is taken on all points when there are so many new neurons, or this part of what there was.
pub(crate) const ANCHORED_EVERY: usize = 16;
const ANCHORED_PART: usize = 4;
/// Corrections at an anchor, each with a gradient on all points, at most …
const CORRECTIONS: usize = 4;
/// … until one takes off the loss less than this part of what the neurons since the last anchor did.
const CORRECTED: f64 = 1e-3;

/// What was known when the gradient was last taken on all points.
pub(super) struct Anchored<'a> {
    /// Other points than those of the inner products, to confirm norms.
    others: &'a dyn Sums,
    /// How many neurons there were.
    neurons: usize,
    /// What had been taken off the loss.
    fallen: f64,
    /// The same, less what the projection says of it.
    pub(super) before: f64,
    /// Whether the user was told that the points for inner products are too few.
    warned: bool,
}

impl<'a> Anchored<'a> {
    pub(super) fn new(others: &'a dyn Sums) -> Self {
        Self {
            others,
            neurons: 0,
            fallen: 0.0,
            before: 0.0,
            warned: false,
        }
    }

    /// Nothing is known any more: the neurons are other ones.
    pub(super) fn forget(&mut self) {
        *self = Self {
            warned: self.warned,
            ..Self::new(self.others)
        };
    }
}

impl Run<'_> {
    /// Whether other points agree on the norm of what the newest neuron adds: refinement finds neurons whose new part
    /// the few points for inner products do not see.
    pub(super) fn confirms_newest(&self) -> Result<bool, SolveError> {
        let (Some(anchored), Some(coefficients)) = (&self.anchored, self.projection.newest_coefficients())
        else {
            return Ok(true);
        };
        let zero = Network::zero(self.network.activation, self.network.dimension);
        let q = Network {
            neurons: self.network.neurons.clone(),
            coefficients,
            ..zero.clone()
        };
        let scores = anchored
            .others
            .at(&zero)?
            .curvature(&q)?
            .list_scores(&q.neurons)?;
        Ok(is_known(1.0, dot(&scores, &q.coefficients)))
    }

    /// Points that have a second opinion on norms: more of them than the inner products have, where those have few.
    fn second_opinion(&self) -> Option<&dyn Sums> {
        if self.norms.is_some() {
            return self.norms;
        }
        let all = self.anchored.as_ref().map(|_| self.training);
        let others = [self.guard.validation(), all].into_iter().flatten();
        others.min_by_key(|sums| sums.points())
    }

    /// Whether there are neurons enough for the gradient to be taken afresh.
    fn is_due(&self) -> bool {
        let neurons = self.network.len();
        match &self.anchored {
            Some(anchored) => {
                neurons >= anchored.neurons + ANCHORED_EVERY.max(anchored.neurons / ANCHORED_PART)
            }
            None => neurons.is_multiple_of(REFRESH),
        }
    }

    /// Brings the projection to the gradient on all points, where inner products are taken on few.
    pub(super) fn correct(&mut self) -> Result<(), SolveError> {
        let Some(mut anchored) = self.anchored.take() else {
            return Ok(());
        };
        let since = 0.5 * self.projection.explained() + anchored.before - anchored.fallen;
        let mut last = f64::INFINITY;
        for _ in 0..CORRECTIONS {
            let gained = 0.5 * self.projection.correct(&self.network)?;
            self.network.coefficients = self.projection.coefficients(&self.network.neurons)?;
            // The few points see the neurons so differently that corrections only make it worse.
            if gained >= last {
                let settled = self
                    .projection
                    .settle(&mut self.network, CORRECTED * since, 0.0)?;
                if !settled && !anchored.warned {
                    anchored.warned = true;
                    self.warnings.push(format!(
                        "at {} neurons the points for inner products are too few to tell them apart: take a larger \
                         `curvature` in [quadrature]",
                        self.network.len()
                    ));
                }
                break;
            }
            last = gained;
            if gained <= CORRECTED * since {
                break;
            }
        }
        anchored.neurons = self.network.len();
        // What was added up has the error of the few points.
        let loss = self.training.risk(&self.network)?;
        anchored.fallen = self.loss_of_zero - loss;
        anchored.before = anchored.fallen - 0.5 * self.projection.explained();
        self.anchored = Some(anchored);
        self.guard.anchor(&self.network)
    }

    pub(super) fn step_by_decrease(&mut self, grid: &Grid) -> Result<Found, SolveError> {
        let started = Instant::now();
        self.account(grid)?;
        let Some(board) = &self.board else {
            return Ok(Found::Nothing(Stopped::NoCandidate));
        };
        let center = self.params.center;
        let mut ranking = Ranking::weighted(grid, board.scores().to_vec(), board.weights(), center);
        self.timings.argmax += started.elapsed();
        if let Some(resolution) = self.params.refine.filter(|_| self.params.quadratic) {
            self.refine_decrease(&mut ranking, resolution)?;
        }
        self.take_from(ranking)
    }

    /// Adds the neurons climbed to from the best of the grid to the candidates, where they are better.
    fn refine_decrease(&mut self, ranking: &mut Ranking, resolution: Resolution) -> Result<(), SolveError> {
        let started = Instant::now();
        let starts = ranking.best_of_lines(REFINED)?;
        let starts: Vec<Neuron> = starts.into_iter().map(|(neuron, _)| neuron).collect();
        let gradient = self.projection.gradient(&self.network)?;
        if let Some(slopes) = gradient.slopes() {
            let landscape = DecreaseLandscape {
                gradient: &*gradient,
                slopes,
                projection: &self.projection,
                neurons: &self.network.neurons,
            };
            for (neuron, _) in ascend(&landscape, &starts, self.params.bound)? {
                let neuron = resolution.round(&neuron);
                if !self.knows(&neuron)? {
                    continue;
                }
                let score = gradient.list_scores(std::slice::from_ref(&neuron))?[0];
                let weight = landscape.weight(&neuron)?;
                ranking.push_weighted(neuron, score, weight);
            }
        }
        self.timings.refine += started.elapsed();
        Ok(())
    }

    /// Whether the points know the neuron's norm.
    fn knows(&self, neuron: &Neuron) -> Result<bool, SolveError> {
        if self.seen.is_some_and(|seen| !seen.sees(neuron)) {
            return Ok(false);
        }
        let Some(others) = self.second_opinion() else {
            return Ok(true);
        };
        let itself = std::slice::from_ref(neuron);
        let square = self.curvature.gram_column(neuron, itself)?[0];
        Ok(is_known(square, others.gram_column(neuron, itself)?[0]))
    }

    /// The candidates that the points see, with their norms; their scores are not known yet.
    pub(super) fn unscored_board(&self, grid: &Grid) -> Result<Board, SolveError> {
        let zero = Network::zero(self.network.activation, self.network.dimension);
        let mut board = Board::unscored(self.curvature, self.second_opinion(), grid, &zero)?;
        if let Some(seen) = self.seen {
            board.close(&seen.of_grid(grid));
        }
        Ok(board)
    }

    /// Brings what is known of the candidates up to the neurons there are.
    pub(super) fn account(&mut self, grid: &Grid) -> Result<(), SolveError> {
        if self.board.is_none() {
            let zero = Network::zero(self.network.activation, self.network.dimension);
            let mut board = self.unscored_board(grid)?;
            board.refresh(&*self.projection.gradient(&zero)?, grid)?;
            self.board = Some(board);
        }
        let Some(board) = &mut self.board else {
            return Ok(());
        };
        if !self.params.quadratic {
            return Metric::account(&mut self.metric, board, self.training, &self.network, grid);
        }
        if board.neurons() < self.network.len()
            && let Some(newest) = self.projection.newest(&self.network.neurons)?
        {
            board.absorb(&newest, grid)?;
            if self.is_due() {
                self.correct()?;
                let gradient = self.projection.gradient(&self.network)?;
                if let Some(board) = &mut self.board {
                    board.refresh(&*gradient, grid)?;
                }
            }
        }
        Ok(())
    }
}
