//! Whole solves on the CPU path and on a device, one after the other in one run.

use crate::cli::streams::{put, tell};
use crate::cli::{Failure, table};
use greedy_pde::gpu::{self, AdapterChoice, Gpu};
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::{DeviceReport, Report};
use greedy_pde::run::{BackendChoice, RunOptions, run};
use serde::Serialize;
use std::ops::ControlFlow;

/// Solves that take less than this are repeated, and the quickest counts.
const SHORT: f64 = 2.0;
/// So often.
const REPEATS: usize = 3;
/// Before a solve is measured the device solves the problem with this part of the neurons: that compiles the shaders,
/// and tells what every further neuron sends over the link.
const WARM_UP: usize = 4;
/// The losses of both paths must agree to this part.
const AGREEMENT: f64 = 1e-9;

/// A problem of configs/, made as large as it is measured.
struct Case {
    name: &'static str,
    text: &'static str,
    neurons: usize,
    cells: Option<usize>,
    points: Option<usize>,
}

impl Case {
    const fn new(name: &'static str, text: &'static str, neurons: usize) -> Self {
        Self {
            name,
            text,
            neurons,
            cells: None,
            points: None,
        }
    }

    const fn cells(mut self, cells: usize) -> Self {
        self.cells = Some(cells);
        self
    }

    const fn points(mut self, points: usize) -> Self {
        self.points = Some(points);
        self
    }

    fn problem(&self, neurons: usize) -> Result<Problem, Failure> {
        let overrides = Overrides {
            neurons: Some(neurons),
            cells: self.cells,
            points: self.points,
            ..Overrides::default()
        };
        Ok(Problem::from_toml(self.text, self.name, &overrides)?)
    }

    /// As one would type it.
    fn label(&self) -> String {
        let cells = self.cells.map_or(String::new(), |n| format!(" --cells {n}"));
        let points = self.points.map_or(String::new(), |n| format!(" --points {n}"));
        format!("{}{cells}{points} --neurons {}", self.name, self.neurons)
    }
}

const CASES: [Case; 7] = [
    Case::new(
        "ex1_neumann",
        include_str!("../../../configs/ex1_neumann.toml"),
        128,
    ),
    Case::new("ex1_pinn", include_str!("../../../configs/ex1_pinn.toml"), 64),
    Case::new("ex3_energy", include_str!("../../../configs/ex3_energy.toml"), 32).cells(50),
    Case::new("ex3_energy", include_str!("../../../configs/ex3_energy.toml"), 32).cells(400),
    Case::new("ex3_pinn", include_str!("../../../configs/ex3_pinn.toml"), 32).points(4000),
    Case::new(
        "ex4_biharmonic",
        include_str!("../../../configs/ex4_biharmonic.toml"),
        32,
    )
    .cells(50),
    Case::new("cube_3d", include_str!("../../../configs/cube_3d.toml"), 32).cells(12),
];

/// Two solves of one problem.
#[derive(Debug, Serialize)]
pub(super) struct SolveMeasurement {
    run: String,
    /// Seconds of the processor, all threads together.
    cpu_seconds: f64,
    /// The same of a solve on the device, less its start-up. On a software adapter the device's own work is among them.
    gpu_seconds: f64,
    /// What opening the device takes.
    start_up_seconds: f64,
    ratio: f64,
    bytes_up: u64,
    bytes_down: u64,
    submissions: u64,
    /// For each neuron, once the device has its points.
    bytes_up_per_neuron: f64,
    bytes_down_per_neuron: f64,
    submissions_per_neuron: f64,
    /// Millions per second of the device's own clock.
    point_directions: Option<f64>,
}

/// Measures the cases whose labels contain one of `wanted`, all if there are none.
pub(super) fn measure(wanted: &[String], adapter: Option<&str>) -> Result<Vec<SolveMeasurement>, Failure> {
    let is_wanted =
        |case: &&Case| wanted.is_empty() || wanted.iter().any(|part| case.label().contains(part.as_str()));
    let cases: Vec<&Case> = CASES.iter().filter(is_wanted).collect();
    if cases.is_empty() {
        let labels: Vec<String> = CASES.iter().map(Case::label).collect();
        return Err(Failure::Input(format!(
            "--solves: none of the solves has this in its name: {}",
            labels.join(", ")
        )));
    }
    let adapter = adapter.map(str::to_string);
    cases.into_iter().map(|case| pair(case, &adapter)).collect()
}

