//! The losses that the steps of a flow are made of: everything that does not change from step to step, apart.
//!
//! A step minimises (c/2τ)‖u‖² + E(u) less a load. Its curvature A = (c/τ) M + K is one loss, the mass M another; what acts is
//! a sum of products φ(t) ψ(x), of which each ψ is a loss, made once.

use super::settings::Purpose;
use super::{Evolution, Problem};
use crate::domain::Region;
use crate::error::SolveError;
use crate::expression::{Graph, NodeId, Program};
use crate::loss::{Density, Formula, Loss, TermSpec};
use crate::symbol::Symbol;

/// Which terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acting {
    /// Those of the energy, with the penalties of conditions that multipliers hold.
    All,
    /// These penalties alone.
    Held,
}

/// What acts as φ(t) times a load that stays: the load is minus the gradient of the loss at zero.
pub struct LoadGroup {
    /// φ, made from a graph whose t is the time asked for.
    graph: Graph,
    in_time: NodeId,
    /// What it is, as the loss knows its formula.
    pub name: String,
    /// −∫ψ u, over all regions.
    pub loss: Loss,
}

impl LoadGroup {
    /// Whether φ is the same at all times.
    pub fn is_constant(&self) -> bool {
        !self.graph.depends_on_time(&[self.in_time])
    }

    /// φ(t).
    pub fn factor(&self, time: f64) -> f64 {
        let mut graph = self.graph.clone();
        graph.set_time(time);
        Program::new(&graph, &[self.in_time], 0, &[]).evaluate_at(&[])[0]
    }
}

impl Problem {
    /// The same at another time: formulas in t have this one.
    pub fn at_time(&self, time: f64) -> Self {
        let mut problem = self.clone();
        problem.graph.set_time(time);
        problem
    }

    /// The same with nothing but the neurons for the initial value, as far as their choice is concerned.
    pub fn for_initial(&self, evolution: &Evolution) -> Self {
        let mut problem = self.at_time(0.0);
        problem.settings.neurons = evolution.initial_neurons;
        for spec in &mut problem.terms {
            if let Density::Energy { potential, .. } = &mut spec.density {
                *potential = None;
            }
        }
        problem
    }

    /// (c/2τ)‖u‖² + E(u) without loads, c/τ = `mass`.
    pub fn step_loss(&self, mass: f64, purpose: Purpose) -> Result<Loss, SolveError> {
        let (mut graph, specs) = self.flow_terms(Acting::All);
        let specs = with_mass(&mut graph, specs, mass);
        // Data on natural faces only load.
        let curved = specs.into_iter().filter(|spec| !is_flat(&graph, spec));
        let curved: Vec<TermSpec> = curved.collect();
        let unloaded = unloaded(&mut graph, curved);
        self.put_on_points(&graph, &unloaded, purpose)
    }

    /// ½∫ s (Bu)² of the conditions Bu = g that multipliers hold, if there are any.
    pub fn penalty_loss(&self, purpose: Purpose) -> Result<Option<Loss>, SolveError> {
        let (mut graph, specs) = self.flow_terms(Acting::Held);
        let specs = unloaded(&mut graph, specs);
        match specs.is_empty() {
            true => Ok(None),
            false => self.put_on_points(&graph, &specs, purpose).map(Some),
        }
    }

    /// ½‖u‖².
    pub fn mass_loss(&self, purpose: Purpose) -> Result<Loss, SolveError> {
        let mut graph = self.graph.clone();
        let one = Formula::new("1", graph.number(1.0));
        let zero = Formula::new("0", graph.number(0.0));
        let spec = inside(vec![(Symbol::value(), one, zero)], None);
        self.put_on_points(&graph, &[spec], purpose)
    }

    /// The distance of u from its initial value, in the norm of a step; in the mean square where that value jumps.
    pub fn initial_loss(
        &self,
        evolution: &Evolution,
        mass: f64,
        purpose: Purpose,
    ) -> Result<Loss, SolveError> {
        let (mut graph, specs) = self.flow_terms(Acting::All);
        graph.set_time(0.0);
        if evolution.rough {
            let one = Formula::new("1", graph.number(1.0));
            let load = Formula::new("initial", evolution.initial);
            let spec = inside(vec![(Symbol::value(), one, load)], None);
            return self.put_on_points(&graph, &[spec], purpose);
        }
        let mut specs = with_mass(&mut graph, specs, mass);
        specs.retain(|spec| !is_flat(&graph, spec));
        // Between periodic faces it is jumps that count, and there are none.
        for spec in specs
            .iter_mut()
            .filter(|spec| !matches!(spec.region, Region::Pairs(_)))
        {
            if let Density::Energy { parts, potential } = &mut spec.density {
                *potential = None;
                for (symbol, a, load) in parts {
                    let jet = applied(&mut graph, symbol, evolution.initial);
                    *load = Formula::new("initial", graph.multiply(a.node, jet));
                }
            }
        }
        self.put_on_points(&graph, &specs, purpose)
    }

    /// ∫G(x, u), the part of the energy that is taken explicitly.
    pub fn explicit_loss(&self, evolution: &Evolution, purpose: Purpose) -> Result<Option<Loss>, SolveError> {
        let Some(explicit) = evolution.explicit else {
            return Ok(None);
        };
        let mut graph = self.graph.clone();
        let zero = Formula::new("0", graph.number(0.0));
        let spec = inside(
            vec![(Symbol::value(), zero.clone(), zero)],
            Some(Formula::new("potential_explicit", explicit)),
        );
        self.put_on_points(&graph, &[spec], purpose).map(Some)
    }

