//! The relaxed greedy algorithm.

use super::selection::{Ranking, Scanner};
use super::{Losses, Outcome, State, Step, Stopped, Timings};
use crate::candidates::Grid;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::{Field, Scores, Sums};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

/// So many of the scout's favourites are looked at on all points.
const SHORTLIST: usize = 12;

/// What one more neuron may still take off the loss, as a part of all that was taken, before the user is told.
const FAR: f64 = 0.02;

/// α_n in u_n = (1 − α_n) u_(n−1) − M α_n g_n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// min(1, 2/n), as in the paper.
    #[default]
    Paper,
    /// The best one in [0, 1].
    LineSearch,
}

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

/// g_n = argmax |⟨g, ∇L(u_(n−1))⟩| over ±𝔻, u_n = (1 − α_n) u_(n−1) − M α_n g_n: a convex combination of
/// ±M g, whatever the loss, as long as it is convex.
pub fn relaxed(
    losses: Losses,
    params: &RelaxedParams,
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let mut run = Run::new(losses, params)?;
    let mut timings = Timings::default();
    let mut grid = (params.grid)(0);
    let stopped = loop {
        let n = run.network.len() + 1;
        if n > params.neurons {
            break Stopped::Neurons;
        }
        if !params.fixed_grid {
            grid = (params.grid)(run.network.len() as u64);
        }
        let started = Instant::now();
        let (neuron, score) = run.best(&grid)?;
        timings.argmax += started.elapsed();
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
            StepRule::LineSearch => best_step(losses.training, &run.network, &neuron, target)?,
        };
        run.take(&neuron, score, alpha)?;
        timings.projection += started.elapsed();
        let last = n == params.neurons;
        let (mut loss, mut validation_loss) = (f64::NAN, None);
        if last || (params.reported)(n) {
            let started = Instant::now();
            loss = losses.training.risk(&run.network)?;
            validation_loss = match losses.validation {
                Some(validation) => Some(validation.risk(&run.network)?),
                None => None,
            };
            timings.validation += started.elapsed();
        }
        let flow = observer(&Step {
            moves: None,
            network: &run.network,
            state: &run.state,
            score: score.abs(),
            loss,
            validation_loss,
            last,
        })?;
        if flow.is_break() {
            break Stopped::Interrupted;
        }
    };
    let mut warnings = std::mem::take(&mut run.scanner.notes);
    if stopped == Stopped::Neurons {
        warnings.extend(run.far_from_minimum(&grid)?);
    }
    Ok(Outcome {
        network: run.network,
        stopped,
        warnings,
        timings,
    })
}

struct Run<'a> {
    losses: Losses<'a>,
    params: &'a RelaxedParams<'a>,
    network: Network,
    state: State,
    /// u at the points of the training loss and of the scout's.
    fields: Vec<Box<dyn Field<'a> + 'a>>,
    scanner: Scanner,
}

impl<'a> Run<'a> {
    fn new(losses: Losses<'a>, params: &'a RelaxedParams<'a>) -> Result<Self, SolveError> {
        let mut run = Self {
            losses,
            params,
            network: Network::zero(losses.training.activation(), params.center.len()),
            state: State::default(),
            fields: Vec::new(),
            scanner: Scanner::new(),
        };
        run.evaluate()?;
        if let Some(start) = params.start {
            run.replay(start)?;
        }
        Ok(run)
    }

    /// Evaluates u at the points.
    fn evaluate(&mut self) -> Result<(), SolveError> {
        let losses = [Some(self.losses.training), self.losses.scout];
        self.fields.clear();
        for sums in losses.into_iter().flatten() {
            self.fields.push(sums.at(&self.network)?);
        }
        Ok(())
    }

    /// Repeats the steps of an interrupted run, with u at the points updated as it was there.
    fn replay(&mut self, start: &State) -> Result<(), SolveError> {
        // The last time that u was evaluated anew.
        let fresh = start.neurons.len().checked_ilog2().map_or(0, |power| 1 << power);
        let steps = start.neurons.iter().zip(&start.scores).zip(&start.steps);
        for ((neuron, &score), &alpha) in steps {
            match self.network.len() + 1 < fresh {
                true => self.note(neuron, score, alpha),
                false => self.take(neuron, score, alpha)?,
            }
        }
        Ok(())
    }

