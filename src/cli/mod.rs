//! What users type: arguments, commands, exit codes.

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

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use greedy_pde::backend::PrecisionChoice;
use greedy_pde::error::SolveError;
use greedy_pde::problem::{Overrides, ProblemError};
use greedy_pde::run::{BackendChoice, RunOptions};
use std::path::PathBuf;

/// Solves partial differential equations with shallow neural networks trained by greedy algorithms.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  greedy-pde solve configs/ex1_neumann.toml
  greedy-pde solve configs/ex2_three_peaks.toml --neurons 64 --json > result.json
  greedy-pde check my_problem.toml
  greedy-pde evaluate runs/ex1_neumann/network.safetensors points.csv --gradient
  greedy-pde export runs/ex3_energy --format vtk
  greedy-pde reproduce table01

Exit codes: 0 done, 1 the solve failed, 2 bad input, 130 interrupted (the state is saved).")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Solve a problem; results go to a directory.
    Solve(SolveArguments),
    /// Parse and validate only; print what would be solved.
    Check(CheckArguments),
    /// Argmax throughput: a plain loop, the CPU path and the GPU path in one run.
    Bench(BenchArguments),
    /// List the GPUs and software adapters, and the one that `auto` would take.
    Devices(DevicesArguments),
    /// Rerun a table of the paper and print ours beside the paper's.
    Reproduce(ReproduceArguments),
    /// Values of a saved network at the points of a CSV file, as CSV.
    Evaluate(EvaluateArguments),
    /// The solution of a run on a grid: CSV, NumPy or VTK.
    Export(ExportArguments),
    /// A finished run as one self-contained HTML page with plots.
    Report(ReportArguments),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
}

/// Flags that change a problem.
#[derive(Debug, Args)]
struct ProblemArguments {
    /// The problem file.
    #[arg(value_name = "PROBLEM.toml")]
    problem: PathBuf,
    /// Number of neurons.
    #[arg(long, value_name = "N", value_parser = count)]
    neurons: Option<usize>,
    /// Number of points (Halton and Monte Carlo rules).
    #[arg(long, value_name = "N", value_parser = count)]
    points: Option<usize>,
    /// Cells per direction (Gauss rules).
    #[arg(long, value_name = "N", value_parser = count)]
    cells: Option<usize>,
    /// Seed of every random choice.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl ProblemArguments {
    fn overrides(&self) -> Overrides {
        Overrides {
            neurons: self.neurons,
            points: self.points,
            cells: self.cells,
            seed: self.seed,
        }
    }
}

