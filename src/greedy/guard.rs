//! The guard against overfitting the quadrature.

use crate::error::SolveError;
use crate::network::Network;
use crate::sums::{Rho, Sums};
use crate::vector::dot;
use std::time::{Duration, Instant};

/// The loss on the validation points may rise by this part of its size: rounding.
const ROUNDING: f64 = 1e-14;
/// Up to this many validation points every neuron is checked.
const CHEAP_POINTS: usize = 100_000;
/// On firm ground, with more points, at least one neuron out of so many is checked.
const LONGEST_INTERVAL: usize = 8;
/// The same where every neuron's effect was foreseen.
const LONGEST_FORESEEN: usize = 32;
/// The ground is firm when training and validation loss fall alike, up to this part.
const FIRM: f64 = 0.05;

/// Keeps a second set of points that neither selection nor projection sees, and refuses a neuron with
/// which the loss there does not fall.
///
/// Where the points are many, the loss on them is the larger part of a step. As long as it falls by
/// what the training loss falls by, the check is made every second, fourth, eighth neuron only.
pub(super) struct Guard<'a> {
    validation: Option<&'a dyn Sums>,
    pub(super) state: GuardState,
    /// What it foresees with, where gradients are anchored.
    foresight: Option<Foresight<'a>>,
    /// The loss may be above the best so far by this part of it.
    slack: f64,
    pub(super) time: Duration,
}

/// How far the loss may rise above its best where it is a mean over so many noisy measurements: half of what such a
/// mean is uncertain by. A peak takes several neurons, of which the first ones alone may do harm.
fn noise(measurements: usize) -> f64 {
    0.5 * (2.0 / measurements as f64).sqrt()
}

/// The gradient on the validation points at an anchor u₀. With it and the Gram matrix G of the inner products the
/// loss there is known to second order: ⟨∇L_V(u₀), u − u₀⟩ + ½ (a − a₀)ᵀ G (a − a₀), for the price of one
/// neuron's score.
struct Foresight<'a> {
    gradient: Box<dyn Rho + 'a>,
    /// a₀.
    coefficients: Vec<f64>,
    /// ⟨∇L_V(u₀), g⟩ of the neurons, those of u₀ first.
    scores: Vec<f64>,
}

/// What the guard remembers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardState {
    /// The loss on the validation points when it was last checked, with measurements the best so far …
    pub loss: f64,
    /// … and what the neurons had taken off the training loss by then.
    pub explained: f64,
    /// Every how many neurons it is checked.
    pub interval: usize,
    /// Neurons since the last check.
    pub since: usize,
}

