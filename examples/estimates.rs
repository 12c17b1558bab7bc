//! The estimated errors of the shipped problems beside the true ones, at several n.
//!
//!     cargo run --release --example estimates

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Report;
use greedy_pde::run::{RunOptions, run};
use std::error::Error;
use std::ops::ControlFlow;

/// A shipped problem, its cells or points here, and the numbers of neurons.
type Run = (&'static str, Option<usize>, Option<usize>, &'static [usize]);

const RUNS: [Run; 12] = [
    ("ex1_neumann", None, None, &[16, 32, 64, 128]),
    ("ex1_dirichlet", None, None, &[16, 32, 64, 128]),
    ("ex1_pinn", None, None, &[16, 32, 64, 128]),
    ("ex2_three_peaks", None, None, &[16, 32, 64, 128]),
    ("ex3_energy", Some(100), None, &[16, 32, 64, 128]),
    ("ex3_pinn", None, None, &[16, 32, 64]),
    ("ex4_biharmonic", Some(100), None, &[16, 32, 64, 128]),
    ("ex5_elliptic_10d", None, Some(1_000_000), &[16, 32, 64, 128]),
    ("separable_6d", None, Some(65_536), &[16, 32, 64, 128]),
    ("cube_3d", Some(12), None, &[16, 32, 64]),
    ("ex6_oga", None, None, &[16, 32, 64]),
    ("ex6_poisson_boltzmann", None, None, &[64, 128]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1);
    println!(
        "| problem | n | L2 error | estimate | ratio | H1 error | estimate | ratio | energy | estimate | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, cells, points, neurons) in RUNS {
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted)) {
            continue;
        }
        for &neurons in neurons {
            let path = format!("configs/{name}.toml");
            let overrides = Overrides {
                neurons: Some(neurons),
                cells,
                points,
                seed: None,
            };
            let problem = Problem::from_toml(&std::fs::read_to_string(&path)?, &path, &overrides)?;
            let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
                ControlFlow::Continue(())
            })?;
            println!("{}", line(name, &report));
        }
    }
    Ok(())
}

fn line(name: &str, report: &Report) -> String {
    let (Some(row), Some(estimate)) = (report.rows.last(), &report.estimate) else {
        return String::new();
    };
    let energy = row.energy.filter(|_| row.excess.is_none()).zip(estimate.energy);
    let pairs = [
        row.l2.map(|l2| (l2, estimate.l2)),
        row.h1.map(|h1| (h1, estimate.h1)),
        energy,
    ];
    let cells = pairs.map(|pair| match pair {
        Some((error, estimate)) => format!("{error:.2e} | {estimate:.2e} | {:.2}", estimate / error),
        None => "| |".to_string(),
    });
    for warning in &report.warnings {
        eprintln!("{name}: {warning}");
    }
    format!("| {name} | {} | {} |", report.neurons, cells.join(" | "))
}
