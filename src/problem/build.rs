//! From the file's text to a checked [`Problem`].

use super::attachment::Attachment;
use super::boundary::Kind;
use super::domains::domain;
use super::equation;
use super::file::{File, Formulation, RuleKind};
use super::held::has_multiplier;
use super::settings::{Overrides, Purpose};
use super::source::{Source, finite};
use super::typed::Text;
use super::{Algorithm, Data, Evolution, Kernel, PenaltySpec, Places, Problem, ProblemError, Words};
use crate::candidates::{DEFAULT_OFFSETS, DirectionKind};
use crate::domain::Domain;
use crate::error::SolveError;
use crate::expression::{Ast, Graph, NodeId, Scope, parse};
use crate::greedy::Selection;
use crate::loss::{Density, Formula, Loss, TermSpec};
use crate::points::Rule;
use std::collections::BTreeMap;
use toml::Spanned;

pub(super) type Built<T> = Result<T, ProblemError>;

/// More dimensions than any rule here can fill.
pub(super) const MAX_DIMENSION: i64 = 100;
/// More points take hours for a single pass.
pub(super) const MAX_POINTS: usize = 10_000_000_000;
pub(super) const MAX_COUNT: i64 = 1_000_000_000_000;
pub(super) const MAX_NEURONS: i64 = 65_536;

impl Problem {
    /// Reads a problem from the text of a file; `name` is what to call the file in messages.
    pub fn from_toml(text: &str, name: &str, overrides: &Overrides) -> Built<Self> {
        Self::from_toml_with(text, name, overrides, &[])
    }

    /// The same where some of the files that it names are at hand: only the others are read from the disk.
    pub fn from_toml_with(text: &str, name: &str, overrides: &Overrides, held: &[Attachment]) -> Built<Self> {
        let source = Source { text, name, held };
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
            terms.extend(penalty.terms(&mut graph, neurons));
        }
        (graph, terms)
    }

    /// The same with the penalties of conditions that multipliers hold: what norms of errors are made of.
    pub fn terms_and_held(&self, neurons: usize) -> (Graph, Vec<TermSpec>) {
        let (graph, mut terms) = self.terms(neurons);
        terms.extend(self.held.iter().cloned());
        (graph, terms)
    }

    /// The penalty of the conditions that multipliers hold, if there are any.
    pub fn held_loss(&self, purpose: Purpose) -> Result<Option<Loss>, SolveError> {
        match self.held.is_empty() {
            true => Ok(None),
            false => Ok(Some(Loss::new(
                &self.graph,
                &self.domain,
                &self.held,
                |region| self.quadrature.rule(&self.domain, region, purpose),
            )?)),
        }
    }

    /// Whether the norms of candidates must be known from more points than the run has: a neuron may live in a corner that the
    /// points of a sequence hardly see, while its load on the boundary is seen.
    pub fn doubts_norms(&self) -> bool {
        self.settings.selection == Selection::Decrease
            && self.dictionary.activation.has_sweep()
            && self.formulation == Formulation::Energy
            && self.dictionary.directions == DirectionKind::Sphere
            && self.quadrature.curvature.is_none()
            && !matches!(self.quadrature.rule, Rule::Gauss { .. })
    }

    /// Whether conditions are held by multipliers.
    pub fn has_multipliers(&self) -> bool {
        !self.held.is_empty() && has_multiplier(self.formulation)
    }

    /// Losses −ℓ(u) of the functionals that fix what the equation leaves free, on the points for a purpose.
    pub fn functionals(&self, purpose: Purpose) -> Result<Vec<Loss>, SolveError> {
        let functions = self.kernel.functions.iter();
        functions
            .map(|function| {
                let mut graph = self.graph.clone();
                let spec = function.functional(&mut graph, &self.domain);
                Ok(Loss::new(&graph, &self.domain, &[spec], |region| {
                    self.quadrature.rule(&self.domain, region, purpose)
                })?)
            })
            .collect()
    }

    /// How many of the [terms](Self::terms) come before those of penalties.
    pub fn unpenalised_terms(&self) -> usize {
        self.terms.len()
    }

    /// Terms of the measurements for a purpose.
    pub fn data_terms(&self, graph: &mut Graph, purpose: Purpose) -> Vec<TermSpec> {
        self.data.iter().map(|data| data.term(graph, purpose)).collect()
    }

    /// The loss on the points for a purpose.
    pub fn loss(&self, neurons: usize, purpose: Purpose) -> Result<Loss, SolveError> {
        let (mut graph, mut terms) = self.terms(neurons);
        terms.extend(self.data_terms(&mut graph, purpose));
        Ok(Loss::new(&graph, &self.domain, &terms, |region| {
            self.quadrature.rule(&self.domain, region, purpose)
        })?)
    }
}

