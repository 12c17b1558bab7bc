//! What does the sums of a run. CPU or GPU is decided here and nowhere else.

use super::{BackendChoice, Event, RunOptions};
use crate::candidates::{AxisBins, DirectionKind, Seen, axis_bins};
use crate::domain::Domain;
use crate::error::SolveError;
#[cfg(feature = "gpu")]
use crate::gpu::{self, DevicePass, GpuOptions, GpuSums, WholeEngine};
use crate::loss::{Loss, Term};
use crate::points::Rule;
use crate::problem::{Algorithm, Problem, Purpose};
use crate::report::DeviceReport;
#[cfg(feature = "gpu")]
use crate::sums::whole::Fallback;
use crate::sums::whole::{Engine, Reference, WholeTerm};
use crate::sums::{
    CpuOptions, CpuSums, HeldSums, MomentTables, PairSums, PassOptions, PinnedSums, PrecisionChoice, Sums,
    TableSums, WholePass, WholeSums,
};
use std::ops::ControlFlow;
use std::sync::Arc;

#[cfg(feature = "gpu")]
pub(super) use crate::gpu::Gpu;

/// The device of a run: with the feature `gpu` left out there is none.
#[cfg(not(feature = "gpu"))]
pub(super) enum Gpu {}

/// Without the feature `gpu` the CPU serves, unless a GPU was asked for.
#[cfg(not(feature = "gpu"))]
pub(super) fn open_gpu(_: &Problem, options: &RunOptions) -> Result<Option<Arc<Gpu>>, SolveError> {
    match options.backend == BackendChoice::Gpu || options.adapter.is_some() {
        true => Err(SolveError::Unsupported(
            "a GPU, in a build without the feature `gpu`",
        )),
        false => Ok(None),
    }
}

