//! `greedy-pde solve`.

use super::companions::first_only;
use super::progress::ProgressLine;
use super::{Failure, SolveArguments, check, table, use_threads};
use crate::cli::streams::{put, tell};
use greedy_pde::error::SolveError;
use greedy_pde::greedy::Stopped;
use greedy_pde::problem::{Problem, ProblemError};
use greedy_pde::report::Report;
use greedy_pde::results::{
    Existing, PAGE, ResultDirectory, ResultsError, take_part, with_overrides, write_page,
};
use greedy_pde::run::Event;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn execute(arguments: &SolveArguments) -> Result<(), Failure> {
    use_threads(arguments.threads)?;
    let (problem, text) = load(arguments)?;
    let directory = arguments
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("runs").join(&problem.name));
    let existing = match (arguments.force, arguments.resume) {
        (true, _) => Existing::Overwrite,
        (_, true) => Existing::Resume,
        _ => Existing::Refuse,
    };
    let mut results = first_only(|| Ok(ResultDirectory::open(&directory, &problem, &text, existing)?))?;
    if let (Some(step), false) = (
        results.as_ref().and_then(ResultDirectory::resumed_step),
        arguments.quiet,
    ) {
        tell!("going on from step {step}");
    }
    let resumed_from = results.as_ref().and_then(ResultDirectory::resumed_from);
    if let (Some(neurons), false) = (resumed_from, arguments.quiet) {
        tell!("going on from {neurons} neurons");
    }
    if arguments.verbose {
        for (what, value) in check::describe(&problem)? {
            tell!("{what:<12} {value}");
        }
    }
    let report = run(arguments, &problem, results.as_mut(), &directory)?;
    // The page first: whoever reads stdout may have had enough.
    if results.is_some() && !arguments.no_report {
        write_page(&directory)?;
    }
    // That a result should not be used is said in any case.
    if !arguments.quiet || !report.usable {
        report
            .warnings
            .iter()
            .for_each(|warning| tell!("warning: {warning}"));
    }
    if !arguments.quiet {
        let page = match arguments.no_report {
            true => String::new(),
            false => format!("; open {}", directory.join(PAGE).display()),
        };
        tell!("results are in {}{page}", directory.display());
    }
    print(&report, arguments)
}

/// The problem, and its text as it is solved.
fn load(arguments: &SolveArguments) -> Result<(Problem, String), Failure> {
    let path = &arguments.problem.problem;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| ProblemError::new(&name, format!("cannot be read: {error}")))?;
    let overrides = arguments.problem.overrides();
    let problem = Problem::from_toml(&text, &name, &overrides)?;
    let text = with_overrides(&text, &name, &overrides)?;
    Ok((problem, text))
}

/// Solves the problem, shows how far it is and heeds Ctrl-C.
fn run(
    arguments: &SolveArguments,
    problem: &Problem,
    results: Option<&mut ResultDirectory>,
    directory: &Path,
) -> Result<Report, Failure> {
    let interrupted = interrupt_flag();
    let progress = match arguments.verbose {
        true => ProgressLine::every_step(),
        false => ProgressLine::new(problem.settings.neurons, arguments.quiet),
    };
    let mut observer = |event: &Event| {
        progress.show(event);
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let options = arguments.backend.run_options();
    let result = match results {
        Some(results) => results.run(problem, &options, &mut observer),
        None => take_part(problem, &options, &mut observer),
    };
    progress.finish();
    let place = match &result {
        Err(ResultsError::Solve(SolveError::Interrupted)) => match problem.evolution {
            Some(_) => "before the first step in time".to_string(),
            None => "in the pass over the points".to_string(),
        },
        Ok((report, _)) if report.stopped == Stopped::Interrupted => {
            match report.time.as_ref().and_then(|time| time.rows.last()) {
                Some(row) => format!("at t = {}", row.time),
                None => format!("at {} neurons", report.neurons),
            }
        }
        _ => return Ok(result?.0),
    };
    tell!(
        "interrupted {place}; `--resume` goes on from there ({})",
        directory.display()
    );
    Err(Failure::Interrupted)
}

fn print(report: &Report, arguments: &SolveArguments) -> Result<(), Failure> {
    if arguments.json {
        let json = serde_json::to_string(report).map_err(|error| Failure::Solve(error.to_string()))?;
        put!("{json}");
    } else if !arguments.quiet {
        put!(
            "{}: {} neurons, {} points, {} ({})\n{}{}",
            report.problem,
            report.neurons,
            report.points,
            report.adapter.as_deref().unwrap_or(&report.backend),
            report.precision,
            match &report.time {
                Some(time) => table::of_flow(&time.rows),
                None => table::of_run(&report.rows),
            },
            report
                .estimate
                .as_ref()
                .map_or(String::new(), |estimate| format!("\n{}", estimate.in_words()))
        );
    }
    Ok(())
}

/// A flag that Ctrl-C raises.
fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    // A second handler cannot be set; then Ctrl-C ends the program at once, as without one.
    let _ = ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    flag
}
