//! How much memory and time a run will take.

use super::{BackendChoice, Event, RunOptions, run, table_axes};
use crate::candidates::DirectionKind;
use crate::error::SolveError;
use crate::points::Rule;
use crate::problem::{Problem, Purpose};
use crate::search;
use crate::sums::MomentTables;
use std::ops::ControlFlow;

/// The memory of a run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Points, coefficients and channels, or moment tables.
    pub points: usize,
    /// Whether tables of moments stand for the points.
    pub tables: bool,
    /// Whether the points are generated anew in every pass, not kept.
    pub streamed: bool,
    /// Scores of all candidates.
    pub candidates: usize,
    /// Gram matrix and its factor.
    pub projection: usize,
}

impl Memory {
    /// What a run of the problem will take, about.
    pub fn of(problem: &Problem) -> Result<Self, SolveError> {
        let neurons = problem.settings.neurons;
        let loss = problem.loss(neurons, Purpose::Training)?;
        // The independent points of the guard take as much again.
        let sets = if problem.settings.guard { 2 } else { 1 };
        let tables = table_axes(problem, &loss);
        let streamed = loss.bytes() > problem.quadrature.cache_bytes;
        let points = match &tables {
            Some((power, axes)) => MomentTables::bytes(*power, axes).saturating_mul(3) / 2,
            // Channels take about as much as the points.
            None if !streamed => loss.bytes().saturating_mul(2 * sets),
            None => 0,
        };
        Ok(Self {
            points,
            tables: tables.is_some(),
            streamed: streamed && tables.is_none(),
            candidates: candidates(problem).saturating_mul(16),
            projection: neurons.saturating_mul(neurons).saturating_mul(8),
        })
    }

    /// All of it.
    pub fn total(&self) -> usize {
        self.points
            .saturating_add(self.candidates)
            .saturating_add(self.projection)
    }
}

/// Candidates per step.
pub fn candidates(problem: &Problem) -> usize {
    let mut one = problem.dictionary.clone();
    one.candidates = 1;
    let rule = &problem.quadrature.rule;
    let grid = search::grid(&one, &problem.domain, rule, (problem.settings.seed, 0, false));
    match problem.dictionary.directions {
        DirectionKind::Axes => grid.len(),
        DirectionKind::Sphere if problem.dimension() == 1 => grid.len(),
        _ => grid.len().saturating_mul(problem.dictionary.candidates),
    }
}

/// Refuses a run that this machine has not the memory for, if it says how much it has.
pub fn require_memory(problem: &Problem) -> Result<(), SolveError> {
    let needed = Memory::of(problem)?.total();
    match available_memory() {
        Some(available) if needed > available => Err(SolveError::TooLarge { needed, available }),
        _ => Ok(()),
    }
}

/// What the operating system could give, to this container if it is one; some do not tell.
fn available_memory() -> Option<usize> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    if system.available_memory() == 0 {
        return None;
    }
    // What a container has read from disk counts against its limit but is given back when needed.
    let container = system.cgroup_limits();
    let container = container.map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    Some(system.available_memory().min(container) as usize)
}

/// Neurons and points of a trial run.
const TRIAL_NEURONS: usize = 8;
const TRIAL_POINTS: usize = 25_000;
/// Points of the trials of a pass for tables, whose making takes a while whatever the number of points.
const PASS_POINTS: [usize; 2] = [1 << 18, 1 << 19];

/// About how long a run takes on this machine's CPU, in seconds, from a trial with few neurons on few points.
pub fn estimated_seconds(problem: &Problem) -> Result<f64, SolveError> {
    let neurons = problem.settings.neurons as f64;
    let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
    let points = loss.points() as f64;
    // Gram columns grow with n.
    let growth = 1.0 + neurons / 1000.0;
    if table_axes(problem, &loss).is_some() && loss.points() > PASS_POINTS[1] {
        // With tables the points are met once.
        let [few, more] = PASS_POINTS.map(|count| timed_trial(problem, count, false));
        let (few, more) = (few?, more?);
        let per_point = (more.points - few.points).max(0.0) / (PASS_POINTS[1] - PASS_POINTS[0]) as f64;
        let validation = if problem.settings.guard { 1.125 } else { 1.0 };
        return Ok(more.points
            + per_point * points * validation
            + more.steps * neurons * growth
            + more.errors);
    }
    let trial = timed_trial(problem, TRIAL_POINTS, problem.settings.guard)?;
    let times = points / trial.count;
    Ok(times * (trial.points + trial.errors + trial.steps * neurons * growth))
}

/// Where the time of a trial went, in seconds.
struct Trial {
    /// How many points it had.
    count: f64,
    points: f64,
    /// Per neuron.
    steps: f64,
    errors: f64,
}

fn timed_trial(problem: &Problem, points: usize, guard: bool) -> Result<Trial, SolveError> {
    let mut trial = trial(problem, points);
    trial.settings.guard = guard;
    let options = RunOptions {
        backend: BackendChoice::Cpu,
        ..RunOptions::default()
    };
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    let (report, _) = run(&trial, &options, &mut unobserved)?;
    let seconds = report.seconds;
    let steps = seconds.argmax + seconds.refine + seconds.gram + seconds.projection + seconds.validation;
    Ok(Trial {
        count: report.points.max(1) as f64,
        points: seconds.points,
        steps: steps / report.neurons.max(1) as f64,
        errors: seconds.errors,
    })
}

/// The same problem, small.
fn trial(problem: &Problem, points: usize) -> Problem {
    let mut trial = problem.clone();
    trial.settings.neurons = problem.settings.neurons.min(TRIAL_NEURONS);
    let d = problem.dimension() as f64;
    let most = points;
    let fewer = |points: usize| points.min(most);
    trial.quadrature.boundary_points = fewer(problem.quadrature.boundary_points);
    trial.quadrature.rule = match problem.quadrature.rule {
        Rule::Gauss { cells, order } => {
            let side = (most as f64).powf(1.0 / d) / order as f64;
            Rule::Gauss {
                cells: cells.min(side.max(1.0) as usize),
                order,
            }
        }
        Rule::Halton { points, shift } => Rule::Halton {
            points: fewer(points),
            shift,
        },
        Rule::Lattice { points, shift } => Rule::Lattice {
            points: points.min(most.next_power_of_two()),
            shift,
        },
        Rule::MonteCarlo { points, seed } => Rule::MonteCarlo {
            points: fewer(points),
            seed,
        },
    };
    trial
}