impl PenaltySpec {
    /// δ for a run with this many neurons, if it is a positive number.
    pub(super) fn delta_for(&self, neurons: usize) -> Option<f64> {
        constant_for(&self.delta, &self.constants, neurons).filter(|&delta| delta > 0.0)
    }

    /// The highest derivative that is held.
    pub(super) fn order(&self) -> usize {
        let oblique = self.oblique.iter().flat_map(|(parts, _)| parts);
        let orders = self.parts.iter().chain(oblique).map(|(symbol, _)| symbol.order());
        orders.max().unwrap_or(0)
    }

    fn terms(&self, graph: &mut Graph, neurons: usize) -> Vec<TermSpec> {
        self.terms_with(graph, self.delta_for(neurons).unwrap_or(1.0))
    }

    fn terms_with(&self, graph: &mut Graph, delta: f64) -> Vec<TermSpec> {
        let strength = graph.number(1.0 / delta);
        let parts: Vec<_> = self
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
        let straight = (!parts.is_empty()).then_some((
            1.0,
            Density::Energy {
                parts,
                potential: None,
            },
        ));
        let oblique = self.oblique.clone().map(|(parts, source)| {
            let density = Density::Residual { parts, source };
            (0.5 / delta, density)
        });
        let densities = straight.into_iter().chain(oblique);
        densities
            .map(|(scale, density)| TermSpec {
                region: self.region,
                scale,
                listed: None,
                density,
            })
            .collect()
    }
}

pub(super) struct Builder<'a> {
    pub(super) source: Source<'a>,
    pub(super) domain: Domain,
    pub(super) dimension: usize,
    pub(super) graph: Graph,
    pub(super) constants: BTreeMap<String, f64>,
    pub(super) warnings: Vec<String>,
    pub(super) files: Vec<Attachment>,
    /// Penalties of conditions that multipliers hold.
    pub(super) held: Vec<TermSpec>,
    /// c/τ of the steps in time; 0 without them.
    pub(super) mass: f64,
    /// Whether formulas may use t.
    pub(super) timed: bool,
}

/// Where formulas may use the unknown.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Names {
    Coordinates,
    Unknown,
    Operators,
}

/// Of a domain in more pieces than this only the first ones are looked at.
const PIECES_LOOKED_AT: usize = 32;

impl<'a> Builder<'a> {
    pub(super) fn new(source: Source<'a>, file: &File) -> Built<Self> {
        let mut constants = BTreeMap::new();
        for (name, value) in &file.constants {
            let key = format!("constants.{name}");
            let in_time = file.time.is_some() && name == "t";
            if in_time || ["x", "y", "z", "u", "n", "pi", "e"].contains(&name.as_str()) {
                return Err(source.error(
                    &key,
                    value.span(),
                    format!("`{name}` already has a meaning in formulas"),
                ));
            }
            constants.insert(name.clone(), finite(&source, &key, value, &BTreeMap::new())?);
        }
        let (domain, files) = domain(&source, file, &constants)?;
        Ok(Self {
            dimension: domain.dimension(),
            domain,
            source,
            files,
            held: Vec::new(),
            mass: 0.0,
            timed: file.time.is_some(),
            graph: Graph::new(),
            constants,
            warnings: Vec::new(),
        })
    }