/// The GPU of the run, if it has one.
#[cfg(feature = "gpu")]
pub(super) fn open_gpu(problem: &Problem, options: &RunOptions) -> Result<Option<Arc<Gpu>>, SolveError> {
    if options.device.is_some() && options.cluster.is_alone() {
        return Ok(options.device.clone());
    }
    let asked = options.backend == BackendChoice::Gpu || options.adapter.is_some();
    match (options.cluster.is_alone(), asked) {
        (true, _) => {}
        (false, false) => return Ok(None),
        // Decisions of several processes are the same only if their sums are.
        (false, true) if !makes_whole_sums(problem, options) => {
            return Err(SolveError::Unsupported(
                "several processes with GPUs, but for ReLU^k in whole numbers; use `--backend cpu`",
            ));
        }
        (false, true) => {}
    }
    // Finding a GPU takes longer than a small run.
    if options.backend == BackendChoice::Auto && options.adapter.is_none() && is_small(problem)? {
        return Ok(None);
    }
    let choice = gpu::AdapterChoice {
        name: options.adapter.clone(),
        software: asked,
        turn: options.cluster.rank(),
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

/// The loss of a problem for a purpose, with whatever does its sums.
pub(super) fn sums(
    problem: &Problem,
    purpose: Purpose,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<Box<dyn Sums>, SolveError> {
    let loss = problem.loss(problem.settings.neurons, purpose)?;
    let mut sums = plain_sums(problem, loss, purpose, gpu, options, observer)?;
    if let Some(held) = problem.held_loss(purpose)? {
        let at_zero = held.completion()?;
        let (activation, cluster) = (problem.dictionary.activation, options.cluster.clone());
        let held = CpuSums::shared(held, activation, cpu_options(problem), cluster)?;
        let with_multiplier = problem.has_multipliers();
        let dimension = problem.dimension();
        sums = Box::new(HeldSums::new(
            sums,
            (Box::new(held), at_zero),
            with_multiplier,
            dimension,
        ));
    }
    if problem.kernel.is_empty() {
        return Ok(sums);
    }
    let by_cpu = RunOptions {
        cluster: options.cluster.clone(),
        ..RunOptions::default()
    };
    let functionals = problem.functionals(purpose)?.into_iter();
    let functionals = functionals.map(|loss| plain_sums(problem, loss, purpose, None, &by_cpu, observer));
    let functionals = functionals.collect::<Result<Vec<_>, _>>()?;
    let (stiffness, dimension) = (problem.kernel.stiffness, problem.dimension());
    Ok(Box::new(PinnedSums::new(sums, functionals, stiffness, dimension)))
}

/// The sums of a loss, by tables, a GPU or the CPU.
pub(super) fn plain_sums(
    problem: &Problem,
    loss: Loss,
    purpose: Purpose,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<Box<dyn Sums>, SolveError> {
    if let Some((power, axes)) = table_axes(problem, &loss) {
        let spec = TableSpec {
            purpose,
            power,
            axes,
            gpu,
            options,
        };
        return Ok(Box::new(table_sums(problem, loss, spec, observer)?));
    }
    match gpu {
        None => cpu_sums(problem, loss, options),
        Some(gpu) => device_sums(problem, loss, gpu, options),
    }
}

fn cpu_sums(problem: &Problem, loss: Loss, options: &RunOptions) -> Result<Box<dyn Sums>, SolveError> {
    let (precision, cluster) = (options.precision, options.cluster.clone());
    let (activation, options) = (problem.dictionary.activation, cpu_options(problem));
    Ok(match precision {
        PrecisionChoice::Integer => {
            let shared = (options, cluster);
            Box::new(WholeSums::shared(
                loss,
                &problem.domain,
                activation,
                shared,
                reference,
            )?)
        }
        _ => Box::new(CpuSums::shared(loss, activation, options, cluster)?),
    })
}

/// Whole numbers on the CPU.
fn reference(terms: Arc<Vec<WholeTerm>>) -> Box<dyn Engine> {
    Box::new(Reference::new(terms))
}

fn cpu_options(problem: &Problem) -> CpuOptions {
    CpuOptions {
        cache_bytes: problem.quadrature.cache_bytes,
    }
}

/// Whether a device adds up whole numbers.
#[cfg(feature = "gpu")]
fn makes_whole_sums(problem: &Problem, options: &RunOptions) -> bool {
    let whole = matches!(
        options.precision,
        PrecisionChoice::Auto | PrecisionChoice::Integer
    );
    whole && WholeSums::serves(problem.dictionary.activation)
}

#[cfg(feature = "gpu")]
fn device_sums(
    problem: &Problem,
    loss: Loss,
    gpu: &Arc<Gpu>,
    options: &RunOptions,
) -> Result<Box<dyn Sums>, SolveError> {
    let activation = problem.dictionary.activation;
    let cluster = &options.cluster;
    let counts = CpuSums::own_points(&loss, cluster);
    let fits = WholeEngine::fits(gpu, &loss, counts.iter().map(|own| own.len()));
    // Where others share the points their sums are in whole numbers, whoever makes them.
    if makes_whole_sums(problem, options) && (fits || !cluster.is_alone()) {
        let engine = |terms: Arc<Vec<WholeTerm>>| -> Box<dyn Engine> {
            if !fits {
                return reference(terms);
            }
            let device = WholeEngine::new(Arc::clone(gpu), Arc::clone(&terms));
            Box::new(Fallback::new(Box::new(device), terms))
        };
        let shared = (cpu_options(problem), cluster.clone());
        return Ok(Box::new(WholeSums::shared(
            loss,
            &problem.domain,
            activation,
            shared,
            engine,
        )?));
    }
    let options = GpuOptions {
        precision: options.precision,
        resident_bytes: problem.quadrature.cache_bytes,
        cpu: cpu_options(problem),
    };
    Ok(Box::new(GpuSums::new(
        Arc::clone(gpu),
        loss,
        &problem.domain,
        activation,
        options,
    )))
}

#[cfg(not(feature = "gpu"))]
fn device_sums(_: &Problem, _: Loss, gpu: &Arc<Gpu>, _: &RunOptions) -> Result<Box<dyn Sums>, SolveError> {
    match **gpu {}
}

/// What the device of a run did.
#[cfg(feature = "gpu")]
pub(super) fn device_report(gpu: &Gpu, precision: &str) -> Option<DeviceReport> {
    let counts = gpu.counts();
    Some(DeviceReport {
        adapter: gpu.report().name.clone(),
        precision: precision.to_string(),
        bytes_up: counts.bytes_up,
        bytes_down: counts.bytes_down,
        submissions: counts.submissions,
        point_directions: counts.point_directions,
        seconds: gpu.busy_seconds(),
    })
}

#[cfg(not(feature = "gpu"))]
pub(super) fn device_report(gpu: &Gpu, _: &str) -> Option<DeviceReport> {
    match *gpu {}
}

/// Evaluations of a candidate at a point, below which a run is small.
#[cfg(feature = "gpu")]
const SMALL_RUN: f64 = 1e10;

/// Whether the CPU is done with a run before a GPU has been found.
#[cfg(feature = "gpu")]
fn is_small(problem: &Problem) -> Result<bool, SolveError> {
    let settings = &problem.settings;
    let points = problem.loss(settings.neurons, Purpose::Training)?.points();
    // A sweep takes all candidates of a direction at once.
    let per_point = match problem.dictionary.activation.has_sweep() {
        true => problem.dictionary.candidates.min(problem.dimension() * 100),
        false => super::candidates(problem),
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
    let axes = axis_bins(&problem.dictionary, &problem.domain, &problem.quadrature.rule);
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

struct TableSpec<'a> {
    purpose: Purpose,
    power: usize,
    axes: Vec<AxisBins>,
    gpu: Option<&'a Arc<Gpu>>,
    options: &'a RunOptions,
}

impl TableSpec<'_> {
    /// Whole numbers on the CPU, if they are asked for.
    fn whole(&self) -> Option<Box<dyn PairSums>> {
        let pass = || Box::new(WholePass::new(self.power, &self.axes)) as Box<dyn PairSums>;
        (self.options.precision == PrecisionChoice::Integer).then(pass)
    }

    #[cfg(feature = "gpu")]
    fn device(&self, term: &Term) -> Result<Option<Box<dyn PairSums>>, SolveError> {
        let Some(gpu) = self.gpu else {
            return Ok(self.whole());
        };
        let pass = DevicePass::new(Arc::clone(gpu), self.power, &self.axes, term.points.fractions())?;
        Ok(Some(Box::new(pass)))
    }

    #[cfg(not(feature = "gpu"))]
    fn device(&self, _: &Term) -> Result<Option<Box<dyn PairSums>>, SolveError> {
        match self.gpu {
            Some(gpu) => match **gpu {},
            None => Ok(self.whole()),
        }
    }
}

fn table_sums(
    problem: &Problem,
    mut loss: Loss,
    spec: TableSpec,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<TableSums, SolveError> {
    let inside = loss.terms.remove(0);
    let store = spec
        .options
        .tables
        .as_ref()
        .filter(|_| spec.purpose == Purpose::Training);
    let mut pass = |device| {
        let mut on_points = |done, total| observer(&Event::Points { done, total });
        let cluster = spec.options.cluster.clone();
        let options = PassOptions {
            device,
            store,
            cluster,
            ..PassOptions::default()
        };
        MomentTables::new(&inside, spec.power, spec.axes.clone(), options, &mut on_points)
    };
    let (tables, note) = match spec.device(&inside).and_then(&mut pass) {
        Err(SolveError::Device(error)) => {
            let note = format!("the pass over the points was done by the CPU, as the device failed: {error}");
            (pass(spec.whole())?, Some(note))
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
            let activation = problem.dictionary.activation;
            let cluster = spec.options.cluster.clone();
            Some(CpuSums::shared(loss, activation, cpu_options(problem), cluster)?)
        }
    };
    Ok(TableSums::new(tables, inside.points.len(), rest).with_notes(note))
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
) -> Result<Option<Box<dyn Sums>>, SolveError> {
    let Some(fewer) = scouted(problem) else {
        return Ok(None);
    };
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    sums(&fewer, Purpose::Training, gpu, options, &mut unobserved).map(Some)
}

/// The loss on the points for inner products, and on those that confirm them, where they are other ones than all.
pub(super) fn curvature(
    problem: &Problem,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
) -> Result<Option<[Box<dyn Sums>; 2]>, SolveError> {
    if problem.quadrature.curvature.is_none() {
        return Ok(None);
    }
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    let mut on = |purpose| sums(problem, purpose, gpu, options, &mut unobserved);
    Ok(Some([on(Purpose::Curvature)?, on(Purpose::Confirmation)?]))
}

/// The loss on the points that know the norms of candidates, where the run's own do not.
pub(super) fn norms(
    problem: &Problem,
    gpu: Option<&Arc<Gpu>>,
    options: &RunOptions,
) -> Result<Option<Box<dyn Sums>>, SolveError> {
    let mut unobserved = |_: &Event| ControlFlow::Continue(());
    match problem.doubts_norms() {
        true => sums(problem, Purpose::Norms, gpu, options, &mut unobserved).map(Some),
        false => Ok(None),
    }
}

/// A neuron's norm is a sum over so many points, or it is not known.
const SEEN_BY: usize = 128;

/// Tells which neurons the points see, where that is in doubt.
pub(super) fn seen(problem: &Problem) -> Result<Option<Seen>, SolveError> {
    if !problem.doubts_norms() {
        return Ok(None);
    }
    let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
    Ok(loss.terms.first().map(|term| Seen::new(&term.points, SEEN_BY)))
}

/// The problem on the points that the scout has, where there is one.
pub(super) fn scouted(problem: &Problem) -> Option<Problem> {
    let Rule::MonteCarlo { points, seed } = problem.quadrature.rule else {
        return None;
    };
    let relaxed = problem.settings.algorithm == Algorithm::Rga;
    if !relaxed || points <= SCOUT_POINTS || problem.dictionary.activation.has_sweep() {
        return None;
    }
    let mut fewer = problem.clone();
    fewer.quadrature.rule = Rule::MonteCarlo {
        points: SCOUT_POINTS.max(points / SCOUT_PART),
        seed,
    };
    Some(fewer)
}
