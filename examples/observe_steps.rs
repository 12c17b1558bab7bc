//! Watches every step of a run and ends it when the solution is good enough.
//!
//!     cargo run --release --example observe_steps

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{Event, RunOptions, run};
use std::error::Error;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn Error>> {
    let problem = Problem::from_path("configs/ex2_three_peaks.toml".as_ref(), &Overrides::default())?;
    let options = RunOptions {
        // Errors are measured at n = 1, 2, 4, 8, … and here.
        rows_at: (1..=128).step_by(8).collect(),
        ..RunOptions::default()
    };
    let (report, network) = run(&problem, &options, &mut |event| {
        let Event::Step(step) = event else {
            return ControlFlow::Continue(());
        };
        let Some(newest) = step.network.neurons.last() else {
            return ControlFlow::Continue(());
        };
        println!(
            "n = {:3}: a neuron at x = {:+.4}, score {:.1e}",
            step.row.n,
            -newest.bias / newest.omega[0],
            step.row.score
        );
        match step.row.h1 {
            Some(h1) if h1 < 0.05 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })?;
    println!("{} neurons were enough ({:?})", network.len(), report.stopped);
    Ok(())
}
