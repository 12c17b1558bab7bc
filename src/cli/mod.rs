//! What users type: commands, exit codes.

mod arguments;
#[cfg(feature = "gpu")]
mod bench;
mod bench_cluster;
mod check;
mod companions;
mod compare_runs;
#[cfg(feature = "gpu")]
mod devices;
mod evaluate_points;
mod export;
mod new_file;
mod number_lines;
mod paper;
mod progress;
mod solve;
pub mod streams;
mod table;
mod write_page;

pub use arguments::Arguments;
pub use companions::{end, end_with_usage, meet};

use arguments::{
    CheckArguments, Command, CompareArguments, EvaluateArguments, ExportArguments, ExportFormat,
    ReportArguments, ReproduceArguments, SolveArguments,
};
use clap::CommandFactory;
use companions::{cluster, first_only};
use greedy_pde::error::SolveError;
use greedy_pde::problem::ProblemError;
use greedy_pde::results::ResultsError;

/// Why a command ended without success.
#[derive(Debug)]
pub enum Failure {
    /// The solve failed, or a table was not reproduced.
    Solve(String),
    /// Bad input.
    Input(String),
    /// Ctrl-C; the state is saved.
    Interrupted,
    /// Whoever reads the results has had enough, as `head` does.
    NobodyReads,
    /// The first process failed with this exit code and tells why.
    Elsewhere(u8),
}

impl Failure {
    /// What to tell the user.
    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Solve(message) | Failure::Input(message) => Some(message),
            Failure::Interrupted | Failure::NobodyReads | Failure::Elsewhere(_) => None,
        }
    }

    /// The agreed exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::NobodyReads => 0,
            Failure::Solve(_) => 1,
            Failure::Input(_) => 2,
            Failure::Interrupted => 130,
            Failure::Elsewhere(code) => *code,
        }
    }
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        Failure::Input(error.to_string())
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        if let ResultsError::Solve(error) = &error {
            return error.clone().into();
        }
        let advice = error.advice(&|name| format!("--{name}"));
        let message = format!("{error}{advice}");
        match error.is_failure_of_the_run() {
            true => Failure::Solve(message),
            false => Failure::Input(message),
        }
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        match error.is_bad_input() {
            true => Failure::Input(error.to_string()),
            false => Failure::Solve(error.to_string()),
        }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    refuse_too_many_threads()?;
    match &arguments.command {
        Command::Solve(arguments) => solve::execute(arguments),
        Command::Reproduce(arguments) => paper::execute(arguments),
        Command::Bench(arguments) if arguments.what.is_some() => bench_cluster::execute(arguments),
        // There is nothing to share.
        other => first_only(|| execute_alone(other)).map(|_| ()),
    }
}

/// Commands that one process does.
fn execute_alone(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Solve(arguments) => solve::execute(arguments),
        Command::Check(arguments) => check::execute(arguments),
        #[cfg(feature = "gpu")]
        Command::Bench(arguments) => bench::execute(arguments),
        #[cfg(feature = "gpu")]
        Command::Devices(arguments) => devices::execute(arguments),
        #[cfg(not(feature = "gpu"))]
        Command::Bench(_) | Command::Devices(_) => Err(Failure::Input(
            "this program was built without the feature `gpu`: everything runs on the CPU".to_string(),
        )),
        Command::Reproduce(arguments) => paper::execute(arguments),
        Command::Evaluate(arguments) => evaluate_points::execute(arguments),
        Command::Export(arguments) => export::execute(arguments),
        Command::Compare(arguments) => compare_runs::execute(arguments),
        Command::Report(arguments) => write_page::execute(arguments),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(
                arguments.shell,
                &mut Arguments::command(),
                "greedy-pde",
                &mut script,
            );
            streams::print(format_args!("{}", String::from_utf8_lossy(&script).trim_end()))
        }
    }
}

/// Without `--threads` the thread pool follows a variable, whatever it says.
fn refuse_too_many_threads() -> Result<(), Failure> {
    let wanted = std::env::var("RAYON_NUM_THREADS").unwrap_or_default();
    match wanted.parse::<usize>() {
        // 0 stands for the default.
        Ok(1..) => arguments::threads(&wanted)
            .map(|_| ())
            .map_err(|message| Failure::Input(format!("RAYON_NUM_THREADS={wanted}: {message}"))),
        _ => Ok(()),
    }
}

/// Sets the number of threads, once, before any work.
fn use_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(threads) = threads else {
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| Failure::Input(format!("--threads {threads}: {error}")))
}
