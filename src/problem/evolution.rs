//! The `[time]` table: how a problem moves in time.

use super::build::{Builder, Built, MAX_COUNT, Names};
use super::file::{Algorithm, File, FileEquation, FileTime, Formulation};
use super::settings::Settings;
use super::source::{count, optional_count, positive};
use super::{PenaltySpec, ProblemError};
use crate::domain::Region;
use crate::expression::{MultiIndex, NodeId, Program};
use crate::flow::Scheme;
use crate::loss::{Density, TermSpec};
use crate::points::{PointSet, Rule, Tile};
use toml::Spanned;

/// More steps than anyone waits for.
const MAX_STEPS: i64 = 10_000_000;
/// New neurons in a step, at most, unless the file says otherwise.
const NEURONS_PER_STEP: usize = 4;
/// Frames that are kept unless the file says otherwise, about.
const FRAMES: usize = 50;
/// Where concavity is looked at: so many values between the smallest and the largest.
const VALUES: usize = 17;

const VARYING: &str = "a coefficient depends on t: every step makes its inner products and their factor anew, with a pass over \
                       the points for each neuron, and new neurons are chosen by slope";

/// How a problem moves in time: u_t = −∇E(u).
#[derive(Debug, Clone, PartialEq)]
pub struct Evolution {
    /// The last time.
    pub end: f64,
    /// How many steps lead there.
    pub steps: usize,
    /// By which formula.
    pub scheme: Scheme,
    /// Neurons for u at t = 0, at most.
    pub initial_neurons: usize,
    /// New neurons in a step, at most.
    pub neurons_per_step: usize,
    /// A frame is kept after so many steps.
    pub save_every: usize,
    /// How much a neuron must take off a step's functional, as a part of it; without it the error of time decides.
    pub tolerance: Option<f64>,
    /// u at t = 0.
    pub initial: NodeId,
    /// Whether that jumps somewhere: then it is fitted in the mean square, without its slopes.
    pub rough: bool,
    /// Whether a coefficient depends on t: then every step has a factor of its own.
    pub varying: bool,
    /// The part of the energy that is taken explicitly, G(x, u).
    pub explicit: Option<NodeId>,
}

impl Evolution {
    /// τ.
    pub fn step(&self) -> f64 {
        self.end / self.steps as f64
    }

    /// c/τ: the weight of the mass in a step.
    pub fn mass(&self) -> f64 {
        self.scheme.leading() / self.step()
    }

    /// For people.
    pub fn in_words(&self) -> String {
        format!(
            "u_t = −∇E(u) to t = {} in {} steps by {}, at most {} neurons for u at t = 0 and {} new ones a step",
            self.end,
            self.steps,
            self.scheme.name(),
            self.initial_neurons,
            self.neurons_per_step
        )
    }

    /// t after so many steps.
    pub fn time(&self, step: usize) -> f64 {
        self.end * step as f64 / self.steps as f64
    }

    /// Whether u is kept after so many steps.
    pub fn is_saved(&self, step: usize) -> bool {
        step.is_multiple_of(self.save_every) || step == self.steps
    }

    pub(super) fn settings_json(&self) -> serde_json::Value {
        serde_json::json!({
            "end": self.end,
            "steps": self.steps,
            "scheme": self.scheme,
            "initial_neurons": self.initial_neurons,
            "neurons_per_step": self.neurons_per_step,
            "save_every": self.save_every,
            "tolerance": self.tolerance,
            "initial_norm": if self.rough { "l2" } else { "step" },
        })
    }
}

