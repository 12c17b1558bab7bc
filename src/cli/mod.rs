//! What users type: commands, exit codes.

mod arguments;
mod baselines;
mod bench;
mod bench_pass;
mod check;
mod devices;
mod evaluate;
mod export;
mod figures;
mod output;
mod progress;
mod report;
mod reproduce;
mod solve;
mod table;
mod tables;

pub use arguments::Arguments;

use arguments::{
    BenchArguments, CheckArguments, Command, DevicesArguments, EvaluateArguments, ExportArguments,
    ExportFormat, ReportArguments, ReproduceArguments, SolveArguments,
};
use clap::CommandFactory;
use greedy_pde::error::SolveError;
use greedy_pde::problem::ProblemError;

/// Why a command ended without success.
#[derive(Debug)]
pub enum Failure {
    /// The solve failed, or a table was not reproduced.
    Solve(String),
    /// Bad input.
    Input(String),
    /// Ctrl-C; the state is saved.
    Interrupted,
}

impl Failure {
    /// What to tell the user.
    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Solve(message) | Failure::Input(message) => Some(message),
            Failure::Interrupted => None,
        }
    }

    /// The agreed exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Solve(_) => 1,
            Failure::Input(_) => 2,
            Failure::Interrupted => 130,
        }
    }
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        Failure::Input(error.to_string())
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        match error {
            // A GPU that is not there is a flag that cannot be followed.
            SolveError::Device(error) => Failure::Input(error.to_string()),
            SolveError::TooLarge { .. } => Failure::Input(error.to_string()),
            other => Failure::Solve(other.to_string()),
        }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Solve(arguments) => solve::execute(arguments),
        Command::Check(arguments) => check::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
        Command::Devices(arguments) => devices::execute(arguments),
        Command::Reproduce(arguments) => reproduce::execute(arguments),
        Command::Evaluate(arguments) => evaluate::execute(arguments),
        Command::Export(arguments) => export::execute(arguments),
        Command::Report(arguments) => report::execute(arguments),
        Command::Completions(arguments) => {
            let mut command = Arguments::command();
            clap_complete::generate(
                arguments.shell,
                &mut command,
                "greedy-pde",
                &mut std::io::stdout(),
            );
            Ok(())
        }
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
