//! `greedy-pde bench`: how many neurons are evaluated per second, three ways, in one run.

mod pass;
mod solves;

use super::arguments::BenchArguments;
use super::{Failure, table};
use crate::cli::streams::{put, tell};
use greedy_pde::activation::Activation;
use greedy_pde::candidates::{Candidates, Grid, Knots, Line};
use greedy_pde::domain::Region;
use greedy_pde::gpu::{self, AdapterChoice, Gpu, GpuOptions, GpuSums, Precision};
use greedy_pde::network::{Network, Neuron};
use greedy_pde::points::{PointSet, Tile, philox_uniforms, unit_vector};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::sums::{Accuracy, CpuOptions, CpuSums, PrecisionChoice, Sums};
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// Offsets per direction.
const OFFSETS: usize = 64;
/// The plain loop does this many candidates: its rate does not depend on their number.
const PLAIN: usize = 8;
/// Points of the pass beside whole solves.
const SOLVED_PASS_POINTS: usize = 1_000_000;
/// Points of the pass for moment tables.
const PASS_POINTS: usize = 1 << 18;
/// f32 scores must agree to this part of the sum of their terms' sizes, f64 scores to the other.
const AGREEMENT: (f64, f64) = (1e-5, 1e-11);

/// One line of the table; rates in million evaluations per second.
#[derive(Debug, Serialize)]
struct Measurement {
    dimension: usize,
    points: usize,
    candidates: usize,
    plain: f64,
    cpu: f64,
    cpu_speedup: f64,
    adapter: Option<String>,
    gpu_f32: Option<f64>,
    gpu_f32_speedup: Option<f64>,
    gpu_f64: Option<f64>,
    /// By the device's own clock, without the way up and down.
    gpu_f32_device: Option<f64>,
    /// The largest difference of scores, as a part of the sum of their terms' sizes.
    cpu_difference: f64,
    gpu_f32_difference: Option<f64>,
    gpu_f64_difference: Option<f64>,
}

pub(super) fn execute(arguments: &BenchArguments) -> Result<(), Failure> {
    let choice = AdapterChoice {
        name: arguments.adapter.clone(),
        software: true,
        ..AdapterChoice::default()
    };
    let gpu = match gpu::choose(&choice).and_then(|adapter| Gpu::open(&adapter)) {
        Ok(gpu) => Some(Arc::new(gpu)),
        Err(error) if arguments.adapter.is_some() => return Err(Failure::Input(error.to_string())),
        Err(_) => None,
    };
    if let Some(wanted) = &arguments.solves {
        return execute_solves(arguments, wanted, gpu.as_ref());
    }
    let mut measurements = Vec::new();
    for &dimension in &arguments.dimensions {
        for &points in &arguments.points {
            for &directions in &arguments.directions {
                tell!("d = {dimension}, {points} points, {directions} directions × {OFFSETS} offsets");
                measurements.push(measure(dimension, points, directions, gpu.as_ref())?);
            }
        }
    }
    // The pass for neurons along axes is measured on the ten-dimensional example.
    let mut pass = Vec::new();
    if arguments.dimensions.contains(&pass::DIMENSION) {
        tell!("the pass over {PASS_POINTS} points in {}-D", pass::DIMENSION);
        pass.push(pass::measure(PASS_POINTS, gpu.as_ref())?);
    }
    if arguments.json {
        let all = serde_json::json!({"argmax": measurements, "pass": pass});
        let json = serde_json::to_string(&all).map_err(|error| Failure::Solve(error.to_string()))?;
        put!("{json}");
    } else {
        print(&measurements, gpu.as_deref())?;
        pass::print(&pass)?;
    }
    disagreement(&measurements)
}

/// Whole solves; all of them only together with the pass over the points of tables.
fn execute_solves(
    arguments: &BenchArguments,
    wanted: &[String],
    gpu: Option<&Arc<Gpu>>,
) -> Result<(), Failure> {
    let mut pass = Vec::new();
    let with_pass = wanted.is_empty() || wanted.iter().any(|name| name == "pass");
    if with_pass {
        tell!(
            "the pass over {SOLVED_PASS_POINTS} points in {}-D",
            pass::DIMENSION
        );
        pass.push(pass::measure(SOLVED_PASS_POINTS, gpu)?);
    }
    let solves = match with_pass && wanted.len() == 1 {
        true => Vec::new(),
        false => solves::measure(wanted, arguments.adapter.as_deref())?,
    };
    if arguments.json {
        put!("{}", serde_json::json!({"solves": solves, "pass": pass}));
        return Ok(());
    }
    solves::print(&solves)?;
    pass::print(&pass)
}

