//! The relaxed greedy algorithm.

use super::{Outcome, State, Step, Stopped, Timings};
use crate::backend::AnyBackend;
use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::problem::StepRule;
use crate::search::BestFirst;
use std::ops::ControlFlow;
use std::time::Instant;

/// So many of the scout's favourites are looked at on all points.
const SHORTLIST: usize = 12;

/// What [`relaxed`] needs to know.
pub struct RelaxedParams<'a> {
    /// n, the number of neurons to find.
    pub neurons: usize,
    /// M: the coefficients' sizes never add up to more.
    pub radius: f64,
    /// End when the best score is below this.
    pub tolerance: Option<f64>,
    /// How far each step goes.
    pub step: StepRule,
    /// The centre of the domain, for ties.
    pub center: &'a [f64],
    /// The candidates of a step (numbered from 0).
    pub grid: &'a dyn Fn(u64) -> Grid,
    /// Whether the candidates are the same in every step.
    pub fixed_grid: bool,
    /// The n at which the loss on the validation points is wanted.
    pub reported: &'a dyn Fn(usize) -> bool,
    /// Where an earlier run was interrupted.
    pub start: Option<&'a State>,
}

/// The losses of a run, each with whatever does its sums.
pub struct Backends<'a> {
    /// The loss that is minimised.
    pub training: &'a mut AnyBackend,
    /// The same loss on fewer points, which finds the candidates worth a closer look.
    pub scout: Option<&'a mut AnyBackend>,
    /// Independent points, to report the loss there.
    pub validation: Option<&'a mut AnyBackend>,
}

/// g_n = argmax |⟨g, ∇L(u_(n−1))⟩| over ±𝔻, u_n = (1 − α_n) u_(n−1) − M α_n g_n: a convex combination of
/// ±M g, whatever the loss, as long as it is convex.
pub fn relaxed(
    mut backends: Backends,
    params: &RelaxedParams,
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let mut network = Network::zero(backends.training.activation(), params.center.len());
    let mut state = State::default();
    if let Some(start) = params.start {
        state = start.clone();
        network = backends.replay(&network, params.radius, start)?;
    }
    let mut timings = Timings::default();
    let mut grid = (params.grid)(0);
    let stopped = loop {
        let n = network.len() + 1;
        if n > params.neurons {
            break Stopped::Neurons;
        }
        if !params.fixed_grid {
            grid = (params.grid)(network.len() as u64);
        }
        let started = Instant::now();
        backends.refresh(&network)?;
        let (neuron, score) = backends.best(&network, &grid, params.center)?;
        timings.argmax += started.elapsed();
        if !score.is_finite() {
            return Err(SolveError::Breakdown {
                neurons: network.len(),
            });
        }
        if score == 0.0 {
            break Stopped::NoCandidate;
        }
        if params.tolerance.is_some_and(|tolerance| score.abs() < tolerance) {
            break Stopped::Tolerance;
        }
        let started = Instant::now();
        let target = -params.radius * score.signum();
        let alpha = match params.step {
            StepRule::Paper => (2.0 / n as f64).min(1.0),
            StepRule::LineSearch => best_step(backends.training, &network, &neuron, target)?,
        };
        network = moved(&network, &neuron, target, alpha);
        timings.projection += started.elapsed();
        state.neurons.push(neuron);
        state.scores.push(score);
        state.steps.push(alpha);
        let last = n == params.neurons;
        let (mut loss, mut validation_loss) = (f64::NAN, None);
        if last || (params.reported)(n) {
            let started = Instant::now();
            loss = backends.training.risk(&network)?;
            validation_loss = match &mut backends.validation {
                Some(validation) => Some(validation.risk(&network)?),
                None => None,
            };
            timings.validation += started.elapsed();
        }
        let flow = observer(&Step {
            network: &network,
            state: &state,
            score: score.abs(),
            loss,
            validation_loss,
            last,
        })?;
        if flow.is_break() {
            break Stopped::Interrupted;
        }
    };
    Ok(Outcome {
        network,
        stopped,
        warnings: Vec::new(),
        timings,
    })
}

