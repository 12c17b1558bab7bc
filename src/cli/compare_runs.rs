//! `greedy-pde compare`: runs side by side, and against values from elsewhere.

use super::evaluate_points::count_outside;
use super::new_file::NewFile;
use super::number_lines::NumberLines;
use super::{CompareArguments, Failure, table};
use crate::cli::streams::{put, tell};
use greedy_pde::error::SolveError;
use greedy_pde::network::Network;
use greedy_pde::norms::ErrorMeter;
use greedy_pde::page::{ComparedRun, ReferenceErrors, comparison_page, table_by_neurons, table_of_runs};
use greedy_pde::problem::Problem;
use greedy_pde::results::SavedRun;
use greedy_pde::sample::values;
use std::path::Path;

pub(super) fn execute(arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.runs.len() < 2 && arguments.reference.is_none() {
        return Err(Failure::Input(
            "one run alone cannot be compared: give another, or values with --reference".to_string(),
        ));
    }
    let page = match &arguments.output {
        Some(path) => Some(NewFile::at(path, arguments.force)?),
        None => None,
    };
    let mut runs = Vec::new();
    for directory in &arguments.runs {
        runs.push(compared(directory, arguments.reference.as_deref())?);
    }
    if runs
        .iter()
        .any(|run| run.report.problem != runs[0].report.problem)
    {
        tell!("note: the runs are of different problems; their errors are each their own");
    }
    match arguments.json {
        true => put!("{}", json(&runs)),
        false => print(&runs)?,
    }
    match page {
        Some(page) => page.write(comparison_page(&runs).as_bytes()),
        None => Ok(()),
    }
}

fn print(runs: &[ComparedRun]) -> Result<(), Failure> {
    let (header, lines) = table_of_runs(runs);
    put!("{}", table::plain(header, lines));
    if runs.len() > 1 {
        let (header, lines) = table_by_neurons(runs);
        put!("\n{}", table::plain(header, lines));
    }
    Ok(())
}

fn json(runs: &[ComparedRun]) -> serde_json::Value {
    let runs: Vec<serde_json::Value> = runs
        .iter()
        .map(|run| {
            let [l2, h1] = run.relative();
            serde_json::json!({
                "run": run.name,
                "problem": run.report.problem,
                "neurons": run.report.neurons,
                "stopped": run.report.stopped,
                "relative_l2": l2,
                "relative_h1": h1,
                "reference": run.reference,
                "rows": run.report.rows,
                "seconds": run.report.seconds.total,
            })
        })
        .collect();
    serde_json::json!({ "runs": runs })
}

fn compared(directory: &Path, reference: Option<&Path>) -> Result<ComparedRun, Failure> {
    let run = SavedRun::load(directory)?;
    let name = directory.display().to_string();
    Ok(ComparedRun {
        report: run.report()?,
        norms: norms(&run.problem)?,
        reference: match reference {
            Some(path) => Some(against(&run, &name, path)?),
            None => None,
        },
        name,
    })
}

/// ‖u‖ in L² and H¹: the errors of a network that is zero.
fn norms(problem: &Problem) -> Result<Option<[f64; 2]>, SolveError> {
    let Some(meter) = ErrorMeter::new(problem, problem.settings.neurons)? else {
        return Ok(None);
    };
    let zero = Network::zero(problem.dictionary.activation, problem.dimension());
    let errors = meter.errors(&zero)?;
    Ok(Some([errors.l2, errors.h1]))
}

/// The errors of a network against the values in a file.
fn against(run: &SavedRun, name: &str, path: &Path) -> Result<ReferenceErrors, Failure> {
    let mut lines = NumberLines::open(path, run.network.dimension + 1, "a point and its value")?;
    let (mut points, mut outside) = (0, 0);
    let (mut square, mut size, mut max) = (0.0, 0.0, 0.0_f64);
    while let Some(mut columns) = lines.chunk()? {
        let given = columns.pop().unwrap_or_default();
        let found = values(&run.network, &columns);
        points += given.len();
        outside += count_outside(&run.problem.domain, &columns);
        for (given, found) in given.iter().zip(found) {
            let off = found - given;
            square += off * off;
            size += given * given;
            // Not `max`, which would pass over what is not a number.
            max = if off.abs() <= max { max } else { off.abs() };
        }
    }
    if points == 0 {
        return Err(Failure::Input(format!("{}: holds no values", path.display())));
    }
    if outside > 0 {
        tell!("warning: {outside} of {points} points are outside the domain of {name}");
    }
    let mean = |sum: f64| (sum / points as f64).sqrt();
    Ok(ReferenceErrors {
        points,
        rms: mean(square),
        max,
        relative: mean(square) / mean(size),
    })
}