impl Builder<'_> {
    /// The `[time]` table, if there is one, with what it needs of the rest of the file.
    pub(super) fn evolution(
        &mut self,
        file: &File,
        exact: Option<NodeId>,
        settings: &mut Settings,
    ) -> Built<Option<Evolution>> {
        let equation = &file.equation;
        let Some(table) = &file.time else {
            if let Some(explicit) = &equation.potential_explicit {
                return Err(self.source.error(
                    "equation.potential_explicit",
                    explicit.span(),
                    "`potential_explicit` belongs to a problem in time: it needs a [time] table",
                ));
            }
            return Ok(None);
        };
        self.require_energy(file, table.span())?;
        let time = table.get_ref();
        let end = positive(&self.source, "time.end", &time.end, &self.constants)?;
        let steps = self.steps(time, end, table.span())?;
        let initial = self.initial(time, exact, table.span())?;
        let explicit = self.optional(
            "equation.potential_explicit",
            equation.potential_explicit.as_ref(),
            Names::Unknown,
        )?;
        let neurons = settings.neurons;
        let of = |key: &str, given: &Option<Spanned<i64>>, least: i64, most: i64| {
            optional_count(&self.source, key, given, least, most)
        };
        // A flag may ask for fewer neurons than the file.
        let initial_neurons = of("time.initial_neurons", &time.initial_neurons, 1, MAX_COUNT)?
            .unwrap_or(neurons.div_ceil(2))
            .min(neurons);
        let neurons_per_step =
            of("time.neurons_per_step", &time.neurons_per_step, 0, MAX_COUNT)?.unwrap_or(NEURONS_PER_STEP);
        let save_every =
            of("time.save_every", &time.save_every, 1, MAX_COUNT)?.unwrap_or(steps.div_ceil(FRAMES));
        let tolerance = match &time.tolerance {
            Some(given) => Some(positive(&self.source, "time.tolerance", given, &self.constants)?),
            None => None,
        };
        Ok(Some(Evolution {
            end,
            steps,
            scheme: time.scheme,
            initial_neurons,
            neurons_per_step,
            save_every,
            tolerance,
            rough: self.jumps(initial),
            initial,
            varying: false,
            explicit,
        }))
    }

    fn require_energy(&self, file: &File, span: std::ops::Range<usize>) -> Built<()> {
        let relaxed = file
            .solver
            .algorithm
            .as_ref()
            .is_some_and(|a| *a.get_ref() == Algorithm::Rga);
        let message = if file.equation.formulation != Formulation::Energy {
            "a problem in time is the flow of an energy: formulation = \"energy\""
        } else if relaxed {
            "a problem in time needs the projection of the orthogonal algorithm: algorithm = \"oga\""
        } else if !file.data.is_empty() {
            "measurements have no time: [[data]] and [time] do not go together"
        } else {
            return Ok(());
        };
        Err(self.source.error("time", span, message))
    }

    fn steps(&self, time: &FileTime, end: f64, span: std::ops::Range<usize>) -> Built<usize> {
        match (&time.steps, &time.step) {
            (Some(steps), None) => count(&self.source, "time.steps", steps, 1, MAX_STEPS),
            (None, Some(step)) => {
                let length = positive(&self.source, "time.step", step, &self.constants)?;
                let steps = (end / length).round();
                if steps > MAX_STEPS as f64 {
                    let message = format!("{steps:e} steps to `end`: at most {MAX_STEPS} are accepted");
                    return Err(self.source.error("time.step", step.span(), message));
                }
                if steps < 1.0 || (steps * length / end - 1.0).abs() > 1e-9 {
                    let message = format!("`end` = {end} is not a whole number of steps of {length}");
                    return Err(self.source.error("time.step", step.span(), message));
                }
                Ok(steps as usize)
            }
            (Some(_), Some(step)) => {
                Err(self
                    .source
                    .error("time.step", step.span(), "give `steps` or `step`, not both"))
            }
            (None, None) => Err(self
                .source
                .error(
                    "time",
                    span,
                    "needs `steps`, their number, or `step`, their length",
                )
                .help("steps = 100")),
        }
    }

    /// u at t = 0: given, or that of the exact solution.
    fn initial(
        &mut self,
        time: &FileTime,
        exact: Option<NodeId>,
        span: std::ops::Range<usize>,
    ) -> Built<NodeId> {
        match (&time.initial, exact) {
            (Some(text), _) => {
                let initial = self.expression("time.initial", text, Names::Coordinates)?;
                match self.graph.depends_on_time(&[initial]) {
                    false => Ok(initial),
                    true => {
                        Err(self
                            .source
                            .error("time.initial", text.span(), "u at t = 0 does not depend on t"))
                    }
                }
            }
            (None, Some(exact)) => Ok(exact),
            (None, None) => Err(self
                .source
                .error("time", span, "needs `initial`, u at t = 0")
                .help("initial = \"sin(pi*x)\"")),
        }
    }

    /// f: given, or u_t + L u of the exact solution; without either, nothing acts.
    pub(super) fn source_in_time(
        &mut self,
        equation: &FileEquation,
        exact: Option<NodeId>,
        strong: NodeId,
        evolution: &Evolution,
    ) -> Built<NodeId> {
        let (None, Some(exact)) = (&equation.source, exact) else {
            return match &equation.source {
                Some(_) => self.source_term(equation, exact, strong),
                None => Ok(self.graph.number(0.0)),
            };
        };
        let mut whole = strong;
        if let Some(explicit) = evolution.explicit {
            let slope = self
                .graph
                .differentiate_by_unknown(explicit, &MultiIndex::default());
            whole = self.graph.add(whole, slope);
        }
        let at_rest = self.source_term(equation, Some(exact), whole)?;
        let change = self.graph.differentiate_by_time(exact);
        Ok(self.graph.add(change, at_rest))
    }

    /// What the steps of a flow ask of the terms of its energy.
    pub(super) fn require_flow(
        &mut self,
        file: &File,
        evolution: &mut Evolution,
        (terms, penalties): (&[TermSpec], &[PenaltySpec]),
    ) -> Built<()> {
        let curved = |spec: &TermSpec| matches!(spec.density, Density::Residual { .. });
        let oblique = penalties.iter().any(|penalty| penalty.oblique.is_some());
        if oblique || terms.iter().chain(&self.held).any(curved) {
            let message = "a normal derivative that is held on a curved face is not provided in time";
            return Err(ProblemError::new(self.source.name, message).key("boundary.condition"));
        }
        let potential = super::build::potential_of(terms);
        evolution.varying = terms.iter().any(|term| self.varies(term))
            || potential.is_some_and(|node| self.graph.depends_on_time(&[node]));
        if evolution.varying {
            self.warnings.push(VARYING.to_string());
        }
        if let (Some(node), Some(given)) = (evolution.explicit, &file.equation.potential_explicit)
            && self.graph.depends_on_time(&[node])
        {
            let message = "what is taken explicitly may not depend on t: `potential` and `source` may";
            return Err(self
                .source
                .error("equation.potential_explicit", given.span(), message));
        }
        self.require_concave(file, evolution)
    }

    /// Whether a coefficient of a term depends on t.
    fn varies(&self, term: &TermSpec) -> bool {
        let Density::Energy { parts, .. } = &term.density else {
            return false;
        };
        let nodes: Vec<NodeId> = parts.iter().map(|(_, a, _)| a.node).collect();
        self.graph.depends_on_time(&nodes)
    }

    /// The explicit part of a convex splitting is concave, at least between the values that u has at first and a little
    /// beyond: else the energy may rise, however short the steps.
    fn require_concave(&mut self, file: &File, evolution: &Evolution) -> Built<()> {
        let (Some(explicit), Some(given)) = (evolution.explicit, &file.equation.potential_explicit) else {
            return Ok(());
        };
        let u = MultiIndex::default();
        let slope = self.graph.differentiate_by_unknown(explicit, &u);
        let bend = self.graph.differentiate_by_unknown(slope, &u);
        let rule = Rule::MonteCarlo { points: 256, seed: 7 };
        let Ok(points) = PointSet::new(&self.domain, Region::Interior, rule, 0) else {
            return Ok(());
        };
        let mut tile = Tile::default();
        points.fill(0..points.len(), &mut tile);
        let start = Program::new(&self.graph, &[evolution.initial], self.dimension, &[]);
        let values = (0..tile.len()).map(|index| start.evaluate_at(&tile.point(index))[0]);
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let program = Program::new(&self.graph, &[bend], self.dimension, &[u]);
        for index in 0..tile.len().min(64) {
            let point = tile.point(index);
            let bends: Vec<(f64, f64)> = (0..VALUES)
                .map(|k| {
                    let value = low + (high - low) * k as f64 / (VALUES - 1) as f64;
                    let inputs = [point.clone(), vec![value]].concat();
                    (value, program.evaluate_at(&inputs)[0])
                })
                .collect();
            let largest = bends
                .iter()
                .fold(0.0_f64, |largest, (_, bend)| largest.max(bend.abs()));
            if let Some((value, bend)) = bends.iter().find(|(_, bend)| *bend > 1e-9 * largest) {
                let message = format!(
                    "must be concave in u, but its second derivative is {bend:.3e} at u = {value:.3}, x = {point:?}"
                );
                return Err(self
                    .source
                    .error("equation.potential_explicit", given.span(), message)
                    .help("what is convex belongs into `potential`, or as a square into `reaction`"));
            }
        }
        Ok(())
    }

    /// Whether a function jumps somewhere in the domain.
    fn jumps(&self, f: NodeId) -> bool {
        let functions = (0..self.dimension).map(|axis| (f, axis, "u"));
        self.find_jump(functions.collect()).is_some()
    }
}
