//! The paper's comparisons: the same networks trained by SGD, Adam and L-BFGS.

use super::reproduce::Request;
use crate::cli::streams::{put, tell};
use crate::cli::{Failure, table};
use greedy_pde::network::Network;
use greedy_pde::norms::{ErrorMeter, Errors};
use greedy_pde::paper::Computed;
use greedy_pde::problem::{Problem, Purpose};
use greedy_pde::sums::{CpuOptions, CpuSums, Sums};
use greedy_pde::train::{self, Method, Schedule};
use rayon::prelude::*;
use std::time::Instant;

/// L-BFGS ends at its own tolerance, or here.
const LBFGS_ITERATIONS: u64 = 5000;
/// The paper does not name its momentum. With this usual one its figures come out; without any the
/// errors are 6 to 25 times larger.
const SGD: Method = Method::Sgd { momentum: 0.9 };
/// A start that ends this many times worse than the best was caught in a local minimum.
const CAUGHT: f64 = 10.0;

/// A problem with what training it needs.
struct Trainer<'a> {
    problem: &'a Problem,
    sums: CpuSums,
    meter: ErrorMeter,
    schedule: Schedule,
    quiet: bool,
}

impl<'a> Trainer<'a> {
    fn new(problem: &'a Problem, epochs: Option<usize>, quiet: bool) -> Result<Self, Failure> {
        let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
        let sums = CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default())?;
        let meter = meter(problem)?;
        let mut schedule = Schedule::PAPER;
        if let Some(epochs) = epochs {
            // A shorter run has the same three phases.
            schedule.every = (schedule.every * epochs / schedule.epochs).max(1);
            schedule.epochs = epochs;
        }
        Ok(Self {
            problem,
            sums,
            meter,
            schedule,
            quiet,
        })
    }

    fn descend(&mut self, method: Method, seed: u64) -> Result<Network, Failure> {
        let activation = self.problem.dictionary.activation;
        let neurons = self.problem.settings.neurons;
        let start = train::random_network(activation, self.problem.dimension(), neurons, seed);
        let started = Instant::now();
        let (quiet, epochs) = (self.quiet, self.schedule.epochs);
        let mut progress = |epoch: usize| {
            if !quiet && epoch.is_multiple_of(1000) {
                let left = started.elapsed().as_secs_f64() * (epochs - epoch) as f64 / epoch as f64;
                tell!(
                    "{} n = {neurons} seed {seed}: epoch {epoch} of {epochs}, {left:.0} s left",
                    name(method)
                );
            }
        };
        let trained = train::descend(&self.sums, &start, method, &self.schedule, &mut progress)?;
        Ok(trained)
    }

    /// L2 and H1 error after training by a first-order method.
    fn errors_after(&mut self, method: Method, seed: u64) -> Result<Errors, Failure> {
        let network = self.descend(method, seed)?;
        Ok(self.meter.errors(&network)?)
    }
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Sgd { .. } => "SGD",
        Method::Adam => "Adam",
    }
}

fn meter(problem: &Problem) -> Result<ErrorMeter, Failure> {
    ErrorMeter::new(problem, problem.settings.neurons)?
        .ok_or_else(|| Failure::Input("a comparison needs the exact solution".to_string()))
}

/// The means over the seeds of the figures that `train` gets for each n, the seeds side by side.
fn mean_over_seeds(
    request: &Request,
    columns: &[&str],
    train: impl Fn(&mut Trainer, u64) -> Result<Vec<f64>, Failure> + Sync,
) -> Result<Computed, Failure> {
    let mut computed = Computed::new();
    let (epochs, quiet) = (request.epochs, request.quiet);
    for &n in request.ns {
        let problem = (request.load)(n, 0)?;
        let rows: Result<Vec<Vec<f64>>, Failure> = (0..request.seeds)
            .into_par_iter()
            .map(|seed| {
                let mut trainer = Trainer::new(&problem, epochs, quiet)?;
                train(&mut trainer, seed)
            })
            .collect();
        let rows = rows?;
        for (c, column) in columns.iter().enumerate() {
            let figures: Vec<f64> = rows.iter().map(|row| row[c]).collect();
            let best = figures.iter().copied().fold(f64::INFINITY, f64::min);
            let caught = figures.iter().filter(|figure| **figure > CAUGHT * best).count();
            if caught > 0 {
                tell!(
                    "note: n = {n}, {column}: {caught} of {} starts ended more than {CAUGHT} times worse than the best",
                    figures.len()
                );
            }
            let mean = figures.iter().sum::<f64>() / figures.len() as f64;
            computed.insert((n, column.to_string()), mean);
        }
    }
    Ok(computed)
}