/// What the guard says of a neuron.
pub(super) enum Verdict {
    /// It stays; the loss on the validation points, if it was taken.
    Accepted(Option<f64>),
    /// It must go.
    Refused,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        validation: Option<&'a dyn Sums>,
        zero: &Network,
        start: Option<GuardState>,
        measurements: Option<usize>,
    ) -> Result<Self, SolveError> {
        let mut guard = Self {
            validation,
            state: GuardState {
                loss: f64::INFINITY,
                explained: 0.0,
                interval: 1,
                since: 0,
            },
            foresight: None,
            slack: measurements.filter(|&held| held > 0).map_or(ROUNDING, noise),
            time: Duration::ZERO,
        };
        match start {
            Some(state) => guard.state = state,
            None => guard.state.loss = guard.measure(zero)?.unwrap_or(f64::INFINITY),
        }
        Ok(guard)
    }

    /// The second set of points, if there is one.
    pub(super) fn validation(&self) -> Option<&'a dyn Sums> {
        self.validation
    }

    fn measure(&mut self, network: &Network) -> Result<Option<f64>, SolveError> {
        let started = Instant::now();
        let loss = match self.validation {
            Some(validation) => Some(validation.risk(network)?),
            None => None,
        };
        self.time += started.elapsed();
        Ok(loss)
    }

    /// Takes note that the loss itself has changed.
    pub(super) fn measure_anew(&mut self, network: &Network, explained: f64) -> Result<(), SolveError> {
        self.state.loss = self.measure(network)?.unwrap_or(f64::INFINITY);
        self.state.explained = explained;
        Ok(())
    }

    /// The same where the neurons are other ones, too: each new one is checked for now.
    pub(super) fn begin_anew(&mut self, network: &Network, explained: f64) -> Result<(), SolveError> {
        self.state.interval = 1;
        self.state.since = 0;
        self.measure_anew(network, explained)
    }

    /// Takes the gradient at u, to foresee from there.
    pub(super) fn anchor(&mut self, u: &Network) -> Result<(), SolveError> {
        let started = Instant::now();
        if let Some(validation) = self.validation {
            let gradient = validation.gradient(u)?;
            self.foresight = Some(Foresight {
                scores: gradient.list_scores(&u.neurons)?,
                coefficients: u.coefficients.clone(),
                gradient,
            });
        }
        self.time += started.elapsed();
        Ok(())
    }

    /// Whether the loss is going to rise by the last neuron of u; the coefficients were `before`. `gram` multiplies
    /// by the Gram matrix.
    pub(super) fn foresees_a_rise(
        &mut self,
        u: &Network,
        before: &[f64],
        gram: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Result<bool, SolveError> {
        let started = Instant::now();
        let Some(foresight) = &mut self.foresight else {
            return Ok(false);
        };
        foresight.scores.truncate(u.len() - 1);
        // One by one, so that a run that was resumed since the anchor has the same numbers.
        for neuron in &u.neurons[foresight.scores.len()..] {
            let score = foresight.gradient.list_scores(std::slice::from_ref(neuron))?;
            foresight.scores.extend(score);
        }
        let less = |a: &[f64], b: &[f64]| -> Vec<f64> {
            let at = |values: &[f64], i: usize| values.get(i).copied().unwrap_or(0.0);
            (0..u.len()).map(|i| at(a, i) - at(b, i)).collect()
        };
        let mut slope = gram(&less(before, &foresight.coefficients));
        slope
            .iter_mut()
            .zip(&foresight.scores)
            .for_each(|(sum, score)| *sum += score);
        let change = less(&u.coefficients, before);
        let rise = dot(&slope, &change) + 0.5 * dot(&gram(&change), &change);
        self.time += started.elapsed();
        Ok(rise > 0.0)
    }

    /// Judges the last neuron of a network that takes `explained` off the training loss; `due` asks for
    /// a check in any case.
    pub(super) fn judge(
        &mut self,
        network: &Network,
        explained: f64,
        due: bool,
    ) -> Result<Verdict, SolveError> {
        if self.state.since + 1 < self.state.interval && !due {
            self.state.since += 1;
            return Ok(Verdict::Accepted(None));
        }
        let Some(loss) = self.measure(network)? else {
            return Ok(Verdict::Accepted(None));
        };
        if loss > self.state.loss + self.slack * self.state.loss.abs() {
            return Ok(Verdict::Refused);
        }
        let (fallen, expected) = (self.state.loss - loss, explained - self.state.explained);
        let firm = (fallen - expected).abs() <= FIRM * expected;
        self.state = GuardState {
            loss: match self.slack > ROUNDING {
                true => loss.min(self.state.loss),
                false => loss,
            },
            explained,
            interval: match firm {
                true => (2 * self.state.interval).min(self.longest_interval()),
                false => 1,
            },
            since: 0,
        };
        Ok(Verdict::Accepted(Some(loss)))
    }

    /// Takes note that the neuron refused is gone: from here on every one is checked against what the
    /// network has without it.
    pub(super) fn after_refusal(&mut self, network: &Network, explained: f64) -> Result<(), SolveError> {
        if self.state.since > 0 {
            self.state.loss = self.measure(network)?.unwrap_or(f64::INFINITY);
            self.state.explained = explained;
        }
        self.state.interval = 1;
        self.state.since = 0;
        Ok(())
    }

    fn longest_interval(&self) -> usize {
        match &self.validation {
            Some(validation) if validation.points() > CHEAP_POINTS => match &self.foresight {
                Some(_) => LONGEST_FORESEEN,
                None => LONGEST_INTERVAL,
            },
            _ => 1,
        }
    }
}
