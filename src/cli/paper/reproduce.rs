//! `greedy-pde reproduce`: the paper's tables, ours beside theirs.

use super::baselines;
use super::field;
use super::figures::{self, FIGURES};
use super::tables::{MadeBy, TABLES, TableSpec};
use crate::cli::progress::run_shown;
use crate::cli::streams::{put, tell};
use crate::cli::{Failure, ReproduceArguments, table, use_threads};
use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::{Row, order};
use greedy_pde::run::{RunOptions, run};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

/// The comparison of all methods on example 1.
const COMPARISON: &str = "comparison";

pub(in crate::cli) fn execute(arguments: &ReproduceArguments) -> Result<(), Failure> {
    use_threads(arguments.threads)?;
    if arguments.table == COMPARISON {
        return compare(arguments);
    }
    if let Some(figure) = FIGURES.iter().find(|figure| figure.name == arguments.table) {
        return figures::make(figure, arguments);
    }
    if let Some(family) = field::find(&arguments.table) {
        return field::execute(family, arguments);
    }
    let chosen: Vec<&TableSpec> = TABLES
        .iter()
        .filter(|spec| arguments.table == "all" || arguments.table == spec.name)
        .collect();
    if chosen.is_empty() {
        let figures = FIGURES.iter().map(|figure| figure.name);
        let tables = TABLES.iter().map(|spec| spec.name);
        let known: Vec<&str> = tables.chain(figures).chain(field::names()).collect();
        return Err(Failure::Input(format!(
            "there is no `{}` here; there are {}, {COMPARISON} and all",
            arguments.table,
            known.join(", ")
        )));
    }
    let mut worse = Vec::new();
    for spec in chosen {
        worse.extend(reproduce(spec, arguments)?);
    }
    match worse.is_empty() {
        true => Ok(()),
        false => Err(Failure::Solve(format!("not reproduced: {}", worse.join("; ")))),
    }
}

/// A table as the paper prints it.
struct PaperTable {
    columns: Vec<String>,
    rows: Vec<(usize, Vec<f64>)>,
}

fn read_paper(csv: &str, max_neurons: usize) -> PaperTable {
    let mut lines = csv.lines();
    let columns = lines
        .next()
        .unwrap_or_default()
        .split(',')
        .skip(1)
        .map(str::to_string)
        .collect();
    let rows = lines
        .filter_map(|line| {
            let mut fields = line.split(',');
            let n: usize = fields.next()?.parse().ok()?;
            let values: Option<Vec<f64>> = fields.map(|field| field.parse().ok()).collect();
            Some((n, values?))
        })
        .filter(|(n, _)| *n <= max_neurons)
        .collect();
    PaperTable { columns, rows }
}

/// Our figures by n and the paper's column.
pub(super) type Computed = BTreeMap<(usize, String), f64>;

/// What a table of trained networks needs to know.
pub(super) struct Request<'a> {
    pub(super) ns: &'a [usize],
    pub(super) seeds: u64,
    pub(super) epochs: Option<usize>,
    pub(super) quiet: bool,
    pub(super) load: &'a dyn Fn(usize, u64) -> Result<Problem, Failure>,
}

/// Our figure for a column of the paper.
fn figure(column: &str, row: &Row) -> Option<f64> {
    match column {
        "pinn_loss" => Some(row.loss),
        "l2" => row.l2,
        "h1" => row.h1,
        _ => row.energy,
    }
}

/// Runs a table and prints it; the rows that are worse than allowed are returned.
fn reproduce(spec: &TableSpec, arguments: &ReproduceArguments) -> Result<Vec<String>, Failure> {
    let paper = read_paper(spec.paper, arguments.max_neurons.unwrap_or(usize::MAX));
    let started = Instant::now();
    let computed = compute(spec, &paper, arguments)?;
    let figure = |n: usize, column: &str| computed.get(&(n, column.to_string())).copied();
    let mut header = vec!["n".to_string()];
    for column in &paper.columns {
        header.extend([column.clone(), "paper".into(), "ratio".into(), "order".into()]);
    }
    let mut worse = Vec::new();
    let mut lines = Vec::new();
    for (index, (n, theirs)) in paper.rows.iter().enumerate() {
        let mut line = vec![n.to_string()];
        for (column, &theirs) in paper.columns.iter().zip(theirs) {
            let Some(value) = figure(*n, column) else {
                line.extend(["-".into(), format!("{theirs:.2e}"), "-".into(), "-".into()]);
                if spec.decides.contains(&column.as_str()) {
                    worse.push(format!("{} n={n} {column}: not reached", spec.name));
                }
                continue;
            };
            let before = index
                .checked_sub(1)
                .and_then(|i| Some((paper.rows[i].0, figure(paper.rows[i].0, column)?)));
            let ratio = value / theirs;
            line.extend([
                format!("{value:.2e}"),
                format!("{theirs:.2e}"),
                format!("{ratio:.2}"),
                order(before, (*n, value)),
            ]);
            let tolerance = spec
                .exceptions
                .iter()
                .find(|(at, _)| at == n)
                .map_or(spec.tolerance, |(_, t)| *t);
            // Three printed digits of the paper: allow for its rounding. NaN counts as worse.
            let good = ratio <= tolerance * 1.005;
            if spec.decides.contains(&column.as_str()) && !good {
                worse.push(format!(
                    "{} n={n} {column}: {value:.2e} is {ratio:.2} × the paper's",
                    spec.name
                ));
            }
        }
        lines.push(line);
    }
    put!("{}: {}", spec.name, spec.title);
    put!("{}", table::plain(header, lines));
    put!("{:.1} s\n", started.elapsed().as_secs_f64());
    Ok(worse)
}

