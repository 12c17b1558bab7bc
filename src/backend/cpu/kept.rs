//! What is kept at the points from one call to the next: the gradient of the loss, u, its jets.

use super::{Channels, CpuBackend, Scratch};
use crate::error::SolveError;
use crate::evaluate::Evaluator;
use crate::loss::{Term, TermTile};
use crate::network::Network;
use crate::vector::add_scaled;
use std::borrow::Cow;

impl CpuBackend {
    /// Whether points are kept, and with them what is computed there.
    pub(in crate::backend) fn keeps_points(&self) -> bool {
        self.cache.is_some()
    }

    /// Computes ∇L(u) at all points and keeps it, if the points are kept.
    pub(super) fn keep_channels(&mut self, u: &Network) -> Result<(), SolveError> {
        let known = self.channels.as_ref().is_some_and(|(at, _)| at == u);
        if self.cache.is_none() || known {
            return Ok(());
        }
        self.channels = None;
        let channels = if self.activation.relu_power().is_some() {
            let prepared = Evaluator::new(u);
            self.at_every_tile(|term, tile, scratch| gradient_at(&prepared, term, tile, scratch))?
        } else {
            let kept = self.jets_of(u)?;
            let channels = self.at_every_tile(|term, tile, scratch| {
                let mut jets = kept[scratch.index].clone();
                term.gradient(tile, &mut jets, &mut scratch.workspace)?;
                Ok(jets)
            })?;
            self.jets = Some((u.clone(), kept));
            channels
        };
        self.channels = Some((u.clone(), channels));
        Ok(())
    }

    /// Evaluates u itself at all points and keeps it, if the points are kept: a Newton step asks for
    /// the curvature at one u along every neuron.
    pub(super) fn keep_values(&mut self, u: &Network) -> Result<(), SolveError> {
        let known = self.values.as_ref().is_some_and(|(at, _)| at == u);
        if self.cache.is_some() && !known {
            self.values = None;
            let prepared = Evaluator::new(u);
            let values =
                self.at_every_tile(|term, tile, scratch| Ok(values_at(&prepared, term, tile, scratch)))?;
            self.values = Some((u.clone(), values));
        }
        Ok(())
    }

    /// ∇L(u) at the points of each term, where the points are kept.
    pub(in crate::backend) fn gradient_columns(
        &mut self,
        u: &Network,
    ) -> Result<Option<Vec<Channels>>, SolveError> {
        self.keep_channels(u)?;
        let Some((_, kept)) = &self.channels else {
            return Ok(None);
        };
        let terms = self.loss.terms.iter();
        let mut columns: Vec<Channels> = terms.map(|term| vec![Vec::new(); term.symbols.len()]).collect();
        for (spec, tile) in self.tiles.iter().zip(kept) {
            for (column, part) in columns[spec.term].iter_mut().zip(tile) {
                column.extend_from_slice(part);
            }
        }
        Ok(Some(columns))
    }

    /// Computes columns at every tile and gathers them.
    fn at_every_tile(
        &self,
        columns: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Channels, SolveError> + Sync,
    ) -> Result<Vec<Channels>, SolveError> {
        self.reduce(
            Vec::new,
            |all: &mut Vec<Channels>, term, tile, scratch| {
                all.push(columns(term, tile, scratch)?);
                Ok(())
            },
            |total, part| total.extend(part),
        )
    }

    /// Evaluates u at all points, or only its last neuron where the others only changed by a factor.
    fn jets_of(&mut self, u: &Network) -> Result<Vec<Channels>, SolveError> {
        let kept = self.jets.take();
        let known = kept.and_then(|(at, jets)| Some((u.relaxes(&at)?, jets)));
        let added = match &known {
            Some(_) => u.last_neuron(),
            None => u.clone(),
        };
        let prepared = Evaluator::new(&added);
        self.at_every_tile(|term, tile, scratch| {
            let mut jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
            if let Some((factor, known)) = &known {
                for (jet, known) in jets.iter_mut().zip(&known[scratch.index]) {
                    add_scaled(*factor, known, jet);
                }
            }
            Ok(jets)
        })
    }

    /// ∇L(u) at a tile: as it is kept, or computed.
    pub(super) fn channels_at(
        &self,
        prepared: &Evaluator,
        term: &Term,
        tile: &TermTile,
        scratch: &mut Scratch,
    ) -> Result<Cow<'_, [Vec<f64>]>, SolveError> {
        Ok(match &self.channels {
            Some((_, kept)) => Cow::Borrowed(&kept[scratch.index]),
            None => Cow::Owned(gradient_at(prepared, term, tile, scratch)?),
        })
    }
}

/// u at a tile, as the only column.
pub(super) fn values_at(
    prepared: &Evaluator,
    term: &Term,
    tile: &TermTile,
    scratch: &mut Scratch,
) -> Channels {
    prepared.jets(&term.symbols[..1], &tile.tile, &mut scratch.evaluation)
}

/// ∇L(u) at a tile.
fn gradient_at(
    prepared: &Evaluator,
    term: &Term,
    tile: &TermTile,
    scratch: &mut Scratch,
) -> Result<Channels, SolveError> {
    let mut jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
    term.gradient(tile, &mut jets, &mut scratch.workspace)?;
    Ok(jets)
}
