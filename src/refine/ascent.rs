//! A quasi-Newton ascent in (ω, b) for a few neurons side by side.

use super::Landscape;
use crate::error::SolveError;
use crate::network::Neuron;
use crate::sums::LocalScore;
use crate::vector::dot;
use std::collections::VecDeque;

/// Evaluations of the landscape, at most.
const EVALUATIONS: usize = 12;
/// Steps that the curvature is remembered from.
const MEMORY: usize = 5;
/// The first step changes (ω, b) by this part of |ω|; no step by more than `REACH` times it.
const FIRST_STEP: f64 = 0.05;
const REACH: f64 = 0.5;
/// A climber is done when a step gains less than this in the logarithm of the value.
const ENOUGH: f64 = 1e-3;

/// Climbs from each start to a larger |value| near by by L-BFGS on its logarithm; the best place met and the
/// value there. The value must not depend on the length of (ω, b), so that no constraint is needed. Where it is
/// `bound` to its coordinates, components of ω that are zero at the start stay zero.
pub fn ascend(
    landscape: &dyn Landscape,
    starts: &[Neuron],
    bound: bool,
) -> Result<Vec<(Neuron, f64)>, SolveError> {
    let first = landscape.slopes(starts)?;
    let mut climbers: Vec<Climber> = starts
        .iter()
        .zip(&first)
        .map(|(start, score)| Climber::new(start, score, bound))
        .collect();
    for _ in 1..EVALUATIONS {
        let active: Vec<&mut Climber> = climbers.iter_mut().filter(|climber| !climber.done).collect();
        if active.is_empty() {
            break;
        }
        let trials: Vec<Neuron> = active.iter().map(|climber| climber.trial()).collect();
        let scores = landscape.slopes(&trials)?;
        for (climber, score) in active.into_iter().zip(&scores) {
            climber.judge(score);
        }
    }
    Ok(climbers
        .into_iter()
        .map(|climber| (neuron(&climber.place), climber.value))
        .collect())
}

/// (ω, b) in a row.
fn parameters(neuron: &Neuron) -> Vec<f64> {
    let mut row = neuron.omega.clone();
    row.push(neuron.bias);
    row
}

/// The neuron with these parameters, |ω| = 1.
fn neuron(row: &[f64]) -> Neuron {
    let (omega, bias) = row.split_at(row.len() - 1);
    let length = dot(omega, omega).sqrt();
    Neuron {
        omega: omega.iter().map(|o| o / length).collect(),
        bias: bias[0] / length,
    }
}

/// The gradient of log |value| in those parameters that are free.
fn log_slope(free: &[bool], score: &LocalScore) -> Vec<f64> {
    let slopes = score.gradient.iter().zip(free);
    slopes
        .map(|(slope, &free)| if free { slope / score.value } else { 0.0 })
        .collect()
}

struct Climber {
    /// Which parameters may change.
    free: Vec<bool>,
    place: Vec<f64>,
    value: f64,
    /// The gradient of log |value|.
    slope: Vec<f64>,
    step: Vec<f64>,
    /// What part of the step is tried.
    part: f64,
    /// Changes of place and of slope.
    memory: VecDeque<(Vec<f64>, Vec<f64>)>,
    done: bool,
}

impl Climber {
    fn new(start: &Neuron, score: &LocalScore, bound: bool) -> Self {
        let mut free: Vec<bool> = start.omega.iter().map(|&o| !bound || o != 0.0).collect();
        free.push(true);
        let slope = log_slope(&free, score);
        let steepness = dot(&slope, &slope).sqrt();
        let usable = steepness.is_finite() && steepness > 0.0;
        Self {
            free,
            place: parameters(start),
            value: score.value,
            step: slope.iter().map(|s| FIRST_STEP * s / steepness).collect(),
            slope,
            part: 1.0,
            memory: VecDeque::new(),
            done: !usable,
        }
    }

    fn trial_place(&self) -> Vec<f64> {
        let moved = self.place.iter().zip(&self.step);
        moved.map(|(place, step)| place + self.part * step).collect()
    }

