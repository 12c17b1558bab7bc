//! From a problem to a report: points, backend, algorithm and errors put together.

mod flow;
mod losses;
mod memory;
mod resources;

pub(crate) use flow::{last_row, time_report};
pub use losses::table_axes;
pub use memory::{Memory, require_memory};
pub use resources::{candidates, estimated_seconds};

use crate::candidates::{self, DirectionKind};
use crate::cluster::Cluster;
use crate::domain::Domain;
use crate::error::SolveError;
use crate::estimate::{Measured, Snapshot, Verdict};
use crate::flow::FlowState;
use crate::greedy::{
    self, Losses, OrthogonalParams, Outcome, Polish, RelaxedParams, Selection, State, Step, Stopped,
};
use crate::network::Network;
use crate::norms::ErrorMeter;
use crate::problem::{Algorithm, Data, Problem, Purpose};
use crate::refine::Room;
use crate::report::{COEFFICIENTS, Report, Row, Seconds, TimeRow};
use crate::sums::{PrecisionChoice, SumsReport, TableStore};
use std::ops::ControlFlow;
#[cfg(feature = "gpu")]
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the sums over the points are done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// On a real GPU if there is one, else on the CPU.
    Auto,
    /// On the CPU.
    #[default]
    Cpu,
    /// On the best adapter, one that runs on the CPU included.
    Gpu,
}

/// How a run is made.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Where the sums are done.
    pub backend: BackendChoice,
    /// A part of the adapter's name.
    pub adapter: Option<String>,
    /// A device that is open already, which is then taken, whatever the backend.
    #[cfg(feature = "gpu")]
    pub device: Option<Arc<crate::gpu::Gpu>>,
    /// In which precision a GPU scores.
    pub precision: PrecisionChoice,
    /// Measure errors at these n besides 1, 2, 4, 8, … and the last.
    pub rows_at: Vec<usize>,
    /// Where the sums of a long pass over the points are kept on the way.
    pub tables: Option<TableStore>,
    /// State and rows of an interrupted run to go on from.
    pub resume: Option<(State, Vec<Row>)>,
    /// Networks on its way, for the estimate of the error.
    pub kept: Vec<Snapshot>,
    /// The processes that share the sums.
    pub cluster: Cluster,
    /// State and rows of an interrupted flow to go on from.
    pub flow: Option<(FlowState, Vec<TimeRow>)>,
}

/// What an observer of the run sees.
pub enum Event<'a> {
    /// A pass over the points is under way.
    Points {
        /// How many are done.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// A step was taken.
    Step(Progress<'a>),
    /// All neurons are being moved together.
    Moves {
        /// How many steps are done.
        done: usize,
        /// How many there will be at most.
        total: usize,
    },
    /// A neuron was found for the initial value of a flow.
    Initial {
        /// How many there are.
        done: usize,
        /// How many there will be at most.
        total: usize,
    },
    /// A step in time was taken.
    Time(TimeProgress<'a>),
}

/// A step in time as an observer of the run sees it.
pub struct TimeProgress<'a> {
    /// The figures; errors only where u is kept.
    pub row: &'a TimeRow,
    /// Whether u is kept.
    pub saved: bool,
    /// How many steps there are.
    pub steps: usize,
    /// u.
    pub network: &'a Network,
    /// From which the run can be resumed.
    pub state: &'a FlowState,
    /// Where the sums are done.
    pub place: &'a SumsReport,
}

/// A step as an observer of the run sees it.
pub struct Progress<'a> {
    /// The figures; errors only at the n where they are measured.
    pub row: &'a Row,
    /// Whether this n is one of the report's rows.
    pub reported: bool,
    /// The network so far.
    pub network: &'a Network,
    /// From which the run can be resumed.
    pub state: &'a State,
    /// Where the sums are done, as far as it was known at the start.
    pub place: &'a SumsReport,
    /// Whether all neurons asked for are there.
    pub last: bool,
}

