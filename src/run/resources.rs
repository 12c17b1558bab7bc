//! How much memory and time a run will take.

use super::{BackendChoice, Event, RunOptions, run, table_axes};
use crate::backend::MomentTables;
use crate::error::SolveError;
use crate::points::Rule;
use crate::problem::{DirectionKind, Problem, Purpose};
use crate::search;
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
    let grid = search::grid(&one, &problem.domain, rule, problem.settings.seed, 0);
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

/// What the operating system could give, where it tells (Linux).
fn available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Neurons and points of a trial run.
const TRIAL_NEURONS: usize = 8;
const TRIAL_POINTS: usize = 25_000;

/// About how long a run takes on this machine's CPU, in seconds, from a trial with few neurons on few points.
pub fn estimated_seconds(problem: &Problem) -> Result<f64, SolveError> {
    let trial = trial(problem);
    let options = RunOptions {
        backend: BackendChoice::Cpu,
        ..RunOptions::default()
    };
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    let (report, _) = run(&trial, &options, &mut unobserved)?;
    let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
    let neurons = problem.settings.neurons as f64;
    let more_points = loss.points() as f64 / report.points.max(1) as f64;
    let more_steps = neurons / report.neurons.max(1) as f64;
    let seconds = report.seconds;
    let steps = seconds.argmax + seconds.refine + seconds.gram + seconds.validation;
    // With tables the points are met once; without, in every step. Gram columns grow with n.
    let per_step = match table_axes(problem, &loss) {
        Some(_) => steps,
        None => steps * more_points,
    };
    Ok(seconds.points * more_points
        + per_step * more_steps * (1.0 + neurons / 1000.0)
        + seconds.errors * more_points)
}

/// The same problem, small.
fn trial(problem: &Problem) -> Problem {
    let mut trial = problem.clone();
    trial.settings.neurons = problem.settings.neurons.min(TRIAL_NEURONS);
    let d = problem.dimension() as f64;
    let fewer = |points: usize| points.min(TRIAL_POINTS);
    trial.quadrature.boundary_points = fewer(problem.quadrature.boundary_points);
    trial.quadrature.rule = match problem.quadrature.rule {
        Rule::Gauss { cells, order } => {
            let most = (TRIAL_POINTS as f64).powf(1.0 / d) / order as f64;
            Rule::Gauss {
                cells: cells.min(most.max(1.0) as usize),
                order,
            }
        }
        Rule::Halton { points, shift } => Rule::Halton {
            points: fewer(points),
            shift,
        },
        Rule::Lattice { points, shift } => Rule::Lattice {
            points: points.min(TRIAL_POINTS.next_power_of_two()),
            shift,
        },
        Rule::MonteCarlo { points, seed } => Rule::MonteCarlo {
            points: fewer(points),
            seed,
        },
    };
    trial
}
