//! A function at the points.

use super::rho::{CpuRho, Recipe};
use super::values::CpuRoot;
use super::{Channels, CpuSums, Scratch};
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::loss::{Term, TermTile};
use crate::network::{Network, Neuron};
use crate::ridge::Evaluator;
use crate::sums::{CurvatureRoot, Field, Rho};
use crate::vector::add_scaled;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// [`Field`] on the CPU.
pub(crate) struct CpuField<'a> {
    sums: &'a CpuSums,
    u: Arc<AtPoints>,
}

/// u, with what is kept of it at the points.
pub(super) struct AtPoints {
    network: Network,
    evaluator: Evaluator,
    /// Its jets at every tile, once the gradient asked for them and where evaluating u anew costs much.
    jets: OnceLock<Vec<Channels>>,
    /// Its values at every tile, once the curvature of a loss that is not quadratic asked for them.
    values: OnceLock<Vec<Channels>>,
}

impl AtPoints {
    fn new(network: Network) -> Self {
        Self {
            evaluator: Evaluator::new(&network),
            network,
            jets: OnceLock::new(),
            values: OnceLock::new(),
        }
    }

    /// The jets of u at a tile: as they are kept, or computed.
    pub(super) fn jets_at(&self, term: &Term, tile: &TermTile, scratch: &mut Scratch) -> Cow<'_, [Vec<f64>]> {
        match self.jets.get() {
            Some(kept) => Cow::Borrowed(&kept[scratch.index]),
            None => Cow::Owned(
                self.evaluator
                    .jets(&term.symbols, &tile.tile, &mut scratch.evaluation),
            ),
        }
    }

    /// u itself at a tile: as it is kept, or computed.
    pub(super) fn values_at(&self, term: &Term, tile: &TermTile, scratch: &mut Scratch) -> Cow<'_, [f64]> {
        match self.values.get() {
            Some(kept) => Cow::Borrowed(&kept[scratch.index][0]),
            None => {
                let symbols = &term.symbols[..1];
                let mut columns = self.evaluator.jets(symbols, &tile.tile, &mut scratch.evaluation);
                Cow::Owned(columns.swap_remove(0))
            }
        }
    }
}

impl<'a> CpuField<'a> {
    pub(super) fn new(sums: &'a CpuSums, network: &Network) -> Self {
        Self {
            sums,
            u: Arc::new(AtPoints::new(network.clone())),
        }
    }

    /// ∇L(u).
    pub(crate) fn gradient_rho(&self) -> Result<CpuRho<'a>, SolveError> {
        self.keep_jets()?;
        CpuRho::new(self.sums, Recipe::Gradient(Arc::clone(&self.u)))
    }

    /// u, where the curvature depends on it.
    fn where_it_bends(&self) -> Option<Arc<AtPoints>> {
        (!self.sums.loss.is_quadratic()).then(|| Arc::clone(&self.u))
    }

    /// ∇²L(u) v.
    pub(crate) fn curvature_rho(&self, v: &Network) -> Result<CpuRho<'a>, SolveError> {
        let at = self.where_it_bends();
        if at.is_some() {
            self.keep_values()?;
        }
        let v = Evaluator::new(v);
        CpuRho::new(self.sums, Recipe::Curvature { at, v })
    }

    /// Keeps u itself: Newton's method asks for the curvature at one u along every neuron.
    fn keep_values(&self) -> Result<(), SolveError> {
        if self.sums.kept.is_some() && self.u.values.get().is_none() {
            let values = self.sums.at_every_tile(|term, tile, scratch| {
                Ok(vec![self.u.values_at(term, tile, scratch).into_owned()])
            })?;
            self.u.values.get_or_init(|| values);
        }
        Ok(())
    }

    /// Keeps the jets, unless u is a sum of ReLU^k: a spline along each direction costs little to evaluate.
    fn keep_jets(&self) -> Result<(), SolveError> {
        let worth = self.sums.kept.is_some() && !self.sums.activation.has_sweep();
        if worth && self.u.jets.get().is_none() {
            let jets = self
                .sums
                .at_every_tile(|term, tile, scratch| Ok(self.u.jets_at(term, tile, scratch).into_owned()))?;
            self.u.jets.get_or_init(|| jets);
        }
        Ok(())
    }
}

impl<'a> Field<'a> for CpuField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(self.gradient_rho()?))
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(self.curvature_rho(v)?))
    }

    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        self.sums.squares_at(self.where_it_bends().as_deref(), along)
    }

    fn risk(&self) -> Result<f64, SolveError> {
        let sums = self.sums.sums(1, |sums, term, tile, scratch| {
            let jets = self.u.jets_at(term, tile, scratch);
            sums[0] += term.risk(tile, &jets, &mut scratch.workspace)?;
            Ok(())
        })?;
        Ok(sums[0])
    }

    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        Some(Box::new(CpuRoot {
            sums: self.sums,
            at: self.where_it_bends(),
        }))
    }

    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        let mut added = Network::single(self.sums.activation, g);
        added.coefficients[0] = coefficient;
        let moved = AtPoints::new(self.u.network.advanced(factor, g, coefficient));
        if let Some(known) = self.u.jets.get() {
            let added = Evaluator::new(&added);
            let jets = self.sums.at_every_tile(|term, tile, scratch| {
                let mut jets = added.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
                for (jet, known) in jets.iter_mut().zip(&known[scratch.index]) {
                    add_scaled(factor, known, jet);
                }
                Ok(jets)
            })?;
            moved.jets.get_or_init(|| jets);
        }
        self.u = Arc::new(moved);
        Ok(())
    }
}