/// Solves a problem. The observer sees every step as it is taken and may end the run.
pub fn run(
    problem: &Problem,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<(Report, Network), SolveError> {
    if let Some(evolution) = &problem.evolution {
        return flow::run(problem, evolution, options, observer);
    }
    let started = Instant::now();
    let neurons = problem.settings.neurons;
    let cluster = &options.cluster;
    // Whoever is asked to stop, all do, at the same place.
    let observer: &mut dyn FnMut(&Event) -> ControlFlow<()> =
        &mut |event| match cluster.any(observer(event).is_break()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
    cluster.agree(require_memory(problem, cluster.size()))?;
    let gpu = cluster.agree(losses::open_gpu(problem, options))?;
    // The validation points first: what they need in the making is given back before the training
    // points need theirs.
    let validation = match problem.settings.guard {
        true => Some(losses::sums(
            problem,
            Purpose::Validation,
            gpu.as_ref(),
            options,
            observer,
        )?),
        false => None,
    };
    let training = losses::sums(problem, Purpose::Training, gpu.as_ref(), options, observer)?;
    let scout = losses::scout(problem, gpu.as_ref(), options)?;
    let curvature = losses::curvature(problem, gpu.as_ref(), options)?;
    let norms = losses::norms(problem, gpu.as_ref(), options)?;
    let seen = losses::seen(problem)?;
    let points_time = started.elapsed();
    let place = training.report();
    let meter = ErrorMeter::shared(problem, neurons, cluster)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut errors_time = Duration::ZERO;
    let mut uncertainty = None;
    let mut start = None;
    let mut earlier = 0.0;
    if let Some((state, old_rows)) = &options.resume {
        start = Some(state);
        earlier = old_rows.last().map_or(0.0, |row| row.seconds);
        rows = old_rows.clone();
        rows.retain(|row| is_row(row.n, usize::MAX, &options.rows_at));
    }
    let mut last: Option<Row> = options.resume.as_ref().and_then(|(_, rows)| rows.last().cloned());
    let mut snapshots = options.kept.clone();
    let mut observe = |step: &Step| -> Result<ControlFlow<()>, SolveError> {
        if let Some((done, total)) = step.moves {
            return Ok(observer(&Event::Moves { done, total }));
        }
        let n = step.network.len();
        Snapshot::keep(&mut snapshots, step.network, problem.settings.polish.is_some());
        let reported = step.last || is_row(n, usize::MAX, &options.rows_at);
        let mut row = Row {
            n,
            loss: step.loss,
            validation_loss: step.validation_loss,
            score: step.score,
            coefficient_l1: step.network.coefficient_l1(),
            ..Row::default()
        };
        if reported {
            errors_time += measure(meter.as_ref(), step.network, &mut row, &mut uncertainty)?;
        }
        row.seconds = earlier + started.elapsed().as_secs_f64();
        // Neurons that were moved at the end are reported once more.
        rows.pop_if(|row| row.n == n);
        if reported {
            rows.push(row.clone());
        }
        let flow = observer(&Event::Step(Progress {
            row: &row,
            reported,
            network: step.network,
            state: step.state,
            place: &place,
            last: step.last,
        }));
        last = Some(row);
        Ok(flow)
    };
    let outcome = solve(
        problem,
        Losses {
            training: &*training,
            curvature: curvature.as_ref().map(|[few, others]| (&**few, &**others)),
            validation: validation.as_deref(),
            scout: scout.as_deref(),
            norms: norms.as_deref(),
            seen: seen.as_ref(),
        },
        (start, &options.rows_at),
        &mut observe,
    )?;
    // A run that ends early has a last row, too.
    if let Some(mut row) = last.filter(|row| rows.last().is_none_or(|reported| reported.n < row.n)) {
        errors_time += measure(meter.as_ref(), &outcome.network, &mut row, &mut uncertainty)?;
        rows.push(row);
    }
    let mut nothing_found = None;
    if outcome.network.is_empty() && outcome.stopped != Stopped::Interrupted {
        let mut row = Row {
            n: 0,
            loss: training.risk(&outcome.network)?,
            ..Row::default()
        };
        errors_time += measure(meter.as_ref(), &outcome.network, &mut row, &mut uncertainty)?;
        rows.push(row);
        nothing_found = Some(
            "no neuron was found that lowers the loss: the solution is u = 0. Look at the ranges of the dictionary"
                .to_string(),
        );
    }
    let estimate = crate::estimate::estimate(problem, &outcome.network, &snapshots, cluster)?;
    let ended = (outcome.network.len(), outcome.stopped);
    let losses = rows.last().and_then(|row| Some((row.loss, row.validation_loss?)));
    let measured = rows.last().and_then(|row| measured(problem, row));
    let verdict = estimate
        .as_ref()
        .map(|estimate| Verdict::of(problem, estimate, ended, losses, measured));
    let timings = outcome.timings;
    let mut warnings = problem.warnings.clone();
    warnings.extend(nothing_found);
    warnings.extend(verdict.iter().flat_map(|verdict| verdict.warnings.clone()));
    warnings.extend(outcome.warnings);
    let place = training.report();
    warnings.extend(place.notes);
    warnings.extend(not_finite_warning(&rows));
    let report = Report {
        problem: problem.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        algorithm: problem.settings.algorithm.name().to_string(),
        selection: problem.settings.selection.name().to_string(),
        backend: place.backend.to_string(),
        adapter: place.adapter,
        precision: place.precision.to_string(),
        device: gpu
            .as_ref()
            .and_then(|gpu| losses::device_report(gpu, place.precision)),
        coefficients: COEFFICIENTS.to_string(),
        seed: problem.settings.seed,
        dimension: problem.dimension(),
        points: training.points(),
        ranks: cluster.size(),
        error_points: meter.as_ref().map(ErrorMeter::points),
        error_uncertainty: uncertainty,
        neurons: outcome.network.len(),
        stopped: outcome.stopped,
        warnings,
        usable: verdict.as_ref().is_none_or(|verdict| verdict.usable),
        estimate,
        rows,
        time: None,
        seconds: Seconds {
            total: earlier + started.elapsed().as_secs_f64(),
            points: points_time.as_secs_f64(),
            argmax: timings.argmax.as_secs_f64(),
            refine: timings.refine.as_secs_f64(),
            gram: timings.gram.as_secs_f64(),
            projection: timings.projection.as_secs_f64(),
            validation: timings.validation.as_secs_f64(),
            errors: errors_time.as_secs_f64(),
        },
        settings: problem.settings_json(),
    };
    Ok((report, outcome.network))
}

/// Whether n is reported: powers of two, the last, and those asked for.
fn is_row(n: usize, last: usize, rows_at: &[usize]) -> bool {
    Row::is_always_reported(n) || n == last || rows_at.contains(&n)
}

fn measure(
    meter: Option<&ErrorMeter>,
    network: &Network,
    row: &mut Row,
    uncertainty: &mut Option<[f64; 2]>,
) -> Result<Duration, SolveError> {
    let started = Instant::now();
    if let Some(meter) = meter {
        let errors = meter.errors(network)?;
        *uncertainty = errors.uncertainty;
        row.set_errors(&errors);
    }
    Ok(started.elapsed())
}

/// The errors of a row in norms; an excess is none.
fn measured(problem: &Problem, row: &Row) -> Option<Measured> {
    Some(Measured {
        l2: row.l2?,
        h1: row.h1?,
        energy: row.energy.filter(|_| !problem.measures_excess()),
    })
}

fn not_finite_warning(rows: &[Row]) -> Option<String> {
    let bad = rows.iter().find(|row| {
        Row::COLUMNS
            .iter()
            .any(|(_, value)| value(row).is_some_and(|value| !value.is_finite()))
    })?;
    Some(format!(
        "at n = {} a figure is not finite; it is null in the report",
        bad.n
    ))
}

/// How far coordinates are from the centre of the domain's box, in the mean square.
fn spread(domain: &Domain) -> Vec<f64> {
    let width = |axis| domain.side(axis).1 - domain.side(axis).0;
    (0..domain.dimension())
        .map(|axis| width(axis) / 12f64.sqrt())
        .collect()
}

fn solve(
    problem: &Problem,
    losses: Losses,
    (start, rows_at): (Option<&State>, &[usize]),
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let dictionary = &problem.dictionary;
    let grid = |draw: u64| problem.grid(draw);
    let center = problem.domain.center();
    let fixed_grid = problem.has_fixed_grid();
    let reported = |n| is_row(n, usize::MAX, rows_at);
    if problem.settings.algorithm == Algorithm::Rga {
        let params = RelaxedParams {
            neurons: problem.settings.neurons,
            radius: problem.settings.radius.unwrap_or(1.0),
            tolerance: problem.settings.tolerance,
            step: problem.settings.step,
            center: &center,
            grid: &grid,
            fixed_grid,
            reported: &reported,
            start,
        };
        return greedy::relaxed(losses, &params, observer);
    }
    let refines = dictionary.refine
        && match dictionary.directions {
            DirectionKind::Sphere => true,
            DirectionKind::Pairs => problem.settings.selection == Selection::Decrease,
            DirectionKind::Axes | DirectionKind::Box => false,
        };
    let params = OrthogonalParams {
        neurons: problem.settings.neurons,
        tolerance: problem.settings.tolerance,
        selection: problem.settings.selection,
        projection: problem.settings.projection,
        quadratic: !problem.has_potential(),
        delicate: problem.is_delicate(),
        bias: dictionary.bias,
        center: &center,
        grid: &grid,
        fixed_grid,
        refine: refines.then(|| {
            let rule = problem.quadrature.telling_apart(&problem.domain);
            candidates::resolution(&problem.domain, &rule)
        }),
        bound: dictionary.directions == DirectionKind::Pairs,
        polish: problem.settings.polish.map(|steps| Polish {
            steps,
            room: Room {
                center: center.clone(),
                spread: spread(&problem.domain),
                bound: dictionary.directions == DirectionKind::Pairs,
            },
        }),
        measured: (!problem.data.is_empty()).then(|| problem.data.iter().map(Data::held_back).sum()),
        reported: &reported,
        start,
    };
    greedy::orthogonal(losses, &params, observer)
}
