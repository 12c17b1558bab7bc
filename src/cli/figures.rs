//! The paper's two figures.

use super::progress::ProgressLine;
use super::{Failure, ReproduceArguments};
use greedy_pde::network::Network;
use greedy_pde::network_file::write_atomically;
use greedy_pde::page::{along_an_interval, over_a_square};
use greedy_pde::plot::Picture;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::run;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// How a figure is made.
pub(super) struct Figure {
    pub(super) name: &'static str,
    config: &'static str,
    /// The number of neurons unless another is asked for.
    neurons: usize,
    draw: fn(&Problem, &Network) -> Picture,
}

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "figure-ex2",
        config: include_str!("../../configs/ex2_three_peaks.toml"),
        neurons: 128,
        draw: |problem, network| {
            let (mut chart, _) = along_an_interval(problem, network);
            chart.title = format!(
                "Example 2: grid points of a network with {} neurons",
                network.len()
            );
            chart.draw()
        },
    },
    // The paper draws n = 4096; `--max-neurons 4096` does, too, but takes far longer.
    Figure {
        name: "figure-ex6",
        config: include_str!("../../configs/ex6_poisson_boltzmann.toml"),
        neurons: 1024,
        draw: |problem, network| {
            let (mut map, _) = over_a_square(problem, network);
            map.title = format!("Example 6: Poisson-Boltzmann by RGA, {} neurons", network.len());
            map.draw()
        },
    },
];

/// Solves the figure's problem and writes the picture.
pub(super) fn make(figure: &Figure, arguments: &ReproduceArguments) -> Result<(), Failure> {
    let path = arguments.output.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("{}.svg", figure.name)));
    if path.exists() && !arguments.force {
        return Err(Failure::Input(format!(
            "{}: is there already; nothing was changed. Use --force to overwrite it, or --output for another file",
            path.display()
        )));
    }
    let neurons = arguments.max_neurons.unwrap_or(figure.neurons);
    let overrides = Overrides {
        neurons: Some(neurons),
        ..Overrides::default()
    };
    let problem = Problem::from_toml(figure.config, figure.name, &overrides)?;
    let progress = ProgressLine::new(neurons, arguments.quiet);
    let (_, network) = run(&problem, &arguments.backend.run_options(), &mut |event| {
        progress.show(event);
        ControlFlow::Continue(())
    })?;
    progress.finish();
    let picture = (figure.draw)(&problem, &network);
    write_atomically(&path, picture.file().as_bytes())
        .map_err(|error| Failure::Solve(format!("{}: cannot be written: {error}", path.display())))?;
    println!("{}", path.display());
    Ok(())
}
