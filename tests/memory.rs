//! `check` tells how much memory a run takes; here runs are made and measured.
//!
//! Each test starts itself once more as a process of its own, whose peak is read from the operating system.

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{Memory, RunOptions, run};
use std::ops::ControlFlow;
use std::process::Command;

/// Set in the process that makes the run.
const RUN: &str = "GREEDY_PDE_TEST_MAKE_THE_RUN";
/// Runs of each problem.
const RUNS: usize = 3;
/// How far the figure may be off, as a part of what is taken.
const TOLERANCE: f64 = 0.25;

/// Compares what [`Memory::of`] says of a problem with what its run takes.
fn told_truthfully(test: &str, text: &str) {
    let problem = Problem::from_toml(text, "memory.toml", &Overrides::default()).unwrap();
    if std::env::var_os(RUN).is_some() {
        run(&problem, &RunOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        println!("peak: {}", peak());
        return;
    }
    let told = Memory::of(&problem).unwrap();
    // How threads meet differs from run to run: the most of three is what a run may take.
    let taken = (0..RUNS).map(|_| peak_of_a_run(test)).fold(0.0, f64::max);
    let off = told.total() as f64 / taken - 1.0;
    let figures = format!(
        "told {told:?}, in all {}; taken {taken}: off by {off:.2}",
        told.total()
    );
    println!("{test}: {figures}");
    assert!(off.abs() <= TOLERANCE, "{figures}");
}

/// Makes the run of a test in a process of its own; its peak in bytes.
fn peak_of_a_run(test: &str) -> f64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(RUN, "1")
        // The same figure on every machine.
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let peak = out.lines().find_map(|line| line.split_once("peak: "));
    match peak {
        Some((_, bytes)) => bytes.parse().unwrap(),
        None => panic!("{out}\n{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// The largest resident size that this process had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    1024 * kib
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn one_dimension() {
    told_truthfully(
        "one_dimension",
        r#"
        name = "one"
        domain = { shape = "box", dimension = 1, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "cos(pi*x)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^2", offsets = 1000 }
        quadrature = { rule = "gauss", cells = 500000, order = 2 }
        solver = { neurons = 3 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn many_directions() {
    told_truthfully(
        "many_directions",
        r#"
        name = "many directions"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "cos(2*pi*x)*cos(2*pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^2", candidates = 4000, offsets = 1000, refine = false }
        quadrature = { rule = "gauss", cells = 60, order = 2 }
        solver = { neurons = 2, selection = "slope" }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn many_directions_by_decrease() {
    told_truthfully(
        "many_directions_by_decrease",
        r#"
        name = "many directions"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "cos(2*pi*x)*cos(2*pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^2", candidates = 1000, offsets = 1000, refine = false }
        quadrature = { rule = "gauss", cells = 60, order = 2 }
        solver = { neurons = 2, selection = "decrease" }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn smooth_neurons_by_decrease() {
    told_truthfully(
        "smooth_neurons_by_decrease",
        r#"
        name = "smooth"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "cos(2*pi*x)*cos(2*pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "tanh", candidates = 5, offsets = 10 }
        quadrature = { rule = "gauss", cells = 250, order = 2 }
        solver = { neurons = 2, selection = "decrease" }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn residual_at_random_points() {
    told_truthfully(
        "residual_at_random_points",
        r#"
        name = "residual"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "residual", operator = "-laplacian(u) + u", exact = "cos(2*pi*x)*cos(2*pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^3", candidates = 10 }
        quadrature = { rule = "monte_carlo", points = 700000 }
        solver = { neurons = 2 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn penalty_with_orthogonal_values() {
    told_truthfully(
        "penalty_with_orthogonal_values",
        r#"
        name = "penalty"
        domain = { shape = "box", dimension = 1, lower = -1.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "cos(pi/2*x)" }
        boundary = { condition = "dirichlet", penalty = "0.1 * n^-2" }
        dictionary = { activation = "relu^2", offsets = 1000 }
        quadrature = { rule = "gauss", cells = 50000, order = 2 }
        solver = { neurons = 80 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn moment_tables() {
    told_truthfully(
        "moment_tables",
        r#"
        name = "tables"
        domain = { shape = "box", dimension = 10, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "sum(i, cos(pi*x[i]))" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^2", directions = "axes", offsets = 256 }
        quadrature = { rule = "halton", points = 300000 }
        solver = { neurons = 4 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn ten_dimensions_all_around() {
    told_truthfully(
        "ten_dimensions_all_around",
        r#"
        name = "sphere"
        domain = { shape = "box", dimension = 10, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", reaction = "1", exact = "sum(i, cos(pi*x[i]))" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^2", directions = "sphere", candidates = 64, refine = false }
        quadrature = { rule = "halton", points = 200000 }
        solver = { neurons = 2 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn potential_relaxed() {
    told_truthfully(
        "potential_relaxed",
        r#"
        name = "potential"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 2, diffusion = "1", potential = "cosh(u)", exact = "cos(pi*x)*cos(pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "sigmoid", directions = "box", weights = [-10, 10], candidates = 16, offsets = 10 }
        quadrature = { rule = "monte_carlo", points = 800000 }
        solver = { algorithm = "rga", radius = 10.0, neurons = 4 }
        "#,
    );
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore)]
fn fourth_order() {
    told_truthfully(
        "fourth_order",
        r#"
        name = "plate"
        domain = { shape = "box", dimension = 2, lower = 0.0, upper = 1.0 }
        equation = { formulation = "energy", order = 4, diffusion = "1", reaction = "1", exact = "cos(pi*x)*cos(pi*y)" }
        boundary = { condition = "neumann" }
        dictionary = { activation = "relu^3", candidates = 10 }
        quadrature = { rule = "gauss", cells = 300, order = 2 }
        solver = { neurons = 2 }
        "#,
    );
}
