//! From the equation and its boundary conditions to the terms of the loss.

use super::build::{Builder, Built, Names};
use super::equation::{Energy, linear_operator, normal, normal_derivative, vanish_on};
use super::file::{self, Condition, File, FileBoundary};
use super::source::positive;
use super::{PenaltySpec, ProblemError};
use crate::domain::{Face, Region};
use crate::expression::{Ast, MultiIndex, NodeId, Program, Scope};
use crate::loss::{Density, Formula, TermSpec};
use crate::points::{PointSet, Rule};
use crate::symbol::Symbol;
use toml::Spanned;

impl Builder<'_> {
    pub(super) fn energy(&mut self, equation: &file::FileEquation) -> Built<Energy> {
        let half_order = match &equation.order {
            None => 1,
            Some(order) if [2, 4].contains(order.get_ref()) => (*order.get_ref() / 2) as usize,
            Some(order) => {
                return Err(self.source.error(
                    "equation.order",
                    order.span(),
                    "the order of an energy is 2 or 4; use formulation = \"residual\" for other operators",
                ));
            }
        };
        if let Some(operator) = &equation.operator {
            return Err(self.source.error(
                "equation.operator",
                operator.span(),
                "an operator belongs to formulation = \"residual\"; an energy has `diffusion` and `reaction`",
            ));
        }
        if let (Some(potential), Some(_)) = (&equation.potential, &equation.reaction) {
            return Err(self.source.error(
                "equation.potential",
                potential.span(),
                "give `reaction` or `potential`, not both",
            ));
        }
        let one = self.graph.number(1.0);
        let zero = self.graph.number(0.0);
        let diffusion = self.optional(
            "equation.diffusion",
            equation.diffusion.as_ref(),
            Names::Coordinates,
        )?;
        let reaction = self.optional(
            "equation.reaction",
            equation.reaction.as_ref(),
            Names::Coordinates,
        )?;
        let potential = self.optional("equation.potential", equation.potential.as_ref(), Names::Unknown)?;
        Ok(Energy {
            half_order,
            diffusion: diffusion.unwrap_or(one),
            reaction: reaction.unwrap_or(zero),
            potential,
        })
    }

    /// f: given, or L applied to the exact solution.
    pub(super) fn source_term(
        &mut self,
        equation: &file::FileEquation,
        exact: Option<NodeId>,
        strong: NodeId,
    ) -> Built<NodeId> {
        if let Some(text) = &equation.source {
            return self.expression("equation.source", text, Names::Coordinates);
        }
        match exact {
            Some(exact) => Ok(self.graph.substitute_unknown(strong, exact)),
            None => Err(ProblemError::new(
                self.source.name,
                "`equation` needs `source`, or `exact` to derive it from",
            )
            .key("equation")),
        }
    }

    /// Each face with the condition that applies to it; a face may have none.
    pub(super) fn faces<'f>(&self, file: &'f File) -> Built<Vec<(&'f FileBoundary, Face)>> {
        let all = self.domain.faces();
        let mut assigned: Vec<(&FileBoundary, Face)> = Vec::new();
        for boundary in &file.boundary.0 {
            let mut chosen = Vec::new();
            match &boundary.faces {
                None if file.boundary.0.len() > 1 => {
                    return Err(self.source.error(
                        "boundary.condition",
                        boundary.condition.span(),
                        "where there are several [[boundary]] tables each needs `faces`",
                    ));
                }
                None => chosen.extend(all.iter().map(|&face| (face, boundary.condition.span()))),
                Some(names) => {
                    for name in names.get_ref() {
                        let wanted = name.get_ref().replace([' ', '\t'], "").replace('−', "-");
                        let face = all.iter().find(|face| face.name() == wanted).ok_or_else(|| {
                            let known: Vec<String> = all.iter().take(6).map(Face::name).collect();
                            self.source
                                .error(
                                    "boundary.faces",
                                    name.span(),
                                    format!("there is no face `{}`", name.get_ref()),
                                )
                                .help(format!("the faces are {}", known.join(", ")))
                        })?;
                        chosen.push((*face, name.span()));
                    }
                }
            }
            for (face, span) in chosen {
                if assigned.iter().any(|(_, known)| *known == face) {
                    return Err(self.source.error(
                        "boundary.faces",
                        span,
                        format!("the face {} already has a condition", face.name()),
                    ));
                }
                assigned.push((boundary, face));
            }
        }
        Ok(assigned)
    }

    pub(super) fn energy_boundary(
        &mut self,
        energy: &Energy,
        boundary: &FileBoundary,
        face: Face,
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
        penalties: &mut Vec<PenaltySpec>,
    ) -> Built<()> {
        let normal = normal(&mut self.graph, &self.domain, face);
        let value = self.optional("boundary.value", boundary.value.as_ref(), Names::Coordinates)?;
        if let Some(weight) = &boundary.weight {
            return Err(self.source.error(
                "boundary.weight",
                weight.span(),
                "`weight` belongs to formulation = \"residual\"; an energy has `penalty`",
            ));
        }
        match boundary.condition.get_ref() {
            Condition::None => Ok(()),
            Condition::Neumann => {
                if let Some(penalty) = &boundary.penalty {
                    return Err(self.source.error(
                        "boundary.penalty",
                        penalty.span(),
                        "a Neumann condition is natural and needs no penalty",
                    ));
                }
                self.natural(energy, boundary, face, &normal, value, exact, terms)
            }
            Condition::Dirichlet => {
                let Some(penalty) = &boundary.penalty else {
                    return Err(self
                        .source
                        .error(
                            "boundary.condition",
                            boundary.condition.span(),
                            "a Dirichlet condition in energy form needs `penalty`, the small δ in ½δ⁻¹∫(u − g)²",
                        )
                        .help("penalty = \"0.1 * n^-2\""));
                };
                let parts = self.dirichlet(energy, boundary, &normal, value, exact)?;
                penalties.push(PenaltySpec {
                    region: Region::Boundary(face),
                    parts,
                    delta: self.delta(penalty)?,
                    constants: self.constants.clone(),
                });
                Ok(())
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn natural(
        &mut self,
        energy: &Energy,
        boundary: &FileBoundary,
        face: Face,
        normal: &[NodeId],
        value: Option<NodeId>,
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) -> Built<()> {
        let loads = match (value, exact, &boundary.value) {
            (Some(_), _, Some(text)) if energy.half_order > 1 => {
                return Err(self.source.error(
                    "boundary.value",
                    text.span(),
                    "natural data of order 4 can only be taken from `exact`",
                ));
            }
            (Some(value), ..) => vec![(Symbol::value(), value)],
            (None, Some(exact), _) => energy.natural_load(&mut self.graph, normal, exact),
            (None, None, _) => Vec::new(),
        };
        let nodes: Vec<NodeId> = loads.iter().map(|&(_, node)| node).collect();
        let scale = match exact {
            Some(exact) if value.is_none() => self.magnitude(exact, 2 * energy.half_order - 1),
            _ => 1e-13,
        };
        if vanish_on(&self.graph, &self.domain, face, &nodes, scale) {
            return Ok(());
        }
        let zero = Formula::new("0", self.graph.number(0.0));
        terms.push(TermSpec {
            region: Region::Boundary(face),
            scale: 1.0,
            density: Density::Energy {
                parts: loads
                    .into_iter()
                    .map(|(symbol, load)| (symbol, zero.clone(), Formula::new("boundary data", load)))
                    .collect(),
                potential: None,
            },
        });
        Ok(())
    }

    /// The symbols B and data g of a Dirichlet condition: value, and for m = 2 the normal derivative.
    pub(super) fn dirichlet(
        &mut self,
        energy: &Energy,
        boundary: &FileBoundary,
        normal: &[NodeId],
        value: Option<NodeId>,
        exact: Option<NodeId>,
    ) -> Built<Vec<(Symbol, Formula)>> {
        let zero = self.graph.number(0.0);
        let data = value.or(exact).unwrap_or(zero);
        let mut parts = vec![(Symbol::value(), Formula::new("boundary value", data))];
        if energy.half_order > 1 {
            let slope = match (exact, &boundary.value) {
                (Some(exact), None) => normal_derivative(&mut self.graph, normal, exact),
                _ => zero,
            };
            let axis = normal
                .iter()
                .position(|&n| matches!(self.graph.as_number(n), Some(n) if n != 0.0));
            let Some(axis) = axis else {
                return Err(self.source.error(
                    "boundary.condition",
                    boundary.condition.span(),
                    "a Dirichlet condition of order 4 is provided on the faces of a box only",
                ));
            };
            let sign = self.graph.as_number(normal[axis]).unwrap_or(1.0);
            parts.push((
                Symbol::new(vec![(sign, MultiIndex::new([axis]))]),
                Formula::new("boundary slope", slope),
            ));
        }
        Ok(parts)
    }

    pub(super) fn delta(&self, text: &Spanned<String>) -> Built<Ast> {
        let ast = self.ast("boundary.penalty", text)?;
        let mut constants = self.constants.clone();
        constants.insert("n".to_string(), 1.0);
        let scope = Scope {
            constants,
            ..Scope::default()
        };
        match scope.constant(&ast) {
            Ok(_) => Ok(ast),
            Err(error) => Err(self.source.formula("boundary.penalty", text, &error)),
        }
    }

    /// The size of the derivatives of a function up to an order, to tell zero from rounding.
    pub(super) fn magnitude(&mut self, exact: NodeId, order: usize) -> f64 {
        let mut nodes = vec![exact];
        let mut last = vec![exact];
        for _ in 0..order {
            last = last
                .iter()
                .flat_map(|&node| (0..self.dimension.min(3)).map(move |i| (node, i)))
                .map(|(node, i)| self.graph.differentiate(node, i))
                .collect();
            nodes.extend(&last);
        }
        let rule = Rule::MonteCarlo { points: 256, seed: 2 };
        let Ok(points) = PointSet::new(&self.domain, Region::Interior, rule, 0) else {
            return 1.0;
        };
        let mut tile = crate::points::Tile::default();
        points.fill(0..points.len(), &mut tile);
        let program = Program::new(&self.graph, &nodes, self.dimension, &[]);
        (0..tile.len())
            .flat_map(|index| program.evaluate_at(&tile.point(index)))
            .filter(|value| value.is_finite())
            .fold(0.0, |largest, value| value.abs().max(largest))
    }

    pub(super) fn residual(
        &mut self,
        file: &File,
        exact: Option<NodeId>,
        terms: &mut Vec<TermSpec>,
    ) -> Built<usize> {
        let equation = &file.equation;
        let (operator, place) = match &equation.operator {
            Some(text) => {
                if let Some(extra) = equation.diffusion.as_ref().or(equation.reaction.as_ref()) {
                    return Err(self.source.error(
                        "equation.operator",
                        extra.span(),
                        "give `operator`, or `diffusion` and `reaction`, not both",
                    ));
                }
                (
                    self.expression("equation.operator", text, Names::Operators)?,
                    text.span(),
                )
            }
            None if equation.diffusion.is_some() || equation.reaction.is_some() => {
                let energy = self.energy(equation)?;
                (energy.strong_form(&mut self.graph, self.dimension), 0..0)
            }
            None => {
                return Err(ProblemError::new(self.source.name, "a residual needs `operator`")
                    .key("equation")
                    .help("operator = \"-laplacian(u) + u\""));
            }
        };
        let source = self.source_term(equation, exact, operator)?;
        let parts = linear_operator(&mut self.graph, operator)
            .map_err(|message| self.source.error("equation.operator", place, message))?;
        let order = parts.iter().map(|(symbol, _)| symbol.order()).max().unwrap_or(0);
        terms.push(TermSpec {
            region: Region::Interior,
            scale: 1.0 / self.domain.measure(Region::Interior),
            density: Density::Residual {
                parts: parts
                    .into_iter()
                    .map(|(symbol, c)| (symbol, Formula::new("a coefficient of the operator", c)))
                    .collect(),
                source: Formula::new("source", source),
            },
        });
        if file.boundary.0.is_empty() {
            return Err(ProblemError::new(
                self.source.name,
                "a residual needs a `[boundary]` table; condition = \"none\" asks for nothing",
            )
            .key("boundary"));
        }
        let faces = self.faces(file)?;
        let measure: f64 = faces
            .iter()
            .filter(|(boundary, _)| *boundary.condition.get_ref() != Condition::None)
            .map(|&(_, face)| self.domain.measure(Region::Boundary(face)))
            .sum();
        // In 1-D the ends are added, elsewhere the boundary enters by its mean.
        let mean = if self.dimension == 1 { 1.0 } else { 1.0 / measure };
        for (boundary, face) in faces {
            if let Some(term) = self.residual_boundary(boundary, face, exact, mean)? {
                terms.push(term);
            }
        }
        Ok(order)
    }

    pub(super) fn residual_boundary(
        &mut self,
        boundary: &FileBoundary,
        face: Face,
        exact: Option<NodeId>,
        mean: f64,
    ) -> Built<Option<TermSpec>> {
        if let Some(penalty) = &boundary.penalty {
            return Err(self.source.error(
                "boundary.penalty",
                penalty.span(),
                "a residual has `weight`, not `penalty`",
            ));
        }
        let normal = normal(&mut self.graph, &self.domain, face);
        let given = self.optional("boundary.value", boundary.value.as_ref(), Names::Coordinates)?;
        let one = self.graph.number(1.0);
        let zero = self.graph.number(0.0);
        let (parts, derived) = match boundary.condition.get_ref() {
            Condition::None => return Ok(None),
            Condition::Dirichlet => (vec![(Symbol::value(), one)], exact),
            Condition::Neumann => {
                let parts = normal
                    .iter()
                    .enumerate()
                    .filter(|(_, n)| self.graph.as_number(**n) != Some(0.0))
                    .map(|(i, &n)| (Symbol::derivative([i]), n))
                    .collect();
                (
                    parts,
                    exact.map(|exact| normal_derivative(&mut self.graph, &normal, exact)),
                )
            }
        };
        let weight = match &boundary.weight {
            None => 1.0,
            Some(weight) => positive(&self.source, "boundary.weight", weight)?,
        };
        Ok(Some(TermSpec {
            region: Region::Boundary(face),
            scale: weight * mean,
            density: Density::Residual {
                parts: parts
                    .into_iter()
                    .map(|(symbol, c)| (symbol, Formula::new("the normal", c)))
                    .collect(),
                source: Formula::new("boundary value", given.or(derived).unwrap_or(zero)),
            },
        }))
    }

    pub(super) fn fit(&mut self, file: &File, exact: Option<NodeId>) -> Built<TermSpec> {
        let Some(exact) = exact else {
            return Err(ProblemError::new(
                self.source.name,
                "a fit needs `exact`, the function to be fitted",
            )
            .key("equation.exact"));
        };
        if let Some(boundary) = file.boundary.0.first() {
            return Err(self.source.error(
                "boundary.condition",
                boundary.condition.span(),
                "a fit has no boundary condition; remove this table",
            ));
        }
        let one = self.graph.number(1.0);
        Ok(TermSpec {
            region: Region::Interior,
            scale: 1.0,
            density: Density::Residual {
                parts: vec![(Symbol::value(), Formula::new("1", one))],
                source: Formula::new("exact", exact),
            },
        })
    }
}
