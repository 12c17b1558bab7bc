//! The paper's tables.

use crate::error::Failure;
use crate::job::{Listener, wait_for};
use crate::solve::run_options;
use crate::threads::checked;
use greedy_pde::error::SolveError;
use greedy_pde::paper::{Figure, MadeBy, TABLES, TableSpec, beside};
use greedy_pde::run::{RunOptions, run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// n, column, ours, the paper's, order, why it is worse than the table allows.
type Line = (usize, String, Option<f64>, f64, String, Option<String>);

/// The table of this name, if a greedy algorithm makes it.
fn find(name: &str) -> PyResult<&'static TableSpec> {
    let known: Vec<&TableSpec> = TABLES
        .iter()
        .filter(|spec| spec.made_by == MadeBy::Greedy)
        .collect();
    known.iter().find(|spec| spec.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|spec| spec.name).collect();
        PyValueError::new_err(format!(
            "there is no {name:?} here; there are {}. Comparisons with trained networks are made by `greedy-pde reproduce`",
            names.join(", ")
        ))
    })
}

/// Reruns a table of the paper: its title, its figures beside ours, and warnings.
#[pyfunction]
#[pyo3(signature = (name, *, max_neurons, seeds, backend, adapter, precision, threads, listener))]
#[allow(clippy::too_many_arguments)] // The command line's options, as keywords.
pub fn reproduce(
    py: Python<'_>,
    name: &str,
    max_neurons: Option<usize>,
    seeds: Option<u64>,
    backend: &str,
    adapter: Option<String>,
    precision: &str,
    threads: Option<usize>,
    listener: Option<Bound<'_, PyAny>>,
) -> PyResult<(&'static str, Vec<Line>, Vec<String>)> {
    let spec = find(name)?;
    let options = run_options(backend, adapter, precision)?;
    let threads = checked(threads)?;
    let table = spec.table(max_neurons.unwrap_or(usize::MAX));
    if table.rows.is_empty() {
        return Err(PyValueError::new_err(format!(
            "max_neurons={}: the first row of {name} has more",
            max_neurons.unwrap_or_default()
        )));
    }
    let listener = Listener {
        call: listener,
        every_step: false,
    };
    let made = wait_for(py, &listener, threads, None, move |watched| {
        let options = RunOptions {
            rows_at: table.ns(),
            ..options
        };
        let mut warnings = Vec::new();
        let computed = spec.greedy(&table, seeds, &mut |problem| {
            let (report, _) = run(problem, &options, &mut |event| watched.observe(event))?;
            warnings.extend(report.warnings);
            // Between two runs nothing else would notice.
            match watched.is_stopped() {
                true => Err(Failure::Solve(SolveError::Interrupted)),
                false => Ok(report.rows),
            }
        })?;
        Ok::<_, Failure>((beside(spec, &table, &computed), warnings))
    })?;
    let (rows, warnings) = made?;
    let line = |figure: Figure| {
        let Figure {
            n,
            column,
            paper,
            ours,
            order,
            worse,
        } = figure;
        (n, column, ours, paper, order, worse)
    };
    Ok((
        spec.title,
        rows.into_iter().flatten().map(line).collect(),
        warnings,
    ))
}
