//! From a problem in time to a report: its initial value, its steps and their errors put together.

use super::losses::{self, Gpu, plain_sums, table_axes};
use super::{Event, RunOptions, TimeProgress, require_memory};
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::flow::{
    self, FlowLosses, FlowOutcome, FlowParams, FlowState, FlowStep, HeldLosses, LoadPart, Loads, SumsAt,
};
use crate::greedy::{self, Selection, Stopped};
use crate::network::Network;
use crate::norms::ErrorMeter;
use crate::problem::{Acting, Evolution, Problem, Purpose};
use crate::report::{COEFFICIENTS, Report, Row, Seconds, TimeReport, TimeRow};
use crate::sums::{CpuOptions, CpuSums, Sums};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// With a larger error of u at t = 0, as a part of it in the norm of a step, a flow is of another function.
const WORST_INITIAL: f64 = 0.5;
/// A step whose error in time is this part of u is too long, and one with this part worth a word.
const WORST_STEP: f64 = 0.5;
const LONG_STEP: f64 = 0.1;
/// An energy that a step raises by this part does not flow.
const RISEN: f64 = 1e-3;

/// An observer of a run.
type Observer<'o> = dyn FnMut(&Event) -> ControlFlow<()> + 'o;

/// Everything that the sums of a flow are made with.
struct Maker<'m> {
    problem: &'m Problem,
    evolution: &'m Evolution,
    gpu: Option<Arc<Gpu>>,
    options: RunOptions,
    /// c/τ.
    mass: f64,
}

/// The losses of a flow on one set of points, owned.
struct Owned<'m> {
    step: Box<dyn Sums>,
    mass: Box<dyn Sums>,
    loads: Loads<'m>,
    explicit: Option<Box<dyn Sums>>,
    held: Option<(Box<dyn Sums>, Loads<'m>)>,
    varying: Option<Box<SumsAt<'m>>>,
    /// Whether nothing that acts depends on t.
    autonomous: bool,
}

impl Owned<'_> {
    fn split(&self) -> FlowLosses<'_> {
        FlowLosses {
            step: &*self.step,
            mass: &*self.mass,
            loads: &self.loads,
            explicit: self.explicit.as_deref(),
            held: self.held.as_ref().map(|(penalty, loads)| HeldLosses {
                penalty: &**penalty,
                loads,
            }),
            varying: self.varying.as_deref(),
        }
    }
}

