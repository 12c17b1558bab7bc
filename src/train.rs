//! What the greedy algorithms are compared with: the same network and loss, trained by gradient descent.
//!
//! Neurons and coefficients move together. The derivatives are those that the refinement of neurons uses:
//! ∂L/∂aᵢ = ⟨∇L(u), gᵢ⟩, and ∂L/∂(ωᵢ, bᵢ) = aᵢ ∂⟨∇L(u), gᵢ⟩/∂(ωᵢ, bᵢ).

use crate::activation::Activation;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::points::philox_uniforms;
use crate::sums::Sums;
use argmin::core::{CostFunction, Error, Executor, Gradient, State};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;

/// Steps by which L-BFGS remembers the curvature.
const MEMORY: usize = 20;

/// A first-order method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Gradient descent on all points.
    Sgd {
        /// What is left of a step in the next one; 0 is plain descent.
        momentum: f64,
    },
    /// Adam with its usual constants.
    Adam,
}

/// How fast, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The first learning rate.
    pub rate: f64,
    /// It is divided by `drop` …
    pub drop: f64,
    /// … every so many epochs.
    pub every: usize,
    /// How many epochs.
    pub epochs: usize,
}

impl Schedule {
    /// 10,000 epochs from 10⁻³, divided by 5 every 3000.
    pub const PAPER: Schedule = Schedule {
        rate: 1e-3,
        drop: 5.0,
        every: 3000,
        epochs: 10_000,
    };

    fn rate_at(&self, epoch: usize) -> f64 {
        self.rate / self.drop.powi((epoch / self.every) as i32)
    }
}

/// A random network as deep learning libraries begin with: ω and b uniform in ±1/√d, a in ±1/√n.
pub fn random_network(activation: Activation, dimension: usize, neurons: usize, seed: u64) -> Network {
    const STREAM: u32 = 7;
    let (inner, outer) = (1.0 / (dimension as f64).sqrt(), 1.0 / (neurons as f64).sqrt());
    let mut network = Network::zero(activation, dimension);
    for i in 0..neurons {
        let s = philox_uniforms(seed, STREAM, i as u64, dimension + 2);
        let spread = |s: f64, width: f64| width * (2.0 * s - 1.0);
        network.neurons.push(Neuron {
            omega: s[..dimension].iter().map(|&s| spread(s, inner)).collect(),
            bias: spread(s[dimension], inner),
        });
        network.coefficients.push(spread(s[dimension + 1], outer));
    }
    network
}

/// a, ω, b of every neuron in a row.
fn parameters(network: &Network) -> Vec<f64> {
    let neurons = network.neurons.iter().zip(&network.coefficients);
    neurons
        .flat_map(|(neuron, &a)| [a].into_iter().chain(neuron.omega.clone()).chain([neuron.bias]))
        .collect()
}

fn with_parameters(like: &Network, parameters: &[f64]) -> Network {
    let mut network = like.clone();
    let rows = parameters.chunks(like.dimension + 2);
    for ((neuron, a), row) in network
        .neurons
        .iter_mut()
        .zip(&mut network.coefficients)
        .zip(rows)
    {
        *a = row[0];
        neuron.omega.copy_from_slice(&row[1..=like.dimension]);
        neuron.bias = row[like.dimension + 1];
    }
    network
}

/// ∂L/∂(a, ω, b).
///
/// ReLU^k is homogeneous: aσ(ω·x + b) = a|ω|ᵏ σ((ω·x + b)/|ω|). The sums are taken for the neurons with
/// |ω| = 1, which lie on the same line in one dimension and then cost one pass together.
pub fn gradient(sums: &dyn Sums, network: &Network) -> Result<Vec<f64>, SolveError> {
    let (unit, lengths) = normalised(network);
    let power = network.activation.relu_power().unwrap_or(0) as i32;
    let rho = sums.gradient(&unit)?;
    let slopes = rho
        .slopes()
        .ok_or(SolveError::Unsupported("training on moment tables"))?;
    let local = slopes.slopes_at(&unit.neurons)?;
    let mut gradient = Vec::with_capacity(local.len() * (network.dimension + 2));
    for ((score, length), &a) in local.iter().zip(lengths).zip(&network.coefficients) {
        // The score is homogeneous of degree k in (ω, b), its derivatives of degree k − 1.
        gradient.push(length.powi(power) * score.value);
        let slopes = score.gradient.iter();
        gradient.extend(slopes.map(|slope| a * length.powi(power - 1) * slope));
    }
    Ok(gradient)
}

