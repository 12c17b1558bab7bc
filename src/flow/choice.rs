//! New neurons for a step: those that its functional still asks for.

use super::hold::Multiplier;
use super::loads::{LoadAt, grid_scores};
use super::system::System;
use super::{FlowLosses, FlowParams};
use crate::error::SolveError;
use crate::greedy::{Board, Ranking, Selection};
use crate::network::{Network, Neuron};
use crate::sums::{Rho, Scores};
use crate::vector::{add_scaled, dot};
use std::collections::HashSet;

/// After so many neurons in a step that independent points refuse, or that the others span, no more are tried.
const MAX_REFUSALS: usize = 8;

/// A functional with its weight.
pub(super) type Weighted<'r> = (f64, Box<dyn Rho + 'r>);

/// What a step minimises besides ½⟨A u, u⟩ + F(u): minus this is its load.
pub(super) struct StepLoad<'r> {
    /// What acts at the new time.
    pub(super) acting: LoadAt,
    /// ∇G at the earlier u, each with its weight.
    pub(super) explicit: Vec<Weighted<'r>>,
    /// h/τ: the earlier u.
    pub(super) earlier: Vec<f64>,
    /// What holds the conditions of the step.
    pub(super) multiplier: Option<Multiplier>,
}

impl System<'_, '_> {
    /// ⟨load, g⟩ for the neurons from one on.
    pub(super) fn load_of(&self, load: &StepLoad, from: usize) -> Result<Vec<f64>, SolveError> {
        let mut sum = self.loads.of_neurons(&load.acting, &self.neurons, from)?;
        add_scaled(1.0, &self.mass.times(&load.earlier)[from..], &mut sum);
        for (weight, rho) in &load.explicit {
            add_scaled(-weight, &rho.list_scores(&self.neurons[from..])?, &mut sum);
        }
        if let (Some(holding), Some(lambda)) = (&self.holding, &load.multiplier) {
            holding.subtract_from(&mut sum, lambda, &self.neurons, from)?;
        }
        Ok(sum)
    }

    /// The gradient of the step's functional at u, for all candidates.
    fn candidate_scores(
        &mut self,
        load: &StepLoad,
        u: &Network,
        params: &FlowParams,
    ) -> Result<Vec<f64>, SolveError> {
        let grid = params.grid;
        let mut scores = grid_scores(&*self.step().gradient(u)?, grid)?;
        let earlier = self.network(&load.earlier);
        let past = self.losses.mass.at(&self.zero)?.curvature(&earlier)?;
        add_scaled(-1.0, &grid_scores(&*past, grid)?, &mut scores);
        self.loads.subtract_from(&mut scores, (1.0, &load.acting), grid)?;
        if let Some(lambda) = &load.multiplier {
            let sum = self.network(lambda.sum());
            if let Some(holding) = &mut self.holding {
                holding.add_to_scores(&mut scores, (lambda, &sum), grid)?;
            }
        }
        for (weight, rho) in &load.explicit {
            add_scaled(*weight, &grid_scores(&**rho, grid)?, &mut scores);
        }
        Ok(scores)
    }
}

/// What chooses new neurons, and remembers what it may.
pub(super) struct Chooser {
    /// The norms of what candidates would add, where the choice is by decrease.
    pub(super) board: Option<Board>,
    /// Neurons that are chosen.
    closed: HashSet<Vec<u64>>,
}

/// What became of a search for new neurons.
#[derive(Default)]
pub(super) struct Found {
    /// How many were added.
    pub(super) new: usize,
    /// How many independent points refused.
    pub(super) refused: usize,
    /// Whether the last look found one that was wanted, but there was no room.
    pub(super) more: bool,
}

impl Chooser {
    pub(super) fn new(
        losses: &FlowLosses,
        validation: Option<&FlowLosses>,
        params: &FlowParams,
        zero: &Network,
    ) -> Result<Self, SolveError> {
        let board = match params.selection {
            Selection::Decrease => {
                let others = validation.map(|losses| losses.step);
                Some(Board::unscored(losses.step, others, params.grid, zero)?)
            }
            Selection::Slope => None,
        };
        Ok(Self {
            board,
            closed: HashSet::new(),
        })
    }

    /// Accounts for the neuron added last.
    pub(super) fn account(&mut self, system: &System, params: &FlowParams) -> Result<(), SolveError> {
        if let Some(neuron) = system.neurons.last() {
            self.closed.insert(key(neuron));
        }
        if let (Some(board), Some(newest)) = (&mut self.board, system.newest()?) {
            board.absorb(&newest, params.grid)?;
        }
        Ok(())
    }

