//! What users type: commands, exit codes.

mod arguments;
#[cfg(feature = "gpu")]
mod bench;
mod check;
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

use arguments::{
    CheckArguments, Command, CompareArguments, EvaluateArguments, ExportArguments, ExportFormat,
    ReportArguments, ReproduceArguments, SolveArguments,
};
use clap::CommandFactory;
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
}

impl Failure {
    /// What to tell the user.
    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Solve(message) | Failure::Input(message) => Some(message),
            Failure::Interrupted | Failure::NobodyReads => None,
        }
    }

    /// The agreed exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::NobodyReads => 0,
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

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        let advice = match &error {
            ResultsError::Solve(error) => return error.clone().into(),
            ResultsError::Exists(_) => {
                ". Use --resume to go on from it, --force to overwrite it, or --output for another directory"
            }
            ResultsError::InUse(_) => ". Wait for it, or use --output for another directory",
            ResultsError::DamagedCheckpoint(_) => "; nothing was changed. Use --force to start again",
            ResultsError::NothingToResume(_) => {
                ". Without --resume a new run begins; --force overwrites what is there"
            }
            ResultsError::FewerNeurons { .. } => {
                ". Ask for as many with --neurons, or use --output for another directory"
            }
            ResultsError::OtherProblem { .. }
            | ResultsError::DependsOnNeurons { .. }
            | ResultsError::OtherVersion { .. } => {
                "; nothing was changed. Use --output for another directory, or --force to start again"
            }
            _ => "",
        };
        let message = format!("{error}{advice}");
        match error.is_failure_of_the_run() {
            true => Failure::Solve(message),
            false => Failure::Input(message),
        }
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
    refuse_too_many_threads()?;
    match &arguments.command {
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
