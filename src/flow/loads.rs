//! What acts on a flow, at its neurons and at all candidates.

use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::{Accuracy, Rho, Sums};
use crate::vector::add_scaled;

/// A load that changes by more than this part from one step to the next is another one.
const SUDDEN: f64 = 0.1;

/// Sums that are others at every time.
pub type SumsAt<'a> = dyn Fn(f64) -> Result<Box<dyn Sums>, SolveError> + 'a;

/// φ(t) times a load that stays.
pub struct LoadPart<'a> {
    /// What it is.
    pub name: String,
    /// φ.
    pub factor: Box<dyn Fn(f64) -> f64 + 'a>,
    /// Minus the load is its gradient at zero.
    pub sums: Box<dyn Sums + 'a>,
}

/// l(t) = Σ φ(t) ψ, and whatever has no such form.
#[derive(Default)]
pub struct Loads<'a> {
    /// Loads that stay, up to a factor: they need the points once.
    pub parts: Vec<LoadPart<'a>>,
    /// The rest, which needs them in every step.
    pub moving: Option<Box<SumsAt<'a>>>,
}

/// Loads with what is known of them.
pub(super) struct KnownLoads<'l, 'a> {
    loads: &'l Loads<'a>,
    zero: Network,
    /// ⟨ψ, g⟩ of each part, for each neuron.
    neurons: Vec<Vec<f64>>,
    /// The same for each candidate, where it was asked for.
    candidates: Option<Vec<Vec<f64>>>,
}

/// The load at a time.
pub(super) struct LoadAt {
    factors: Vec<f64>,
    moving: Option<Box<dyn Sums>>,
}

impl<'l, 'a> KnownLoads<'l, 'a> {
    pub(super) fn new(loads: &'l Loads<'a>, zero: Network) -> Self {
        Self {
            loads,
            neurons: vec![Vec::new(); loads.parts.len()],
            zero,
            candidates: None,
        }
    }

    /// Takes up more neurons.
    pub(super) fn add(&mut self, list: &[Neuron]) -> Result<(), SolveError> {
        for (part, known) in self.loads.parts.iter().zip(&mut self.neurons) {
            let scores = part.sums.gradient(&self.zero)?.list_scores(list)?;
            known.extend(scores.into_iter().map(|score| -score));
        }
        Ok(())
    }

    /// Takes the last neuron back.
    pub(super) fn pop(&mut self) {
        self.neurons.iter_mut().for_each(|known| {
            known.pop();
        });
    }

    pub(super) fn at(&self, time: f64) -> Result<LoadAt, SolveError> {
        let factor = |part: &LoadPart| match (part.factor)(time) {
            value if value.is_finite() => Ok(value),
            value => Err(SolveError::NotFiniteInTime {
                what: part.name.clone(),
                value,
                time,
            }),
        };
        let factors = self.loads.parts.iter().map(factor);
        Ok(LoadAt {
            factors: factors.collect::<Result<_, _>>()?,
            moving: self.loads.moving.as_ref().map(|load| load(time)).transpose()?,
        })
    }

    /// Whether what acts at the second time is something else than at the first, so that neurons may be missing.
    pub(super) fn change(&self, from: f64, to: f64) -> bool {
        let change = |part: &LoadPart| {
            let [before, after] = [from, to].map(|time| (part.factor)(time));
            (after - before).abs() > SUDDEN * before.abs().max(after.abs())
        };
        self.loads.moving.is_some() || self.loads.parts.iter().any(change)
    }

    /// ⟨l(t), g⟩ for the neurons from one on.
    pub(super) fn of_neurons(
        &self,
        load: &LoadAt,
        neurons: &[Neuron],
        from: usize,
    ) -> Result<Vec<f64>, SolveError> {
        let mut sum = vec![0.0; neurons.len() - from];
        for (factor, known) in load.factors.iter().zip(&self.neurons) {
            add_scaled(*factor, &known[from..], &mut sum);
        }
        if let Some(moving) = &load.moving {
            let scores = moving.gradient(&self.zero)?.list_scores(&neurons[from..])?;
            add_scaled(-1.0, &scores, &mut sum);
        }
        Ok(sum)
    }

    /// scores −= weight ⟨l(t), g⟩ for all candidates.
    pub(super) fn subtract_from(
        &mut self,
        scores: &mut [f64],
        (weight, load): (f64, &LoadAt),
        grid: &Grid,
    ) -> Result<(), SolveError> {
        if self.candidates.is_none() {
            let parts = self.loads.parts.iter();
            let known = parts.map(|part| grid_scores(&*part.sums.gradient(&self.zero)?, grid));
            self.candidates = Some(known.collect::<Result<_, _>>()?);
        }
        for (factor, known) in load.factors.iter().zip(self.candidates.iter().flatten()) {
            // The parts are gradients, minus the loads.
            add_scaled(weight * factor, known, scores);
        }
        if let Some(moving) = &load.moving {
            add_scaled(
                weight,
                &grid_scores(&*moving.gradient(&self.zero)?, grid)?,
                scores,
            );
        }
        Ok(())
    }

    /// ⟨l(t), u⟩ on other points than those of the neurons' loads.
    pub(super) fn along(&self, load: &LoadAt, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        let mut sum = vec![0.0; neurons.len()];
        for (factor, part) in load.factors.iter().zip(&self.loads.parts) {
            let scores = part.sums.gradient(&self.zero)?.list_scores(neurons)?;
            add_scaled(-factor, &scores, &mut sum);
        }
        if let Some(moving) = &load.moving {
            let scores = moving.gradient(&self.zero)?.list_scores(neurons)?;
            add_scaled(-1.0, &scores, &mut sum);
        }
        Ok(sum)
    }
}

/// ⟨ρ, g⟩ for all candidates, to rounding.
pub(super) fn grid_scores(rho: &dyn Rho, grid: &Grid) -> Result<Vec<f64>, SolveError> {
    Ok(rho.scores(Candidates::Grid(grid), Accuracy::Full)?.values)
}
