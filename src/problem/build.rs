//! From the file's text to a checked [`Problem`].

use super::equation::{Energy, linear_operator, normal, normal_derivative, vanish_on};
use super::file::{
    self, Condition, DirectionKind, File, FileBoundary, Formulation, OneOrMany, RuleKind, Shape,
};
use super::settings::{Dictionary, Overrides, Purpose, Quadrature, Settings};
use super::{Algorithm, PenaltySpec, Problem, ProblemError};
use crate::activation::{Activation, MAX_RELU_POWER};
use crate::domain::{Domain, Face, Region};
use crate::error::SolveError;
use crate::expression::{Ast, ExpressionError, Graph, MultiIndex, NodeId, Program, Scope, parse};
use crate::loss::{Density, Formula, Loss, TermSpec};
use crate::points::{MAX_HALTON_DIMENSION, PointSet, Rule};
use crate::symbol::Symbol;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

type Built<T> = Result<T, ProblemError>;

/// More dimensions than any rule here can fill.
const MAX_DIMENSION: i64 = 100;
const MAX_COUNT: i64 = 1_000_000_000_000;
const MAX_NEURONS: i64 = 65_536;

impl Problem {
    /// Reads a problem from the text of a file; `name` is what to call the file in messages.
    pub fn from_toml(text: &str, name: &str, overrides: &Overrides) -> Built<Self> {
        let source = Source { text, name };
        let file: File = toml::from_str(text).map_err(|error| source.syntax(&error))?;
        Builder::new(source, &file)?.build(&file, overrides)
    }

    /// Reads a problem file.
    pub fn from_path(path: &std::path::Path, overrides: &Overrides) -> Built<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ProblemError::new(&name, format!("cannot be read: {error}")))?;
        Self::from_toml(&text, &name, overrides)
    }

    /// The terms of the loss for a run with `neurons` neurons.
    pub fn terms(&self, neurons: usize) -> (Graph, Vec<TermSpec>) {
        let mut graph = self.graph.clone();
        let mut terms = self.terms.clone();
        for penalty in &self.penalties {
            terms.push(penalty.term(&mut graph, neurons));
        }
        (graph, terms)
    }

    /// The loss on the points for a purpose.
    pub fn loss(&self, neurons: usize, purpose: Purpose) -> Result<Loss, SolveError> {
        let (graph, terms) = self.terms(neurons);
        Ok(Loss::new(&graph, &self.domain, &terms, |region| {
            self.quadrature.rule(&self.domain, region, purpose)
        })?)
    }
}

impl PenaltySpec {
    /// δ for a run with this many neurons, if it is a positive number.
    pub(super) fn delta_for(&self, neurons: usize) -> Option<f64> {
        let mut constants = self.constants.clone();
        constants.insert("n".to_string(), neurons as f64);
        let scope = Scope {
            constants,
            ..Scope::default()
        };
        scope.constant(&self.delta).ok().filter(|&delta| delta > 0.0)
    }

    fn term(&self, graph: &mut Graph, neurons: usize) -> TermSpec {
        let strength = graph.number(1.0 / self.delta_for(neurons).unwrap_or(1.0));
        let parts = self
            .parts
            .iter()
            .map(|(symbol, value)| {
                let load = graph.multiply(strength, value.node);
                (
                    symbol.clone(),
                    Formula::new("penalty", strength),
                    Formula::new(value.name.clone(), load),
                )
            })
            .collect();
        TermSpec {
            region: self.region,
            scale: 1.0,
            density: Density::Energy {
                parts,
                potential: None,
            },
        }
    }
}

/// The text errors point into.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    name: &'a str,
}

