//! The pass over the points that makes moment tables: how many points per second, CPU and GPU in one run.

use super::solves::processor_seconds;
use crate::cli::streams::put;
use crate::cli::{Failure, table};
use greedy_pde::error::SolveError;
use greedy_pde::gpu::{DevicePass, Gpu};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::table_axes;
use greedy_pde::sums::{MomentTables, PairSums, PassOptions};
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

const EXAMPLE: &str = include_str!("../../../configs/ex5_elliptic_10d.toml");
/// The example's dimension.
pub(super) const DIMENSION: usize = 10;
/// Each is measured so often, in turn, and the quickest counts: the first pass on a device compiles its shaders.
const REPEATS: usize = 3;
/// The two must agree to this part.
const AGREEMENT: f64 = 1e-8;

/// Rates in million points per second.
#[derive(Debug, Serialize)]
pub(super) struct PassMeasurement {
    dimension: usize,
    points: usize,
    cpu: f64,
    gpu: Option<f64>,
    /// Seconds of the processor, all threads together. On a software adapter the device's own work is among them.
    cpu_seconds: f64,
    gpu_seconds: Option<f64>,
    /// The largest difference of a row of sums, as a part of the largest sum.
    gpu_difference: Option<f64>,
}

/// Makes the tables of example 5 with so many points, on the CPU and on the GPU.
pub(super) fn measure(points: usize, gpu: Option<&Arc<Gpu>>) -> Result<PassMeasurement, Failure> {
    let overrides = Overrides {
        points: Some(points),
        ..Overrides::default()
    };
    let problem = Problem::from_toml(EXAMPLE, "ex5_elliptic_10d", &overrides)?;
    let (mut cpu, mut on_device, mut difference) = (Taken::MOST, None, None);
    for _ in 0..REPEATS {
        let (taken, on_cpu) = pass(&problem, None)?;
        cpu = cpu.least(taken);
        if let Some(gpu) = gpu {
            let (taken, on_gpu) = pass(&problem, Some(gpu))?;
            on_device = Some(on_device.unwrap_or(Taken::MOST).least(taken));
            difference = Some(agreement(&on_cpu, &on_gpu)?);
        }
    }
    let rate = |taken: Taken| points as f64 / taken.clock / 1e6;
    Ok(PassMeasurement {
        dimension: problem.dimension(),
        points,
        cpu: rate(cpu),
        gpu: on_device.map(rate),
        cpu_seconds: cpu.processor,
        gpu_seconds: on_device.map(|taken| taken.processor),
        gpu_difference: difference,
    })
}

/// Seconds on the clock, and of the processor.
#[derive(Clone, Copy)]
struct Taken {
    clock: f64,
    processor: f64,
}

impl Taken {
    const MOST: Self = Self {
        clock: f64::INFINITY,
        processor: f64::INFINITY,
    };

    fn least(self, other: Self) -> Self {
        Self {
            clock: self.clock.min(other.clock),
            processor: self.processor.min(other.processor),
        }
    }
}

/// Rates of wrong results are worth nothing.
fn agreement(cpu: &MomentTables, gpu: &MomentTables) -> Result<f64, Failure> {
    let difference = difference(cpu, gpu);
    match difference <= AGREEMENT {
        true => Ok(difference),
        false => Err(Failure::Solve(format!(
            "the tables of CPU and GPU differ by {difference:.1e}"
        ))),
    }
}

fn pass(problem: &Problem, gpu: Option<&Arc<Gpu>>) -> Result<(Taken, MomentTables), Failure> {
    let loss = problem.loss(1, Purpose::Training)?;
    let (power, axes) = table_axes(problem, &loss)
        .ok_or_else(|| Failure::Input("tables need more points: give at least 20000".to_string()))?;
    let device = match gpu {
        Some(gpu) => {
            let fractions = loss.terms[0].points.fractions();
            let pass = DevicePass::new(Arc::clone(gpu), power, &axes, fractions).map_err(SolveError::from)?;
            Some(Box::new(pass) as Box<dyn PairSums>)
        }
        None => None,
    };
    let options = PassOptions {
        device,
        ..PassOptions::default()
    };
    let (started, before) = (Instant::now(), processor_seconds());
    let tables = MomentTables::new(&loss.terms[0], power, axes, options, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    let taken = Taken {
        clock: started.elapsed().as_secs_f64(),
        processor: processor_seconds() - before,
    };
    Ok((taken, tables))
}

fn difference(a: &MomentTables, b: &MomentTables) -> f64 {
    let ones = vec![1.0; a.axes[0].count * (a.power + 1)];
    let (mut largest, mut off) = (0.0_f64, 0.0_f64);
    for axis in 1..a.axes.len() {
        for (a, b) in a.across(0, &ones, axis).iter().zip(b.across(0, &ones, axis)) {
            largest = largest.max(a.abs());
            off = off.max((a - b).abs());
        }
    }
    off / largest
}

pub(super) fn print(measurements: &[PassMeasurement]) -> Result<(), Failure> {
    if measurements.is_empty() {
        return Ok(());
    }
    let header = [
        "d",
        "points",
        "CPU path",
        "GPU",
        "CPU path [s]",
        "GPU [s]",
        "GPU off by",
    ];
    let lines = measurements
        .iter()
        .map(|m| {
            vec![
                m.dimension.to_string(),
                m.points.to_string(),
                format!("{:.2}", m.cpu),
                m.gpu.map_or("-".to_string(), |rate| format!("{rate:.2}")),
                format!("{:.2}", m.cpu_seconds),
                m.gpu_seconds
                    .map_or("-".to_string(), |seconds| format!("{seconds:.2}")),
                m.gpu_difference
                    .map_or("-".to_string(), |off| format!("{off:.0e}")),
            ]
        })
        .collect();
    put!(
        "The pass over the points for neurons along the axes: million points per second, seconds of the processor"
    );
    put!("{}", table::plain(header, lines));
    Ok(())
}
