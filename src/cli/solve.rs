//! `greedy-pde solve`.

use super::output::{Existing, Output};
use super::progress::ProgressLine;
use super::report::PAGE;
use super::{Failure, SolveArguments, check, table, use_threads};
use greedy_pde::error::SolveError;
use greedy_pde::greedy::Stopped;
use greedy_pde::problem::{Problem, ProblemError};
use greedy_pde::report::Report;
use greedy_pde::run::{Event, RunOptions, run};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn execute(arguments: &SolveArguments) -> Result<(), Failure> {
    use_threads(arguments.threads)?;
    let path = &arguments.problem.problem;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| ProblemError::new(&name, format!("cannot be read: {error}")))?;
    let problem = Problem::from_toml(&text, &name, &arguments.problem.overrides())?;
    let directory = arguments
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("runs").join(&problem.name));
    let existing = match (arguments.force, arguments.resume) {
        (true, _) => Existing::Overwrite,
        (_, true) => Existing::Resume,
        _ => Existing::Refuse,
    };
    let mut output = Output::open(&directory, &problem, &text, existing)?;
    let options = RunOptions {
        resume: output.resume.take(),
        tables: Some(output.tables()),
        ..arguments.backend.run_options()
    };
    if let (Some((state, _)), false) = (&options.resume, arguments.quiet) {
        eprintln!("going on from {} neurons", state.neurons.len());
    }
    if arguments.verbose {
        for (what, value) in check::describe(&problem)? {
            eprintln!("{what:<12} {value}");
        }
    }
    let interrupted = interrupt_flag();
    let progress = match arguments.verbose {
        true => ProgressLine::every_step(),
        false => ProgressLine::new(problem.settings.neurons, arguments.quiet),
    };
    let mut failure = None;
    let result = run(&problem, &options, &mut |event| {
        progress.show(event);
        let Event::Step(step) = event else {
            return match interrupted.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
        };
        if let Err(error) = output.step(step) {
            failure = Some(error);
            return ControlFlow::Break(());
        }
        if !interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Continue(());
        }
        failure = output.checkpoint(step.network, step.state).err();
        ControlFlow::Break(())
    });
    progress.finish();
    if let Some(failure) = failure {
        return Err(failure);
    }
    if result == Err(SolveError::Interrupted) {
        eprintln!(
            "interrupted in the pass over the points; `--resume` goes on from there ({})",
            directory.display()
        );
        return Err(Failure::Interrupted);
    }
    let (report, network) = result?;
    if report.stopped == Stopped::Interrupted {
        eprintln!(
            "interrupted at {} neurons; `--resume` goes on from there ({})",
            network.len(),
            directory.display()
        );
        return Err(Failure::Interrupted);
    }
    output.finish(&report, &network)?;
    print(&report, arguments)?;
    if !arguments.no_report {
        super::report::write(&directory)?;
    }
    if !arguments.quiet {
        let page = match arguments.no_report {
            true => String::new(),
            false => format!("; open {}", directory.join(PAGE).display()),
        };
        eprintln!("results are in {}{page}", directory.display());
    }
    Ok(())
}

fn print(report: &Report, arguments: &SolveArguments) -> Result<(), Failure> {
    if !arguments.quiet {
        for warning in &report.warnings {
            eprintln!("warning: {warning}");
        }
    }
    if arguments.json {
        let json = serde_json::to_string(report).map_err(|error| Failure::Solve(error.to_string()))?;
        println!("{json}");
    } else if !arguments.quiet {
        println!(
            "{}: {} neurons, {} points, {} ({})",
            report.problem,
            report.neurons,
            report.points,
            report.adapter.as_deref().unwrap_or(&report.backend),
            report.precision
        );
        println!("{}", table::of_run(&report.rows));
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
