//! `greedy-pde report`: a run as a page with plots.

use super::output::{HISTORY, NETWORK, PROBLEM, RESULT};
use super::{Failure, ReportArguments};
use greedy_pde::network_file::{self, write_atomically};
use greedy_pde::page::{RunData, page};
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::{Report, Row};
use std::fs;
use std::path::{Path, PathBuf};

/// The page's file, and the directory of its pictures.
pub(super) const PAGE: &str = "report.html";
const PLOTS: &str = "plots";

pub(super) fn execute(arguments: &ReportArguments) -> Result<(), Failure> {
    let page = write(&arguments.directory)?;
    println!("{}", page.display());
    Ok(())
}

/// A run's files, read again.
pub(super) struct Saved {
    pub(super) problem: Problem,
    pub(super) text: String,
    pub(super) network: greedy_pde::network::Network,
}

/// Problem and network of a result directory.
pub(super) fn saved(directory: &Path) -> Result<Saved, Failure> {
    let text = read(directory, PROBLEM)?;
    let name = directory.join(PROBLEM).display().to_string();
    let path = directory.join(NETWORK);
    let (network, _) = network_file::load(&path).map_err(|error| Failure::Input(error.to_string()))?;
    let problem = Problem::from_toml(&text, &name, &Overrides::default())?;
    if network.dimension != problem.dimension() {
        return Err(Failure::Input(format!(
            "{}: a network in {} dimensions, but the problem beside it has {}",
            path.display(),
            network.dimension,
            problem.dimension()
        )));
    }
    Ok(Saved {
        problem,
        text,
        network,
    })
}

/// Writes the page of a result directory and says where it is.
pub(super) fn write(directory: &Path) -> Result<PathBuf, Failure> {
    let json = read(directory, RESULT)?;
    let report: Report = serde_json::from_str(&json)
        .map_err(|error| Failure::Input(format!("{}: {error}", directory.join(RESULT).display())))?;
    let history = read(directory, HISTORY)?;
    let history: Vec<Row> = history.lines().filter_map(Row::from_csv).collect();
    let Saved {
        problem,
        text,
        network,
    } = saved(directory)?;
    let page = page(&RunData {
        report: &report,
        history: &history,
        network: &network,
        problem: &problem,
        text: &text,
    });
    let plots = directory.join(PLOTS);
    fs::create_dir_all(&plots).map_err(|error| failed(&plots, &error))?;
    for (name, contents) in &page.files {
        let path = plots.join(name);
        write_atomically(&path, contents).map_err(|error| failed(&path, &error))?;
    }
    let path = directory.join(PAGE);
    write_atomically(&path, page.html.as_bytes()).map_err(|error| failed(&path, &error))?;
    Ok(path)
}

fn read(directory: &Path, name: &str) -> Result<String, Failure> {
    let path = directory.join(name);
    fs::read_to_string(&path).map_err(|error| {
        Failure::Input(format!(
            "{}: {error}; this directory holds no finished run (`solve --resume` finishes one)",
            path.display()
        ))
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Solve(format!("{}: cannot be written: {error}", path.display()))
}