    /// Adds neurons as long as one takes more off the functional than `enough`, at most so many; u is brought up to date.
    pub(super) fn enrich(
        &mut self,
        system: &mut System,
        load: &StepLoad,
        (u, enough): (&mut Vec<f64>, f64),
        (params, most): (&FlowParams, usize),
        validation: Option<&System>,
    ) -> Result<Found, SolveError> {
        let mut found = Found::default();
        let room = params.neurons - system.neurons.len();
        loop {
            let network = system.network(u);
            let scores = system.candidate_scores(load, &network, params)?;
            let mut ranking = self.ranking(scores, params)?;
            let mut tries = 0;
            let added = loop {
                let Some((neuron, score)) = ranking.take_best()? else {
                    break false;
                };
                if self.closed.contains(&key(&neuron)) || !within(&neuron, params.bias) {
                    continue;
                }
                let column = system.column(&neuron)?;
                let (square, _) = system.factor.remainder(&column);
                let decrease = 0.5 * score * score / square;
                if square > 0.0 && (decrease <= enough || score == 0.0) {
                    break false;
                }
                if found.new >= most.min(room) {
                    found.more = true;
                    break false;
                }
                tries += 1;
                if tries > MAX_REFUSALS {
                    break false;
                }
                if !system.try_add(&neuron, column, score)? {
                    continue;
                }
                system.loads.add(std::slice::from_ref(&neuron))?;
                let full = system.load_of(load, 0)?;
                let next = system.minimise(&full, 0.0, u, params.quadratic)?;
                if let Some(validation) = validation
                    && rises(validation, load, system, (u, &next))?
                {
                    system.pop();
                    found.refused += 1;
                    continue;
                }
                *u = next;
                self.account(system, params)?;
                break true;
            };
            match added {
                true => found.new += 1,
                false => return Ok(found),
            }
        }
    }

    fn ranking<'p>(&mut self, scores: Vec<f64>, params: &'p FlowParams) -> Result<Ranking<'p>, SolveError> {
        let weights = match &mut self.board {
            Some(board) => {
                board.rescore(scores.clone())?;
                board.weights()
            }
            None => vec![1.0; scores.len()],
        };
        let scores = Scores::exact(scores).values;
        Ok(Ranking::weighted(params.grid, scores, weights, params.center))
    }
}

/// Whether the functional rises on independent points with a neuron that lowers it on those of the run.
fn rises(
    validation: &System,
    load: &StepLoad,
    system: &System,
    (before, after): (&[f64], &[f64]),
) -> Result<bool, SolveError> {
    let losses = validation.losses;
    let neurons = &system.neurons;
    let change: Vec<f64> = after
        .iter()
        .enumerate()
        .map(|(i, a)| a - before.get(i).copied().unwrap_or(0.0))
        .collect();
    let field = validation.step().at(&system.network(before))?;
    let mut slope = field.gradient()?.list_scores(neurons)?;
    let earlier = losses
        .mass
        .at(&system.zero)?
        .curvature(&system.network(&load.earlier))?;
    add_scaled(-1.0, &earlier.list_scores(neurons)?, &mut slope);
    add_scaled(-1.0, &validation.loads.along(&load.acting, neurons)?, &mut slope);
    if let (Some(holding), Some(lambda)) = (&validation.holding, &load.multiplier) {
        let sum = system.network(lambda.sum());
        add_scaled(1.0, &holding.along((lambda, &sum), neurons)?, &mut slope);
    }
    for (weight, rho) in &load.explicit {
        // On the points of the run: what it says of G is not what is in doubt.
        add_scaled(*weight, &rho.list_scores(neurons)?, &mut slope);
    }
    let bend = field.curvature(&system.network(&change))?.list_scores(neurons)?;
    let risen = dot(&slope, &change) + 0.5 * dot(&bend, &change);
    Ok(risen.is_nan() || risen > 0.0)
}

fn within(neuron: &Neuron, [low, high]: [f64; 2]) -> bool {
    let slack = 1e-9 * (high - low);
    (low - slack..=high + slack).contains(&neuron.bias)
}

fn key(neuron: &Neuron) -> Vec<u64> {
    let numbers = neuron.omega.iter().chain([&neuron.bias]);
    numbers.map(|value| (value + 0.0).to_bits()).collect()
}