impl Source<'_> {
    fn error(&self, key: &str, span: Range<usize>, message: impl Into<String>) -> ProblemError {
        ProblemError::new(self.name, message).at(self.text, span).key(key)
    }

    /// An error of the TOML reader, with a suggestion for a misspelt key.
    fn syntax(&self, error: &toml::de::Error) -> ProblemError {
        let message = error.message().trim().replace("field", "key").replace('\n', ", ");
        let mut quoted = message.split('`').skip(1).step_by(2);
        let help = match (message.starts_with("unknown"), quoted.next()) {
            (true, Some(typed)) => quoted
                .map(|known| (strsim::damerau_levenshtein(typed, known), known))
                .min()
                .filter(|(distance, known)| *distance <= 2.max(known.len() / 3))
                .map(|(_, known)| format!("did you mean `{known}`?")),
            _ => None,
        };
        let mut result = ProblemError::new(self.name, message);
        if let Some(span) = error.span() {
            result = result.at(self.text, span);
        }
        match help {
            Some(help) => result.help(help),
            None => result,
        }
    }

    /// An error inside a formula, at its place inside the string.
    fn formula(&self, key: &str, text: &Spanned<String>, error: &ExpressionError) -> ProblemError {
        let span = text.span();
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let place = match raw.find(text.get_ref().as_str()) {
            Some(offset) => {
                let start = span.start + offset;
                start + error.span.start..start + error.span.end
            }
            // Escapes moved the characters: point at the whole string.
            None => span,
        };
        self.error(key, place, error.message.clone())
    }
}

struct Builder<'a> {
    source: Source<'a>,
    domain: Domain,
    dimension: usize,
    graph: Graph,
    constants: BTreeMap<String, f64>,
    warnings: Vec<String>,
}

/// Where formulas may use the unknown.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    Coordinates,
    Unknown,
    Operators,
}

impl<'a> Builder<'a> {
    fn new(source: Source<'a>, file: &File) -> Built<Self> {
        let dimension = count(
            &source,
            "domain.dimension",
            &file.domain.dimension,
            1,
            MAX_DIMENSION,
        )?;
        let mut constants = BTreeMap::new();
        for (name, value) in &file.constants {
            let key = format!("constants.{name}");
            if ["x", "y", "z", "u", "n", "pi", "e"].contains(&name.as_str()) {
                return Err(source.error(
                    &key,
                    value.span(),
                    format!("`{name}` already has a meaning in formulas"),
                ));
            }
            constants.insert(name.clone(), finite(&source, &key, value)?);
        }
        Ok(Self {
            domain: domain(&source, &file.domain, dimension)?,
            source,
            dimension,
            graph: Graph::new(),
            constants,
            warnings: Vec::new(),
        })
    }

