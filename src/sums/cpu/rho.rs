//! Scores: linear functionals at the points, applied to candidates.

use super::field::AtPoints;
use super::scan::LineScan;
use super::{Channels, CpuSums, Scratch};
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::loss::{Term, TermTile};
use crate::network::Neuron;
use crate::ridge::{Evaluator, LocalScore, Plan, add_local_sums, local_width};
use crate::sums::{Accuracy, Rho, Scores, Slopes};
use crate::symbol::Symbol;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// [`Rho`] on the CPU.
pub(crate) struct CpuRho<'a> {
    sums: &'a CpuSums,
    recipe: Recipe,
    /// The channels at every tile, once they were needed and where the points are kept, too.
    channels: OnceLock<Vec<Channels>>,
}

/// How channels come about at a tile.
pub(super) enum Recipe {
    /// ∇L(u).
    Gradient(Arc<AtPoints>),
    /// ∇²L v, at u where that matters.
    Curvature { at: Option<Arc<AtPoints>>, v: Evaluator },
    /// ∇L(u), or without the load ∇²L u, from the [values](crate::sums::PointValues) of u.
    Values { values: Vec<f64>, with_load: bool },
}

impl Recipe {
    /// The channels at a tile; none where they vanish.
    fn at(&self, term: &Term, tile: &TermTile, scratch: &mut Scratch) -> Result<Channels, SolveError> {
        match self {
            Recipe::Curvature { .. } if term.is_load_only() => Ok(Vec::new()),
            Recipe::Gradient(u) => {
                let mut jets = match term.is_load_only() {
                    // Whatever u is there.
                    true => vec![vec![0.0; tile.tile.len()]; term.symbols.len()],
                    false => u.jets_at(term, tile, scratch).into_owned(),
                };
                term.gradient(tile, &mut jets, &mut scratch.workspace)?;
                Ok(jets)
            }
            Recipe::Curvature { at, v } => {
                let u = at.as_ref().map(|u| u.values_at(term, tile, scratch));
                let mut jets = v.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
                term.curvature(tile, u.as_deref(), &mut jets, &mut scratch.workspace)?;
                Ok(jets)
            }
            Recipe::Values { values, with_load } => {
                let values = &values[scratch.values.clone()];
                Ok(term.channels_from_values(tile, values, *with_load))
            }
        }
    }
}

impl<'a> CpuRho<'a> {
    pub(super) fn new(sums: &'a CpuSums, recipe: Recipe) -> Result<Self, SolveError> {
        let rho = Self {
            sums,
            recipe,
            channels: OnceLock::new(),
        };
        // A gradient is asked for more than once, and so is the curvature along what changed since an anchor.
        let many = match &rho.recipe {
            Recipe::Gradient(_) => true,
            Recipe::Curvature { v, .. } => !v.is_single(),
            Recipe::Values { .. } => false,
        };
        if many {
            rho.keep()?;
        }
        Ok(rho)
    }

    /// Computes the channels at all points and keeps them, where the points are kept.
    fn keep(&self) -> Result<(), SolveError> {
        if self.sums.kept.is_some() && self.channels.get().is_none() {
            let channels = self
                .sums
                .at_every_tile(|term, tile, scratch| self.recipe.at(term, tile, scratch))?;
            self.channels.get_or_init(|| channels);
        }
        Ok(())
    }

    /// The channels of each term at this process's points, where the points are kept.
    pub(crate) fn columns(&self) -> Result<Option<Vec<Channels>>, SolveError> {
        self.keep()?;
        let Some(kept) = self.channels.get() else {
            return Ok(None);
        };
        let terms = self.sums.loss.terms.iter();
        let mut columns: Vec<Channels> = terms.map(|term| vec![Vec::new(); term.symbols.len()]).collect();
        for (spec, tile) in self.sums.tiles.iter().zip(kept) {
            let columns = columns[spec.term].iter_mut();
            if tile.is_empty() {
                columns.for_each(|column| column.resize(column.len() + spec.range.len(), 0.0));
                continue;
            }
            columns
                .zip(tile)
                .for_each(|(column, part)| column.extend_from_slice(part));
        }
        Ok(Some(columns))
    }

