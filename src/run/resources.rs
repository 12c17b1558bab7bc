//! How much a run has to do, and how long it will take.

use super::{BackendChoice, Event, RunOptions, run, table_axes};
use crate::candidates::{DirectionKind, Grid};
use crate::error::SolveError;
use crate::points::Rule;
use crate::problem::{Problem, Purpose};
use std::ops::ControlFlow;

/// Candidates per step.
pub fn candidates(problem: &Problem) -> usize {
    let (grid, times) = sample_of_grid(problem);
    (grid.len() as f64 * times).min(usize::MAX as f64).round() as usize
}

/// So many directions of a grid are looked at to know what all take: lines differ in length …
const SAMPLED_DIRECTIONS: usize = 256;
/// … and so many where there are some in every plane of two coordinates.
const SAMPLED_IN_PLANES: usize = 1 << 16;

/// A grid of a problem's dictionary with some of its directions, and how many times more a step has.
pub(super) fn sample_of_grid(problem: &Problem) -> (Grid, f64) {
    let most = match problem.dictionary.directions {
        DirectionKind::Pairs => SAMPLED_IN_PLANES,
        _ => SAMPLED_DIRECTIONS,
    };
    let directions = problem.dictionary.candidates.min(most);
    let mut some = problem.clone();
    some.dictionary.candidates = directions;
    let times = match problem.dictionary.directions {
        DirectionKind::Axes => 1.0,
        DirectionKind::Sphere if problem.dimension() == 1 => 1.0,
        _ => problem.dictionary.candidates as f64 / directions.max(1) as f64,
    };
    (some.grid(0), times)
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
    trial.settings.polish = None;
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
