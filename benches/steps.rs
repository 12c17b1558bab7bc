//! The time of a step, part by part, and how each part grows with the points, the directions and the
//! neurons. Example 3 (2-D, energy), CPU path. Run with `cargo bench --bench steps`.

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;

const EXAMPLE: &str = include_str!("../configs/ex3_energy.toml");

fn main() {
    println!("milliseconds per step; of validation and errors, what falls on one step");
    // By slope as in the paper, with refinement; by decrease as is the default.
    table("slope");
    table("decrease");
}

fn table(selection: &str) {
    println!("\nneurons chosen by {selection}\n");
    println!(
        "{:>8} {:>10} {:>7} {:>9} {:>9} {:>9} {:>10} {:>10}",
        "points", "directions", "neurons", "scan", "refine", "Gram", "projection", "validation"
    );
    for (cells, directions, neurons) in [
        (50, 50, 64),
        (100, 50, 64),
        (200, 50, 64),
        (100, 25, 64),
        (100, 100, 64),
        (100, 200, 64),
        (100, 50, 16),
        (100, 50, 32),
        (100, 50, 128),
    ] {
        measure(selection, cells, directions, neurons);
    }
}

fn measure(selection: &str, cells: usize, directions: usize, neurons: usize) {
    let refine = selection == "slope";
    let text = EXAMPLE
        .replace(
            "candidates = 100",
            &format!("refine = {refine}\ncandidates = {directions}"),
        )
        .replace("[solver]", &format!("[solver]\nselection = \"{selection}\""));
    let overrides = Overrides {
        neurons: Some(neurons),
        cells: Some(cells),
        ..Overrides::default()
    };
    let problem =
        Problem::from_toml(&text, "ex3_energy.toml", &overrides).expect("the shipped file is valid");
    let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .expect("the shipped example runs");
    let per_step = |seconds: f64| 1e3 * seconds / report.neurons as f64;
    println!(
        "{:>8} {:>10} {:>7} {:>9.2} {:>9.2} {:>9.2} {:>10.3} {:>10.2}",
        report.points,
        directions,
        report.neurons,
        per_step(report.seconds.argmax),
        per_step(report.seconds.refine),
        per_step(report.seconds.gram),
        per_step(report.seconds.projection),
        per_step(report.seconds.validation),
    );
}