    fn build(mut self, file: &File, overrides: &Overrides) -> Built<Problem> {
        let name = file.name.get_ref().clone();
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.') {
            return Err(self.source.error(
                "name",
                file.name.span(),
                "the name becomes a directory: it must not be empty, start with a dot or contain slashes",
            ));
        }
        let settings = self.settings(file, overrides)?;
        let quadrature = self.quadrature(&file.quadrature, overrides, settings.seed)?;
        let equation = &file.equation;
        let exact = self.optional("equation.exact", equation.exact.as_ref(), Names::Coordinates)?;
        let mut terms = Vec::new();
        let mut penalties = Vec::new();
        let order = match equation.formulation {
            Formulation::Energy => {
                let energy = self.energy(equation)?;
                let strong = energy.strong_form(&mut self.graph, self.dimension);
                let source = self.source_term(equation, exact, strong)?;
                terms.push(energy.interior(&mut self.graph, self.dimension, source));
                for (boundary, face) in self.faces(file)? {
                    self.energy_boundary(&energy, boundary, face, exact, &mut terms, &mut penalties)?;
                }
                2 * energy.half_order
            }
            Formulation::Residual => self.residual(file, exact, &mut terms)?,
            Formulation::Fit => {
                terms.push(self.fit(file, exact)?);
                0
            }
        };
        let dictionary = self.dictionary(file)?;
        self.require_smoothness(file, &dictionary, &terms, &penalties, order)?;
        if settings.algorithm == Algorithm::Rga {
            return Err(self.source.error(
                "solver.algorithm",
                file.solver.algorithm.as_ref().map_or(0..0, Spanned::span),
                "the relaxed algorithm is not provided yet; use \"oga\"",
            ));
        }
        if let Some(potential) = &equation.potential {
            return Err(self.source.error(
                "equation.potential",
                potential.span(),
                "equations with a potential are not provided yet; use `reaction` for linear ones",
            ));
        }
        for penalty in &penalties {
            if penalty.delta_for(settings.neurons).is_none() {
                let span = file
                    .boundary
                    .0
                    .iter()
                    .find_map(|b| b.penalty.as_ref())
                    .map_or(0..0, Spanned::span);
                return Err(self.source.error(
                    "boundary.penalty",
                    span,
                    format!("must be a positive number for n = {}", settings.neurons),
                ));
            }
        }
        Ok(Problem {
            name,
            domain: self.domain,
            formulation: equation.formulation,
            order,
            graph: self.graph,
            exact,
            dictionary,
            quadrature,
            settings,
            warnings: self.warnings,
            terms,
            penalties,
        })
    }

    fn ast(&self, key: &str, text: &Spanned<String>) -> Built<Ast> {
        parse(text.get_ref()).map_err(|error| self.source.formula(key, text, &error))
    }

    fn expression(&mut self, key: &str, text: &Spanned<String>, names: Names) -> Built<NodeId> {
        let ast = self.ast(key, text)?;
        let scope = Scope {
            dimension: self.dimension,
            constants: self.constants.clone(),
            unknown: names != Names::Coordinates,
            operators: names == Names::Operators,
        };
        scope
            .scalar(&mut self.graph, &ast)
            .map_err(|error| self.source.formula(key, text, &error))
    }

    fn optional(&mut self, key: &str, text: Option<&Spanned<String>>, names: Names) -> Built<Option<NodeId>> {
        text.map(|text| self.expression(key, text, names)).transpose()
    }

    fn energy(&mut self, equation: &file::FileEquation) -> Built<Energy> {
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
    fn source_term(
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
    fn faces<'f>(&self, file: &'f File) -> Built<Vec<(&'f FileBoundary, Face)>> {
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

    fn energy_boundary(
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
    fn natural(
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
    fn dirichlet(
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

    fn delta(&self, text: &Spanned<String>) -> Built<Ast> {
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
    fn magnitude(&mut self, exact: NodeId, order: usize) -> f64 {
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

    fn residual(&mut self, file: &File, exact: Option<NodeId>, terms: &mut Vec<TermSpec>) -> Built<usize> {
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

    fn residual_boundary(
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

    fn fit(&mut self, file: &File, exact: Option<NodeId>) -> Built<TermSpec> {
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

    fn dictionary(&mut self, file: &File) -> Built<Dictionary> {
        let source = &self.source;
        let given = &file.dictionary;
        let activation = Activation::from_name(given.activation.get_ref()).ok_or_else(|| {
            source
                .error(
                    "dictionary.activation",
                    given.activation.span(),
                    format!("there is no activation `{}`", given.activation.get_ref()),
                )
                .help(format!(
                    "relu^k with k from 1 to {MAX_RELU_POWER}, sigmoid or tanh"
                ))
        })?;
        let directions = match &given.directions {
            Some(directions) => *directions.get_ref(),
            None if self.dimension == 1 => DirectionKind::Axes,
            None => DirectionKind::Sphere,
        };
        let reach = (0..self.dimension)
            .map(|i| {
                let mut unit = vec![0.0; self.dimension];
                unit[i] = 1.0;
                let (low, high) = self.domain.extent(&unit);
                low.abs().max(high.abs())
            })
            .map(|extent| extent * extent)
            .sum::<f64>()
            .sqrt();
        let bias = match &given.bias {
            Some(bias) => interval(source, "dictionary.bias", bias)?,
            None => [-reach, reach],
        };
        let weights = match (&given.weights, directions) {
            (Some(weights), DirectionKind::Box) => interval(source, "dictionary.weights", weights)?,
            (Some(weights), _) => {
                return Err(source.error(
                    "dictionary.weights",
                    weights.span(),
                    "`weights` belongs to directions = \"box\"",
                ));
            }
            (None, DirectionKind::Box) => {
                return Err(ProblemError::new(
                    source.name,
                    "directions = \"box\" needs `weights = [lo, hi]`",
                )
                .key("dictionary.weights"));
            }
            (None, _) => [-1.0, 1.0],
        };
        let default_candidates = if self.dimension <= 2 { 100 } else { 256 };
        Ok(Dictionary {
            activation,
            directions,
            bias,
            weights,
            offsets: optional_count(source, "dictionary.offsets", &given.offsets, 1, 10_000_000)?,
            candidates: optional_count(source, "dictionary.candidates", &given.candidates, 1, 10_000_000)?
                .unwrap_or(default_candidates),
            refine: given.refine.unwrap_or(false),
        })
    }

    fn require_smoothness(
        &self,
        file: &File,
        dictionary: &Dictionary,
        terms: &[TermSpec],
        penalties: &[PenaltySpec],
        order: usize,
    ) -> Built<()> {
        let in_terms = terms.iter().flat_map(|term| match &term.density {
            Density::Energy { parts, .. } => parts
                .iter()
                .map(|(symbol, ..)| symbol.order())
                .collect::<Vec<_>>(),
            Density::Residual { parts, .. } => parts.iter().map(|(symbol, _)| symbol.order()).collect(),
        });
        let in_penalties = penalties
            .iter()
            .flat_map(|penalty| penalty.parts.iter().map(|(symbol, _)| symbol.order()));
        let needed = in_terms.chain(in_penalties).max().unwrap_or(0);
        let smoothness = dictionary.activation.smoothness();
        if needed <= smoothness {
            return Ok(());
        }
        Err(self
            .source
            .error(
                "dictionary.activation",
                file.dictionary.activation.span(),
                format!(
                    "{} is not smooth enough: this {} of order {order} takes derivatives of order {needed}, and the {}th derivative of {} is not a function",
                    dictionary.activation,
                    match file.equation.formulation {
                        Formulation::Energy => "energy",
                        Formulation::Residual => "residual",
                        Formulation::Fit => "fit",
                    },
                    smoothness + 1,
                    dictionary.activation,
                ),
            )
            .help(format!("use relu^{needed} or higher, sigmoid or tanh")))
    }

    fn quadrature(
        &mut self,
        given: &file::FileQuadrature,
        overrides: &Overrides,
        seed: u64,
    ) -> Built<Quadrature> {
        let source = &self.source;
        let kind = *given.rule.get_ref();
        let gauss = kind == RuleKind::Gauss;
        let misplaced = match (gauss, &given.points, &given.cells, &given.order) {
            (true, Some(points), ..) => Some((
                "quadrature.points",
                points.span(),
                "a gauss rule has `cells` and `order`, not `points`",
            )),
            (false, _, Some(cells), _) => Some((
                "quadrature.cells",
                cells.span(),
                "`cells` belongs to rule = \"gauss\"; this rule has `points`",
            )),
            (false, _, _, Some(order)) => Some((
                "quadrature.order",
                order.span(),
                "`order` belongs to rule = \"gauss\"; this rule has `points`",
            )),
            _ => None,
        };
        if let Some((key, span, message)) = misplaced {
            return Err(source.error(key, span, message));
        }
        if gauss && overrides.points.is_some() {
            return Err(ProblemError::new(
                source.name,
                "this problem has a gauss rule: use --cells, not --points",
            ));
        }
        if !gauss && overrides.cells.is_some() {
            return Err(ProblemError::new(
                source.name,
                "this problem has no gauss rule: use --points, not --cells",
            ));
        }
        let missing = |key: &str| {
            source.error(
                &format!("quadrature.{key}"),
                given.rule.span(),
                format!("this rule needs `{key}`"),
            )
        };
        let points = match overrides.points {
            Some(points) => Some(points),
            None => optional_count(source, "quadrature.points", &given.points, 1, MAX_COUNT)?,
        };
        let cells = match overrides.cells {
            Some(cells) => Some(cells),
            None => optional_count(source, "quadrature.cells", &given.cells, 1, MAX_COUNT)?,
        };
        let order = optional_count(source, "quadrature.order", &given.order, 1, 64)?.unwrap_or(2);
        if kind == RuleKind::Halton && self.dimension > MAX_HALTON_DIMENSION {
            return Err(source.error(
                "quadrature.rule",
                given.rule.span(),
                format!(
                    "the Halton sequence is provided up to {MAX_HALTON_DIMENSION} dimensions; use monte_carlo"
                ),
            ));
        }
        let rule = match kind {
            RuleKind::Gauss => Rule::Gauss {
                cells: cells.ok_or_else(|| missing("cells"))?,
                order,
            },
            RuleKind::Halton => Rule::Halton {
                points: points.ok_or_else(|| missing("points"))?,
                shift: None,
            },
            RuleKind::MonteCarlo => Rule::MonteCarlo {
                points: points.ok_or_else(|| missing("points"))?,
                seed,
            },
        };
        PointSet::new(&self.domain, Region::Interior, rule, 0)
            .map_err(|error| source.error("quadrature.rule", given.rule.span(), error.to_string()))?;
        let boundary_points = match optional_count(
            source,
            "quadrature.boundary_points",
            &given.boundary_points,
            1,
            MAX_COUNT,
        )? {
            Some(count) => count,
            // The same density along the boundary as inside.
            None => {
                let exponent = 1.0 - 1.0 / self.dimension as f64;
                ((points.unwrap_or(1) as f64).powf(exponent).round() as usize).max(1)
            }
        };
        let cache_mib = optional_count(source, "quadrature.cache_mib", &given.cache_mib, 0, 1 << 30)?;
        Ok(Quadrature {
            rule,
            boundary_points,
            cache_bytes: cache_mib.unwrap_or(1024) << 20,
        })
    }

    fn settings(&mut self, file: &File, overrides: &Overrides) -> Built<Settings> {
        let source = &self.source;
        let given = &file.solver;
        let seed = optional_count(source, "solver.seed", &given.seed, 0, i64::MAX)?.unwrap_or(0);
        let in_file = count(source, "solver.neurons", &given.neurons, 1, MAX_NEURONS)?;
        Ok(Settings {
            algorithm: given
                .algorithm
                .as_ref()
                .map_or(Algorithm::Oga, |algorithm| *algorithm.get_ref()),
            neurons: overrides.neurons.unwrap_or(in_file),
            seed: overrides.seed.unwrap_or(seed as u64),
            tolerance: given
                .tolerance
                .as_ref()
                .map(|tolerance| positive(source, "solver.tolerance", tolerance))
                .transpose()?,
            radius: given
                .radius
                .as_ref()
                .map(|radius| positive(source, "solver.radius", radius))
                .transpose()?,
            guard: given.guard,
            projection: given.projection,
        })
    }
}

fn domain(source: &Source, given: &file::FileDomain, dimension: usize) -> Built<Domain> {
    let (allowed, other) = match given.shape {
        Shape::Box => (
            ["lower", "upper"],
            [
                ("center", given.center.is_some()),
                ("radius", given.radius.is_some()),
            ],
        ),
        Shape::Ball => (
            ["center", "radius"],
            [("lower", given.lower.is_some()), ("upper", given.upper.is_some())],
        ),
    };
    if let Some((key, _)) = other.iter().find(|(_, present)| *present) {
        return Err(ProblemError::new(
            source.name,
            format!(
                "this shape has `{}` and `{}`, not `{key}`",
                allowed[0], allowed[1]
            ),
        )
        .at(source.text, given.dimension.span())
        .key(format!("domain.{key}")));
    }
    let list = |key: &str, value: &Option<Spanned<OneOrMany>>, default: f64| -> Built<Vec<f64>> {
        let key = format!("domain.{key}");
        let Some(value) = value else {
            return Ok(vec![default; dimension]);
        };
        let list = match value.get_ref() {
            OneOrMany::One(number) => vec![*number; dimension],
            OneOrMany::Many(list) => list.clone(),
        };
        if list.len() != dimension {
            return Err(source.error(
                &key,
                value.span(),
                format!("{} numbers for {dimension} dimensions", list.len()),
            ));
        }
        if list.iter().any(|number| !number.is_finite()) {
            return Err(source.error(&key, value.span(), "must be finite"));
        }
        Ok(list)
    };
    match given.shape {
        Shape::Box => {
            let (lower, upper) = (
                list("lower", &given.lower, 0.0)?,
                list("upper", &given.upper, 1.0)?,
            );
            if let Some(i) = (0..dimension).find(|&i| lower[i] >= upper[i]) {
                let span = given
                    .upper
                    .as_ref()
                    .or(given.lower.as_ref())
                    .map_or(0..0, Spanned::span);
                return Err(source.error(
                    "domain.upper",
                    span,
                    format!(
                        "lower = {} is not below upper = {} in x[{}]",
                        lower[i],
                        upper[i],
                        i + 1
                    ),
                ));
            }
            Ok(Domain::Box { lower, upper })
        }
        Shape::Ball => {
            let center = list("center", &given.center, 0.0)?;
            let radius = match &given.radius {
                Some(radius) => positive(source, "domain.radius", radius)?,
                None => 1.0,
            };
            Ok(match dimension {
                // A ball in 1-D is an interval.
                1 => Domain::Box {
                    lower: vec![center[0] - radius],
                    upper: vec![center[0] + radius],
                },
                _ => Domain::Ball { center, radius },
            })
        }
    }
}

fn count(source: &Source, key: &str, value: &Spanned<i64>, least: i64, most: i64) -> Built<usize> {
    let number = *value.get_ref();
    if (least..=most).contains(&number) {
        Ok(number as usize)
    } else {
        Err(source.error(
            key,
            value.span(),
            format!("must be a whole number from {least} to {most}, not {number}"),
        ))
    }
}

fn optional_count(
    source: &Source,
    key: &str,
    value: &Option<Spanned<i64>>,
    least: i64,
    most: i64,
) -> Built<Option<usize>> {
    value
        .as_ref()
        .map(|value| count(source, key, value, least, most))
        .transpose()
}

fn finite(source: &Source, key: &str, value: &Spanned<f64>) -> Built<f64> {
    let number = *value.get_ref();
    if number.is_finite() {
        Ok(number)
    } else {
        Err(source.error(key, value.span(), "must be a finite number"))
    }
}

fn positive(source: &Source, key: &str, value: &Spanned<f64>) -> Built<f64> {
    match finite(source, key, value)? {
        number if number > 0.0 => Ok(number),
        number => Err(source.error(key, value.span(), format!("must be positive, not {number}"))),
    }
}

fn interval(source: &Source, key: &str, value: &Spanned<[f64; 2]>) -> Built<[f64; 2]> {
    let [low, high] = *value.get_ref();
    if low.is_finite() && high.is_finite() && low < high {
        Ok([low, high])
    } else {
        Err(source.error(
            key,
            value.span(),
            format!("[{low}, {high}] is not an interval: the first must be below the second"),
        ))
    }
}