fn pair(case: &Case, adapter: &Option<String>) -> Result<SolveMeasurement, Failure> {
    tell!("{}", case.label());
    let problem = case.problem(case.neurons)?;
    let on = |backend: BackendChoice| RunOptions {
        backend,
        adapter: match backend {
            BackendChoice::Gpu => adapter.clone(),
            _ => None,
        },
        ..RunOptions::default()
    };
    let few = case.problem((case.neurons / WARM_UP).max(1))?;
    let warm_up = device_of(solve(&few, &on(BackendChoice::Gpu))?)?;
    let (cpu_seconds, on_cpu) = quickest(|| solve(&problem, &on(BackendChoice::Cpu)))?;
    let (with_start_up, on_gpu) = quickest(|| solve(&problem, &on(BackendChoice::Gpu)))?;
    let (start_up_seconds, _) = quickest(|| open(adapter))?;
    agree(case, &on_cpu, &on_gpu)?;
    let device = device_of(on_gpu)?;
    let gpu_seconds = (with_start_up - start_up_seconds).max(0.0);
    let later = (case.neurons - few.settings.neurons).max(1) as f64;
    let per_neuron = |all: u64, before: u64| all.saturating_sub(before) as f64 / later;
    Ok(SolveMeasurement {
        run: case.label(),
        cpu_seconds,
        gpu_seconds,
        start_up_seconds,
        ratio: gpu_seconds / cpu_seconds,
        bytes_up: device.bytes_up,
        bytes_down: device.bytes_down,
        submissions: device.submissions,
        bytes_up_per_neuron: per_neuron(device.bytes_up, warm_up.bytes_up),
        bytes_down_per_neuron: per_neuron(device.bytes_down, warm_up.bytes_down),
        submissions_per_neuron: per_neuron(device.submissions, warm_up.submissions),
        point_directions: device
            .seconds
            .map(|seconds| device.point_directions as f64 / seconds / 1e6),
    })
}

fn solve(problem: &Problem, options: &RunOptions) -> Result<Report, Failure> {
    let (report, _) = run(problem, options, &mut |_| ControlFlow::Continue(()))?;
    Ok(report)
}

fn open(adapter: &Option<String>) -> Result<(), Failure> {
    let choice = AdapterChoice {
        name: adapter.clone(),
        software: true,
        ..AdapterChoice::default()
    };
    let opened = gpu::choose(&choice).and_then(|adapter| Gpu::open(&adapter));
    opened
        .map(|_| ())
        .map_err(|error| Failure::Input(error.to_string()))
}

fn device_of(report: Report) -> Result<DeviceReport, Failure> {
    let device = report.device.filter(|_| report.backend == "gpu");
    device.ok_or_else(|| Failure::Solve(format!("{} did not run on the device", report.problem)))
}

/// Seconds of the processor that a part of the program takes, of short ones the least of a few.
fn quickest<T>(action: impl Fn() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let timed = || -> Result<(f64, T), Failure> {
        let before = processor_seconds();
        let result = action()?;
        Ok((processor_seconds() - before, result))
    };
    let mut best = timed()?;
    for _ in 1..REPEATS {
        if best.0 > SHORT {
            break;
        }
        let again = timed()?;
        if again.0 < best.0 {
            best = again;
        }
    }
    Ok(best)
}

/// Seconds that this program has kept processors busy with its own instructions.
#[cfg(unix)]
pub(super) fn processor_seconds() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let used = getrusage(UsageWho::RUSAGE_SELF).map(|usage| usage.user_time());
    used.map_or(0.0, |time| time.tv_sec() as f64 + 1e-6 * time.tv_usec() as f64)
}

/// Where the system does not tell: seconds on the clock.
#[cfg(not(unix))]
pub(super) fn processor_seconds() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Rates of wrong results are worth nothing.
fn agree(case: &Case, cpu: &Report, gpu: &Report) -> Result<(), Failure> {
    let loss = |report: &Report| report.rows.last().map_or(f64::NAN, |row| row.loss);
    let difference = (loss(cpu) - loss(gpu)).abs() / loss(cpu).abs();
    match cpu.neurons == gpu.neurons && difference <= AGREEMENT {
        true => Ok(()),
        false => Err(Failure::Solve(format!(
            "{}: the losses of both paths differ by {difference:.1e}",
            case.label()
        ))),
    }
}

pub(super) fn print(measurements: &[SolveMeasurement]) -> Result<(), Failure> {
    let header = [
        "solve",
        "CPU path [s]",
        "GPU path [s]",
        "×",
        "start-up [s]",
        "MB up",
        "MB down",
        "submissions",
        "kB up / neuron",
        "kB down / neuron",
        "submissions / neuron",
        "10⁶ point-directions/s",
    ];
    let lines = measurements
        .iter()
        .map(|m| {
            vec![
                m.run.clone(),
                format!("{:.2}", m.cpu_seconds),
                format!("{:.2}", m.gpu_seconds),
                format!("{:.1}", m.ratio),
                format!("{:.2}", m.start_up_seconds),
                format!("{:.1}", m.bytes_up as f64 / 1e6),
                format!("{:.1}", m.bytes_down as f64 / 1e6),
                m.submissions.to_string(),
                format!("{:.0}", m.bytes_up_per_neuron / 1e3),
                format!("{:.0}", m.bytes_down_per_neuron / 1e3),
                format!("{:.1}", m.submissions_per_neuron),
                m.point_directions
                    .map_or("-".to_string(), |rate| format!("{rate:.0}")),
            ]
        })
        .collect();
    put!("Whole solves, in seconds of the processor; the device's start-up is not among them");
    put!("{}", table::plain(header, lines));
    Ok(())
}