/// The same function with |ω| = 1 where the activation is ReLU^k, and the |ω| there were.
fn normalised(network: &Network) -> (Network, Vec<f64>) {
    let mut unit = network.clone();
    let Some(power) = network.activation.relu_power() else {
        return (unit, vec![1.0; network.len()]);
    };
    let neurons = unit.neurons.iter_mut().zip(&mut unit.coefficients);
    let lengths = neurons.map(|(neuron, a)| {
        let length = neuron.omega.iter().map(|o| o * o).sum::<f64>().sqrt();
        if length == 0.0 {
            return 1.0;
        }
        neuron.omega.iter_mut().for_each(|o| *o /= length);
        neuron.bias /= length;
        *a *= length.powi(power as i32);
        length
    });
    let lengths = lengths.collect();
    (unit, lengths)
}

/// Trains a network by a first-order method; the observer sees the number of epochs done.
pub fn descend(
    sums: &dyn Sums,
    network: &Network,
    method: Method,
    schedule: &Schedule,
    observer: &mut dyn FnMut(usize),
) -> Result<Network, SolveError> {
    const DECAY: f64 = 0.9;
    const SQUARE_DECAY: f64 = 0.999;
    const TINY: f64 = 1e-8;
    let mut place = parameters(network);
    let (mut mean, mut square) = (vec![0.0; place.len()], vec![0.0; place.len()]);
    for epoch in 0..schedule.epochs {
        let slope = gradient(sums, &with_parameters(network, &place))?;
        let rate = schedule.rate_at(epoch);
        match method {
            Method::Sgd { momentum } => {
                for (i, g) in slope.iter().enumerate() {
                    mean[i] = momentum * mean[i] + g;
                    place[i] -= rate * mean[i];
                }
            }
            Method::Adam => {
                let step = epoch as i32 + 1;
                let (warm, square_warm) = (1.0 - DECAY.powi(step), 1.0 - SQUARE_DECAY.powi(step));
                for (i, g) in slope.iter().enumerate() {
                    mean[i] = DECAY * mean[i] + (1.0 - DECAY) * g;
                    square[i] = SQUARE_DECAY * square[i] + (1.0 - SQUARE_DECAY) * g * g;
                    place[i] -= rate * (mean[i] / warm) / ((square[i] / square_warm).sqrt() + TINY);
                }
            }
        }
        if place.iter().any(|value| !value.is_finite()) {
            return Err(SolveError::Breakdown {
                neurons: network.len(),
            });
        }
        observer(epoch + 1);
    }
    Ok(with_parameters(network, &place))
}

/// The loss as a function of the parameters.
struct LossSurface<'a> {
    sums: &'a dyn Sums,
    network: &'a Network,
}

impl CostFunction for LossSurface<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, place: &Vec<f64>) -> Result<f64, Error> {
        let network = with_parameters(self.network, place);
        Ok(self.sums.risk(&normalised(&network).0)?)
    }
}

impl Gradient for LossSurface<'_> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, place: &Vec<f64>) -> Result<Vec<f64>, Error> {
        let network = with_parameters(self.network, place);
        Ok(gradient(self.sums, &network)?)
    }
}

/// Trains on by L-BFGS with a line search for the strong Wolfe conditions, until the loss changes by
/// less than 10⁻¹⁶ or `iterations` are done.
pub fn lbfgs(sums: &dyn Sums, network: &Network, iterations: u64) -> Result<Network, SolveError> {
    const LEAST_CHANGE: f64 = 1e-16;
    let start = parameters(network);
    let before = sums.risk(network)?;
    let problem = LossSurface { sums, network };
    let solver = LBFGS::new(MoreThuenteLineSearch::new(), MEMORY)
        .with_tolerance_cost(LEAST_CHANGE)
        .and_then(|solver| solver.with_tolerance_grad(LEAST_CHANGE));
    let Ok(solver) = solver else {
        return Err(SolveError::Unsupported("these tolerances of L-BFGS"));
    };
    let run = Executor::new(problem, solver)
        .configure(|state| state.param(start.clone()).max_iters(iterations))
        .run();
    // A line search that finds no way down ends the run where it is; at worst nothing was gained.
    let Ok(run) = run else {
        return Ok(network.clone());
    };
    match (run.state().get_best_param(), run.state().get_best_cost()) {
        (Some(best), cost) if cost <= before => Ok(with_parameters(network, best)),
        _ => Ok(network.clone()),
    }
}
