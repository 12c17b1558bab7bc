//! Which backend does the sums of a run.

use super::{BackendChoice, Event, RunOptions};
use crate::backend::{
    AnyBackend, AxisBins, CpuBackend, CpuOptions, GpuBackend, GpuOptions, MomentBackend, MomentTables,
    PassOptions,
};
use crate::domain::Domain;
use crate::error::SolveError;
use crate::gpu::{self, Gpu};
use crate::loss::Loss;
use crate::points::Rule;
use crate::problem::{DirectionKind, Problem, Purpose};
use crate::search;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The GPU of the run, if it has one. CPU or GPU is decided here and nowhere else.
pub(super) fn open_gpu(problem: &Problem, options: &RunOptions) -> Result<Option<Arc<Gpu>>, SolveError> {
    // Finding a GPU takes longer than a small run.
    if options.backend == BackendChoice::Auto && options.adapter.is_none() && is_small(problem)? {
        return Ok(None);
    }
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

pub(super) fn backend(
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

/// Evaluations of a candidate at a point, below which a run is small.
const SMALL_RUN: f64 = 1e10;

/// Whether the CPU is done with a run before a GPU has been found.
fn is_small(problem: &Problem) -> Result<bool, SolveError> {
    let settings = &problem.settings;
    let points = problem.loss(settings.neurons, Purpose::Training)?.points();
    // A sweep takes all candidates of a direction at once.
    let per_point = match problem.dictionary.activation.relu_power() {
        Some(_) => problem.dictionary.candidates.min(problem.dimension() * 100),
        None => super::candidates(problem),
    };
    Ok(points as f64 * per_point as f64 * (settings.neurons as f64) < SMALL_RUN)
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

/// With more points than this, candidates without a sweep are first looked at on a part of them: so many …
const SCOUT_POINTS: usize = 8192;
/// … or this part, if it is more.
const SCOUT_PART: usize = 24;

/// The loss on the first of the random points: good enough to tell which candidates deserve a closer look.
pub(super) fn scout(
    problem: &Problem,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
) -> Result<Option<Box<AnyBackend>>, SolveError> {
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
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    backend(&fewer, Purpose::Training, gpu, options, &mut unobserved).map(Some)
}
