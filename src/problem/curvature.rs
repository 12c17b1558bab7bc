//! On how many points the inner products of neurons are taken.

use super::build::{Builder, Built, MAX_COUNT, potential_of};
use super::file::{File, Formulation};
use super::settings::{Overrides, Quadrature, Settings};
use super::source::optional_count;
use super::{Algorithm, PenaltySpec};
use crate::candidates::{Dictionary, DirectionKind};
use crate::domain::Domain;
use crate::greedy::Selection;
use crate::loss::{Density, TermSpec};
use crate::points::Rule;
use toml::Spanned;

/// So many cells across must be left, in two dimensions and above, and of a sequence there must be so many points.
const LEAST_CELLS: [usize; 2] = [64, 12];
const MANY_POINTS: usize = 1 << 16;
/// The part of the cells on a line that is left, in two dimensions and above, and how many at most: more have only
/// cost time.
const CELLS_PART: [usize; 2] = [4, 2];
const MOST_CELLS: [usize; 2] = [100, 16];
/// The part of the points of a sequence that is left.
const POINTS_PART: usize = 8;

impl Builder<'_> {
    /// The cells, or points, for inner products: as the file says, or fewer than for the gradient where that is
    /// known to do no harm. `None`: all.
    pub(super) fn curvature(
        &self,
        file: &File,
        (settings, dictionary, quadrature): (&Settings, &Dictionary, &Quadrature),
        (terms, penalties): (&[TermSpec], &[PenaltySpec]),
        overrides: &Overrides,
    ) -> Built<Option<usize>> {
        const KEY: &str = "quadrature.curvature";
        let given = &file.quadrature.curvature;
        let all = match quadrature.rule {
            Rule::Gauss { cells, .. } => cells,
            Rule::Halton { points, .. } | Rule::Lattice { points, .. } | Rule::MonteCarlo { points, .. } => {
                points
            }
        };
        let asked = optional_count(&self.source, KEY, given, 1, MAX_COUNT)?;
        let refused = if settings.algorithm == Algorithm::Rga || settings.selection == Selection::Slope {
            Some("belongs to selection = \"decrease\"")
        } else if potential_of(terms).is_some() {
            Some("is for linear equations: here the curvature depends on the solution")
        } else if !penalties.is_empty() {
            Some("is not for penalties: they are too stiff for it")
        } else if !self.held.is_empty() {
            Some("is not for conditions that multipliers hold")
        } else {
            None
        };
        let span = || given.as_ref().map_or(0..0, Spanned::span);
        if let (Some(reason), Some(_)) = (refused, asked) {
            let message = format!("`curvature` {reason}");
            return Err(self.source.error(KEY, span(), message).help("leave it out"));
        }
        if let Some(asked) = asked {
            // The same number asks for all of them.
            return match asked.cmp(&all) {
                std::cmp::Ordering::Less => Ok(Some(asked)),
                std::cmp::Ordering::Equal => Ok(None),
                // A flag that asks for fewer of all does not mean it.
                std::cmp::Ordering::Greater if overrides.cells.or(overrides.points).is_some() => Ok(None),
                std::cmp::Ordering::Greater => {
                    let message =
                        format!("there are only {all}: `curvature` is the part of them for inner products");
                    Err(self
                        .source
                        .error(KEY, span(), message)
                        .help("a smaller number, or leave it out"))
                }
            };
        }
        // Sums over the axes of a box come from tables; a residual's noise shrinks with it.
        let tables =
            dictionary.directions == DirectionKind::Axes && matches!(self.domain, Domain::Box { .. });
        let energy = file.equation.formulation == Formulation::Energy;
        // On other domains it has not been measured.
        let measured = matches!(self.domain, Domain::Box { .. } | Domain::Ball { .. });
        // A coefficient that jumps or varies fast wants all points.
        let constant = terms.iter().all(|term| match &term.density {
            Density::Energy { parts, .. } => {
                let mut factors = parts.iter().map(|(_, a, _)| a.node);
                factors.all(|node| self.graph.as_number(node).is_some())
            }
            Density::Residual { .. } => false,
        });
        let measured = measured && constant;
        let pays = energy && measured && refused.is_none() && !tables && dictionary.activation.has_sweep();
        Ok(match quadrature.rule {
            _ if !pays || self.dimension == 1 => None,
            Rule::Gauss { cells, .. } => {
                let above = usize::from(self.dimension > 2);
                let few = (cells / CELLS_PART[above]).min(MOST_CELLS[above]);
                (few >= LEAST_CELLS[above]).then_some(few)
            }
            _ => (all >= MANY_POINTS).then_some(all / POINTS_PART),
        })
    }
}
