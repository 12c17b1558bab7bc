//! From the equation and its boundary conditions to the terms of the loss.

use super::ProblemError;
use super::boundary::Kind;
use super::build::{Builder, Built, Names};
use super::equation::{Energy, linear_operator};
use super::file::{self, File, Formulation};
use super::typed::Text;
use crate::domain::Region;
use crate::expression::{Ast, NodeId, Program, Scope};
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
            None => Err(
                ProblemError::new(self.source.name, "needs `source`, or `exact` to derive it from")
                    .key("equation"),
            ),
        }
    }

    pub(super) fn delta(&self, text: &Spanned<Text>) -> Built<Ast> {
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
            listed: None,
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
        let kind = Kind {
            formulation: Formulation::Residual,
            order,
        };
        let faces = self.faces(file, kind)?;
        let measure: f64 = faces
            .iter()
            .filter(|conditions| conditions.count(kind) > 0)
            .map(|conditions| self.domain.measure(Region::Boundary(conditions.face)))
            .sum();
        // In 1-D the ends are added, elsewhere the boundary enters by its mean.
        let mean = if self.dimension == 1 { 1.0 } else { 1.0 / measure };
        let diffusion = match &equation.operator {
            Some(_) => self.graph.number(1.0),
            None => self.energy(equation)?.diffusion,
        };
        for conditions in &faces {
            self.residual_face((kind, diffusion), conditions, exact, mean, terms)?;
        }
        self.periodic(file, kind, None)?;
        self.warn_of_missing_conditions(kind, &faces, &terms[0]);
        Ok(order)
    }

    pub(super) fn fit(&mut self, file: &File, exact: Option<NodeId>) -> Built<Option<TermSpec>> {
        if let Some(boundary) = file.boundary.0.first() {
            return Err(self.source.error(
                "boundary.condition",
                boundary.condition.span(),
                "a fit has no boundary condition; remove this table",
            ));
        }
        // Measurements are fitted instead; then `exact` only measures errors.
        if !file.data.is_empty() {
            return Ok(None);
        }
        let Some(exact) = exact else {
            return Err(ProblemError::new(
                self.source.name,
                "a fit needs `exact`, the function to be fitted, or [[data]]",
            )
            .key("equation.exact"));
        };
        let one = self.graph.number(1.0);
        Ok(Some(TermSpec {
            region: Region::Interior,
            scale: 1.0,
            listed: None,
            density: Density::Residual {
                parts: vec![(Symbol::value(), Formula::new("1", one))],
                source: Formula::new("exact", exact),
            },
        }))
    }
}
