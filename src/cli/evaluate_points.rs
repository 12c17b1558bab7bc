//! `greedy-pde evaluate`: a saved network at listed points.

use super::export::moved;
use super::number_lines::NumberLines;
use super::streams::{failed, tell};
use super::table::csv_line;
use super::{EvaluateArguments, Failure};
use greedy_pde::domain::Domain;
use greedy_pde::network::Network;
use greedy_pde::network_file;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::results::{PROBLEM, SavedRun};
use greedy_pde::sample::{laplacian, of_network};
use greedy_pde::symbol::Symbol;
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub(super) fn execute(arguments: &EvaluateArguments) -> Result<(), Failure> {
    let Evaluated { network, domain } = Evaluated::load(&arguments.network, arguments.time)?;
    let d = network.dimension;
    let mut header: Vec<String> = (1..=d).map(|i| format!("x{i}")).collect();
    let mut symbols = vec![Symbol::value()];
    header.push("u".to_string());
    if arguments.gradient {
        symbols.extend((0..d).map(|i| Symbol::derivative([i])));
        header.extend((1..=d).map(|i| format!("du_dx{i}")));
    }
    if arguments.laplacian {
        symbols.push(laplacian(d));
        header.push("laplacian_u".to_string());
    }
    let mut points = NumberLines::open(&arguments.points, d, "a point")?;
    let (mut outside, mut all) = (0, 0);
    // What is wrong at once is said before anything is printed.
    let mut next = points.chunk()?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", header.join(",")).map_err(failed)?;
    while let Some(chunk) = next {
        all += chunk[0].len();
        outside += domain.as_ref().map_or(0, |domain| count_outside(domain, &chunk));
        for line in lines(&network, &symbols, &chunk) {
            writeln!(out, "{line}").map_err(failed)?;
        }
        next = points.chunk()?;
    }
    out.flush().map_err(failed)?;
    if outside > 0 {
        tell!("warning: {outside} of {all} points are outside the domain: nothing is known about u there");
    }
    Ok(())
}

/// A network, and the domain of its problem where it is known.
struct Evaluated {
    network: Network,
    domain: Option<Domain>,
}

impl Evaluated {
    /// From a result directory, or from a network's file, whose problem may stand beside it.
    fn load(path: &Path, time: Option<f64>) -> Result<Self, Failure> {
        if path.is_dir() {
            let run = moved(SavedRun::load(path)?, time)?;
            return Ok(Self {
                network: run.network,
                domain: Some(run.problem.domain),
            });
        }
        if time.is_some() {
            let message = format!("{}: --time needs the directory of a run in time", path.display());
            return Err(Failure::Input(message));
        }
        let (network, notes) = network_file::load(path).map_err(|error| Failure::Input(error.to_string()))?;
        let beside = Problem::from_path(&path.with_file_name(PROBLEM), &Overrides::default()).ok();
        let domain = beside
            .filter(|problem| {
                notes.get("problem") == Some(&problem.name) && problem.dimension() == network.dimension
            })
            .map(|problem| problem.domain);
        Ok(Self { network, domain })
    }
}

/// How many points are outside.
pub(super) fn count_outside(domain: &Domain, points: &[Vec<f64>]) -> usize {
    (0..points[0].len())
        .filter(|index| !domain.contains(points.iter().map(|x| x[*index])))
        .count()
}

/// Points and values, line by line.
fn lines(network: &Network, symbols: &[Symbol], points: &[Vec<f64>]) -> Vec<String> {
    let values = of_network(network, symbols, points);
    let count = points.first().map_or(0, Vec::len);
    (0..count)
        .map(|row| csv_line(points.iter().chain(&values), row))
        .collect()
}