fn problem(dimension: usize, points: usize) -> Result<Problem, Failure> {
    let text = format!(
        "name = \"bench\"\n[domain]\ndimension = {dimension}\n[equation]\nreaction = \"1\"\nsource = \"1\"\n\
         [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
         [quadrature]\nrule = \"halton\"\npoints = {points}\n[solver]\nneurons = 1\n"
    );
    Ok(Problem::from_toml(&text, "bench", &Overrides::default())?)
}

fn grid(dimension: usize, directions: usize) -> Grid {
    let lines = (0..directions)
        .map(|k| {
            let omega = unit_vector(&philox_uniforms(1, 3, k as u64, dimension), dimension);
            // From where every point is active to where hardly any is.
            let high: f64 = omega.iter().map(|o| o.max(0.0)).sum();
            let low: f64 = omega.iter().map(|o| o.min(0.0)).sum();
            let knots = Knots {
                first: low,
                step: 0.8 * (high - low) / OFFSETS as f64,
                count: OFFSETS,
            };
            Line { omega, knots }
        })
        .collect();
    Grid::new(lines, false)
}

fn measure(
    dimension: usize,
    points: usize,
    directions: usize,
    gpu: Option<&Arc<Gpu>>,
) -> Result<Measurement, Failure> {
    let problem = problem(dimension, points)?;
    let loss = problem.loss(1, Purpose::Training)?;
    let grid = grid(dimension, directions);
    let u = Network::single(
        Activation::Relu(2),
        &Neuron {
            omega: grid.lines[0].omega.clone(),
            bias: 0.1,
        },
    );
    let evaluations = points as f64 * grid.len() as f64;
    let along = Candidates::Grid(&grid);
    let plain = plain_loop(&problem, &u, &grid)?;
    let difference = |scores: &[f64]| {
        let off = plain
            .scores
            .iter()
            .map(|&(index, score, size)| (scores[index] - score).abs() / size);
        off.fold(0.0, f64::max)
    };
    let cpu = CpuSums::new(loss.clone(), Activation::Relu(2), CpuOptions::default())?;
    let (cpu_seconds, cpu_scores) = fastest(|| {
        let scores = cpu.gradient(&u)?.scores(along, Accuracy::Full)?;
        Ok(scores.values)
    })?;
    let on_gpu = |precision: Precision| -> Result<Option<(f64, f64, Option<f64>)>, Failure> {
        let Some(gpu) = gpu else {
            return Ok(None);
        };
        if precision == Precision::F64 && !gpu.report().f64 {
            return Ok(None);
        }
        let options = GpuOptions {
            precision: PrecisionChoice::Auto,
            resident_bytes: 1 << 30,
            cpu: CpuOptions::default(),
        };
        let sums = GpuSums::new(
            Arc::clone(gpu),
            loss.clone(),
            &problem.domain,
            Activation::Relu(2),
            options,
        );
        // The first call compiles the shaders and sends the points up.
        sums.raw_scores(&u, along, precision)?;
        let before = gpu.busy_seconds();
        let (seconds, scores) = fastest(|| Ok(sums.raw_scores(&u, along, precision)?))?;
        let device = before
            .zip(gpu.busy_seconds())
            .map(|(before, after)| (after - before) / REPEATS as f64);
        Ok(Some((seconds, difference(&scores), device)))
    };
    let narrow = on_gpu(Precision::F32)?;
    let wide = on_gpu(Precision::F64)?;
    let rate = |seconds: f64| evaluations / seconds / 1e6;
    Ok(Measurement {
        dimension,
        points,
        candidates: grid.len(),
        plain: plain.rate,
        cpu: rate(cpu_seconds),
        cpu_speedup: rate(cpu_seconds) / plain.rate,
        adapter: gpu.map(|gpu| gpu.report().name.clone()),
        gpu_f32: narrow.map(|(seconds, ..)| rate(seconds)),
        gpu_f32_speedup: narrow.map(|(seconds, ..)| rate(seconds) / plain.rate),
        gpu_f64: wide.map(|(seconds, ..)| rate(seconds)),
        gpu_f32_device: narrow.and_then(|(.., device)| device).map(rate),
        cpu_difference: difference(&cpu_scores),
        gpu_f32_difference: narrow.map(|(_, difference, _)| difference),
        gpu_f64_difference: wide.map(|(_, difference, _)| difference),
    })
}

const REPEATS: usize = 3;

