//! What several test files share: running the program as a user does, the laws of sums.

#![allow(dead_code, unused_imports)]

#[cfg(feature = "gpu")]
pub mod adapter;
pub mod laws;
#[cfg(feature = "cli")]
mod program;

#[cfg(feature = "cli")]
pub use program::{greedy_pde, start_long_run, start_run};

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::{Report, Row};
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Output;

/// Solves on the CPU.
pub fn solve(problem: &Problem) -> Report {
    run(
        problem,
        &RunOptions::default(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap()
    .0
}

/// A shipped problem.
pub fn config(name: &str, overrides: Overrides) -> Problem {
    Problem::from_path(format!("configs/{name}.toml").as_ref(), &overrides).unwrap()
}

/// Another number of neurons.
pub fn neurons(n: usize) -> Overrides {
    Overrides {
        neurons: Some(n),
        ..Overrides::default()
    }
}

/// The least-squares slope of log error against log n from n = `from` on.
pub fn rate(rows: &[Row], from: usize, value: fn(&Row) -> Option<f64>) -> f64 {
    let points: Vec<(f64, f64)> = rows
        .iter()
        .filter(|row| row.n >= from)
        .map(|row| ((row.n as f64).ln(), value(row).unwrap().ln()))
        .collect();
    let count = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mx) * (x - mx)).sum();
    -covariance / variance
}

/// The row at n.
pub fn row(report: &Report, n: usize) -> &Row {
    report.rows.iter().find(|row| row.n == n).unwrap()
}

/// A small problem that is solved in no time.
pub const SMALL: &str = r#"name = "small"

[domain]
dimension = 1
lower = -1.0
upper = 1.0

[equation]
diffusion = "1"
reaction = "1"
exact = "cos(pi*x)"

[boundary]
condition = "neumann"

[dictionary]
activation = "relu^2"

[quadrature]
rule = "gauss"
cells = 100

[solver]
neurons = 20
"#;

/// Writes a problem file into a directory.
pub fn write(directory: &Path, text: &str) {
    std::fs::write(directory.join("problem.toml"), text).unwrap();
}

/// What a program printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A problem that takes long enough to be disturbed.
pub fn long() -> String {
    SMALL
        .replace("cells = 100", "cells = 3000")
        .replace("neurons = 20", "neurons = 1500")
}
