//! The pass over the points that makes moment tables: how many points per second, CPU and GPU in one run.

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
    let mut quickest = (f64::INFINITY, None);
    let mut difference = None;
    for _ in 0..REPEATS {
        let (seconds, on_cpu) = pass(&problem, None)?;
        quickest.0 = seconds.min(quickest.0);
        if let Some(gpu) = gpu {
            let (seconds, on_gpu) = pass(&problem, Some(gpu))?;
            quickest.1 = Some(seconds.min(quickest.1.unwrap_or(f64::INFINITY)));
            difference = Some(agreement(&on_cpu, &on_gpu)?);
        }
    }
    let rate = |seconds: f64| points as f64 / seconds / 1e6;
    Ok(PassMeasurement {
        dimension: problem.dimension(),
        points,
        cpu: rate(quickest.0),
        gpu: quickest.1.map(rate),
        gpu_difference: difference,
    })
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

fn pass(problem: &Problem, gpu: Option<&Arc<Gpu>>) -> Result<(f64, MomentTables), Failure> {
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
    let started = Instant::now();
    let tables = MomentTables::new(&loss.terms[0], power, axes, options, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    Ok((started.elapsed().as_secs_f64(), tables))
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
    let header = ["d", "points", "CPU path", "GPU", "GPU off by"];
    let lines = measurements
        .iter()
        .map(|m| {
            vec![
                m.dimension.to_string(),
                m.points.to_string(),
                format!("{:.2}", m.cpu),
                m.gpu.map_or("-".to_string(), |rate| format!("{rate:.2}")),
                m.gpu_difference
                    .map_or("-".to_string(), |off| format!("{off:.0e}")),
            ]
        })
        .collect();
    put!("The pass over the points for neurons along the axes: million points per second");
    put!("{}", table::plain(header, lines));
    Ok(())
}