    /// (1 − α) u + α · target · g, as a network.
    fn note(&mut self, neuron: &Neuron, score: f64, alpha: f64) {
        let target = -self.params.radius * score.signum();
        self.network = moved(&self.network, neuron, target, alpha);
        self.state.neurons.push(neuron.clone());
        self.state.scores.push(score);
        self.state.steps.push(alpha);
    }

    /// The same at the points, too: updated by the neuron, or evaluated anew at n = 1, 2, 4, …, so that
    /// rounding does not pile up and a resumed run need only repeat what came after.
    fn take(&mut self, neuron: &Neuron, score: f64, alpha: f64) -> Result<(), SolveError> {
        let target = -self.params.radius * score.signum();
        self.note(neuron, score, alpha);
        if self.network.len().is_power_of_two() {
            return self.evaluate();
        }
        for field in &mut self.fields {
            field.advance(1.0 - alpha, neuron, alpha * target)?;
        }
        Ok(())
    }

    /// A warning where one more neuron with its best coefficient would still take much off the loss, or
    /// where u = 0 would be better: the radius or the number of steps does not suit the problem.
    fn far_from_minimum(&mut self, grid: &Grid) -> Result<Option<String>, SolveError> {
        let (neuron, score) = self.best(grid)?;
        let training = self.losses.training;
        let zero = Network::zero(self.network.activation, self.network.dimension);
        let lowered = training.risk(&zero)? - training.risk(&self.network)?;
        let v = Network::single(training.activation(), &neuron);
        let curvature = training.at(&self.network)?.curvature(&v)?;
        let curvature = curvature.list_scores(std::slice::from_ref(&neuron))?[0];
        let left = 0.5 * score * score / curvature;
        const ADVICE: &str =
            "try another `radius`, step = \"line_search\", more neurons, or algorithm = \"oga\"";
        Ok(if lowered <= 0.0 {
            Some(format!(
                "the loss is above that of u = 0: the result is of no use; {ADVICE}"
            ))
        } else if left > FAR * (lowered + left) {
            Some(format!(
                "a single neuron could still take {:.0} % off the loss: the result is far from its minimum; {ADVICE}",
                100.0 * left / (lowered + left)
            ))
        } else {
            None
        })
    }

    /// The candidate with the largest |score|, and the score.
    fn best(&mut self, grid: &Grid) -> Result<(Neuron, f64), SolveError> {
        let (n, center) = (self.network.len(), self.params.center);
        let none = || SolveError::Unsupported("a dictionary without neurons");
        // The scout, if there is one, finds the candidates; the training loss decides.
        let rho = self.fields.last().ok_or_else(none)?.gradient()?;
        let scores = self.scanner.scan(&*rho, grid, n)?;
        let mut ranking = Ranking::new(&*rho, grid, scores, 0.0, center);
        if self.losses.scout.is_none() {
            return ranking.take_best()?.ok_or_else(none);
        }
        let list = ranking
            .best_of_lines(SHORTLIST)?
            .into_iter()
            .map(|(neuron, _)| neuron);
        let list: Vec<Neuron> = list.collect();
        let rho = self.fields[0].gradient()?;
        let scores = rho.list_scores(&list)?;
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(SolveError::Breakdown { neurons: n });
        }
        let nothing = Grid::new(Vec::new(), false);
        let mut ranking = Ranking::new(&*rho, &nothing, Scores::exact(Vec::new()), 0.0, center);
        for (neuron, score) in list.into_iter().zip(scores) {
            ranking.push(neuron, score);
        }
        ranking.take_best()?.ok_or_else(none)
    }
}

/// (1 − α) u + α · target · g.
fn moved(u: &Network, g: &Neuron, target: f64, alpha: f64) -> Network {
    u.advanced(1.0 - alpha, g, alpha * target)
}

/// The α in [0, 1] with the smallest loss, by the golden section of a convex function.
fn best_step(training: &dyn Sums, u: &Network, g: &Neuron, target: f64) -> Result<f64, SolveError> {
    const SECTION: f64 = 0.618_033_988_749_894_9;
    const STEPS: usize = 30;
    let loss = |alpha: f64| training.risk(&moved(u, g, target, alpha));
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
