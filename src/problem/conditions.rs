//! From the conditions on a face to terms of the loss.

use super::PenaltySpec;
use super::boundary::{FaceConditions, Held, Kind};
use super::build::{Builder, Built};
use super::equation::{Energy, normal, normal_derivative, vanish_on};
use super::file::{Condition, FileBoundary, Formulation};
use super::places::{data_of, on_face};
use super::source::positive;
use crate::domain::{Face, Region};
use crate::expression::{MultiIndex, NodeId};
use crate::loss::{Density, Formula, TermSpec};
use crate::symbol::Symbol;

impl Energy {
    /// The functional its conditions belong to.
    pub fn kind(&self) -> Kind {
        Kind {
            formulation: Formulation::Energy,
            order: 2 * self.half_order,
        }
    }
}

impl Builder<'_> {
    /// What is held on a face by penalties, and what its natural conditions put there. Where the file
    /// says nothing, natural data are those of the exact solution.
    pub(super) fn energy_face(
        &mut self,
        energy: &Energy,
        conditions: &FaceConditions,
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
        penalties: &mut Vec<PenaltySpec>,
    ) -> Built<()> {
        let normal = normal(&mut self.graph, &self.domain, conditions.face);
        for &table in &conditions.tables {
            self.penalties(energy, table, conditions.face, &normal, exact, penalties)?;
        }
        let held = |held| conditions.table(energy.kind(), held).is_some();
        if held(Held::Periodic) {
            return Ok(());
        }
        if let Some(table) = conditions.table(energy.kind(), Held::Robin) {
            return self.robin(energy, table, conditions.face, &normal, exact, terms);
        }
        match (energy.half_order, held(Held::Value), held(Held::Slope)) {
            (1, true, _) | (_, true, true) => Ok(()),
            (1, false, _) => self.natural_flux(energy, conditions, &normal, exact, terms),
            (_, true, false) => self.natural_moment(energy, conditions, &normal, exact, terms),
            (_, false, sliding) => {
                let Some(exact) = exact else { return Ok(()) };
                let mut loads = energy.natural_load(&mut self.graph, &normal, exact);
                if sliding {
                    let moment = energy.moment(&mut self.graph, &normal, exact);
                    for ((_, load), &n_j) in loads.iter_mut().skip(1).zip(&normal) {
                        let held = self.graph.multiply(moment, n_j);
                        *load = self.graph.subtract(*load, held);
                    }
                }
                self.natural(energy, conditions.face, loads, Some(exact), terms);
                Ok(())
            }
        }
    }

    fn natural_flux(
        &mut self,
        energy: &Energy,
        conditions: &FaceConditions,
        normal: &[NodeId],
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) -> Built<()> {
        let given = match conditions.table(energy.kind(), Held::Flux) {
            Some(table) => self.given(table, energy.kind(), Held::Flux)?,
            None => None,
        };
        let (loads, derived) = match (given, exact) {
            (Some(value), _) => (vec![(Symbol::value(), value)], None),
            (None, Some(exact)) => (energy.natural_load(&mut self.graph, normal, exact), Some(exact)),
            (None, None) => return Ok(()),
        };
        self.natural(energy, conditions.face, loads, derived, terms);
        Ok(())
    }

    /// The bending moment where the value is held and the slope is not.
    fn natural_moment(
        &mut self,
        energy: &Energy,
        conditions: &FaceConditions,
        normal: &[NodeId],
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) -> Built<()> {
        let given = match conditions.table(energy.kind(), Held::Moment) {
            Some(table) => self.given(table, energy.kind(), Held::Moment)?,
            None => None,
        };
        let (moment, derived) = match (given, exact) {
            (Some(moment), _) => (moment, None),
            (None, Some(exact)) => (energy.moment(&mut self.graph, normal, exact), Some(exact)),
            (None, None) => return Ok(()),
        };
        let loads = normal
            .iter()
            .enumerate()
            .map(|(j, &n_j)| (Symbol::derivative([j]), self.graph.multiply(moment, n_j)))
            .collect();
        self.natural(energy, conditions.face, loads, derived, terms);
        Ok(())
    }

    /// The term of natural data; `exact` is what they were derived from. None where they vanish.
    fn natural(
        &mut self,
        energy: &Energy,
        face: Face,
        loads: Vec<(Symbol, NodeId)>,
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) {
        let nodes: Vec<NodeId> = loads.iter().map(|&(_, node)| node).collect();
        let scale = match exact {
            Some(exact) => self.magnitude(exact, 2 * energy.half_order - 1),
            None => 1e-13,
        };
        if vanish_on(&self.graph, &self.domain, face, &nodes, scale) {
            return;
        }
        let zero = Formula::new("0", self.graph.number(0.0));
        let name = on_face(data_of(Held::Flux), &self.domain, face);
        terms.push(TermSpec {
            region: Region::Boundary(face),
            scale: 1.0,
            listed: None,
            density: Density::Energy {
                parts: loads
                    .into_iter()
                    .map(|(symbol, load)| (symbol, zero.clone(), Formula::new(&*name, load)))
                    .collect(),
                potential: None,
            },
        });
    }

    /// The penalties of one table on a face.
    fn penalties(
        &mut self,
        energy: &Energy,
        table: &FileBoundary,
        face: Face,
        normal: &[NodeId],
        exact: Option<NodeId>,
        penalties: &mut Vec<PenaltySpec>,
    ) -> Built<()> {
        let kind = energy.kind();
        let held = kind.held(*table.condition.get_ref()).unwrap_or_default();
        if !held.iter().any(|held| matches!(held, Held::Value | Held::Slope)) {
            return Ok(());
        }
        let delta = table
            .penalty
            .as_ref()
            .map(|penalty| self.delta(penalty))
            .transpose()?;
        let zero = self.graph.number(0.0);
        let (mut parts, mut oblique) = (Vec::new(), None);
        if held.contains(&Held::Value) {
            let value = self.given(table, kind, Held::Value)?.or(exact).unwrap_or(zero);
            let name = on_face(data_of(Held::Value), &self.domain, face);
            parts.push((Symbol::value(), Formula::new(name, value)));
        }
        if held.contains(&Held::Slope) {
            let derived = exact.map(|exact| normal_derivative(&mut self.graph, normal, exact));
            let data = self.given(table, kind, Held::Slope)?.or(derived);
            if data.is_none() && *table.condition.get_ref() == Condition::Dirichlet {
                self.warn_of_clamping();
            }
            let name = on_face(data_of(Held::Slope), &self.domain, face);
            let slope = Formula::new(name, data.unwrap_or(zero));
            match self.along_axis(normal) {
                Some((axis, sign)) => {
                    parts.push((Symbol::new(vec![(sign, MultiIndex::new([axis]))]), slope));
                }
                None => oblique = Some((normal_parts(normal), slope)),
            }
        }
        let region = Region::Boundary(face);
        match delta {
            Some(delta) => penalties.push(PenaltySpec {
                region,
                parts,
                oblique,
                delta,
                constants: self.constants.clone(),
            }),
            None => self.hold(energy, region, parts, oblique),
        }
        Ok(())
    }

    /// The axis a normal lies along, and its sign.
    fn along_axis(&self, normal: &[NodeId]) -> Option<(usize, f64)> {
        let mut components = normal.iter().map(|&n| self.graph.as_number(n)).enumerate();
        components.find_map(|(axis, component)| match component {
            Some(sign) if sign != 0.0 => Some((axis, sign)),
            _ => None,
        })
    }

    fn warn_of_clamping(&mut self) {
        const CLAMPED: &str = "condition = \"dirichlet\" in an energy of order 4 is a clamped edge: it holds the normal \
                               derivative at 0 too. Write \"clamped\" if that is meant, \"simply_supported\" to hold the \
                               value alone, or give `slope`";
        if !self.warnings.iter().any(|warning| warning == CLAMPED) {
            self.warnings.push(CLAMPED.to_string());
        }
    }

    /// Each quantity held on a face as a residual of its own.
    pub(super) fn residual_face(
        &mut self,
        (kind, diffusion): (Kind, NodeId),
        conditions: &FaceConditions,
        exact: Option<NodeId>,
        mean: f64,
        terms: &mut Vec<TermSpec>,
    ) -> Built<()> {
        let normal = normal(&mut self.graph, &self.domain, conditions.face);
        let zero = self.graph.number(0.0);
        for &table in &conditions.tables {
            let weight = match &table.weight {
                None => 1.0,
                Some(weight) => positive(&self.source, "boundary.weight", weight, &self.constants)?,
            };
            for &held in kind.held(*table.condition.get_ref()).unwrap_or_default() {
                if held == Held::Periodic {
                    continue;
                }
                let given = self.given(table, kind, held)?;
                let parts = match held {
                    Held::Robin => self.robin_operator(table, diffusion, &normal)?,
                    _ => self.boundary_operator(held, &normal),
                };
                let derived = exact.map(|exact| self.apply_to(&parts, exact));
                let on = |what: &str| on_face(what, &self.domain, conditions.face);
                let (coefficient, data) = (on("coefficient"), on(data_of(held)));
                terms.push(TermSpec {
                    region: Region::Boundary(conditions.face),
                    scale: weight * mean,
                    listed: None,
                    density: Density::Residual {
                        parts: parts
                            .into_iter()
                            .map(|(symbol, c)| (symbol, Formula::new(&*coefficient, c)))
                            .collect(),
                        source: Formula::new(data, given.or(derived).unwrap_or(zero)),
                    },
                });
            }
        }
        Ok(())
    }

    /// u, ∂u/∂n, ∂²u/∂n², or the shear of a plate, as Σ c(x) p(∂) u.
    fn boundary_operator(&mut self, held: Held, normal: &[NodeId]) -> Vec<(Symbol, NodeId)> {
        let one = self.graph.number(1.0);
        let axes = 0..normal.len();
        let mut parts = Vec::new();
        match held {
            Held::Value => parts.push((Symbol::value(), one)),
            Held::Slope => parts.extend(axes.map(|i| (Symbol::derivative([i]), normal[i]))),
            Held::Moment => {
                for (i, j) in axes.clone().flat_map(|i| (i..normal.len()).map(move |j| (i, j))) {
                    let product = self.graph.multiply(normal[i], normal[j]);
                    let times = self.graph.number(if i == j { 1.0 } else { 2.0 });
                    parts.push((Symbol::derivative([i, j]), self.graph.multiply(times, product)));
                }
            }
            // Robin has coefficients of its own, and jumps have two points.
            Held::Robin | Held::Periodic => {}
            // ∂(∂²u/∂n² + 2 Δ_t u)/∂n on a flat face: the shear and what the twisting moment adds to it.
            Held::Flux => {
                let flat = |i: usize| {
                    if self.graph.as_number(normal[i]) == Some(0.0) {
                        2.0
                    } else {
                        1.0
                    }
                };
                let factors: Vec<f64> = axes.clone().map(flat).collect();
                for i in axes.clone() {
                    for (j, &factor) in factors.iter().enumerate() {
                        let times = self.graph.number(factor);
                        parts.push((
                            Symbol::derivative([i, j, j]),
                            self.graph.multiply(times, normal[i]),
                        ));
                    }
                }
            }
        }
        parts.retain(|&(_, c)| self.graph.as_number(c) != Some(0.0));
        parts
    }

    /// Σ c(x) p(∂) f.
    fn apply_to(&mut self, parts: &[(Symbol, NodeId)], f: NodeId) -> NodeId {
        let mut sum = self.graph.number(0.0);
        for (symbol, c) in parts {
            for (factor, alpha) in symbol.terms() {
                let factor = self.graph.number(*factor);
                let derivative = self.graph.differentiate_by(f, alpha);
                let term = self.graph.multiply(factor, derivative);
                let term = self.graph.multiply(*c, term);
                sum = self.graph.add(sum, term);
            }
        }
        sum
    }

    /// An operator that takes k derivatives by a coordinate needs k conditions on the two faces there
    /// (and one on a sphere for every two): with fewer it has many solutions.
    pub(super) fn warn_of_missing_conditions(
        &mut self,
        kind: Kind,
        faces: &[FaceConditions],
        interior: &TermSpec,
    ) {
        let Density::Residual { parts, .. } = &interior.density else {
            return;
        };
        let derivatives = parts.iter().flat_map(|(symbol, _)| symbol.terms());
        let indices: Vec<&MultiIndex> = derivatives.map(|(_, alpha)| alpha).collect();
        let on = |faces: &mut dyn Iterator<Item = &FaceConditions>| -> usize {
            faces.map(|conditions| conditions.count(kind)).sum()
        };
        for axis in 0..self.dimension {
            let by_axis = |alpha: &&MultiIndex| alpha.coordinates().filter(|&i| i == axis).count();
            let derivatives = indices.iter().map(by_axis).max().unwrap_or(0);
            let of_axis = |face: Face| matches!(face, Face::Side { coordinate, .. } if coordinate == axis);
            let (needed, asked) = match faces {
                [sphere] if sphere.face == Face::Sphere => (derivatives / 2, sphere.count(kind)),
                // A curve all around: each piece needs as many as a sphere.
                pieces if pieces.iter().all(|known| matches!(known.face, Face::Piece(_))) => {
                    let counts = pieces.iter().map(|known| known.count(kind));
                    (derivatives / 2, counts.min().unwrap_or(0))
                }
                _ => (
                    derivatives,
                    on(&mut faces.iter().filter(|known| of_axis(known.face))),
                ),
            };
            if asked < needed {
                self.warnings.push(format!(
                    "the operator takes {derivatives} derivatives by x[{}], which needs {needed} {}, and the file has \
                     {asked}: the equation may have many solutions, of which the run finds one",
                    axis + 1,
                    if needed == 1 { "condition on the boundary" } else { "conditions on the faces there" },
                ));
                return;
            }
        }
    }
}

/// n·∇ as parts with variable coefficients.
fn normal_parts(normal: &[NodeId]) -> Vec<(Symbol, Formula)> {
    let parts = normal.iter().enumerate();
    parts
        .map(|(i, &n_i)| (Symbol::derivative([i]), Formula::new("the normal", n_i)))
        .collect()
}
