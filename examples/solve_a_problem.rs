//! Defines a problem in Rust, solves it and prints its errors.
//!
//!     cargo run --release --example solve_a_problem

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use std::error::Error;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn Error>> {
    // A problem is text, as in a file: formulas can be differentiated, closures cannot.
    for wave_number in [1, 2, 4] {
        let text = format!(
            r#"
            name = "waves"
            [domain]
            dimension = 1
            [constants]
            k = {wave_number}.0
            [equation]
            diffusion = "1 + x^2"
            reaction = "1"
            exact = "sin(k*pi*x)"
            [boundary]
            condition = "neumann"
            [dictionary]
            activation = "relu^2"
            [quadrature]
            rule = "gauss"
            cells = 1000
            [solver]
            neurons = 64
            "#
        );
        let problem = Problem::from_toml(&text, "waves", &Overrides::default())?;
        let (report, network) = run(&problem, &RunOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })?;
        let h1 = report.rows.last().and_then(|row| row.h1).unwrap_or(f64::NAN);
        println!(
            "k = {wave_number}: u(0.5) = {:+.6}, H1 error {h1:.1e} with {} neurons",
            network.value(&[0.5]),
            network.len()
        );
    }
    Ok(())
}
