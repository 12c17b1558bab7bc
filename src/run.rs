//! From a problem to a report: points, backend, algorithm and errors put together.

use crate::backend::{
    AnyBackend, AxisBins, CpuBackend, CpuOptions, GpuBackend, GpuOptions, MomentBackend, MomentTables,
    PassOptions, PrecisionChoice, TableStore,
};
use crate::domain::Domain;
use crate::error::SolveError;
use crate::gpu::{self, Gpu};
use crate::greedy::{self, OrthogonalParams, Outcome, RelaxedBackends, RelaxedParams, State, Step};
use crate::loss::Loss;
use crate::network::Network;
use crate::norms::ErrorMeter;
use crate::points::Rule;
use crate::problem::{Algorithm, DirectionKind, Problem, Purpose};
use crate::report::{Report, Row, Seconds};
use crate::search;
use std::ops::ControlFlow;
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
    /// In which precision a GPU scores.
    pub precision: PrecisionChoice,
    /// Measure errors at these n besides 1, 2, 4, 8, … and the last.
    pub rows_at: Vec<usize>,
    /// Where the sums of a long pass over the points are kept on the way.
    pub tables: Option<TableStore>,
    /// State and rows of an interrupted run to go on from.
    pub resume: Option<(State, Vec<Row>)>,
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
    /// Whether all neurons asked for are there.
    pub last: bool,
}