/// The shortest of a few repetitions: other programs only ever make one slower.
fn fastest<T>(mut action: impl FnMut() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..REPEATS {
        let started = Instant::now();
        result = Some(action()?);
        best = best.min(started.elapsed().as_secs_f64());
    }
    match result {
        Some(result) => Ok((best, result)),
        None => unreachable!("there is at least one repetition"),
    }
}

struct PlainLoop {
    /// Million evaluations per second.
    rate: f64,
    /// Candidate, score, sum of the terms' sizes.
    scores: Vec<(usize, f64, f64)>,
}

/// The scores as anyone would write them: one thread, one candidate after the other, f64.
fn plain_loop(problem: &Problem, u: &Network, grid: &Grid) -> Result<PlainLoop, Failure> {
    let dimension = problem.dimension();
    let points = PointSet::new(&problem.domain, Region::Interior, problem.quadrature.rule, 0)
        .map_err(|error| Failure::Solve(error.to_string()))?;
    let mut tile = Tile::default();
    points.fill(0..points.len(), &mut tile);
    // Rows of x, ρ of the value and ρ of the gradient.
    let width = 2 * dimension + 1;
    let mut rows = vec![0.0; tile.len() * width];
    for (i, row) in rows.chunks_mut(width).enumerate() {
        let x = tile.point(i);
        row[dimension] = tile.weights[i] * (u.value(&x) - 1.0);
        for (d, slope) in u.gradient(&x).into_iter().enumerate() {
            row[d] = x[d];
            row[dimension + 1 + d] = tile.weights[i] * slope;
        }
    }
    let chosen: Vec<usize> = (0..PLAIN).map(|k| k * (grid.len() - 1) / PLAIN).collect();
    let started = Instant::now();
    let scores: Vec<(usize, f64, f64)> = chosen
        .into_iter()
        .map(|index| {
            let neuron = grid.neuron(index);
            let (mut score, mut size) = (0.0, 0.0);
            for row in rows.chunks_exact(width) {
                let (mut z, mut along) = (neuron.bias, 0.0);
                for d in 0..dimension {
                    z += neuron.omega[d] * row[d];
                    along += neuron.omega[d] * row[dimension + 1 + d];
                }
                if z > 0.0 {
                    let term = row[dimension] * z * z + 2.0 * along * z;
                    score += term;
                    size += term.abs();
                }
            }
            (index, score, size.max(f64::MIN_POSITIVE))
        })
        .collect();
    let rate = (PLAIN * points.len()) as f64 / started.elapsed().as_secs_f64() / 1e6;
    Ok(PlainLoop { rate, scores })
}

fn print(measurements: &[Measurement], gpu: Option<&Gpu>) -> Result<(), Failure> {
    let header = [
        "d",
        "points",
        "candidates",
        "plain loop",
        "CPU path",
        "×",
        "GPU f32",
        "×",
        "GPU f64",
        "GPU f32 (device clock)",
        "CPU off by",
        "f32 off by",
        "f64 off by",
    ];
    let rate = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.0}"));
    let times = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.1}"));
    let off = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.0e}"));
    let lines = measurements
        .iter()
        .map(|m| {
            vec![
                m.dimension.to_string(),
                m.points.to_string(),
                m.candidates.to_string(),
                rate(Some(m.plain)),
                rate(Some(m.cpu)),
                times(Some(m.cpu_speedup)),
                rate(m.gpu_f32),
                times(m.gpu_f32_speedup),
                rate(m.gpu_f64),
                rate(m.gpu_f32_device),
                off(Some(m.cpu_difference)),
                off(m.gpu_f32_difference),
                off(m.gpu_f64_difference),
            ]
        })
        .collect();
    put!(
        "Million evaluations of a neuron per second; {} threads; GPU: {}",
        rayon::current_num_threads(),
        gpu.map_or("none", |gpu| &gpu.report().name)
    );
    put!("{}", table::plain(header, lines));
    Ok(())
}

/// Rates of wrong results are worth nothing.
fn disagreement(measurements: &[Measurement]) -> Result<(), Failure> {
    for m in measurements {
        let bad = m.cpu_difference > AGREEMENT.1
            || m.gpu_f32_difference
                .is_some_and(|difference| difference > AGREEMENT.0)
            || m.gpu_f64_difference
                .is_some_and(|difference| difference > AGREEMENT.1);
        if bad {
            return Err(Failure::Solve(format!(
                "the paths disagree at d = {}, {} points",
                m.dimension, m.points
            )));
        }
    }
    Ok(())
}