/// Follows the flow of a problem. The observer sees every step as it is taken and may end the run.
pub(super) fn run(
    problem: &Problem,
    evolution: &Evolution,
    options: &RunOptions,
    observer: &mut Observer,
) -> Result<(Report, Network), SolveError> {
    let started = Instant::now();
    let cluster = &options.cluster;
    // Whoever is asked to stop, all do, after the same step.
    let observer: &mut Observer = &mut |event| match cluster.any(observer(event).is_break()) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    cluster.agree(require_memory(problem, cluster.size()))?;
    let maker = Maker {
        problem,
        evolution,
        gpu: cluster.agree(losses::open_gpu(problem, options))?,
        // Several passes over the points cannot share one place for their sums.
        options: RunOptions {
            tables: None,
            ..options.clone()
        },
        mass: evolution.mass(),
    };
    let resumed = options.flow.as_ref();
    let (initial, mut warnings) = match resumed {
        Some(_) => (
            Network::zero(problem.dictionary.activation, problem.dimension()),
            Vec::new(),
        ),
        None => maker.initial(observer)?,
    };
    let fitted = started.elapsed();
    let training = maker.losses(Purpose::Training, observer)?;
    let validation = match problem.settings.guard && !maker.has_tables()? {
        true => Some(maker.losses(Purpose::Validation, observer)?),
        false => None,
    };
    let place = training.step.report();
    let points = training.step.points();
    let autonomous = training.autonomous;
    let grid = problem.grid(0);
    let center = problem.domain.center();
    let params = FlowParams {
        scheme: evolution.scheme,
        step: evolution.step(),
        steps: evolution.steps,
        time: &|step| evolution.time(step),
        neurons: problem.settings.neurons,
        initial_neurons: evolution.initial_neurons,
        neurons_per_step: evolution.neurons_per_step,
        tolerance: evolution.tolerance,
        selection: match evolution.varying {
            // What the choice by decrease knows of the candidates holds for one curvature.
            true => Selection::Slope,
            false => problem.settings.selection,
        },
        grid: &grid,
        bias: problem.dictionary.bias,
        center: &center,
        quadratic: !problem.has_potential(),
        autonomous,
        saved: &|step| evolution.is_saved(step),
    };
    let mut rows: Vec<TimeRow> = resumed.map_or_else(Vec::new, |(_, rows)| rows.clone());
    let earlier = rows.last().map_or(0.0, |row| row.seconds);
    let mut errors_time = Duration::ZERO;
    let mut observe = |step: &FlowStep| -> Result<ControlFlow<()>, SolveError> {
        let saved = evolution.is_saved(step.step);
        let mut row = TimeRow {
            step: step.step,
            time: step.time,
            n: step.network.len(),
            energy: step.energy,
            coefficient_l1: step.network.coefficient_l1(),
            ..TimeRow::default()
        };
        if saved {
            let before = Instant::now();
            measure(problem, step.network, &mut row, cluster)?;
            errors_time += before.elapsed();
        }
        row.seconds = earlier + started.elapsed().as_secs_f64();
        rows.push(row.clone());
        Ok(observer(&Event::Time(TimeProgress {
            row: &row,
            saved,
            steps: evolution.steps,
            network: step.network,
            state: step.state,
            place: &place,
        })))
    };
    let training = training.split();
    let validation = validation.as_ref().map(Owned::split);
    let FlowOutcome {
        state,
        interrupted,
        warnings: more,
    } = flow::flow(
        &training,
        validation.as_ref(),
        &params,
        (&initial, resumed.map(|(state, _)| state)),
        &mut observe,
    )?;
    warnings.extend(more);
    let mut all = problem.warnings.clone();
    all.append(&mut warnings);
    let place = training.step.report();
    all.extend(place.notes.clone());
    let network = last_network(problem, &state);
    let useless = maker.useless((&state, &network), &rows, autonomous)?;
    let usable = useless.is_none();
    if usable && state.time_error > LONG_STEP {
        all.push(format!(
            "the last step's error in time is about {:.0} % of u, in the norm of a step: take shorter steps",
            100.0 * state.time_error
        ));
    }
    all.extend(useless);
    let report = Report {
        problem: problem.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        algorithm: problem.settings.algorithm.name().to_string(),
        selection: problem.settings.selection.name().to_string(),
        backend: place.backend.to_string(),
        adapter: place.adapter.clone(),
        precision: place.precision.to_string(),
        device: maker
            .gpu
            .as_ref()
            .and_then(|gpu| losses::device_report(gpu, place.precision)),
        coefficients: COEFFICIENTS.to_string(),
        seed: problem.settings.seed,
        dimension: problem.dimension(),
        points,
        ranks: cluster.size(),
        error_points: ErrorMeter::new(problem, network.len())?.map(|meter| meter.points()),
        error_uncertainty: None,
        neurons: network.len(),
        stopped: match interrupted {
            true => Stopped::Interrupted,
            false => Stopped::Neurons,
        },
        warnings: all,
        usable,
        estimate: None,
        rows: rows.last().map(last_row).into_iter().collect(),
        time: Some(time_report(evolution, &state, rows)),
        seconds: Seconds {
            total: earlier + started.elapsed().as_secs_f64(),
            points: fitted.as_secs_f64(),
            projection: (started.elapsed() - fitted - errors_time).as_secs_f64(),
            errors: errors_time.as_secs_f64(),
            ..Seconds::default()
        },
        settings: problem.settings_json(),
    };
    Ok((report, network))
}

/// What a report says of the steps; only those where u was kept.
pub(crate) fn time_report(evolution: &Evolution, state: &FlowState, mut rows: Vec<TimeRow>) -> TimeReport {
    let last = rows.last().map(|row| row.step);
    rows.retain(|row| evolution.is_saved(row.step) || Some(row.step) == last);
    TimeReport {
        scheme: evolution.scheme.name().to_string(),
        end: evolution.end,
        steps: evolution.steps,
        step: evolution.step(),
        initial_neurons: state.initial,
        rows,
    }
}

/// The last u of a flow.
fn last_network(problem: &Problem, state: &FlowState) -> Network {
    Network {
        neurons: state.neurons.clone(),
        coefficients: state.history.first().cloned().unwrap_or_default(),
        ..Network::zero(problem.dictionary.activation, problem.dimension())
    }
}