/// Solves a problem. The observer sees every step as it is taken and may end the run.
pub fn run(
    problem: &Problem,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<(Report, Network), SolveError> {
    let started = Instant::now();
    let neurons = problem.settings.neurons;
    let gpu = open_gpu(options)?;
    // The validation points first: what they need in the making is given back before the training
    // points need theirs.
    let mut validation = match problem.settings.guard {
        true => Some(backend(
            problem,
            Purpose::Validation,
            gpu.as_ref(),
            options,
            observer,
        )?),
        false => None,
    };
    let mut training = backend(problem, Purpose::Training, gpu.as_ref(), options, observer)?;
    let points_time = started.elapsed();
    let meter = ErrorMeter::new(problem, neurons)?;
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
    let mut observe = |step: &Step| -> Result<ControlFlow<()>, SolveError> {
        let n = step.network.len();
        let reported = step.last || is_row(n, usize::MAX, &options.rows_at);
        let mut row = Row {
            n,
            l2: None,
            h1: None,
            energy: None,
            loss: step.loss,
            validation_loss: step.validation_loss,
            score: step.score,
            coefficient_l1: step.network.coefficient_l1(),
            seconds: 0.0,
        };
        if reported {
            errors_time += measure(meter.as_ref(), step.network, &mut row, &mut uncertainty)?;
        }
        row.seconds = earlier + started.elapsed().as_secs_f64();
        if reported {
            rows.push(row.clone());
        }
        let flow = observer(&Event::Step(Progress {
            row: &row,
            reported,
            network: step.network,
            state: step.state,
            last: step.last,
        }));
        last = Some(row);
        Ok(flow)
    };
    let outcome = solve(
        problem,
        &mut *training,
        validation.as_deref_mut(),
        (start, &options.rows_at),
        &mut observe,
    )?;
    // A run that ends early has a last row, too.
    if let Some(mut row) = last.filter(|row| rows.last().is_none_or(|reported| reported.n < row.n)) {
        errors_time += measure(meter.as_ref(), &outcome.network, &mut row, &mut uncertainty)?;
        rows.push(row);
    }
    let timings = outcome.timings;
    let mut warnings = problem.warnings.clone();
    warnings.extend(outcome.warnings);
    let place = training.report();
    warnings.extend(place.notes);
    warnings.extend(not_finite_warning(&rows));
    let report = Report {
        problem: problem.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        algorithm: match problem.settings.algorithm {
            Algorithm::Oga => "oga",
            Algorithm::Rga => "rga",
        }
        .to_string(),
        backend: place.backend.to_string(),
        adapter: place.adapter,
        precision: place.precision.to_string(),
        coefficients: "host f64",
        seed: problem.settings.seed,
        dimension: problem.dimension(),
        points: training.points(),
        error_points: meter.as_ref().map(ErrorMeter::points),
        error_uncertainty: uncertainty,
        neurons: outcome.network.len(),
        stopped: outcome.stopped,
        warnings,
        rows,
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
    n.is_power_of_two() || n == last || rows_at.contains(&n)
}

/// The GPU of the run, if it has one. CPU or GPU is decided here and nowhere else.
fn open_gpu(options: &RunOptions) -> Result<Option<Arc<Gpu>>, SolveError> {
    let choice = gpu::AdapterChoice {
        name: options.adapter.clone(),
        software: options.backend == BackendChoice::Gpu || options.adapter.is_some(),
    };
    let opened = match options.backend {
        BackendChoice::Cpu => return Ok(None),
        BackendChoice::Auto | BackendChoice::Gpu => {
            gpu::choose(&choice).and_then(|adapter| Gpu::open(&adapter))
        }
    };
    match opened {
        Ok(gpu) => Ok(Some(Arc::new(gpu))),
        // Without a GPU the CPU serves, unless a GPU was asked for.
        Err(_) if options.backend == BackendChoice::Auto && options.adapter.is_none() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn backend(
    problem: &Problem,
    purpose: Purpose,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<Box<AnyBackend>, SolveError> {
    let loss = problem.loss(problem.settings.neurons, purpose)?;
    let activation = problem.dictionary.activation;
    let cpu = CpuOptions {
        cache_bytes: problem.quadrature.cache_bytes,
    };
    if let Some((power, axes)) = table_axes(problem, &loss) {
        let spec = TableSpec { purpose, power, axes };
        let passes = PassOptions {
            gpu,
            store: options.tables.as_ref().filter(|_| purpose == Purpose::Training),
        };
        return Ok(Box::new(moment_backend(problem, loss, spec, passes, observer)?));
    }
    Ok(match gpu {
        None => Box::new(CpuBackend::new(loss, activation, cpu)?),
        Some(gpu) => {
            let options = GpuOptions {
                precision: options.precision,
                resident_bytes: problem.quadrature.cache_bytes / 2,
                cpu,
            };
            Box::new(GpuBackend::new(
                Arc::clone(gpu),
                loss,
                &problem.domain,
                activation,
                options,
            )?)
        }
    })
}

/// Below this many points a table has more cells than it saves.
const TABLES_FROM: usize = 20_000;
/// Tables larger than this are not made.
const TABLE_BYTES: usize = 4 << 30;

/// The power and bins of moment tables, where these are the better way: neurons along several axes.
pub fn table_axes(problem: &Problem, loss: &Loss) -> Option<(usize, Vec<AxisBins>)> {
    let power = problem.dictionary.activation.relu_power()?;
    let term = loss.terms.first()?;
    let axes = search::axis_bins(&problem.dictionary, &problem.domain, &problem.quadrature.rule);
    let fits = problem.dictionary.directions == DirectionKind::Axes
        && problem.dimension() > 1
        && matches!(problem.domain, Domain::Box { .. })
        && term.points.len() >= TABLES_FROM
        && loss.is_quadratic()
        && MomentTables::fits(term)
        && axes.iter().all(|axis| axis.count <= usize::from(u16::MAX))
        && MomentTables::bytes(power, &axes) <= TABLE_BYTES;
    fits.then_some((power, axes))
}

struct TableSpec {
    purpose: Purpose,
    power: usize,
    axes: Vec<AxisBins>,
}

fn moment_backend(
    problem: &Problem,
    mut loss: Loss,
    spec: TableSpec,
    options: PassOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<MomentBackend, SolveError> {
    let inside = loss.terms.remove(0);
    let mut pass = |options| {
        let mut on_points = |done, total| observer(&Event::Points { done, total });
        MomentTables::new(&inside, spec.power, spec.axes.clone(), options, &mut on_points)
    };
    let (tables, note) = match pass(options) {
        Err(SolveError::Device(error)) => {
            let note = format!("the pass over the points was done by the CPU, as the device failed: {error}");
            (pass(PassOptions { gpu: None, ..options })?, Some(note))
        }
        made => (made?, None),
    };
    let tables = match spec.purpose {
        Purpose::Training => tables,
        _ => tables.to_single_precision(),
    };
    let rest = match loss.terms.is_empty() {
        true => None,
        false => {
            let cpu = CpuOptions {
                cache_bytes: problem.quadrature.cache_bytes,
            };
            Some(CpuBackend::new(loss, problem.dictionary.activation, cpu)?)
        }
    };
    Ok(MomentBackend::new(tables, inside.points.len(), rest).with_notes(note))
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
        row.l2 = Some(errors.l2);
        row.h1 = Some(errors.h1);
        row.energy = errors.energy;
    }
    Ok(started.elapsed())
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

fn solve(
    problem: &Problem,
    training: &mut AnyBackend,
    validation: Option<&mut AnyBackend>,
    (start, rows_at): (Option<&State>, &[usize]),
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let dictionary = &problem.dictionary;
    let grid = |draw: u64| {
        search::grid(
            dictionary,
            &problem.domain,
            &problem.quadrature.rule,
            problem.settings.seed,
            draw,
        )
    };
    let center = problem.domain.center();
    let fixed_grid = search::is_fixed(dictionary, problem.dimension());
    let reported = |n| is_row(n, usize::MAX, rows_at);
    if problem.settings.algorithm == Algorithm::Rga {
        let mut scout = scout(problem)?;
        let backends = RelaxedBackends {
            training,
            scout: scout.as_mut().map(|scout| scout as &mut AnyBackend),
            validation,
        };
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
        return greedy::relaxed(backends, &params, observer);
    }
    let params = OrthogonalParams {
        neurons: problem.settings.neurons,
        tolerance: problem.settings.tolerance,
        projection: problem.settings.projection,
        quadratic: !problem.has_potential(),
        stiff: problem.has_penalty(),
        bias: dictionary.bias,
        center: &center,
        grid: &grid,
        fixed_grid,
        refine: (dictionary.refine && dictionary.directions == DirectionKind::Sphere)
            .then(|| search::resolution(&problem.domain, &problem.quadrature.rule)),
        reported: &reported,
        start,
    };
    greedy::orthogonal(training, validation, &params, observer)
}

/// With more points than this, candidates without a sweep are first looked at on a part of them: so many …
const SCOUT_POINTS: usize = 8192;
/// … or this part, if it is more.
const SCOUT_PART: usize = 24;

/// The loss on the first of the random points: good enough to tell which candidates deserve a closer look.
fn scout(problem: &Problem) -> Result<Option<CpuBackend>, SolveError> {
    let Rule::MonteCarlo { points, seed } = problem.quadrature.rule else {
        return Ok(None);
    };
    if points <= SCOUT_POINTS || problem.dictionary.activation.relu_power().is_some() {
        return Ok(None);
    }
    let mut fewer = problem.clone();
    fewer.quadrature.rule = Rule::MonteCarlo {
        points: SCOUT_POINTS.max(points / SCOUT_PART),
        seed,
    };
    let loss = fewer.loss(problem.settings.neurons, Purpose::Training)?;
    let activation = problem.dictionary.activation;
    Ok(Some(CpuBackend::new(loss, activation, CpuOptions::default())?))
}