    /// What acts, as far as it is a sum of products φ(t) ψ(x).
    pub fn load_groups(&self, acting: Acting, purpose: Purpose) -> Result<Vec<LoadGroup>, SolveError> {
        let (mut graph, specs) = self.flow_terms(acting);
        let mut groups: Vec<(NodeId, Vec<TermSpec>)> = Vec::new();
        for spec in &specs {
            for (in_time, spec) in separated(&mut graph, spec) {
                match groups.iter_mut().find(|(known, _)| *known == in_time) {
                    Some((_, specs)) => specs.push(spec),
                    None => groups.push((in_time, vec![spec])),
                }
            }
        }
        let made = groups.into_iter().map(|(in_time, specs)| {
            Ok(LoadGroup {
                name: name_of(&specs),
                loss: self.put_on_points(&graph, &specs, purpose)?,
                graph: graph.clone(),
                in_time,
            })
        });
        made.collect()
    }

    /// What acts at a time and has no such form, if there is any.
    pub fn moving_load(
        &self,
        acting: Acting,
        time: f64,
        purpose: Purpose,
    ) -> Result<Option<Loss>, SolveError> {
        let (mut graph, specs) = self.flow_terms(acting);
        graph.set_time(time);
        let zero = Formula::new("0", graph.number(0.0));
        let mut moving = Vec::new();
        for spec in &specs {
            let Density::Energy { parts, .. } = &spec.density else {
                continue;
            };
            let mut loads = Vec::new();
            for (symbol, _, load) in parts {
                if graph.separate_time(load.node).is_none() {
                    loads.push((symbol.clone(), zero.clone(), load.clone()));
                }
            }
            if !loads.is_empty() {
                moving.push(loaded(spec, loads));
            }
        }
        match moving.is_empty() {
            true => Ok(None),
            false => self.put_on_points(&graph, &moving, purpose).map(Some),
        }
    }

    fn flow_terms(&self, acting: Acting) -> (Graph, Vec<TermSpec>) {
        match acting {
            Acting::All => self.terms_and_held(self.settings.neurons),
            Acting::Held => (self.graph.clone(), self.held.clone()),
        }
    }

    fn put_on_points(&self, graph: &Graph, specs: &[TermSpec], purpose: Purpose) -> Result<Loss, SolveError> {
        Ok(Loss::new(graph, &self.domain, specs, |region| {
            self.quadrature.rule(&self.domain, region, purpose)
        })?)
    }
}

fn inside(parts: Vec<(Symbol, Formula, Formula)>, potential: Option<Formula>) -> TermSpec {
    TermSpec {
        region: Region::Interior,
        scale: 1.0,
        listed: None,
        density: Density::Energy { parts, potential },
    }
}

/// The term with nothing but these loads.
fn loaded(spec: &TermSpec, parts: Vec<(Symbol, Formula, Formula)>) -> TermSpec {
    TermSpec {
        density: Density::Energy {
            parts,
            potential: None,
        },
        ..spec.clone()
    }
}

/// Terms without their loads.
fn unloaded(graph: &mut Graph, mut specs: Vec<TermSpec>) -> Vec<TermSpec> {
    let zero = Formula::new("0", graph.number(0.0));
    for spec in &mut specs {
        if let Density::Energy { parts, .. } = &mut spec.density {
            parts.iter_mut().for_each(|(_, _, load)| *load = zero.clone());
        }
    }
    specs
}

/// Adds ½ mass u² inside.
fn with_mass(graph: &mut Graph, mut specs: Vec<TermSpec>, mass: f64) -> Vec<TermSpec> {
    let mass = graph.number(mass);
    for spec in specs.iter_mut().filter(|spec| spec.region == Region::Interior) {
        if let Density::Energy { parts, .. } = &mut spec.density {
            for (_, a, _) in parts.iter_mut().filter(|(symbol, ..)| symbol.order() == 0) {
                *a = Formula::new(a.name.clone(), graph.add(a.node, mass));
            }
        }
    }
    specs
}

/// Whether a term has neither curvature nor a potential.
fn is_flat(graph: &Graph, spec: &TermSpec) -> bool {
    match &spec.density {
        Density::Energy { parts, potential } => {
            let mut quadratic = parts.iter().map(|(_, a, _)| graph.as_number(a.node));
            potential.is_none() && quadratic.all(|a| a == Some(0.0))
        }
        Density::Residual { .. } => false,
    }
}

/// The name of the first load.
fn name_of(specs: &[TermSpec]) -> String {
    let loads = specs.iter().filter_map(|spec| match &spec.density {
        Density::Energy { parts, .. } => parts.first().map(|(_, _, load)| load.name.to_string()),
        Density::Residual { .. } => None,
    });
    loads
        .into_iter()
        .next()
        .unwrap_or_else(|| "what acts".to_string())
}

/// p(∂) f.
fn applied(graph: &mut Graph, symbol: &Symbol, f: NodeId) -> NodeId {
    let terms: Vec<NodeId> = symbol
        .terms()
        .iter()
        .map(|(c, alpha)| {
            let factor = graph.number(*c);
            let derivative = graph.differentiate_by(f, alpha);
            graph.multiply(factor, derivative)
        })
        .collect();
    graph.sum(&terms)
}

/// The loads of a term that are sums of products, each φ with a term of its own.
fn separated(graph: &mut Graph, spec: &TermSpec) -> Vec<(NodeId, TermSpec)> {
    let Density::Energy { parts, .. } = &spec.density else {
        return Vec::new();
    };
    let zero = Formula::new("0", graph.number(0.0));
    let mut found = Vec::new();
    for (symbol, _, load) in parts {
        for product in graph.separate_time(load.node).unwrap_or_default() {
            let load = Formula::new(load.name.clone(), product.in_space);
            let spec = loaded(spec, vec![(symbol.clone(), zero.clone(), load)]);
            found.push((product.in_time, spec));
        }
    }
    found
}
