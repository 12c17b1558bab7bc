//! `greedy-pde bench cluster`: how a pass over the points and a step scale with the number of processes, in one run.

use super::arguments::BenchArguments;
use super::companions::cluster;
use super::streams::{put, tell};
use super::{Failure, table, use_threads};
use greedy_pde::cluster::{Cluster, Traffic};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::{BackendChoice, Event, RunOptions, run, table_axes};
use greedy_pde::sums::{MomentTables, PassOptions};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Instant;

const PASS: &str = include_str!("../../configs/ex5_elliptic_10d.toml");
const STEP: &str = include_str!("../../configs/ex3_energy.toml");
/// Points of the pass unless others are asked for: groups enough for four processes.
const PASS_POINTS: usize = 20_000_000;
/// Cells of the two-dimensional example in each direction, and the neurons whose steps are timed, after the first few.
const CELLS: usize = 400;
const NEURONS: usize = 24;
const FIRST: usize = 8;

/// Messages of the wire's measurement, there and back, short and long.
const SHORT: (usize, usize) = (1, 2000);
const LONG: (usize, usize) = (1 << 17, 200);

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Pass,
    Step,
}

/// One line of the table.
#[derive(Debug, Serialize)]
struct Measurement {
    work: Work,
    /// Whether the points grow with the processes.
    weak: bool,
    processes: usize,
    points: usize,
    /// Of a pass, or of a step.
    seconds: f64,
    /// Against one process.
    efficiency: f64,
    /// What a process sent, the most of all.
    bytes: u64,
    messages: u64,
}

/// All that is told.
#[derive(Debug, Serialize)]
struct Scaling {
    /// Seconds of a short message.
    latency: Option<f64>,
    /// Bytes a second of long ones.
    bandwidth: Option<f64>,
    measurements: Vec<Measurement>,
}

pub(super) fn execute(arguments: &BenchArguments) -> Result<(), Failure> {
    use_threads(arguments.threads)?;
    let cluster = cluster();
    let points = arguments.pass_points.unwrap_or(PASS_POINTS);
    let mut measurements: Vec<Measurement> = Vec::new();
    let wire = wire(cluster);
    cluster.all_end(f64::INFINITY);
    for (work, weak) in [
        (Work::Pass, false),
        (Work::Pass, true),
        (Work::Step, false),
        (Work::Step, true),
    ] {
        let mut alone = None;
        for processes in sizes(cluster.size()) {
            tell!(
                "{}, {} scaling, {processes} process{}",
                match work {
                    Work::Pass => "the pass over the points",
                    Work::Step => "a step",
                },
                if weak { "weak" } else { "strong" },
                if processes == 1 { "" } else { "es" }
            );
            // As many points for each process as the half of all has.
            let share = if weak { 0.5 * processes as f64 } else { 1.0 };
            let done = cluster.first(processes).map(|part| match work {
                Work::Pass => pass(&part, (share * points as f64) as usize),
                Work::Step => step(&part, (share.sqrt() * CELLS as f64).round() as usize),
            });
            // Those without a part wait asleep: they must not take the others' time.
            cluster.all_end(f64::INFINITY);
            let (points, seconds, sent) = done.unwrap_or(Ok((0, 0.0, Traffic::default())))?;
            let most = |number: u64| cluster.words_of_all(number).into_iter().max().unwrap_or(0);
            let first = *alone.get_or_insert(seconds);
            let work_of_each = if weak { 1.0 } else { processes as f64 };
            measurements.push(Measurement {
                work,
                weak,
                processes,
                points,
                seconds,
                efficiency: first / (work_of_each * seconds),
                bytes: most(sent.bytes),
                messages: most(sent.messages),
            });
        }
    }
    match arguments.json {
        true => {
            let json = serde_json::to_string(&Scaling {
                latency: wire.map(|(latency, _)| latency),
                bandwidth: wire.map(|(_, bandwidth)| bandwidth),
                measurements,
            });
            put!("{}", json.map_err(|error| Failure::Solve(error.to_string()))?);
        }
        false => print(wire, &measurements)?,
    }
    Ok(())
}

