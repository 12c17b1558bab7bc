//! The step of the orthogonal algorithm that takes the neuron which lowers the loss most.

use super::Stopped;
use super::decrease::{Board, DecreaseLandscape, Metric, is_known};
use super::orthogonal::{Found, REFINED, Run};
use super::selection::Ranking;
use crate::candidates::{Grid, Resolution};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::refine::ascend;
use std::time::Instant;

/// The gradient is taken on all points when there are so many new neurons, or this part of what there was.
const ANCHORED_EVERY: usize = 8;
const ANCHORED_PART: usize = 4;
/// Corrections at an anchor, each with a gradient on all points.
const CORRECTIONS: usize = 2;

/// What was known when the gradient was last taken on all points.
#[derive(Debug, Default)]
pub(super) struct Anchored {
    /// How many neurons there were.
    neurons: usize,
    /// What had been taken off the loss by then, less what the projection says of it.
    pub(super) before: f64,
}

impl Anchored {
    /// Whether there are neurons enough for a new anchor; then it is noted.
    fn is_due(&mut self, neurons: usize) -> bool {
        let due = neurons >= self.neurons + ANCHORED_EVERY.max(self.neurons / ANCHORED_PART);
        if due {
            self.neurons = neurons;
        }
        due
    }
}

impl Run<'_> {
    /// Brings the projection to the gradient on all points, where inner products are taken on few.
    fn correct(&mut self) -> Result<(), SolveError> {
        if self.anchored.is_none() {
            return Ok(());
        }
        for _ in 0..CORRECTIONS {
            let explained = self.projection.explained();
            let gained = self.projection.correct(&self.network)?;
            self.network.coefficients = self.projection.coefficients(&self.network.neurons)?;
            if let Some(anchored) = &mut self.anchored {
                anchored.before += 0.5 * (gained + explained - self.projection.explained());
            }
            if std::env::var("DBG").is_ok() {
                eprintln!(
                    "n {} gained {:.3e} explained {:.6e}",
                    self.network.len(),
                    gained,
                    self.projection.explained()
                );
            }
        }
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
            for (neuron, _) in ascend(&landscape, &starts)? {
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
        let Some(validation) = self.guard.validation() else {
            return Ok(true);
        };
        let itself = std::slice::from_ref(neuron);
        let square = self.curvature.gram_column(neuron, itself)?[0];
        Ok(is_known(square, validation.gram_column(neuron, itself)?[0]))
    }

    /// Brings what is known of the candidates up to the neurons there are.
    pub(super) fn account(&mut self, grid: &Grid) -> Result<(), SolveError> {
        if self.board.is_none() {
            let zero = Network::zero(self.network.activation, self.network.dimension);
            let gradient = self.projection.gradient(&zero)?;
            self.board = Some(Board::new(
                self.curvature,
                self.guard.validation(),
                grid,
                (&zero, &*gradient),
            )?);
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
            let due = match &mut self.anchored {
                Some(anchored) => anchored.is_due(self.network.len()),
                None => board.is_due(),
            };
            if due {
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
