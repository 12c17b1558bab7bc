//! Neurons that are chosen one by one are moved together now and then: each was the best when it came, with those that
//! came later they would stand elsewhere.

use super::by_decrease::Anchored;
use super::orthogonal::{Run, key};
use super::{Selection, Step, Stopped};
use crate::candidates::Grid;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::{Addition, Projection};
use crate::refine::{Pulse, Room, Together};
use crate::vector::dot;
use std::ops::ControlFlow;
use std::time::Instant;

/// Neurons are moved when there are this many, twice as many, and so on, and at the end of the run.
const FIRST: usize = 32;
/// At an early end they are moved again only if there is this part more of them.
const AGAIN_PART: usize = 16;
/// The damping at the first step …
const DAMPING: f64 = 1e-2;
/// … and by what it changes when a step was good, or failed.
const FACTOR: f64 = 4.0;
const LEAST_DAMPING: f64 = 1e-5;
/// A step is good when it takes off the loss at least this part of what was predicted.
const GOOD: f64 = 0.5;
/// A step that takes off this many times what was predicted found a gap between the points, and so did one with which
/// Σ|a| is this many times what it was before the first.
const TOO_GOOD: f64 = 3.0;
const TOO_LARGE: f64 = 10.0;
/// After so many steps that fail in a row there is nothing to gain.
const MAX_FAILED: usize = 5;
/// So many neurons of a step stay where they were, because with the others they would be dependent, at most.
const MAX_STAYING: usize = 16;
/// It ends when a step takes off less than this part of what all took off.
const ENOUGH: f64 = 1e-3;
/// A step is judged when the coefficients leave no more of the loss than this part of what was predicted …
const JUDGED: f64 = 1e-2;
/// … and taken when they leave this part of what all neurons took off.
const SETTLED: f64 = 1e-10;

/// How neurons are moved together.
#[derive(Debug, Clone, PartialEq)]
pub struct Polish {
    /// Steps each time, at most.
    pub steps: usize,
    /// Where there is room.
    pub room: Room,
}

/// Whether a run that has n neurons, and will have more, moves them.
pub fn is_moved_at(n: usize) -> bool {
    n >= FIRST && n.is_power_of_two()
}

/// How many steps are done, of how many.
pub type Moves = (usize, usize);

/// What an observer says to every step.
pub(super) type Observer<'o> = dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError> + 'o;

/// Where the projection onto moved neurons begins.
enum Coefficients<'c> {
    /// At those of neurons near by, until no more than this is left to take off the loss.
    NearBy(&'c [f64], f64),
    /// At zero.
    Unknown,
}

/// A step of all neurons.
struct Taken<'a> {
    projection: Projection<'a>,
    network: Network,
    /// What it took off the loss.
    gained: f64,
}