/// How fast messages go between the first process and the last: seconds of a short one, and bytes a second of long ones.
fn wire(cluster: &Cluster) -> Option<(f64, f64)> {
    let one_way = |(words, times): (usize, usize)| {
        let mut words = vec![0.0; words];
        cluster.to_and_fro(&mut words);
        let started = Instant::now();
        (0..times).for_each(|_| cluster.to_and_fro(&mut words));
        started.elapsed().as_secs_f64() / (2 * times) as f64
    };
    let seconds = (!cluster.is_alone()).then(|| [SHORT, LONG].map(one_way))?;
    Some((seconds[0], (8 * LONG.0) as f64 / seconds[1]))
}

/// 1, 2, 4, … and all.
fn sizes(all: usize) -> Vec<usize> {
    let powers = (0..).map(|power| 1 << power).take_while(|&size| size < all);
    powers.chain([all]).collect()
}

/// Points, seconds, and what was sent.
type Timed = Result<(usize, f64, Traffic), Failure>;

/// One pass for the tables of example 5.
fn pass(cluster: &Cluster, points: usize) -> Timed {
    let overrides = Overrides {
        points: Some(points),
        ..Overrides::default()
    };
    let problem = Problem::from_toml(PASS, "ex5_elliptic_10d", &overrides)?;
    let loss = problem.loss(1, Purpose::Training)?;
    let (power, axes) = table_axes(&problem, &loss)
        .ok_or_else(|| Failure::Input("tables need more points: give at least 20000".to_string()))?;
    let options = PassOptions {
        cluster: cluster.clone(),
        ..PassOptions::default()
    };
    let (started, before) = (Instant::now(), cluster.traffic());
    let mut unobserved = |_, _| ControlFlow::Continue(());
    MomentTables::new(&loss.terms[0], power, axes, options, &mut unobserved)?;
    Ok((
        points,
        started.elapsed().as_secs_f64(),
        cluster.traffic() - before,
    ))
}

/// The mean of some steps of example 3, validation included.
fn step(cluster: &Cluster, cells: usize) -> Timed {
    let overrides = Overrides {
        cells: Some(cells),
        neurons: Some(NEURONS),
        ..Overrides::default()
    };
    let problem = Problem::from_toml(STEP, "ex3_energy", &overrides)?;
    let options = RunOptions {
        cluster: cluster.clone(),
        backend: BackendChoice::Cpu,
        ..RunOptions::default()
    };
    let mut seen = Vec::new();
    let (report, _) = run(&problem, &options, &mut |event| {
        if let Event::Step(step) = event {
            seen.push((step.row.n, Instant::now(), cluster.traffic()));
        }
        ControlFlow::Continue(())
    })?;
    let first = seen.iter().find(|(n, ..)| *n >= FIRST);
    let (Some(first), Some(last)) = (first, seen.last()) else {
        return Err(Failure::Solve("no step was taken".to_string()));
    };
    let steps = (last.0 - first.0).max(1);
    let sent = last.2 - first.2;
    let sent = Traffic {
        bytes: sent.bytes / steps as u64,
        messages: sent.messages / steps as u64,
    };
    let seconds = (last.1 - first.1).as_secs_f64() / steps as f64;
    Ok((report.points, seconds, sent))
}

fn print(wire: Option<(f64, f64)>, measurements: &[Measurement]) -> Result<(), Failure> {
    if let Some((latency, bandwidth)) = wire {
        put!(
            "From the first process to the last: {:.1} µs a message, {:.2} GB a second in messages of 1 MiB",
            1e6 * latency,
            1e-9 * bandwidth
        );
    }
    let header = [
        "work",
        "scaling",
        "processes",
        "points",
        "seconds",
        "efficiency",
        "MB sent",
        "messages",
    ];
    let lines = measurements.iter().map(|m| {
        vec![
            match m.work {
                Work::Pass => "pass, 10-D".to_string(),
                Work::Step => "step, 2-D".to_string(),
            },
            if m.weak { "weak" } else { "strong" }.to_string(),
            m.processes.to_string(),
            m.points.to_string(),
            format!("{:.3}", m.seconds),
            format!("{:.2}", m.efficiency),
            format!("{:.2}", m.bytes as f64 / 1e6),
            m.messages.to_string(),
        ]
    });
    put!("What a process sends in a pass or in a step, the most of all; efficiency against one process");
    put!("{}", table::plain(header, lines.collect()));
    Ok(())
}
