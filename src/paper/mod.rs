//! The paper's tables: how each is made here, and ours beside theirs.

mod tables;

pub use tables::{MadeBy, TABLES, TableSpec};

use crate::problem::{Overrides, Problem, ProblemError};
use crate::report::{Row, order};
use std::collections::BTreeMap;

/// Our figures by n and the paper's column.
pub type Computed = BTreeMap<(usize, String), f64>;

/// A table as the paper prints it.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperTable {
    /// The names of its columns after n.
    pub columns: Vec<String>,
    /// n, and a figure for each column.
    pub rows: Vec<(usize, Vec<f64>)>,
}

impl PaperTable {
    /// The n of its rows.
    pub fn ns(&self) -> Vec<usize> {
        self.rows.iter().map(|(n, _)| *n).collect()
    }
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

impl TableSpec {
    /// The paper's table up to so many neurons.
    pub fn table(&self, max_neurons: usize) -> PaperTable {
        let mut lines = self.paper.lines();
        let header = lines.next().unwrap_or_default();
        let row = |line: &str| {
            let mut fields = line.split(',');
            let n: usize = fields.next()?.parse().ok()?;
            let values: Option<Vec<f64>> = fields.map(|field| field.parse().ok()).collect();
            Some((n, values?))
        };
        PaperTable {
            columns: header.split(',').skip(1).map(str::to_string).collect(),
            rows: lines.filter_map(row).filter(|(n, _)| *n <= max_neurons).collect(),
        }
    }

    /// The problem with so many neurons.
    pub fn problem(&self, neurons: usize, seed: u64) -> Result<Problem, ProblemError> {
        let overrides = Overrides {
            neurons: Some(neurons),
            // Seed 0 is the file's own.
            seed: (seed > 0).then_some(seed),
            ..Overrides::default()
        };
        let mut problem = Problem::from_toml(self.config, self.name, &overrides)?;
        problem.settings.guard &= self.guard;
        // The paper takes the steepest neuron.
        problem.choose_by_slope();
        Ok(problem)
    }

    /// The figures of a greedy algorithm at the paper's n, averaged over the seeds: one run, or a fresh one per n where a
    /// setting depends on n. `solve` makes a run and gives its rows.
    pub fn greedy<E: From<ProblemError>>(
        &self,
        table: &PaperTable,
        seeds: Option<u64>,
        solve: &mut dyn FnMut(&Problem) -> Result<Vec<Row>, E>,
    ) -> Result<Computed, E> {
        let ns = table.ns();
        let last = ns.last().copied().unwrap_or(1);
        let fresh = self.problem(last, 0)?.depends_on_neurons();
        let runs = if fresh { ns } else { vec![last] };
        let mut computed = Computed::new();
        for neurons in runs {
            let (usual, up_to) = self.seeds;
            let seeds = seeds.unwrap_or(if neurons <= up_to { usual } else { 1 });
            let mut by_seed = Vec::new();
            for seed in 0..seeds.max(1) {
                let mut rows = solve(&self.problem(neurons, seed)?)?;
                rows.retain(|row| !fresh || row.n == neurons);
                by_seed.push(rows);
            }
            for row in mean_rows(&by_seed) {
                for column in &table.columns {
                    if let Some(value) = figure(column, &row) {
                        computed.insert((row.n, column.clone()), value);
                    }
                }
            }
        }
        Ok(computed)
    }

    /// By how much a row may be worse than the paper's.
    fn tolerance_at(&self, n: usize) -> f64 {
        let own = self.exceptions.iter().find(|(at, _)| *at == n);
        own.map_or(self.tolerance, |(_, tolerance)| *tolerance)
    }
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

/// A figure of ours beside the paper's.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The number of neurons.
    pub n: usize,
    /// The paper's name for it.
    pub column: String,
    /// The paper's.
    pub paper: f64,
    /// Ours, if the run came so far.
    pub ours: Option<f64>,
    /// Our order of convergence since the row before; `-` for the first.
    pub order: String,
    /// Why it is worse than the table allows, if it is.
    pub worse: Option<String>,
}

impl Figure {
    /// Ours as a part of the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.ours.map(|ours| ours / self.paper)
    }
}

/// Every figure of a table, ours beside the paper's, row by row.
pub fn beside(spec: &TableSpec, table: &PaperTable, computed: &Computed) -> Vec<Vec<Figure>> {
    let ours = |n: usize, column: &str| computed.get(&(n, column.to_string())).copied();
    let rows = table.rows.iter().enumerate().map(|(index, (n, theirs))| {
        let figures = table.columns.iter().zip(theirs).map(|(column, &paper)| {
            let before = index.checked_sub(1).map(|i| table.rows[i].0);
            let before = before.and_then(|n| Some((n, ours(n, column)?)));
            let value = ours(*n, column);
            let mut figure = Figure {
                n: *n,
                column: column.clone(),
                paper,
                ours: value,
                order: value.map_or("-".to_string(), |value| order(before, (*n, value))),
                worse: None,
            };
            if spec.decides.contains(&column.as_str()) {
                figure.worse = worse(spec, &figure);
            }
            figure
        });
        figures.collect()
    });
    rows.collect()
}

/// Why a figure that decides is worse than the table allows, if it is.
fn worse(spec: &TableSpec, figure: &Figure) -> Option<String> {
    let (name, n, column) = (spec.name, figure.n, &figure.column);
    let (Some(value), Some(ratio)) = (figure.ours, figure.ratio()) else {
        return Some(format!("{name} n={n} {column}: not reached"));
    };
    // Three printed digits of the paper: allow for its rounding. NaN counts as worse.
    let good = ratio <= spec.tolerance_at(n) * 1.005;
    (!good).then(|| format!("{name} n={n} {column}: {value:.2e} is {ratio:.2} × the paper's"))
}
