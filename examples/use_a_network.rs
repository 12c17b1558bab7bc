//! Saves a network, loads it again, and takes values and derivatives at many points.
//!
//!     cargo run --release --example use_a_network

use greedy_pde::network_file;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use greedy_pde::sample::{laplacian, of_network};
use greedy_pde::symbol::Symbol;
use std::error::Error;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn Error>> {
    let overrides = Overrides {
        neurons: Some(64),
        cells: Some(100),
        ..Overrides::default()
    };
    let problem = Problem::from_path("configs/ex3_energy.toml".as_ref(), &overrides)?;
    let (_, network) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })?;

    let path = std::env::temp_dir().join("greedy-pde-example.safetensors");
    network_file::save(&path, &network, &[("problem", problem.name.clone())])?;
    let (network, notes) = network_file::load(&path)?;
    println!("{} neurons for {}", network.len(), notes["problem"]);

    // One point …
    println!(
        "u = {:+.5}, ∇u = {:?}",
        network.value(&[0.25, 0.5]),
        network.gradient(&[0.25, 0.5])
    );

    // … or a million at once, column by column.
    let side = 1000;
    let x: Vec<f64> = (0..side * side)
        .map(|i| (i % side) as f64 / side as f64)
        .collect();
    let y: Vec<f64> = (0..side * side)
        .map(|i| (i / side) as f64 / side as f64)
        .collect();
    let columns = of_network(&network, &[Symbol::value(), laplacian(2)], &[x, y]);
    let largest = columns[0]
        .iter()
        .fold(f64::NEG_INFINITY, |largest, u| largest.max(*u));
    println!("the largest of {} values is {largest:.4}", columns[0].len());
    std::fs::remove_file(path)?;
    Ok(())
}