    fn trial(&self) -> Neuron {
        neuron(&self.trial_place())
    }

    /// Takes the step if it went up; else tries a part of it next.
    fn judge(&mut self, score: &LocalScore) {
        let gain = (score.value / self.value).abs().ln();
        if gain.is_nan() || gain <= 0.0 {
            self.part *= 0.25;
            self.done = self.part < 0.01;
            return;
        }
        // The trial had |ω| = 1: so has the new place, and slopes belong to it.
        let place = parameters(&self.trial());
        let slope = log_slope(&self.free, score);
        let moved: Vec<f64> = place
            .iter()
            .zip(&self.place)
            .map(|(new, old)| new - old)
            .collect();
        let bent: Vec<f64> = slope
            .iter()
            .zip(&self.slope)
            .map(|(new, old)| old - new)
            .collect();
        // Only where it bends down is it worth remembering.
        if dot(&moved, &bent) > 0.0 {
            self.memory.push_back((moved, bent));
        }
        if self.memory.len() > MEMORY {
            self.memory.pop_front();
        }
        (self.place, self.slope, self.value) = (place, slope, score.value);
        self.done = gain < ENOUGH;
        self.part = 1.0;
        self.step = self.quasi_newton_step();
    }

    /// The two loops of L-BFGS.
    fn quasi_newton_step(&self) -> Vec<f64> {
        let mut step = self.slope.clone();
        let mut factors = Vec::new();
        for (moved, bent) in self.memory.iter().rev() {
            let factor = dot(moved, &step) / dot(moved, bent);
            step.iter_mut().zip(bent).for_each(|(s, b)| *s -= factor * b);
            factors.push(factor);
        }
        let scale = match self.memory.back() {
            Some((moved, bent)) => dot(moved, bent) / dot(bent, bent),
            None => FIRST_STEP / dot(&step, &step).sqrt(),
        };
        step.iter_mut().for_each(|s| *s *= scale);
        for ((moved, bent), factor) in self.memory.iter().zip(factors.iter().rev()) {
            let change = factor - dot(bent, &step) / dot(moved, bent);
            step.iter_mut().zip(moved).for_each(|(s, m)| *s += change * m);
        }
        let length = dot(&step, &step).sqrt();
        if length > REACH {
            step.iter_mut().for_each(|s| *s *= REACH / length);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that depends on the direction of (ω, b) only, largest at a known one.
    struct Hill {
        top: Vec<f64>,
    }

    impl Landscape for Hill {
        fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
            Ok(self
                .slopes(neurons)?
                .into_iter()
                .map(|score| score.value)
                .collect())
        }

        fn slopes(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
            let of = |neuron: &Neuron| {
                let row = parameters(neuron);
                let (along, square) = (dot(&row, &self.top), dot(&row, &row));
                // cos² of the angle between the two, plus a little.
                let value = along * along / square + 0.1;
                let pairs = row.iter().zip(&self.top);
                LocalScore {
                    value,
                    gradient: pairs
                        .map(|(r, t)| 2.0 * along * t / square - 2.0 * along * along * r / (square * square))
                        .collect(),
                }
            };
            Ok(neurons.iter().map(of).collect())
        }
    }

    #[test]
    fn the_top_is_found_from_several_places() {
        for d in [2, 3, 10] {
            let length = (d as f64 + 0.04).sqrt();
            let mut top = vec![1.0 / length; d];
            top.push(0.2 / length);
            let starts: Vec<Neuron> = (0..3)
                .map(|k| {
                    let mut row: Vec<f64> = top.clone();
                    row[k % d] += 0.4;
                    row[d] -= 0.1 * k as f64;
                    neuron(&row)
                })
                .collect();
            let hill = Hill { top };
            let before = hill.scores(&starts).unwrap();
            for ((_, value), before) in ascend(&hill, &starts, false).unwrap().iter().zip(before) {
                assert!(
                    *value >= before && *value > 1.0999,
                    "dimension {d}: {value} from {before}"
                );
            }
        }
    }
}