/// The last row of a flow as one of any run.
pub(crate) fn last_row(row: &TimeRow) -> Row {
    Row {
        n: row.n,
        l2: row.l2,
        h1: row.h1,
        loss: row.energy,
        coefficient_l1: row.coefficient_l1,
        seconds: row.seconds,
        ..Row::default()
    }
}

fn measure(
    problem: &Problem,
    network: &Network,
    row: &mut TimeRow,
    cluster: &Cluster,
) -> Result<(), SolveError> {
    let problem = problem.at_time(row.time);
    let Some(meter) = ErrorMeter::shared(&problem, problem.settings.neurons, cluster)? else {
        return Ok(());
    };
    let errors = meter.errors(network)?;
    let zero = Network::zero(network.activation, network.dimension);
    let size = meter.errors(&zero)?.l2;
    row.l2 = Some(errors.l2);
    row.h1 = Some(errors.h1);
    row.l2_relative = (size > 0.0).then(|| errors.l2 / size);
    Ok(())
}

impl<'m> Maker<'m> {
    /// Whether tables of moments stand for the points.
    fn has_tables(&self) -> Result<bool, SolveError> {
        let loss = self.problem.step_loss(self.mass, Purpose::Training)?;
        Ok(table_axes(self.problem, &loss).is_some())
    }

    fn losses(&'m self, purpose: Purpose, observer: &mut Observer) -> Result<Owned<'m>, SolveError> {
        let (problem, evolution) = (self.problem, self.evolution);
        let mut sums = |loss| plain_sums(problem, loss, purpose, self.gpu.as_ref(), &self.options, observer);
        let step = sums(problem.step_loss(self.mass, purpose)?)?;
        let mass = sums(problem.mass_loss(purpose)?)?;
        let explicit = match problem.explicit_loss(evolution, purpose)? {
            Some(loss) => Some(sums(loss)?),
            None => None,
        };
        let penalty = match problem.penalty_loss(purpose)? {
            Some(loss) => Some(self.load_sums(loss)?),
            None => None,
        };
        let (loads, constant) = self.loads(Acting::All, purpose)?;
        let held = match penalty {
            Some(penalty) => Some((penalty, self.loads(Acting::Held, purpose)?.0)),
            None => None,
        };
        let varying: Option<Box<SumsAt<'m>>> = match evolution.varying {
            true => Some(Box::new(move |time| self.step_at(time, purpose))),
            false => None,
        };
        Ok(Owned {
            step,
            mass,
            loads,
            explicit,
            held,
            varying,
            autonomous: constant && !evolution.varying,
        })
    }

    /// (c/2τ)‖u‖² + E(u) without a load, at a time.
    fn step_at(&self, time: f64, purpose: Purpose) -> Result<Box<dyn Sums>, SolveError> {
        let loss = self.problem.at_time(time).step_loss(self.mass, purpose)?;
        let mut unobserved = |_: &Event| ControlFlow::Continue(());
        let gpu = self.gpu.as_ref();
        plain_sums(self.problem, loss, purpose, gpu, &self.options, &mut unobserved)
    }