/// Flags that say where the work is done.
#[derive(Debug, Args)]
struct BackendArguments {
    /// auto takes a real GPU where there is work for one, else the CPU; gpu takes a software adapter, too.
    #[arg(long, value_enum, default_value = "auto", value_name = "auto|cpu|gpu")]
    backend: BackendName,
    /// Take the adapter whose name contains this (also: WGPU_ADAPTER_NAME, WGPU_BACKEND).
    #[arg(long, value_name = "NAME")]
    adapter: Option<String>,
    /// Precision of scores on a GPU; auto goes from f32 to f64 when it must.
    #[arg(long, value_enum, default_value = "auto", value_name = "auto|f32|f64")]
    precision: PrecisionName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BackendName {
    Auto,
    Cpu,
    Gpu,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PrecisionName {
    Auto,
    F32,
    F64,
}

impl BackendArguments {
    fn run_options(&self) -> RunOptions {
        RunOptions {
            backend: match self.backend {
                BackendName::Auto => BackendChoice::Auto,
                BackendName::Cpu => BackendChoice::Cpu,
                BackendName::Gpu => BackendChoice::Gpu,
            },
            adapter: self.adapter.clone(),
            precision: match self.precision {
                PrecisionName::Auto => PrecisionChoice::Auto,
                PrecisionName::F32 => PrecisionChoice::F32,
                PrecisionName::F64 => PrecisionChoice::F64,
            },
            ..RunOptions::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde solve configs/ex1_neumann.toml
  greedy-pde solve configs/ex5_elliptic_10d.toml --points 1e6 --neurons 64 --backend gpu
  greedy-pde solve my_problem.toml --resume

DIR then holds result.json, history.csv, network.safetensors, report.html, plots/ and the problem file.")]
struct SolveArguments {
    #[command(flatten)]
    problem: ProblemArguments,
    #[command(flatten)]
    backend: BackendArguments,
    /// Number of threads (default: all cores).
    #[arg(long, value_name = "T", value_parser = count)]
    threads: Option<usize>,
    /// Where results go (default: runs/<problem name>).
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Go on from the checkpoint in the output directory.
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Overwrite an existing result.
    #[arg(long)]
    force: bool,
    /// Print the result as one JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// Do not write report.html and its plots.
    #[arg(long)]
    no_report: bool,
    /// No progress and no table, only the result (with --json) and errors.
    #[arg(long, short)]
    quiet: bool,
    /// Say what is solved before it begins, and show every step.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  greedy-pde evaluate runs/ex3_energy/network.safetensors points.csv --gradient > values.csv

POINTS.csv has one point per line, its coordinates separated by commas; a first line of names is passed over.")]
struct EvaluateArguments {
    /// A network as `solve` saves it.
    #[arg(value_name = "NETWORK")]
    network: PathBuf,
    /// The points; - reads them from stdin.
    #[arg(value_name = "POINTS.csv")]
    points: PathBuf,
    /// Also the first derivatives.
    #[arg(long)]
    gradient: bool,
    /// Also the Laplacian.
    #[arg(long)]
    laplacian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Csv,
    Npy,
    Vtk,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde export runs/ex3_energy --format vtk --grid 200
  greedy-pde export runs/ex1_neumann --format npy --output u.npy")]
struct ExportArguments {
    /// The directory of a finished run.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// csv (every dimension), npy (an array u[i, j, …]) or vtk (2-D and 3-D, for ParaView).
    #[arg(long, value_enum, value_name = "csv|npy|vtk")]
    format: ExportFormat,
    /// Grid points in each coordinate, the ends included.
    #[arg(long, value_name = "N", value_parser = count, default_value = "101")]
    grid: usize,
    /// The file to write (default: solution.<format> in DIR).
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct ReportArguments {
    /// The directory of a finished run.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example, for bash:
  greedy-pde completions bash > ~/.local/share/bash-completion/completions/greedy-pde")]
struct CompletionsArguments {
    /// bash, zsh, fish, elvish or powershell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
struct CheckArguments {
    #[command(flatten)]
    problem: ProblemArguments,
}

#[derive(Debug, Args)]
struct BenchArguments {
    /// Take the adapter whose name contains this.
    #[arg(long, value_name = "NAME")]
    adapter: Option<String>,
    /// Dimensions to measure.
    #[arg(long, value_delimiter = ',', default_value = "1,2,10", value_name = "D,…")]
    dimensions: Vec<usize>,
    /// Numbers of points to measure.
    #[arg(long, value_delimiter = ',', default_value = "100000,1000000", value_parser = count, value_name = "N,…")]
    points: Vec<usize>,
    /// Numbers of directions to measure, each with 64 offsets.
    #[arg(long, value_delimiter = ',', default_value = "4,16", value_parser = count, value_name = "K,…")]
    directions: Vec<usize>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DevicesArguments {
    /// Print a JSON list on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde reproduce table01
  greedy-pde reproduce table03 --seeds 3 --max-neurons 128
  greedy-pde reproduce comparison --max-neurons 128
  greedy-pde reproduce figure-ex2

Ends with exit code 1 if a row is worse than the paper's by more than its tolerance.")]
struct ReproduceArguments {
    /// table01 … table11, all of them, `comparison` (every method on example 1), figure-ex2 or figure-ex6.
    #[arg(value_name = "TABLE|all|comparison|FIGURE")]
    table: String,
    /// The file of a figure (default: its name, with .svg).
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
    /// Stop at this many neurons.
    #[arg(long, value_name = "N", value_parser = count)]
    max_neurons: Option<usize>,
    /// Average over this many seeds (default: as the table needs).
    #[arg(long, value_name = "S")]
    seeds: Option<u64>,
    /// Train for this many epochs (table03, table04, comparison; default: 10000).
    #[arg(long, value_name = "E", value_parser = count)]
    epochs: Option<usize>,
    #[command(flatten)]
    backend: BackendArguments,
    /// Number of threads (default: all cores).
    #[arg(long, value_name = "T", value_parser = count)]
    threads: Option<usize>,
    /// No progress.
    #[arg(long, short)]
    quiet: bool,
}

/// A whole number of at least 1; 1_000_000 and 1e6 are read, too.
fn count(text: &str) -> Result<usize, String> {
    let plain = text.replace('_', "");
    let number = plain.parse::<usize>().ok().or_else(|| {
        plain
            .parse::<f64>()
            .ok()
            .filter(|x| x.fract() == 0.0 && (1.0..1e15).contains(x))
            .map(|x| x as usize)
    });
    match number {
        Some(number) if number >= 1 => Ok(number),
        _ => Err("a whole number of at least 1 is needed".to_string()),
    }
}

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
