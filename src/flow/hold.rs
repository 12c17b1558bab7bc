//! Conditions that multipliers hold, in every step anew.
//!
//! λ ← λ + s (Bu − g) from λ = 0, a few times, with a projection after each: all on the same factor, and without a pass over the
//! points. λ = Σ s (Buⱼ − g) over the uⱼ on the way, so that their sum and number are all there is to know of it.

use super::choice::StepLoad;
use super::gram::Gram;
use super::loads::{KnownLoads, LoadAt, grid_scores};
use super::system::System;
use super::{FlowLosses, HeldLosses};
use crate::candidates::Grid;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::vector::add_scaled;

/// How often λ follows u in a step.
const ROUNDS: usize = 5;

/// The neurons under the penalty.
pub(super) struct Holding<'l, 'a> {
    losses: &'l HeldLosses<'a>,
    penalty: Gram,
    loads: KnownLoads<'l, 'a>,
}

/// λ, by the sum of the uⱼ and their number, and the data that belong to it.
pub(super) struct Multiplier {
    data: LoadAt,
    sum: Vec<f64>,
    count: f64,
}

impl<'l, 'a> Holding<'l, 'a> {
    pub(super) fn new(losses: &'l FlowLosses<'a>, zero: &Network) -> Option<Self> {
        let losses = losses.held.as_ref()?;
        Some(Self {
            losses,
            penalty: Gram::default(),
            loads: KnownLoads::new(losses.loads, zero.clone()),
        })
    }

    /// One neuron more, the last of a list.
    pub(super) fn push(&mut self, neuron: &Neuron, list: &[Neuron]) -> Result<(), SolveError> {
        self.penalty.push(self.losses.penalty.gram_column(neuron, list)?);
        self.loads.add(std::slice::from_ref(neuron))
    }

    pub(super) fn pop(&mut self) {
        self.penalty.pop();
        self.loads.pop();
    }

    /// Whether the data at the second time are others than at the first.
    pub(super) fn change(&self, from: f64, to: f64) -> bool {
        self.loads.change(from, to)
    }

    /// λ = 0, for a time.
    pub(super) fn multiplier(&self, time: f64) -> Result<Multiplier, SolveError> {
        Ok(Multiplier {
            data: self.loads.at(time)?,
            sum: Vec::new(),
            count: 0.0,
        })
    }

    /// load −= ⟨λ, g⟩ for the neurons from one on.
    pub(super) fn subtract_from(
        &self,
        load: &mut [f64],
        lambda: &Multiplier,
        neurons: &[Neuron],
        from: usize,
    ) -> Result<(), SolveError> {
        if lambda.count == 0.0 {
            return Ok(());
        }
        add_scaled(-1.0, &self.penalty.times(&lambda.sum)[from..], load);
        let data = self.loads.of_neurons(&lambda.data, neurons, from)?;
        add_scaled(lambda.count, &data, load);
        Ok(())
    }

    /// scores += ⟨λ, g⟩ for all candidates; `sum` is the network of that name.
    pub(super) fn add_to_scores(
        &mut self,
        scores: &mut [f64],
        (lambda, sum): (&Multiplier, &Network),
        grid: &Grid,
    ) -> Result<(), SolveError> {
        if lambda.count == 0.0 {
            return Ok(());
        }
        let zero = Network::zero(sum.activation, sum.dimension);
        let pull = self.losses.penalty.at(&zero)?.curvature(sum)?;
        add_scaled(1.0, &grid_scores(&*pull, grid)?, scores);
        self.loads
            .subtract_from(scores, (lambda.count, &lambda.data), grid)
    }

    /// ⟨λ, g⟩ for each neuron, on other points than those of λ.
    pub(super) fn along(
        &self,
        (lambda, sum): (&Multiplier, &Network),
        neurons: &[Neuron],
    ) -> Result<Vec<f64>, SolveError> {
        let zero = Network::zero(sum.activation, sum.dimension);
        let pull = self.losses.penalty.at(&zero)?.curvature(sum)?;
        let mut along = pull.list_scores(neurons)?;
        let data = self.loads.along(&lambda.data, neurons)?;
        add_scaled(-lambda.count, &data, &mut along);
        Ok(along)
    }

    /// ½∫ s (Bu)² − ∫ s g Bu.
    pub(super) fn risk(&self, u: &[f64], time: f64, neurons: &[Neuron]) -> Result<f64, SolveError> {
        let data = self.loads.of_neurons(&self.loads.at(time)?, neurons, 0)?;
        Ok(0.5 * self.penalty.square(u) - crate::vector::dot(&data[..u.len()], u))
    }
}

impl Multiplier {
    pub(super) fn sum(&self) -> &[f64] {
        &self.sum
    }

    /// λ ← λ + s (Bu − g).
    fn follow(&mut self, u: &[f64]) {
        self.sum.resize(u.len(), 0.0);
        add_scaled(1.0, u, &mut self.sum);
        self.count += 1.0;
    }

    fn forget(&mut self) {
        (self.sum, self.count) = (Vec::new(), 0.0);
    }
}

impl System<'_, '_> {
    /// u of a step: the minimum of its functional, with multipliers that hold what they should.
    pub(super) fn solve(
        &self,
        load: &mut StepLoad,
        shift: f64,
        guess: &[f64],
        quadratic: bool,
    ) -> Result<Vec<f64>, SolveError> {
        if let Some(lambda) = &mut load.multiplier {
            lambda.forget();
        }
        let free = self.load_of(load, 0)?;
        let mut u = self.minimise(&free, shift, guess, quadratic)?;
        if let (Some(holding), Some(lambda)) = (&self.holding, &mut load.multiplier) {
            for _ in 0..ROUNDS {
                lambda.follow(&u);
                let mut full = free.clone();
                holding.subtract_from(&mut full, lambda, &self.neurons, 0)?;
                u = self.minimise(&full, shift, &u, quadratic)?;
            }
        }
        Ok(u)
    }
}