    /// What acts, and whether it is the same at all times.
    fn loads(&'m self, acting: Acting, purpose: Purpose) -> Result<(Loads<'m>, bool), SolveError> {
        let problem = self.problem;
        let mut autonomous = true;
        let mut parts = Vec::new();
        for group in problem.load_groups(acting, purpose)? {
            autonomous &= group.is_constant();
            parts.push(LoadPart {
                name: group.name.clone(),
                sums: self.load_sums(group.loss.clone())?,
                factor: Box::new(move |time| group.factor(time)),
            });
        }
        let moves = problem.moving_load(acting, 0.0, purpose)?.is_some();
        let moving: Option<Box<SumsAt<'m>>> = match moves {
            true => Some(Box::new(move |time| {
                let loss = problem.moving_load(acting, time, purpose)?;
                self.load_sums(loss.ok_or(SolveError::Unsupported("a load that comes and goes"))?)
            })),
            false => None,
        };
        Ok((Loads { parts, moving }, autonomous && !moves))
    }

    /// A load is met once, or anew in each step: by the CPU.
    fn load_sums(&self, loss: crate::loss::Loss) -> Result<Box<dyn Sums>, SolveError> {
        let options = CpuOptions {
            cache_bytes: self.problem.quadrature.cache_bytes,
        };
        let activation = self.problem.dictionary.activation;
        let cluster = self.options.cluster.clone();
        Ok(Box::new(CpuSums::shared(loss, activation, options, cluster)?))
    }

    /// Why the result says nothing about the solution, if it does not.
    fn useless(
        &self,
        (state, last): (&FlowState, &Network),
        rows: &[TimeRow],
        autonomous: bool,
    ) -> Result<Option<String>, SolveError> {
        if let Some(bad) = rows.iter().find(|row| !row.energy.is_finite()) {
            let time = bad.time;
            return Ok(Some(format!(
                "at t = {time} the energy is not finite: nothing from there on can be used"
            )));
        }
        let rises = |pair: &&[TimeRow]| {
            let [before, after] = [pair[0].energy, pair[1].energy];
            after - before > RISEN * before.abs().max(after.abs())
        };
        // An initial value that does not have what is held is met with energy in the first step.
        let first = usize::from(self.problem.has_multipliers()).min(rows.len());
        if let Some(pair) = rows[first..].windows(2).find(rises).filter(|_| autonomous) {
            return Ok(Some(format!(
                "at t = {} the energy rose from {:.4e} to {:.4e}, and that of a flow falls: the result cannot be used. Take \
                 shorter steps",
                pair[1].time, pair[0].energy, pair[1].energy
            )));
        }
        if state.time_error > WORST_STEP {
            return Ok(Some(format!(
                "the last step's error in time is about {:.0} % of u, in the norm of a step: the result cannot be used. Take shorter steps",
                100.0 * state.time_error
            )));
        }
        let error = match state.frames.first() {
            Some(frame) => self.initial_error(&last.with_coefficients(&frame.coefficients))?,
            None => 0.0,
        };
        if error > WORST_INITIAL {
            return Ok(Some(format!(
                "u at t = 0 is off by {:.0} % in the norm of a step: what follows cannot be used. Take more `initial_neurons`",
                100.0 * error
            )));
        }
        let measured = rows.last().and_then(|row| row.l2_relative);
        Ok(measured.filter(|error| *error > WORST_INITIAL).map(|error| {
            format!(
                "the error measured against `exact` is {:.0} % of it at the end: either `exact` does not solve the equation and meet \
                 `initial`, or steps, neurons or points are far too few. The result cannot be used",
                100.0 * error
            )
        }))
    }

    /// The error of u at t = 0 on independent points, as a part of it, in the norm of a step.
    fn initial_error(&self, u: &Network) -> Result<f64, SolveError> {
        let loss = self
            .problem
            .initial_loss(self.evolution, self.mass, Purpose::Validation)?;
        let whole = loss.completion()?;
        let left = self.load_sums(loss)?.risk(u)? + whole;
        Ok(match whole > 0.0 {
            true => (left.max(0.0) / whole).sqrt(),
            false => 0.0,
        })
    }

    /// The initial value, as the orthogonal algorithm fits it.
    fn initial(&self, observer: &mut Observer) -> Result<(Network, Vec<String>), SolveError> {
        let problem = self.problem.for_initial(self.evolution);
        let mut sums = |purpose| {
            let loss = self.problem.initial_loss(self.evolution, self.mass, purpose)?;
            plain_sums(
                &problem,
                loss,
                purpose,
                self.gpu.as_ref(),
                &self.options,
                observer,
            )
        };
        let validation = match problem.settings.guard {
            true => Some(sums(Purpose::Validation)?),
            false => None,
        };
        let training = sums(Purpose::Training)?;
        let total = problem.settings.neurons;
        let outcome = super::solve(
            &problem,
            greedy::Losses {
                training: &*training,
                curvature: None,
                validation: validation.as_deref(),
                scout: None,
                norms: None,
                seen: None,
            },
            (None, &[]),
            &mut |step| {
                let done = step.network.len();
                Ok(observer(&Event::Initial { done, total }))
            },
        )?;
        if outcome.stopped == Stopped::Interrupted {
            return Err(SolveError::Interrupted);
        }
        let warnings = outcome.warnings.into_iter();
        Ok((
            outcome.network,
            warnings
                .map(|warning| format!("initial value: {warning}"))
                .collect(),
        ))
    }
}
