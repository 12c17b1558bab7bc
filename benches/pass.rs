//! Neurons along the axes in 10-D: doubling the points doubles the pass over them and nothing else.
//! Run with `cargo bench --bench pass`.

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;

const EXAMPLE: &str = include_str!("../configs/ex5_elliptic_10d.toml");
const NEURONS: usize = 64;

fn main() {
    println!(
        "{:>9} {:>12} {:>22} {:>26}",
        "points", "pass (s)", "pass per million (s)", "after it, per neuron (ms)"
    );
    for points in [4_000_000, 8_000_000, 16_000_000, 32_000_000] {
        let overrides = Overrides {
            points: Some(points),
            neurons: Some(NEURONS),
            ..Overrides::default()
        };
        let mut problem =
            Problem::from_toml(EXAMPLE, "ex5_elliptic_10d", &overrides).expect("the shipped file is valid");
        // One pass only, so that the figures are of these points.
        problem.settings.guard = false;
        let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .expect("the shipped example runs");
        let seconds = &report.seconds;
        let after = seconds.argmax + seconds.gram + seconds.projection;
        println!(
            "{points:>9} {:>12.2} {:>22.3} {:>26.2}",
            seconds.points,
            1e6 * seconds.points / points as f64,
            1e3 * after / report.neurons as f64
        );
    }
}