    pub(super) fn build(mut self, file: &File, overrides: &Overrides) -> Built<Problem> {
        let name = file.name.get_ref().clone();
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.') {
            return Err(self.source.error(
                "name",
                file.name.span(),
                "the name becomes a directory: it must not be empty, start with a dot or contain slashes",
            ));
        }
        self.warn_of_idle_keys(file);
        let mut settings = self.settings(file, overrides)?;
        let mut quadrature = self.quadrature(file, overrides, (settings.neurons, settings.seed))?;
        let equation = &file.equation;
        let data = self.data(file)?;
        let exact = self.optional("equation.exact", equation.exact.as_ref(), Names::Coordinates)?;
        let derived = equation.source.is_none();
        let mut evolution = self.evolution(file, exact, &mut settings)?;
        self.mass = evolution.as_ref().map_or(0.0, Evolution::mass);
        let mut terms = Vec::new();
        let mut penalties = Vec::new();
        let order = match equation.formulation {
            Formulation::Energy => {
                let energy = self.energy(equation)?;
                let strong = energy.strong_form(&mut self.graph, self.dimension);
                let source = match &evolution {
                    Some(evolution) => self.source_in_time(equation, exact, strong, evolution)?,
                    None => self.source_term(equation, exact, strong)?,
                };
                terms.push(energy.interior(&mut self.graph, self.dimension, source));
                for conditions in self.faces(file, energy.kind())? {
                    self.energy_face(&energy, &conditions, exact, &mut terms, &mut penalties)?;
                }
                self.periodic(file, energy.kind(), Some(&energy))?;
                if let Some(exact) = exact.filter(|_| derived) {
                    let functions = self.continuous_in_energy(&energy, exact);
                    self.warn_of_kinks(functions);
                }
                2 * energy.half_order
            }
            Formulation::Residual => {
                let order = self.residual(file, exact, &mut terms)?;
                if let Some(exact) = exact.filter(|_| derived) {
                    let functions = self.continuous_in_residual(&terms[0], exact);
                    self.warn_of_kinks(functions);
                }
                order
            }
            Formulation::Fit => {
                terms.extend(self.fit(file, exact)?);
                0
            }
        };
        let kind = Kind {
            formulation: equation.formulation,
            order,
        };
        let faces = self.faces(file, kind)?;
        let places = self.places(file, kind, &faces);
        let unnamed: Vec<String> = faces
            .into_iter()
            .filter(|conditions| conditions.tables.is_empty())
            .map(|conditions| self.domain.face_name(conditions.face))
            .collect();
        let holds = !penalties.is_empty() || (!self.held.is_empty() && has_multiplier(equation.formulation));
        settings.selection = self.selection(file, holds)?;
        let dictionary = self.dictionary(file, settings.selection)?;
        self.require_smoothness(file, &dictionary, &terms, &penalties, order)?;
        if settings.algorithm == Algorithm::Rga && settings.radius.is_none() {
            return Err(self.source.error(
                "solver.algorithm",
                file.solver.algorithm.as_ref().map_or(0..0, Spanned::span),
                "the relaxed algorithm needs `radius`, a bound on the sum of the coefficients' sizes",
            ));
        }
        if settings.algorithm == Algorithm::Rga && !self.held.is_empty() {
            return Err(self.source.error(
                "boundary.condition",
                file.boundary
                    .0
                    .first()
                    .map_or(0..0, |table| table.condition.span()),
                "the relaxed algorithm has no multipliers: give `penalty`, the small δ in ½δ⁻¹∫(u − g)²",
            ));
        }
        if let (Some(given), Some(potential)) = (&equation.potential, potential_of(&terms))
            && let Some(message) = equation::not_convex(&mut self.graph, &self.domain, potential)
        {
            return Err(self.source.error("equation.potential", given.span(), message));
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
        let quadratic = potential_of(&terms).is_none();
        self.require_polish(file, (&settings, &dictionary), quadratic, !penalties.is_empty())?;
        let choices = (&settings, &dictionary, &quadrature);
        if evolution.is_none() {
            quadrature.curvature = self.curvature(file, choices, (&terms, &penalties), overrides)?;
        }
        self.warn_of_jumps(terms.first(), &quadrature);
        let kernel = match &mut evolution {
            // The difference in time leaves nothing free.
            Some(evolution) => {
                self.require_flow(file, evolution, (&terms, &penalties))?;
                Kernel::default()
            }
            None => self.kernel(file, (&terms, &penalties), &data, &places)?,
        };
        if !settings.guard {
            self.warn_of_fine_offsets(&quadrature.telling_apart(&self.domain), dictionary.offsets);
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
            words: Words::of(file, kind, &unnamed, &kernel),
            kernel,
            warnings: self.warnings,
            files: self.files,
            data,
            places,
            held: self.held,
            evolution,
            terms,
            penalties,
        })
    }

    /// Without the guard, neurons closer than the points of the quadrature fit its error.
    /// Keys that another choice would need: they do nothing here.
    fn warn_of_idle_keys(&mut self, file: &File) {
        let gauss = *file.quadrature.rule.get_ref() == RuleKind::Gauss;
        let relaxed = matches!(&file.solver.algorithm, Some(given) if *given.get_ref() == Algorithm::Rga);
        if gauss && file.quadrature.boundary_points.is_some() {
            self.warnings.push(
                "`boundary_points` does nothing here: it belongs to sequences, and a gauss rule has its `cells` on the boundary, too"
                    .to_string(),
            );
        }
        if !relaxed && file.solver.radius.is_some() {
            self.warnings.push(
                "`radius` does nothing here: it belongs to algorithm = \"rga\", and orthogonal selection has no bound on the \
                 coefficients"
                    .to_string(),
            );
        }
    }

    fn warn_of_fine_offsets(&mut self, rule: &Rule, offsets: Option<usize>) {
        let (offsets, resolved, what) = match *rule {
            // Without a number of their own, offsets are the cells' edges.
            Rule::Gauss { cells, .. } => (offsets.unwrap_or(cells), cells, "cells' edges"),
            Rule::Halton { points, .. } | Rule::Lattice { points, .. } | Rule::MonteCarlo { points, .. } => {
                let across = (points as f64).powf(1.0 / self.dimension as f64);
                (
                    offsets.unwrap_or(DEFAULT_OFFSETS),
                    across as usize,
                    "points that lie across the domain",
                )
            }
        };
        if offsets > resolved {
            self.warnings.push(format!(
                "{offsets} offsets lie closer than the {resolved} {what} and the guard is off: neurons may fit the quadrature's error instead of the solution"
            ));
        }
    }

    /// What the equation leaves free; an error where that leaves it without a solution.
    fn kernel(
        &mut self,
        file: &File,
        (terms, penalties): (&[TermSpec], &[PenaltySpec]),
        data: &[Data],
        places: &Places,
    ) -> Built<Kernel> {
        let mut graph = self.graph.clone();
        let mut specs = terms.to_vec();
        for penalty in penalties {
            // What a penalty leaves free does not depend on its strength.
            specs.extend(penalty.terms_with(&mut graph, 1.0));
        }
        specs.extend(self.held.iter().cloned());
        specs.extend(data.iter().map(|data| data.term(&mut graph, Purpose::Training)));
        self.require_pieces_held(file, &graph, &specs)?;
        let kernel = match Kernel::of(&graph, &self.domain, &specs) {
            Ok(kernel) => kernel,
            Err(error @ SolveError::NotConvex { .. }) => {
                let nowhere = || ProblemError::new(self.source.name, error.to_string());
                return Err(places.explain(&error).unwrap_or_else(nowhere));
            }
            // A formula that is not finite somewhere is reported by the run, at its own points.
            Err(_) => Kernel::default(),
        };
        if kernel.is_empty() {
            return Ok(kernel);
        }
        if kernel.incompatible {
            let equation = &file.equation;
            let given = equation.source.as_ref().or(equation.exact.as_ref());
            return Err(self
                .source
                .error(
                    "equation",
                    given.map_or(0..0, Spanned::span),
                    format!(
                        "there is no solution: the equation leaves u free up to {}, and the data do work on it ({:.1e} \
                         of their size), so that the energy has no minimum",
                        kernel.what(),
                        kernel.mismatch
                    ),
                )
                .help(
                    "the integrals of the source and of the boundary data must cancel (∫f + ∫g = 0); or give a \
                     `reaction`, or hold the value on some face",
                ));
        }
        let rounded = match kernel.mismatch {
            mismatch if mismatch > 1e-9 => format!(
                ". The data are compatible only to {mismatch:.1e} of their size; what is left over is spread evenly"
            ),
            _ => String::new(),
        };
        self.warnings.push(format!(
            "the equation leaves u free up to {}: the run takes the solution with {}, and errors are measured up to \
             it{rounded}",
            kernel.what(),
            kernel.fixed_by(),
        ));
        Ok(kernel)
    }

    /// Where the domain falls into pieces, each must be held by itself: the run fixes what is free on all of the domain, not
    /// a constant for each piece.
    fn require_pieces_held(&self, file: &File, graph: &Graph, specs: &[TermSpec]) -> Built<()> {
        for piece in self.domain.pieces(PIECES_LOOKED_AT) {
            let specs: Vec<TermSpec> = specs
                .iter()
                .filter(|spec| match &spec.listed {
                    Some(listed) => (0..listed.weights.len())
                        .any(|k| piece.contains(listed.coordinates.iter().map(|column| column[k]))),
                    None => piece.measure(spec.region) > 0.0,
                })
                .cloned()
                .collect();
            let Ok(kernel) = Kernel::of(graph, &piece, &specs) else {
                continue;
            };
            if kernel.is_empty() {
                continue;
            }
            let at = piece.center();
            let span = file.equation.source.as_ref().or(file.equation.exact.as_ref());
            return Err(self
                .source
                .error(
                    "equation",
                    span.map_or(0..0, Spanned::span),
                    format!(
                        "the domain has {} pieces that do not touch, and the equation leaves u free up to {} on the \
                         piece around {at:?}",
                        self.domain.pieces_apart(),
                        kernel.what()
                    ),
                )
                .help(
                    "hold the value on a face of every piece, or give a `reaction`, or solve on each piece by itself; \
                     if the pieces should touch, join them (the nodes of a mesh that lie in one place must be one \
                     node)",
                ));
        }
        Ok(())
    }

    pub(super) fn ast(&self, key: &str, text: &Spanned<Text>) -> Built<Ast> {
        parse(text.get_ref()).map_err(|error| self.source.formula(key, text, &error))
    }

    pub(super) fn expression(&mut self, key: &str, text: &Spanned<Text>, names: Names) -> Built<NodeId> {
        let ast = self.ast(key, text)?;
        let scope = Scope {
            dimension: self.dimension,
            constants: self.constants.clone(),
            unknown: names != Names::Coordinates,
            time: self.timed,
            operators: names == Names::Operators,
        };
        scope
            .scalar(&mut self.graph, &ast)
            .map_err(|error| self.source.formula(key, text, &error))
    }

    pub(super) fn optional(
        &mut self,
        key: &str,
        text: Option<&Spanned<Text>>,
        names: Names,
    ) -> Built<Option<NodeId>> {
        text.map(|text| self.expression(key, text, names)).transpose()
    }
}

pub(super) fn potential_of(terms: &[TermSpec]) -> Option<NodeId> {
    terms.iter().find_map(|term| match &term.density {
        Density::Energy {
            potential: Some(potential),
            ..
        } => Some(potential.node),
        _ => None,
    })
}

/// The value of a formula in `n` and the constants of the file.
pub(super) fn constant_for(ast: &Ast, constants: &BTreeMap<String, f64>, neurons: usize) -> Option<f64> {
    let mut constants = constants.clone();
    constants.insert("n".to_string(), neurons as f64);
    let scope = Scope {
        constants,
        ..Scope::default()
    };
    scope.constant(ast).ok()
}