/// Table 3: deep Ritz with Adam and SGD.
pub(super) fn deep_ritz(request: &Request) -> Result<Computed, Failure> {
    let columns = ["adam_l2", "adam_h1", "sgd_l2", "sgd_h1"];
    mean_over_seeds(request, &columns, |trainer, seed| {
        let adam = trainer.errors_after(Method::Adam, seed)?;
        let sgd = trainer.errors_after(SGD, seed)?;
        Ok(vec![adam.l2, adam.h1, sgd.l2, sgd.h1])
    })
}

/// Table 4: PINN with Adam, then L-BFGS.
pub(super) fn pinn(request: &Request) -> Result<Computed, Failure> {
    mean_over_seeds(request, &["pinn_loss", "l2", "h1"], |trainer, seed| {
        let first = trainer.descend(Method::Adam, seed)?;
        let network = train::lbfgs(&trainer.sums, &first, LBFGS_ITERATIONS)?;
        let errors = trainer.meter.errors(&network)?;
        Ok(vec![trainer.sums.risk(&network)?, errors.l2, errors.h1])
    })
}

/// Text of a problem file and what takes its place.
pub(super) type Change = (&'static str, &'static str);
/// Reads example 1 for so many neurons, with some changes.
pub(super) type Loader<'a> = dyn Fn(usize, &[Change]) -> Result<Problem, Failure> + 'a;

/// What a method got, and in how long.
struct Trained {
    method: &'static str,
    errors: Errors,
    seconds: f64,
}

/// The problem file's lines that make a relaxed run of it, and one with sigmoids.
const RELAXED: Change = (
    "algorithm = \"oga\"",
    "algorithm = \"rga\"\nradius = 12.0\nguard = false",
);
const SIGMOID: Change = (
    "activation = \"relu^2\"\ndirections = \"sphere\"",
    "activation = \"sigmoid\"\ndirections = \"box\"\nweights = [-20.0, 20.0]\ncandidates = 64\noffsets = 64",
);

/// Example 1 by every method: error against n and against time.
pub(super) fn compare(
    ns: &[usize],
    epochs: Option<usize>,
    quiet: bool,
    load: &Loader,
    greedy: &dyn Fn(&Problem) -> Result<Network, Failure>,
) -> Result<(), Failure> {
    let greedy_methods: [(&str, &[Change]); 4] = [
        ("OGA, ReLU²", &[]),
        ("OGA, sigmoid", &[SIGMOID]),
        ("RGA, ReLU²", &[RELAXED]),
        ("RGA, sigmoid", &[SIGMOID, RELAXED]),
    ];
    let mut by_n: Vec<Vec<Trained>> = Vec::new();
    for &n in ns {
        let mut results = Vec::new();
        for (method, changes) in greedy_methods {
            let problem = load(n, changes)?;
            let started = Instant::now();
            let network = greedy(&problem)?;
            results.push(Trained {
                method,
                seconds: started.elapsed().as_secs_f64(),
                errors: meter(&problem)?.errors(&network)?,
            });
        }
        let problem = load(n, &[])?;
        let mut trainer = Trainer::new(&problem, epochs, quiet)?;
        let mut started = Instant::now();
        let mut add = |method, trainer: &Trainer, network: &Network, seconds: f64| {
            let errors = trainer.meter.errors(network)?;
            results.push(Trained {
                method,
                errors,
                seconds,
            });
            Ok::<(), Failure>(())
        };
        let adam = trainer.descend(Method::Adam, 0)?;
        add("Adam", &trainer, &adam, started.elapsed().as_secs_f64())?;
        let further = train::lbfgs(&trainer.sums, &adam, LBFGS_ITERATIONS)?;
        let seconds = started.elapsed().as_secs_f64();
        add("Adam, then L-BFGS", &trainer, &further, seconds)?;
        started = Instant::now();
        let sgd = trainer.descend(SGD, 0)?;
        add("SGD", &trainer, &sgd, started.elapsed().as_secs_f64())?;
        by_n.push(results);
    }
    print_comparison("H1 error", ns, &by_n, |result| {
        format!("{:.2e}", result.errors.h1)
    })?;
    print_comparison("L2 error", ns, &by_n, |result| {
        format!("{:.2e}", result.errors.l2)
    })?;
    print_comparison("seconds", ns, &by_n, |result| format!("{:.2}", result.seconds))
}

/// One figure of every method (rows) at every n (columns).
fn print_comparison(
    title: &str,
    ns: &[usize],
    by_n: &[Vec<Trained>],
    figure: impl Fn(&Trained) -> String,
) -> Result<(), Failure> {
    let mut header = vec![title.to_string()];
    header.extend(ns.iter().map(|n| format!("n = {n}")));
    let methods = by_n.first().map_or(0, Vec::len);
    let lines = (0..methods).map(|method| {
        let figures = by_n.iter().map(|results| figure(&results[method]));
        [by_n[0][method].method.to_string()]
            .into_iter()
            .chain(figures)
            .collect()
    });
    put!("{}\n", table::plain(header, lines.collect::<Vec<Vec<String>>>()));
    Ok(())
}
