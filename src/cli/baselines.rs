//! The paper's comparisons: the same networks trained by SGD, Adam and L-BFGS.

use super::reproduce::{Computed, Request};
use super::{Failure, table};
use greedy_pde::backend::{Backend, CpuBackend, CpuOptions};
use greedy_pde::network::Network;
use greedy_pde::norms::{ErrorMeter, Errors};
use greedy_pde::problem::{Problem, Purpose};
use greedy_pde::train::{self, Method, Schedule};
use std::time::Instant;

/// L-BFGS ends at its own tolerance, or here.
const LBFGS_ITERATIONS: u64 = 5000;

/// A problem with what training it needs.
struct Trainer {
    problem: Problem,
    backend: CpuBackend,
    meter: ErrorMeter,
    schedule: Schedule,
    quiet: bool,
}

impl Trainer {
    fn new(problem: Problem, epochs: Option<usize>, quiet: bool) -> Result<Self, Failure> {
        let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
        let backend = CpuBackend::new(loss, problem.dictionary.activation, CpuOptions::default())?;
        let meter = meter(&problem)?;
        let mut schedule = Schedule::PAPER;
        if let Some(epochs) = epochs {
            // A shorter run has the same three phases.
            schedule.every = (schedule.every * epochs / schedule.epochs).max(1);
            schedule.epochs = epochs;
        }
        Ok(Self {
            problem,
            backend,
            meter,
            schedule,
            quiet,
        })
    }

    fn descend(&mut self, method: Method, neurons: usize, seed: u64) -> Result<Network, Failure> {
        let activation = self.problem.dictionary.activation;
        let start = train::random_network(activation, self.problem.dimension(), neurons, seed);
        let started = Instant::now();
        let quiet = self.quiet;
        let epochs = self.schedule.epochs;
        let mut progress = |epoch: usize| {
            if !quiet && epoch.is_multiple_of(1000) {
                let left = started.elapsed().as_secs_f64() * (epochs - epoch) as f64 / epoch as f64;
                eprintln!(
                    "{method:?} n = {neurons} seed {seed}: epoch {epoch} of {epochs}, {left:.0} s left"
                );
            }
        };
        let trained = train::descend(&mut self.backend, &start, method, &self.schedule, &mut progress)?;
        Ok(trained)
    }
}

fn meter(problem: &Problem) -> Result<ErrorMeter, Failure> {
    ErrorMeter::new(problem, problem.settings.neurons)?
        .ok_or_else(|| Failure::Input("a comparison needs the exact solution".to_string()))
}

/// Table 3: deep Ritz with Adam and SGD.
pub(super) fn deep_ritz(request: &Request) -> Result<Computed, Failure> {
    let mut computed = Computed::new();
    for &n in request.ns {
        let mut trainer = Trainer::new((request.load)(n, 0)?, request.epochs, request.quiet)?;
        for (method, name) in [(Method::Adam, "adam"), (Method::Sgd, "sgd")] {
            let mut sums = [0.0; 2];
            for seed in 0..request.seeds {
                let network = trainer.descend(method, n, seed)?;
                let errors = trainer.meter.errors(&network)?;
                sums[0] += errors.l2;
                sums[1] += errors.h1;
            }
            for (sum, norm) in sums.iter().zip(["l2", "h1"]) {
                computed.insert((n, format!("{name}_{norm}")), sum / request.seeds as f64);
            }
        }
    }
    Ok(computed)
}

/// Table 4: PINN with Adam, then L-BFGS.
pub(super) fn pinn(request: &Request) -> Result<Computed, Failure> {
    let mut computed = Computed::new();
    for &n in request.ns {
        let mut trainer = Trainer::new((request.load)(n, 0)?, request.epochs, request.quiet)?;
        let mut sums = [0.0; 3];
        for seed in 0..request.seeds {
            let first = trainer.descend(Method::Adam, n, seed)?;
            let network = train::lbfgs(&mut trainer.backend, &first, LBFGS_ITERATIONS)?;
            let errors = trainer.meter.errors(&network)?;
            sums[0] += trainer.backend.risk(&network)?;
            sums[1] += errors.l2;
            sums[2] += errors.h1;
        }
        for (sum, column) in sums.iter().zip(["pinn_loss", "l2", "h1"]) {
            computed.insert((n, column.to_string()), sum / request.seeds as f64);
        }
    }
    Ok(computed)
}

/// Text of a problem file and what takes its place.
pub(super) type Change = (&'static str, &'static str);
/// Reads example 1 for so many neurons, with some changes.
pub(super) type Loader<'a> = dyn Fn(usize, &[Change]) -> Result<Problem, Failure> + 'a;

/// What a method got, and in how long.
struct Trained {
    errors: Errors,
    seconds: f64,
}

/// Example 1 by every method: error against n and against time.
pub(super) fn compare(
    ns: &[usize],
    epochs: Option<usize>,
    quiet: bool,
    load: &Loader,
    greedy: &dyn Fn(&Problem) -> Result<Network, Failure>,
) -> Result<(), Failure> {
    const OGA: &[Change] = &[];
    const RGA: &[Change] = &[(
        "algorithm = \"oga\"",
        "algorithm = \"rga\"\nradius = 12.0\nguard = false",
    )];
    const SIGMOID: Change = (
        "activation = \"relu^2\"\ndirections = \"sphere\"",
        "activation = \"sigmoid\"\ndirections = \"box\"\nweights = [-20.0, 20.0]\ncandidates = 64\noffsets = 64",
    );
    let sigmoid_oga: &[Change] = &[SIGMOID];
    let sigmoid_rga: &[Change] = &[SIGMOID, RGA[0]];
    let mut lines = Vec::new();
    for &n in ns {
        let mut line = |method: &str, result: Trained| {
            lines.push(vec![
                n.to_string(),
                method.to_string(),
                format!("{:.2e}", result.errors.l2),
                format!("{:.2e}", result.errors.h1),
                format!("{:.2}", result.seconds),
            ]);
        };
        for (name, changes) in [
            ("OGA, ReLU²", OGA),
            ("OGA, sigmoid", sigmoid_oga),
            ("RGA, ReLU²", RGA),
            ("RGA, sigmoid", sigmoid_rga),
        ] {
            let problem = load(n, changes)?;
            let started = Instant::now();
            let network = greedy(&problem)?;
            let seconds = started.elapsed().as_secs_f64();
            let errors = meter(&problem)?.errors(&network)?;
            line(name, Trained { errors, seconds });
        }
        let mut trainer = Trainer::new(load(n, OGA)?, epochs, quiet)?;
        for (name, method) in [("Adam", Method::Adam), ("SGD", Method::Sgd)] {
            let started = Instant::now();
            let network = trainer.descend(method, n, 0)?;
            let seconds = started.elapsed().as_secs_f64();
            let errors = trainer.meter.errors(&network)?;
            line(name, Trained { errors, seconds });
            if method == Method::Adam {
                let network = train::lbfgs(&mut trainer.backend, &network, LBFGS_ITERATIONS)?;
                let errors = trainer.meter.errors(&network)?;
                let seconds = started.elapsed().as_secs_f64();
                line("Adam, then L-BFGS", Trained { errors, seconds });
            }
        }
    }
    let header = ["n", "method", "L2 error", "H1 error", "seconds"];
    println!("{}", table::plain(header, lines));
    Ok(())
}
