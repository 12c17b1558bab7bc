//! What users type.

use clap::{Args, Parser, Subcommand, ValueEnum};
use greedy_pde::problem::Overrides;
use greedy_pde::run::{BackendChoice, RunOptions};
use greedy_pde::sums::PrecisionChoice;
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
  greedy-pde compare runs/first runs/second
  greedy-pde reproduce table01

Exit codes: 0 done, 1 the solve failed, 2 bad input, 130 interrupted (the state is saved).")]
pub struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
    /// A run as one self-contained HTML page with plots.
    Report(ReportArguments),
    /// Runs side by side: tables, curves, errors against a file of values.
    Compare(CompareArguments),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
}

/// Flags that change a problem.
#[derive(Debug, Args)]
pub(super) struct ProblemArguments {
    /// The problem file.
    #[arg(value_name = "PROBLEM.toml")]
    pub(super) problem: PathBuf,
    /// Number of neurons.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) neurons: Option<usize>,
    /// Number of points (Halton, lattice and Monte Carlo rules).
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) points: Option<usize>,
    /// Cells per direction (Gauss rules).
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) cells: Option<usize>,
    /// Seed of every random choice.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(super) seed: Option<u64>,
}

impl ProblemArguments {
    pub(super) fn overrides(&self) -> Overrides {
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
pub(super) struct BackendArguments {
    /// auto takes a real GPU where there is work for one, else the CPU; gpu takes a software adapter, too.
    #[arg(long, value_enum, default_value = "auto", value_name = "auto|cpu|gpu")]
    pub(super) backend: BackendName,
    /// Take the adapter whose name contains this (also: WGPU_ADAPTER_NAME, WGPU_BACKEND).
    #[arg(long, value_name = "NAME")]
    pub(super) adapter: Option<String>,
    /// Precision of sums on a GPU: whole numbers for ReLU^k, else from f32 to f64 when it must. `integer` serves on the
    /// CPU, too, and gives the same bytes there.
    #[arg(long, value_enum, default_value = "auto", value_name = "auto|f32|f64|integer")]
    pub(super) precision: PrecisionName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum BackendName {
    Auto,
    Cpu,
    Gpu,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum PrecisionName {
    Auto,
    F32,
    F64,
    Integer,
}

impl BackendArguments {
    pub(super) fn run_options(&self) -> RunOptions {
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
                PrecisionName::Integer => PrecisionChoice::Integer,
            },
            cluster: super::cluster().clone(),
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
pub(super) struct SolveArguments {
    #[command(flatten)]
    pub(super) problem: ProblemArguments,
    #[command(flatten)]
    pub(super) backend: BackendArguments,
    /// Number of threads (default: all cores).
    #[arg(long, value_name = "T", value_parser = threads)]
    pub(super) threads: Option<usize>,
    /// Where results go (default: runs/<problem name>).
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Go on from the checkpoint in the output directory.
    #[arg(long, conflicts_with = "force")]
    pub(super) resume: bool,
    /// Overwrite an existing result.
    #[arg(long)]
    pub(super) force: bool,
    /// Print the result as one JSON object on stdout.
    #[arg(long)]
    pub(super) json: bool,
    /// Do not write report.html and its plots.
    #[arg(long)]
    pub(super) no_report: bool,
    /// No progress and no table, only the result (with --json) and errors.
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Say what is solved before it begins, and show every step.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  greedy-pde evaluate runs/ex3_energy points.csv --gradient > values.csv

POINTS.csv has one point per line, its coordinates separated by commas; a first line with d names is
passed over.")]
pub(super) struct EvaluateArguments {
    /// The directory of a run, or a network as `solve` saves it.
    #[arg(value_name = "DIR|NETWORK")]
    pub(super) network: PathBuf,
    /// The points; - reads them from stdin.
    #[arg(value_name = "POINTS.csv")]
    pub(super) points: PathBuf,
    /// Also the first derivatives.
    #[arg(long)]
    pub(super) gradient: bool,
    /// Also the Laplacian.
    #[arg(long)]
    pub(super) laplacian: bool,
    /// At this time, of a problem in time (default: the last one).
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(super) time: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    Csv,
    Npy,
    Vtk,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde export runs/ex3_energy --format vtk --grid 200
  greedy-pde export runs/ex1_neumann --format npy --output u.npy
  greedy-pde export runs/allen_cahn_2d --format vtk --frames

With --frames: vtk writes solution_0.vtk, … and solution.vtk.series, which ParaView opens as one; npy
u[frame, i, j, …] and solution_times.npy; csv has t in its first column.")]
pub(super) struct ExportArguments {
    /// The directory of a run; of an interrupted one, what it has so far.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// csv (every dimension), npy (an array u[i, j, …]) or vtk (2-D and 3-D, for ParaView).
    #[arg(long, value_enum, value_name = "csv|npy|vtk")]
    pub(super) format: ExportFormat,
    /// Grid points in each coordinate, the ends included (default: 101; fewer above 3-D).
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) grid: Option<usize>,
    /// At this time, of a problem in time (default: the last one).
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(super) time: Option<f64>,
    /// At all times that were kept.
    #[arg(long, conflicts_with = "time")]
    pub(super) frames: bool,
    /// The file to write (default: solution.<format> in DIR).
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  greedy-pde report runs/ex3_energy")]
pub(super) struct ReportArguments {
    /// The directory of a run; of an interrupted one, what it has so far.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde compare runs/coarse runs/fine --output comparison.html
  greedy-pde compare runs/mine --reference measured.csv

VALUES.csv has d + 1 numbers per line, the coordinates of a point and the value there, separated by
commas; a first line of names is passed over.")]
pub(super) struct CompareArguments {
    /// The directories of the runs; of interrupted ones, what they have so far.
    #[arg(value_name = "RUN", required = true)]
    pub(super) runs: Vec<PathBuf>,
    /// Errors of the networks against the values in this file.
    #[arg(long, value_name = "VALUES.csv")]
    pub(super) reference: Option<PathBuf>,
    /// Also write a page with the curves together.
    #[arg(long, value_name = "PAGE.html")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing page.
    #[arg(long)]
    pub(super) force: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example, for bash:
  greedy-pde completions bash > ~/.local/share/bash-completion/completions/greedy-pde")]
pub(super) struct CompletionsArguments {
    /// bash, zsh, fish, elvish or powershell.
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  greedy-pde check configs/ex6_poisson_boltzmann.toml --neurons 1024")]
pub(super) struct CheckArguments {
    #[command(flatten)]
    pub(super) problem: ProblemArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BenchKind {
    Cluster,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mpirun -n 4 greedy-pde bench cluster --threads 1
  greedy-pde bench --dimensions 10 --points 1e6,1e7 --directions 16 --adapter nvidia")]
pub(super) struct BenchArguments {
    /// Measure how sums scale with the processes that `mpirun` started, instead of adapters.
    #[arg(value_enum, value_name = "cluster")]
    pub(super) what: Option<BenchKind>,
    /// With `cluster`: points of the pass in ten dimensions.
    #[arg(long, value_name = "N", value_parser = count, requires = "what")]
    pub(super) pass_points: Option<usize>,
    /// With `cluster`: threads of each process (default: all cores).
    #[arg(long, value_name = "T", value_parser = threads, requires = "what")]
    pub(super) threads: Option<usize>,
    /// Take the adapter whose name contains this.
    #[arg(long, value_name = "NAME")]
    pub(super) adapter: Option<String>,
    /// Dimensions to measure.
    #[arg(long, value_delimiter = ',', default_value = "1,2,10", value_name = "D,…")]
    pub(super) dimensions: Vec<usize>,
    /// Numbers of points to measure.
    #[arg(long, value_delimiter = ',', default_value = "100000,1000000", value_parser = count, value_name = "N,…")]
    pub(super) points: Vec<usize>,
    /// Numbers of directions to measure, each with 64 offsets.
    #[arg(long, value_delimiter = ',', default_value = "4,16", value_parser = count, value_name = "K,…")]
    pub(super) directions: Vec<usize>,
    /// Measure whole solves instead, on the CPU path and on the device: all that docs/gpu.md lists, or those whose names
    /// contain one of these; and the pass over a million points in ten dimensions.
    #[arg(long, num_args = 0.., value_delimiter = ',', value_name = "NAME,…")]
    pub(super) solves: Option<Vec<String>>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DevicesArguments {
    /// Print a JSON list on stdout.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  greedy-pde reproduce table01
  greedy-pde reproduce table03 --seeds 3 --max-neurons 128
  greedy-pde reproduce comparison --max-neurons 128
  greedy-pde reproduce figure-ex2

Ends with exit code 1 if a row is worse than the paper's by more than its tolerance.")]
pub(super) struct ReproduceArguments {
    /// table01 … table11, all of them, `comparison` (every method on example 1), figure-ex2 or figure-ex6; or what
    /// others have published: `randomized-oga` (cos3, gauss4, gauss10, biharmonic3) and `kfac` (poisson2, poisson5,
    /// poisson10, heat5), whole or one problem of them.
    #[arg(value_name = "TABLE|all|comparison|FIGURE|FIELD")]
    pub(super) table: String,
    /// The file of a figure (default: its name, with .svg).
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub(super) force: bool,
    /// Stop at this many neurons.
    #[arg(long, value_name = "N", value_parser = count)]
    pub(super) max_neurons: Option<usize>,
    /// Average over this many seeds (default: as the table needs).
    #[arg(long, value_name = "S")]
    pub(super) seeds: Option<u64>,
    /// Train for this many epochs (table03, table04, comparison; default: 10000).
    #[arg(long, value_name = "E", value_parser = count)]
    pub(super) epochs: Option<usize>,
    #[command(flatten)]
    pub(super) backend: BackendArguments,
    /// Number of threads (default: all cores).
    #[arg(long, value_name = "T", value_parser = threads)]
    pub(super) threads: Option<usize>,
    /// No progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// More threads than any machine has cores only get in each other's way, and the system runs out of them.
const MOST_THREADS: usize = 1024;

/// A number of threads that a machine may have.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    match count(text)? {
        threads if threads <= MOST_THREADS => Ok(threads),
        _ => Err(format!("at most {MOST_THREADS} threads can be used")),
    }
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