    /// The channels at a tile: as they are kept, or computed.
    fn at(
        &self,
        term: &Term,
        tile: &TermTile,
        scratch: &mut Scratch,
    ) -> Result<Cow<'_, [Vec<f64>]>, SolveError> {
        Ok(match self.channels.get() {
            Some(kept) => Cow::Borrowed(&kept[scratch.index]),
            None => Cow::Owned(self.recipe.at(term, tile, scratch)?),
        })
    }

    /// The scores of the neurons' derivative of this order along their line: ∂ᵏ/∂tᵏ σ(±t + b).
    fn scores_of_derivative(&self, derivative: usize, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let plan = Plan::new(self.sums.activation, along);
        if LineScan::groups(self.sums, &plan).len() > 1 {
            self.keep()?;
        }
        let orders = |term: &Term| term.symbols.iter().map(Symbol::order).collect();
        let factors =
            |term: &Term, omega: &[f64]| term.symbols.iter().map(|symbol| symbol.at(omega)).collect();
        let columns = |term: &Term, tile: &TermTile, scratch: &mut Scratch| self.at(term, tile, scratch);
        LineScan::new(self.sums, &plan, &orders, &factors).scores(derivative, &columns)
    }

    /// Slopes in one dimension, by sweeps. The score s is homogeneous in (ω, b), so Euler's
    /// ω ∂s/∂ω + b ∂s/∂b = k s gives the derivative in ω.
    fn slopes_on_a_line(&self, power: usize, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        let along = Candidates::List(neurons);
        let values = self.scores_of_derivative(0, along)?;
        let slopes = self.scores_of_derivative(1, along)?;
        let scores = neurons.iter().zip(values).zip(slopes);
        Ok(scores
            .map(|((neuron, value), slope)| {
                let omega = neuron.omega[0];
                let by_bias = slope * omega.signum();
                let by_omega = (power as f64 * value - neuron.bias * by_bias) / omega;
                LocalScore {
                    value,
                    gradient: vec![by_omega, by_bias],
                }
            })
            .collect())
    }
}

impl Rho for CpuRho<'_> {
    fn scores(&self, along: Candidates, _: Accuracy) -> Result<Scores, SolveError> {
        self.scores_of_derivative(0, along).map(Scores::exact)
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        Some(self)
    }
}

impl Slopes for CpuRho<'_> {
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        let activation = self.sums.activation;
        let d = neurons.first().map_or(0, |neuron| neuron.omega.len());
        let on_one_line = d == 1 && neurons.iter().all(|neuron| neuron.omega[0] != 0.0);
        if let (Some(power), true) = (activation.relu_power(), on_one_line) {
            return self.slopes_on_a_line(power, neurons);
        }
        let terms = &self.sums.loss.terms;
        let width = |term: &Term| local_width(&term.symbols, d);
        // The sums of every term, neuron and symbol.
        let mut starts = vec![0];
        for term in terms {
            starts.push(starts[starts.len() - 1] + neurons.len() * width(term));
        }
        let sums = self.sums.sums(starts[terms.len()], |sums, term, tile, scratch| {
            let rho = self.at(term, tile, scratch)?;
            if rho.is_empty() {
                return Ok(());
            }
            let places = sums[starts[scratch.term]..].chunks_mut(width(term));
            for (neuron, sums) in neurons.iter().zip(places) {
                let of = (activation, neuron);
                add_local_sums(of, &term.symbols, &tile.tile, &rho, &mut scratch.t, sums);
            }
            Ok(())
        })?;
        let mut scores = vec![LocalScore::zero(d); neurons.len()];
        for (term, &start) in terms.iter().zip(&starts) {
            let sums = sums[start..].chunks(width(term));
            for ((score, neuron), sums) in scores.iter_mut().zip(neurons).zip(sums) {
                score.add(&term.symbols, neuron, sums);
            }
        }
        Ok(scores)
    }
}
