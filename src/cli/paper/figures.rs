//! The paper's two figures.

use crate::cli::companions::first_only;
use crate::cli::new_file::NewFile;
use crate::cli::progress::run_shown;
use crate::cli::{Failure, ReproduceArguments};
use greedy_pde::network::Network;
use greedy_pde::page::{along_an_interval, over_a_square};
use greedy_pde::plot::Picture;
use greedy_pde::problem::{Overrides, Problem};
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
        config: include_str!("../../../configs/ex2_three_peaks.toml"),
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
        config: include_str!("../../../configs/ex6_poisson_boltzmann.toml"),
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
    let file = first_only(|| NewFile::at(&path, arguments.force))?;
    let neurons = arguments.max_neurons.unwrap_or(figure.neurons);
    let overrides = Overrides {
        neurons: Some(neurons),
        ..Overrides::default()
    };
    let problem = Problem::from_toml(figure.config, figure.name, &overrides)?;
    let (_, network) = run_shown(&problem, &arguments.backend.run_options(), arguments.quiet)?;
    let picture = (figure.draw)(&problem, &network);
    match file {
        Some(file) => file.write(picture.file().as_bytes()),
        None => Ok(()),
    }
}