impl Backends<'_> {
    /// Backends may update u at the points by the neuron added last. At n = 1, 2, 4, … they evaluate
    /// it anew, so that rounding does not pile up and a resumed run need only repeat what came after.
    fn refresh(&mut self, u: &Network) -> Result<(), SolveError> {
        match u.len().is_power_of_two() {
            true => self.visit(&Network::zero(u.activation, u.dimension)),
            false => Ok(()),
        }
    }

    /// Has the backends evaluate u.
    fn visit(&mut self, u: &Network) -> Result<(), SolveError> {
        let nothing = Candidates::List(&[]);
        self.training.gradient(u, nothing)?;
        if let Some(scout) = &mut self.scout {
            scout.gradient(u, nothing)?;
        }
        Ok(())
    }

    /// Repeats the steps of an interrupted run, with u at the points updated as it was there.
    fn replay(&mut self, zero: &Network, radius: f64, start: &State) -> Result<Network, SolveError> {
        let mut network = zero.clone();
        let count = start.neurons.len();
        let steps = start.neurons.iter().zip(&start.scores).zip(&start.steps);
        for ((neuron, score), &alpha) in steps {
            network = moved(&network, neuron, -radius * score.signum(), alpha);
            if 2 * network.len() > count {
                self.refresh(&network)?;
                self.visit(&network)?;
            }
        }
        Ok(network)
    }

    /// The candidate with the largest |score|, and the score.
    fn best(&mut self, u: &Network, grid: &Grid, center: &[f64]) -> Result<(Neuron, f64), SolveError> {
        let neuron = |index: usize| grid.neuron(index);
        let on_grid = Candidates::Grid(grid);
        let Some(scout) = &mut self.scout else {
            return strongest(&self.training.gradient(u, on_grid)?, &neuron, center);
        };
        let scores = scout.gradient(u, on_grid)?;
        let activity = |index: usize| neuron(index).argument(center);
        let list: Vec<Neuron> = BestFirst::new(&scores, 0.0, &activity)
            .of_lines(grid, SHORTLIST)
            .into_iter()
            .map(neuron)
            .collect();
        let scores = self.training.gradient(u, Candidates::List(&list))?;
        strongest(&scores, &|index| list[index].clone(), center)
    }
}

/// The neuron with the largest |score|, of those that tie the one less active at the centre.
fn strongest(
    scores: &[f64],
    neuron: &dyn Fn(usize) -> Neuron,
    center: &[f64],
) -> Result<(Neuron, f64), SolveError> {
    let activity = |index: usize| neuron(index).argument(center);
    let best = BestFirst::new(scores, 0.0, &activity).next();
    let index = best.ok_or(SolveError::Unsupported("a dictionary without neurons"))?;
    Ok((neuron(index), scores[index]))
}

/// (1 − α) u + α · target · g.
fn moved(u: &Network, g: &Neuron, target: f64, alpha: f64) -> Network {
    let mut network = u.clone();
    network.coefficients.iter_mut().for_each(|a| *a *= 1.0 - alpha);
    network.neurons.push(g.clone());
    network.coefficients.push(alpha * target);
    network
}

/// The α in [0, 1] with the smallest loss, by the golden section of a convex function.
fn best_step(training: &mut AnyBackend, u: &Network, g: &Neuron, target: f64) -> Result<f64, SolveError> {
    const SECTION: f64 = 0.618_033_988_749_894_9;
    const STEPS: usize = 30;
    let mut loss = |alpha: f64| training.risk(&moved(u, g, target, alpha));
    let (mut low, mut high) = (0.0, 1.0);
    let mut left = high - SECTION * (high - low);
    let mut right = low + SECTION * (high - low);
    let (mut at_left, mut at_right) = (loss(left)?, loss(right)?);
    for _ in 0..STEPS {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - SECTION * (high - low);
            at_left = loss(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + SECTION * (high - low);
            at_right = loss(right)?;
        }
    }
    Ok(0.5 * (low + high))
}
