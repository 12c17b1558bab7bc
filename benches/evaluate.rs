//! A million points in two dimensions at n = 128: the library's own time, which `benches/evaluate.py` compares with.
//!
//!     cargo bench --bench evaluate
//!
//! With `GREEDY_PDE_RUN=DIR` the network is that of a result directory, else one that is solved for here.

use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::results::SavedRun;
use greedy_pde::run::{RunOptions, run};
use greedy_pde::sample::values;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

const SIDE: usize = 1000;
const REPEATS: usize = 40;

fn network() -> Result<Network, Box<dyn Error>> {
    if let Some(directory) = std::env::var_os("GREEDY_PDE_RUN") {
        return Ok(SavedRun::load(Path::new(&directory))?.network);
    }
    let overrides = Overrides {
        neurons: Some(128),
        cells: Some(250),
        ..Overrides::default()
    };
    let text = include_str!("../configs/ex3_energy.toml");
    let problem = Problem::from_toml(text, "ex3_energy.toml", &overrides)?;
    let (_, network) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })?;
    Ok(network)
}

fn main() -> Result<(), Box<dyn Error>> {
    let network = network()?;
    // A grid on the square, the same that Python takes.
    let place = |index: usize| index as f64 / (SIDE - 1) as f64;
    let points = [
        (0..SIDE * SIDE).map(|k| place(k / SIDE)).collect(),
        (0..SIDE * SIDE).map(|k| place(k % SIDE)).collect(),
    ];
    let mut best = f64::INFINITY;
    let mut sum = 0.0;
    for _ in 0..REPEATS {
        let started = Instant::now();
        let u = values(&network, &points);
        best = best.min(started.elapsed().as_secs_f64());
        sum = u.iter().sum();
    }
    println!(
        "{{\"neurons\": {}, \"points\": {}, \"seconds\": {best}, \"sum\": {sum}}}",
        network.len(),
        SIDE * SIDE
    );
    Ok(())
}
