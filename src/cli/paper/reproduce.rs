//! `greedy-pde reproduce`: the paper's tables, ours beside theirs.

use super::baselines;
use super::field;
use super::figures::{self, FIGURES};
use crate::cli::progress::run_shown;
use crate::cli::streams::{put, tell};
use crate::cli::{Failure, ReproduceArguments, table, use_threads};
use greedy_pde::network::Network;
use greedy_pde::paper::{Computed, MadeBy, PaperTable, TABLES, TableSpec, beside};
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Row;
use greedy_pde::run::{RunOptions, run};
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

/// What a table of trained networks needs to know.
pub(super) struct Request<'a> {
    pub(super) ns: &'a [usize],
    pub(super) seeds: u64,
    pub(super) epochs: Option<usize>,
    pub(super) quiet: bool,
    pub(super) load: &'a dyn Fn(usize, u64) -> Result<Problem, Failure>,
}

/// Runs a table and prints it; the figures that are worse than allowed are returned.
fn reproduce(spec: &TableSpec, arguments: &ReproduceArguments) -> Result<Vec<String>, Failure> {
    let table = spec.table(arguments.max_neurons.unwrap_or(usize::MAX));
    let started = Instant::now();
    let computed = compute(spec, &table, arguments)?;
    let mut header = vec!["n".to_string()];
    for column in &table.columns {
        header.extend([column.clone(), "paper".into(), "ratio".into(), "order".into()]);
    }
    let rows = beside(spec, &table, &computed);
    let number = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2e}"));
    let lines = table.ns().into_iter().zip(&rows).map(|(n, figures)| {
        let mut line = vec![n.to_string()];
        for figure in figures {
            let ratio = figure.ratio();
            line.extend([
                number(figure.ours),
                number(Some(figure.paper)),
                ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}")),
                figure.order.clone(),
            ]);
        }
        line
    });
    put!("{}: {}", spec.name, spec.title);
    put!("{}", table::plain(header, lines.collect()));
    put!("{:.1} s\n", started.elapsed().as_secs_f64());
    let figures = rows.into_iter().flatten();
    Ok(figures.filter_map(|figure| figure.worse).collect())
}

fn compute(
    spec: &TableSpec,
    table: &PaperTable,
    arguments: &ReproduceArguments,
) -> Result<Computed, Failure> {
    let ns = table.ns();
    let request = Request {
        ns: &ns,
        seeds: arguments.seeds.unwrap_or(spec.seeds.0).max(1),
        epochs: arguments.epochs,
        quiet: arguments.quiet,
        load: &|neurons, seed| Ok(spec.problem(neurons, seed)?),
    };
    match spec.made_by {
        MadeBy::Greedy => spec.greedy(table, arguments.seeds, &mut |problem| {
            run_once(problem, &ns, arguments)
        }),
        MadeBy::DeepRitz => baselines::deep_ritz(&request),
        MadeBy::Pinn => baselines::pinn(&request),
    }
}

fn run_once(
    problem: &Problem,
    rows_at: &[usize],
    arguments: &ReproduceArguments,
) -> Result<Vec<Row>, Failure> {
    let options = RunOptions {
        rows_at: rows_at.to_vec(),
        ..arguments.backend.run_options()
    };
    let (report, _) = run_shown(problem, &options, arguments.quiet)?;
    for warning in &report.warnings {
        tell!("warning: {warning}");
    }
    Ok(report.rows)
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
