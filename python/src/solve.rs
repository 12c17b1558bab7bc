//! `solve`.

use crate::error::Failure;
use crate::job::{Listener, Watched, wait_for};
use crate::problem::Problem;
use crate::run::Run;
use crate::threads::checked;
use greedy_pde::error::SolveError;
use greedy_pde::greedy::Stopped;
use greedy_pde::problem::Overrides;
use greedy_pde::results::{
    CHECKPOINT, Checkpoint, Existing, PROBLEM, Recording, ResultDirectory, ResultsError, write_page,
};
use greedy_pde::run::{BackendChoice, RunOptions, run};
use greedy_pde::sums::PrecisionChoice;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// One of several words, or an error that names them.
fn one_of<T: Copy>(key: &str, word: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        PyValueError::new_err(format!("{key}={word:?}: there are {}", names.join(", ")))
    })
}

/// Where and how the sums are done.
pub fn run_options(backend: &str, adapter: Option<String>, precision: &str) -> PyResult<RunOptions> {
    let backends = [
        ("auto", BackendChoice::Auto),
        ("cpu", BackendChoice::Cpu),
        ("gpu", BackendChoice::Gpu),
    ];
    let precisions = [
        ("auto", PrecisionChoice::Auto),
        ("f32", PrecisionChoice::F32),
        ("f64", PrecisionChoice::F64),
        ("integer", PrecisionChoice::Integer),
    ];
    Ok(RunOptions {
        backend: one_of("backend", backend, &backends)?,
        adapter,
        precision: one_of("precision", precision, &precisions)?,
        ..RunOptions::default()
    })
}

/// Where results go, and what becomes of those that are there.
struct Output {
    directory: PathBuf,
    existing: Existing,
}

/// Solves a problem.
#[pyfunction]
#[pyo3(signature = (problem, *, neurons, points, cells, seed, backend, adapter, precision, threads, output, resume, force, listener, every_step))]
#[allow(clippy::too_many_arguments)] // The command line's options, as keywords.
pub fn solve(
    py: Python<'_>,
    problem: &Problem,
    neurons: Option<usize>,
    points: Option<usize>,
    cells: Option<usize>,
    seed: Option<u64>,
    backend: &str,
    adapter: Option<String>,
    precision: &str,
    threads: Option<usize>,
    output: Option<PathBuf>,
    resume: bool,
    force: bool,
    listener: Option<Bound<'_, PyAny>>,
    every_step: bool,
) -> PyResult<Run> {
    let options = run_options(backend, adapter, precision)?;
    let threads = checked(threads)?;
    let existing = match (force, resume) {
        (true, _) => Existing::Overwrite,
        (_, true) => Existing::Resume,
        _ => Existing::Refuse,
    };
    let overrides = Overrides {
        neurons,
        points,
        cells,
        seed,
    };
    let problem = problem.with(&overrides)?;
    // Absolute: the working directory may change while the run goes on.
    let directory = output.map(std::path::absolute).transpose()?;
    let output = directory.clone().map(|directory| Output { directory, existing });
    let listener = Listener {
        call: listener,
        every_step,
    };
    let run = wait_for(
        py,
        &listener,
        threads,
        directory.as_deref(),
        move |watched| match output {
            Some(output) => run_in_directory(problem, &options, &output, watched),
            None => run_in_memory(problem, &options, watched),
        },
    )?;
    Ok(run?)
}

fn run_in_memory(problem: Problem, options: &RunOptions, watched: &mut Watched) -> Result<Run, Failure> {
    let checked = &problem.checked;
    let mut recording = Recording::new(checked, &problem.text);
    let result = run(checked, options, &mut |event| {
        recording.note(event);
        watched.observe(event)
    });
    let explained = |error: SolveError| match checked.places.explain(&error) {
        Some(error) => Failure::Problem(error),
        None => Failure::Solve(error),
    };
    let (report, network) = result.map_err(explained)?;
    Ok(Run::new(problem, report, network, &recording))
}

fn run_in_directory(
    problem: Problem,
    options: &RunOptions,
    output: &Output,
    watched: &mut Watched,
) -> Result<Run, Failure> {
    let directory = &output.directory;
    watched.wait_for_left_behind(directory);
    let mut results = ResultDirectory::open(directory, &problem.checked, &problem.text, output.existing)?;
    let (report, network) = results.run(&problem.checked, options, &mut |event| watched.observe(event))?;
    let recording = results.recording().clone();
    drop(results);
    // Who was interrupted does not want to wait for pictures.
    if report.stopped != Stopped::Interrupted {
        write_page(directory)?;
    }
    Ok(Run::new(problem, report, network, &recording))
}

/// The problem of a run that can go on, as its checkpoint has it.
#[pyfunction]
pub fn checkpoint_problem(directory: PathBuf) -> PyResult<Problem> {
    Ok(problem_of_checkpoint(&directory)?)
}

fn problem_of_checkpoint(directory: &Path) -> Result<Problem, Failure> {
    let path = directory.join(CHECKPOINT);
    if !path.exists() {
        return Err(ResultsError::NothingToResume(directory.to_path_buf()).into());
    }
    let checkpoint = Checkpoint::load(&path);
    let checkpoint = checkpoint.map_err(|error| ResultsError::DamagedCheckpoint(Box::new(error)))?;
    let file = directory.join(PROBLEM).display().to_string();
    Problem::read(checkpoint.problem, file, &[])
}
