//! Conditions that are held by multipliers, Robin and periodic ones.

use super::boundary::{Held, Kind};
use super::build::{Builder, Built, Names};
use super::equation::{Energy, normal_derivative};
use super::file::{Condition, File, FileBoundary, Formulation};
use super::places::{data_of, on_face};
use super::source::positive;
use crate::domain::{Domain, Face, Region};
use crate::expression::{NodeId, Program};
use crate::loss::{Density, Formula, TermSpec};
use crate::points::{PointSet, Rule, Tile};
use crate::symbol::Symbol;
use toml::Spanned;

/// δ of the penalty that goes with a multiplier, as a part of what an energy says is large: L/a for a value.
const HELD_DELTA: f64 = 0.01;

impl Builder<'_> {
    /// Bu = g held by a multiplier: a penalty ½ s (Bu − g)² whose strength follows from the equation alone.
    pub(super) fn hold(
        &mut self,
        energy: &Energy,
        region: Region,
        parts: Vec<(Symbol, Formula)>,
        oblique: Option<(Vec<(Symbol, Formula)>, Formula)>,
    ) {
        let diffusion = self.mean_size(energy.diffusion);
        let parts: Vec<_> = parts
            .into_iter()
            .map(|(symbol, data)| {
                let strength = self.strength(diffusion, energy.half_order, symbol.order());
                let strength = self.graph.number(strength);
                let load = self.graph.multiply(strength, data.node);
                (
                    symbol,
                    Formula::new("penalty", strength),
                    Formula::new(data.name, load),
                )
            })
            .collect();
        if !parts.is_empty() {
            self.held.push(TermSpec {
                region,
                scale: 1.0,
                listed: None,
                density: Density::Energy {
                    parts,
                    potential: None,
                },
            });
        }
        if let Some((parts, source)) = oblique {
            self.held.push(TermSpec {
                region,
                scale: 0.5 * self.strength(diffusion, energy.half_order, 1),
                listed: None,
                density: Density::Residual { parts, source },
            });
        }
    }

    /// a / (δ L^(2m − 1 − 2k)): of the size of an energy of order 2m for a derivative of order k. L is the width of the domain, or
    /// of the layer in which a step in time answers to the boundary.
    fn strength(&self, diffusion: f64, half_order: usize, order: usize) -> f64 {
        let width = |axis| {
            let (low, high) = self.domain.side(axis);
            high - low
        };
        let width = (0..self.dimension).map(width).fold(0.0, f64::max);
        let layer = (diffusion / self.mass).powf(0.5 / half_order as f64);
        let width = width.min(layer);
        diffusion / (HELD_DELTA * width.powi(2 * half_order as i32 - 1 - 2 * order as i32))
    }

    /// The mean of |f| over the domain.
    fn mean_size(&self, f: NodeId) -> f64 {
        let rule = Rule::MonteCarlo { points: 256, seed: 4 };
        let Ok(points) = PointSet::new(&self.domain, Region::Interior, rule, 0) else {
            return 1.0;
        };
        let mut tile = Tile::default();
        points.fill(0..points.len(), &mut tile);
        let program = Program::new(&self.graph, &[f], self.dimension, &[]);
        let sizes = (0..tile.len()).map(|index| program.evaluate_at(&tile.point(index))[0].abs());
        let sizes: Vec<f64> = sizes.filter(|size| size.is_finite()).collect();
        match sizes.iter().sum::<f64>() / sizes.len() as f64 {
            mean if mean > 0.0 => mean,
            _ => 1.0,
        }
    }

    /// a ∂u/∂n + κ u = g in an energy: ½ κ u² − g u on the face.
    pub(super) fn robin(
        &mut self,
        energy: &Energy,
        table: &FileBoundary,
        face: Face,
        normal: &[NodeId],
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) -> Built<()> {
        let coefficient = self.robin_coefficient(table)?;
        let derived = exact.map(|exact| {
            let slope = normal_derivative(&mut self.graph, normal, exact);
            let flux = self.graph.multiply(energy.diffusion, slope);
            let pull = self.graph.multiply(coefficient, exact);
            self.graph.add(flux, pull)
        });
        let given = self.given(table, energy.kind(), Held::Robin)?;
        let zero = self.graph.number(0.0);
        let on = |what: &str| on_face(what, &self.domain, face);
        let (name, data) = (on("coefficient"), on(data_of(Held::Robin)));
        terms.push(TermSpec {
            region: Region::Boundary(face),
            scale: 1.0,
            listed: None,
            density: Density::Energy {
                parts: vec![(
                    Symbol::value(),
                    Formula::new(name, coefficient),
                    Formula::new(data, given.or(derived).unwrap_or(zero)),
                )],
                potential: None,
            },
        });
        Ok(())
    }

    fn robin_coefficient(&mut self, table: &FileBoundary) -> Built<NodeId> {
        let text = table.coefficient.as_ref();
        let node = self.optional("boundary.coefficient", text, Names::Coordinates)?;
        Ok(node.unwrap_or_else(|| self.graph.number(0.0)))
    }

    /// a ∂/∂n + κ as Σ c(x) p(∂).
    pub(super) fn robin_operator(
        &mut self,
        table: &FileBoundary,
        diffusion: NodeId,
        normal: &[NodeId],
    ) -> Built<Vec<(Symbol, NodeId)>> {
        let coefficient = self.robin_coefficient(table)?;
        let slopes = normal.iter().enumerate();
        let slopes = slopes.map(|(i, &n_i)| (Symbol::derivative([i]), self.graph.multiply(diffusion, n_i)));
        let mut parts: Vec<(Symbol, NodeId)> = slopes.collect();
        parts.insert(0, (Symbol::value(), coefficient));
        parts.retain(|&(_, c)| self.graph.as_number(c) != Some(0.0));
        Ok(parts)
    }

    /// The jumps between opposite faces that a file asks to be none: of u, and of as many derivatives as the equation
    /// does not take care of by itself.
    pub(super) fn periodic(&mut self, file: &File, kind: Kind, energy: Option<&Energy>) -> Built<()> {
        for table in &file.boundary.0 {
            if *table.condition.get_ref() != Condition::Periodic {
                continue;
            }
            for coordinate in self.periodic_coordinates(table)? {
                let region = Region::Pairs(coordinate);
                match energy {
                    Some(energy) => {
                        let zero = Formula::new("0", self.graph.number(0.0));
                        let slope = (energy.half_order > 1).then(|| Symbol::derivative([coordinate]));
                        let symbols = std::iter::once(Symbol::value()).chain(slope);
                        let parts = symbols.map(|symbol| (symbol, zero.clone())).collect();
                        self.hold(energy, region, parts, None);
                    }
                    None => self.periodic_residual(table, kind, coordinate)?,
                }
            }
        }
        Ok(())
    }

    /// weight · mean of the squares of the jumps of u and its normal derivatives below the operator's order.
    fn periodic_residual(&mut self, table: &FileBoundary, kind: Kind, coordinate: usize) -> Built<()> {
        let weight = match &table.weight {
            None => 1.0,
            Some(weight) => positive(&self.source, "boundary.weight", weight, &self.constants)?,
        };
        let region = Region::Pairs(coordinate);
        let measure = if self.dimension == 1 {
            1.0
        } else {
            self.domain.measure(region)
        };
        let zero = Formula::new("0", self.graph.number(0.0));
        // ½ · 2.
        let two = Formula::new("weight", self.graph.number(2.0));
        let symbols = (0..kind.order.max(1)).map(|order| Symbol::derivative(vec![coordinate; order]));
        self.held.push(TermSpec {
            region,
            scale: weight / measure,
            listed: None,
            density: Density::Energy {
                parts: symbols
                    .map(|symbol| (symbol, two.clone(), zero.clone()))
                    .collect(),
                potential: None,
            },
        });
        Ok(())
    }

    /// The coordinates whose two faces a table names.
    fn periodic_coordinates(&self, table: &FileBoundary) -> Built<Vec<usize>> {
        let wrong = |message: String| {
            let span = table.faces.as_ref().map_or(table.condition.span(), Spanned::span);
            self.source
                .error("boundary.faces", span, message)
                .help("faces = [\"x[1]-\", \"x[1]+\"]: both ends of a coordinate of a box")
        };
        if !matches!(self.domain, Domain::Box { .. }) {
            return Err(wrong(
                "only the faces of a box come in opposite pairs".to_string(),
            ));
        }
        let all = self.domain.faces();
        let named = match &table.faces {
            None => all.clone(),
            Some(names) => {
                let faces = names.get_ref().iter().map(|name| self.face_named(name, &all));
                faces.collect::<Built<Vec<Face>>>()?
            }
        };
        let mut coordinates = Vec::new();
        for face in &named {
            let Face::Side { coordinate, upper } = *face else {
                continue;
            };
            let opposite = Face::Side {
                coordinate,
                upper: !upper,
            };
            if !named.contains(&opposite) {
                return Err(wrong(format!(
                    "{} is periodic with {}, which is not named here",
                    self.domain.face_name(*face),
                    self.domain.face_name(opposite)
                )));
            }
            if !upper {
                coordinates.push(coordinate);
            }
        }
        Ok(coordinates)
    }
}

/// Whether conditions of a formulation have multipliers: what a residual asks for is zero at its minimum anyway.
pub(super) fn has_multiplier(formulation: Formulation) -> bool {
    formulation == Formulation::Energy
}