/// What became of a projection onto neurons.
enum Projected<'a> {
    /// It, and u.
    Onto(Box<(Projection<'a>, Network)>),
    /// This one depends on those before it.
    Dependent(usize),
}

/// Sees a projection and its neurons whenever one is added.
type Added<'f> = dyn FnMut(&Projection, &[Neuron]) -> Result<(), SolveError> + 'f;

impl<'a> Run<'a> {
    /// Whether the neurons are moved now.
    pub(super) fn polishes(&self) -> Option<&'a Polish> {
        let n = self.network.len();
        let due = is_moved_at(n) || n == self.params.neurons;
        self.params.polish.as_ref().filter(|_| due && n > 0)
    }

    /// Whether the neurons are moved when no other one is found: then there may be. Not after a few of them again.
    pub(super) fn polishes_at_the_end(&self, stopped: Stopped) -> Option<&'a Polish> {
        let last = self.state.polished.unwrap_or(0).max(self.tried_moving);
        let due = self.network.len() > last + last / AGAIN_PART;
        let found_nothing = matches!(stopped, Stopped::QuadratureLimit | Stopped::NoCandidate);
        self.params.polish.as_ref().filter(|_| due && found_nothing)
    }

    /// Moves all neurons. Breaks off where the observer asks for it: then the run is what the observer saw last, without a neuron
    /// that came since, if one is `new`.
    pub(super) fn polish(
        &mut self,
        polish: &Polish,
        grid: &Grid,
        new: bool,
        observer: &mut Observer,
    ) -> Result<ControlFlow<()>, SolveError> {
        let started = Instant::now();
        let (unmoved, state) = (self.network.clone(), self.state.clone());
        let mut pulse = |done: usize| {
            let flow = observer(&Step {
                network: &unmoved,
                state: &state,
                score: 0.0,
                loss: f64::NAN,
                validation_loss: None,
                last: false,
                moves: Some((done, polish.steps)),
            })?;
            match flow.is_break() {
                true => Err(SolveError::Interrupted),
                false => Ok(()),
            }
        };
        let moved = self.move_while_it_helps(polish, grid, &mut pulse);
        self.timings.refine += started.elapsed();
        match moved {
            Err(SolveError::Interrupted) => {
                self.network = unmoved;
                if new {
                    self.take_back();
                }
                Ok(ControlFlow::Break(()))
            }
            moved => moved.map(ControlFlow::Continue),
        }
    }

    /// Step by step as long as the loss falls on the points of the run and on those of the guard.
    fn move_while_it_helps(
        &mut self,
        polish: &Polish,
        grid: &Grid,
        pulse: &mut dyn FnMut(usize) -> Result<(), SolveError>,
    ) -> Result<(), SolveError> {
        let mut losses = (
            self.training.risk(&self.network)?,
            self.validation_loss(&self.network)?,
        );
        let largest = TOO_LARGE * self.network.coefficient_l1();
        let (mut damping, mut fallen) = (DAMPING, 0.0);
        for done in 0..polish.steps {
            let at_most = (losses.0, largest);
            let Some(step) = self.move_together(polish, at_most, &mut damping, &mut || pulse(done))? else {
                break;
            };
            let validation = self.validation_loss(&step.network)?;
            if validation.zip(losses.1).is_some_and(|(now, before)| now > before) {
                break;
            }
            self.projection = step.projection.instead_of(&self.projection);
            self.network = step.network;
            losses = (losses.0 - step.gained, validation);
            fallen += step.gained;
            if step.gained < ENOUGH * fallen {
                break;
            }
        }
        let neurons = self.network.neurons.clone();
        self.tried_moving = neurons.len();
        if fallen == 0.0 {
            self.warnings.push(format!(
                "at {} neurons no step of all together lowered the loss on both sets of points: `polish` did nothing there. \
                 Smoother neurons (a larger k in relu^k) or more points would let it",
                neurons.len()
            ));
            return Ok(());
        }
        self.rebuild(&neurons, grid)?;
        self.state.polished = Some(neurons.len());
        let explained = self.fallen();
        self.guard.begin_anew(&self.network, explained)?;
        self.state.guard = Some(self.guard.state);
        Ok(())
    }

    fn validation_loss(&self, u: &Network) -> Result<Option<f64>, SolveError> {
        let validation = self.guard.validation();
        validation.map(|sums| sums.risk(u)).transpose()
    }

    /// One step of all neurons with the projection after it, that takes something off the loss and has no larger Σ|a| than this;
    /// none where none is to be found.
    fn move_together(
        &self,
        polish: &Polish,
        (loss, largest): (f64, f64),
        damping: &mut f64,
        pulse: &mut Pulse,
    ) -> Result<Option<Taken<'a>>, SolveError> {
        let gradient = self.projection.gradient(&self.network)?;
        let (Some(slopes), Some(factor)) = (gradient.slopes(), self.projection.factor()) else {
            return Ok(None);
        };
        let scores = slopes.slopes_at(&self.network.neurons)?;
        let of = (&self.network, scores.as_slice());
        let equations = Together::new(self.curvature, factor, of, &polish.room)?;
        for _ in 0..MAX_FAILED {
            let Some(step) = equations.step(*damping, pulse)? else {
                return Ok(None);
            };
            let neurons = self.admitted(step.neurons);
            // How far a step may go is seen after the projection: the coefficients follow the neurons farther than the model knows.
            if let Some((projection, network)) = self.tried(neurons, JUDGED * step.predicted, pulse)? {
                let gained = loss - self.training.risk(&network)?;
                let believed = gained < TOO_GOOD * step.predicted && network.coefficient_l1() <= largest;
                if gained > 0.0 && believed {
                    if gained > GOOD * step.predicted {
                        *damping = (*damping / FACTOR).max(LEAST_DAMPING);
                    }
                    return Ok(Some(Taken {
                        projection,
                        network,
                        gained,
                    }));
                }
            }
            *damping *= FACTOR;
        }
        Ok(None)
    }

    /// The projection onto moved neurons, until no more than about `enough` is left to take off the loss. Those that the others
    /// span stay where they were; none where they are many.
    fn tried(
        &self,
        mut neurons: Vec<Neuron>,
        enough: f64,
        pulse: &mut Pulse,
    ) -> Result<Option<(Projection<'a>, Network)>, SolveError> {
        for _ in 0..=MAX_STAYING {
            let near_by = Coefficients::NearBy(&self.network.coefficients, enough);
            match self.projected(&neurons, near_by, &mut |_, _| pulse())? {
                Projected::Onto(made) => return Ok(Some(*made)),
                Projected::Dependent(n) if neurons[n] != self.network.neurons[n] => {
                    neurons[n] = self.network.neurons[n].clone();
                }
                Projected::Dependent(_) => break,
            }
        }
        Ok(None)
    }

    /// The neurons as the dictionary has them: |ω| = 1, biases in their range. One that the points do not see stays where it was.
    fn admitted(&self, moved: Vec<Neuron>) -> Vec<Neuron> {
        let [low, high] = self.params.bias;
        let admitted = |(neuron, before): (Neuron, &Neuron)| {
            let length = dot(&neuron.omega, &neuron.omega).sqrt();
            let unit = Neuron {
                omega: neuron.omega.iter().map(|o| o / length).collect(),
                bias: (neuron.bias / length).clamp(low, high),
            };
            match self.seen.is_none_or(|seen| seen.sees(&unit)) {
                true => unit,
                false => before.clone(),
            }
        };
        moved
            .into_iter()
            .zip(&self.network.neurons)
            .map(admitted)
            .collect()
    }

    /// The projection onto these neurons, and u, unless one depends on those before it. `added` sees every neuron as it comes.
    fn projected(
        &self,
        neurons: &[Neuron],
        from: Coefficients,
        added: &mut Added,
    ) -> Result<Projected<'a>, SolveError> {
        let mut projection = Projection::cholesky(self.curvature);
        for (n, row) in self.curvature.gram(neurons)?.iter().enumerate() {
            if projection.try_add_row(row) != Some(Addition::Added) {
                return Ok(Projected::Dependent(n));
            }
            added(&projection, &neurons[..=n])?;
        }
        let mut u = Network {
            neurons: neurons.to_vec(),
            coefficients: vec![0.0; neurons.len()],
            ..Network::zero(self.network.activation, self.network.dimension)
        };
        if self.anchored.is_some() {
            projection = projection.anchored(self.training, u.dimension)?;
        }
        let (enough, part) = match from {
            Coefficients::NearBy(near_by, enough) => {
                u.coefficients.copy_from_slice(near_by);
                projection.shift(near_by);
                (enough, 0.0)
            }
            Coefficients::Unknown => (0.0, SETTLED),
        };
        projection.settle(&mut u, enough, part)?;
        Ok(Projected::Onto(Box::new((projection, u))))
    }

    /// Begins anew with these neurons, all at once: the projection onto them and what is known of the candidates.
    pub(super) fn rebuild(&mut self, neurons: &[Neuron], grid: &Grid) -> Result<(), SolveError> {
        // With the last neuron nothing is chosen any more.
        let chooses = self.params.selection == Selection::Decrease && neurons.len() < self.params.neurons;
        let mut board = chooses.then(|| self.unscored_board(grid)).transpose()?;
        let mut absorb =
            |projection: &Projection, neurons: &[Neuron]| match (&mut board, projection.newest(neurons)?) {
                (Some(board), Some(newest)) => board.absorb(&newest, grid),
                _ => Ok(()),
            };
        let (projection, u) = match self.projected(neurons, Coefficients::Unknown, &mut absorb)? {
            Projected::Onto(made) => *made,
            Projected::Dependent(neurons) => return Err(SolveError::Breakdown { neurons }),
        };
        self.projection = projection.instead_of(&self.projection);
        self.network = u;
        self.state.neurons = neurons.to_vec();
        self.closed = neurons.iter().map(key).collect();
        self.anchored.iter_mut().for_each(Anchored::forget);
        self.correct()?;
        if let Some(board) = &mut board {
            board.refresh(&*self.projection.gradient(&self.network)?, grid)?;
        }
        self.board = board;
        Ok(())
    }
}