/// The rows at the paper's n: one run, or a fresh one per n where a setting depends on n.
fn compute(
    spec: &TableSpec,
    paper: &PaperTable,
    arguments: &ReproduceArguments,
) -> Result<Computed, Failure> {
    let ns: Vec<usize> = paper.rows.iter().map(|(n, _)| *n).collect();
    let last = ns.last().copied().unwrap_or(1);
    let request = Request {
        ns: &ns,
        seeds: arguments.seeds.unwrap_or(spec.seeds.0).max(1),
        epochs: arguments.epochs,
        quiet: arguments.quiet,
        load: &|neurons, seed| load(spec, neurons, seed),
    };
    match spec.made_by {
        MadeBy::Greedy => {}
        MadeBy::DeepRitz => return baselines::deep_ritz(&request),
        MadeBy::Pinn => return baselines::pinn(&request),
    }
    let fresh = load(spec, last, 0)?.depends_on_neurons();
    let runs = if fresh { ns.clone() } else { vec![last] };
    let mut rows = Vec::new();
    for neurons in runs {
        let (seeds, up_to) = spec.seeds;
        let seeds = arguments
            .seeds
            .unwrap_or(if neurons <= up_to { seeds } else { 1 });
        let mut by_seed = Vec::new();
        for seed in 0..seeds.max(1) {
            let mut rows = run_once(spec, neurons, seed, &ns, arguments)?;
            rows.retain(|row| !fresh || row.n == neurons);
            by_seed.push(rows);
        }
        rows.extend(mean_rows(&by_seed));
    }
    let mut computed = Computed::new();
    for row in &rows {
        for column in &paper.columns {
            if let Some(value) = figure(column, row) {
                computed.insert((row.n, column.clone()), value);
            }
        }
    }
    Ok(computed)
}

fn run_once(
    spec: &TableSpec,
    neurons: usize,
    seed: u64,
    rows_at: &[usize],
    arguments: &ReproduceArguments,
) -> Result<Vec<Row>, Failure> {
    let problem = load(spec, neurons, seed)?;
    let options = RunOptions {
        rows_at: rows_at.to_vec(),
        ..arguments.backend.run_options()
    };
    let (report, _) = run_shown(&problem, &options, arguments.quiet)?;
    for warning in &report.warnings {
        tell!("warning: {warning}");
    }
    Ok(report.rows)
}

/// The rows that all seeds have, their errors and losses averaged.
fn mean_rows(by_seed: &[Vec<Row>]) -> Vec<Row> {
    let Some((first, others)) = by_seed.split_first() else {
        return Vec::new();
    };
    let count = by_seed.len() as f64;
    let mut means = Vec::new();
    for row in first {
        let same: Option<Vec<&Row>> = others
            .iter()
            .map(|rows| rows.iter().find(|other| other.n == row.n))
            .collect();
        let Some(same) = same else {
            continue;
        };
        let mean = |value: fn(&Row) -> Option<f64>| -> Option<f64> {
            let sum = same
                .iter()
                .try_fold(value(row)?, |sum, other| Some(sum + value(other)?));
            sum.map(|sum| sum / count)
        };
        means.push(Row {
            l2: mean(|row| row.l2),
            h1: mean(|row| row.h1),
            energy: mean(|row| row.energy),
            excess: mean(|row| row.excess),
            loss: mean(|row| Some(row.loss)).unwrap_or(row.loss),
            ..row.clone()
        });
    }
    means
}

fn load(spec: &TableSpec, neurons: usize, seed: u64) -> Result<Problem, Failure> {
    let overrides = Overrides {
        neurons: Some(neurons),
        // Seed 0 is the file's own.
        seed: (seed > 0).then_some(seed),
        ..Overrides::default()
    };
    let mut problem = Problem::from_toml(spec.config, spec.name, &overrides)?;
    problem.settings.guard &= spec.guard;
    // The paper takes the steepest neuron.
    problem.choose_by_slope();
    Ok(problem)
}

/// Every method on example 1, the errors beside the time they took.
fn compare(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let text = include_str!("../../../configs/ex1_neumann.toml");
    let ns: Vec<usize> = [16, 32, 64, 128, 256]
        .into_iter()
        .filter(|n| *n <= arguments.max_neurons.unwrap_or(64))
        .collect();
    let load = |neurons: usize, changes: &[baselines::Change]| -> Result<Problem, Failure> {
        let overrides = Overrides {
            neurons: Some(neurons),
            ..Overrides::default()
        };
        let mut text = text.to_string();
        for (from, to) in changes {
            if !text.contains(from) {
                return Err(Failure::Solve(format!("the shipped file has no `{from}`")));
            }
            text = text.replace(from, to);
        }
        Ok(Problem::from_toml(&text, COMPARISON, &overrides)?)
    };
    let greedy = |problem: &Problem| -> Result<Network, Failure> {
        let options = arguments.backend.run_options();
        let (_, network) = run(problem, &options, &mut |_| ControlFlow::Continue(()))?;
        Ok(network)
    };
    baselines::compare(&ns, arguments.epochs, arguments.quiet, &load, &greedy)
}
