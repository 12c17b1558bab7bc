//! The orthogonal greedy algorithm.

use super::by_decrease::Anchored;
use super::decrease::{Board, Metric};
use super::guard::{Guard, Verdict};
use super::polish::Polish;
use super::selection::{Ranking, Scanner};
use super::{Losses, Outcome, Selection, State, Step, Stopped, Timings};
use crate::candidates::{Grid, Resolution, Seen};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::{Addition, Projection, ProjectionKind};
use crate::refine::refine;
use crate::sums::{Rho, Sums};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Instant;

/// After this many neurons refused in a row by the guard, the quadrature is at its end.
const MAX_REFUSALS: usize = 60;
/// When one neuron was refused for every so many found, the user is told.
const REFUSED_PART: usize = 10;
/// After this many dependent neurons in one step, the factorisation may have run out of digits.
const MAX_DEPENDENT: usize = 200;
/// Scores below this part of the first are rounding.
const NOISE: f64 = 1e-15;
/// The error of scores, as a part of the first: they are sums of terms that do not shrink.
const ROUNDING: f64 = 2e-13;
/// A loss added up neuron by neuron has parted from the evaluated one when it is off by this part.
const PARTED: f64 = 1e-12;
/// A residual is zero to rounding when it is this part of the first.
const SOLVED: f64 = 1e-14;
/// Refinement starts from the best neurons of this many directions.
pub(super) const REFINED: usize = 4;
/// Memory up to which the values at the points are held for the robust projection.
const ORTHOGONAL_BYTES: usize = 2 << 30;
/// Work (numbers × neurons) that the robust projection may cost where it is needed from the start …
const DELICATE_WORK: f64 = 2e11;
/// … and where it is the last resort.
const RESORT_WORK: f64 = 3e10;

/// What [`orthogonal`] needs to know.
pub struct OrthogonalParams<'a> {
    /// n, the number of neurons to find.
    pub neurons: usize,
    /// End when the best score is below this.
    pub tolerance: Option<f64>,
    /// By what neurons are chosen; the decrease needs candidates that are the same in every step.
    pub selection: Selection,
    /// How coefficients are computed.
    pub projection: ProjectionKind,
    /// Whether the loss is quadratic; else coefficients are found by Newton's method.
    pub quadratic: bool,
    /// Whether a Gram matrix would soon have no digits (a penalty, smooth neurons), so that the robust projection
    /// is taken from the start.
    pub delicate: bool,
    /// The smallest and largest bias.
    pub bias: [f64; 2],
    /// The centre of the domain: of two neurons with one score the one less active there is taken,
    /// which overlaps less with the others and keeps the Gram matrix well conditioned.
    pub center: &'a [f64],
    /// The candidates of a step (numbered from 0).
    pub grid: &'a dyn Fn(u64) -> Grid,
    /// Whether the candidates are the same in every step.
    pub fixed_grid: bool,
    /// How finely the best candidates are refined, if they are.
    pub refine: Option<Resolution>,
    /// Whether and how all neurons are moved together now and then.
    pub polish: Option<Polish>,
    /// Whether refinement leaves components of ω that are zero as they are: directions in planes of coordinates.
    pub bound: bool,
    /// How many measurements the guard has, others than the run, where there are any in the loss: then their noise limits,
    /// not the quadrature.
    pub measured: Option<usize>,
    /// The n at which the loss on the validation points is wanted.
    pub reported: &'a dyn Fn(usize) -> bool,
    /// Where an earlier run was interrupted.
    pub start: Option<&'a State>,
}

/// g_n = argmax |⟨g, ∇L(u_(n−1))⟩|, u_n = the best approximation in the span of g₁ … g_n.
///
/// A neuron is kept only if it lowers the loss on `validation`, points that neither the selection nor
/// the projection sees: without this guard the argmax ends up choosing quadrature errors, and the
/// better it is solved the sooner.
pub fn orthogonal<'a>(
    losses: Losses<'a>,
    params: &'a OrthogonalParams<'a>,
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let mut run = Run::new(losses, params)?;
    let mut grid = (params.grid)(0);
    if let Some(start) = params.start {
        run.replay(start, &grid)?;
    }
    let stopped = loop {
        if run.network.len() >= params.neurons {
            break Stopped::Neurons;
        }
        if !params.fixed_grid {
            grid = (params.grid)(run.network.len() as u64);
        }
        let (found, moves) = match run.step(&grid)? {
            Found::Nothing(stopped) => match run.polishes_at_the_end(stopped) {
                Some(polish) => (Err(stopped), Some(polish)),
                None => break stopped,
            },
            Found::Neuron {
                score,
                validation_loss,
            } => {
                run.update_multipliers(&grid)?;
                (Ok((score, validation_loss)), run.polishes())
            }
        };
        if let Some(polish) = moves
            && run.polish(polish, &grid, found.is_ok(), observer)?.is_break()
        {
            break Stopped::Interrupted;
        }
        let moved = moves.is_some() && run.state.polished == Some(run.network.len());
        // Where neurons were moved the guard has just taken the loss.
        let guarded = Some(run.guard.state.loss).filter(|loss| moved && loss.is_finite());
        let (score, validation_loss) = match found {
            Ok((score, loss)) => (score, loss.and(guarded).or(loss)),
            Err(_) if moved => (run.state.scores.last().map_or(0.0, |score| score.abs()), guarded),
            Err(stopped) => break stopped,
        };
        let loss = run.loss((params.reported)(run.network.len()))?;
        let flow = observer(&Step {
            network: &run.network,
            state: &run.state,
            score,
            loss,
            validation_loss,
            last: run.network.len() == params.neurons,
            moves: None,
        })?;
        if flow.is_break() {
            break Stopped::Interrupted;
        }
    };
    if stopped == Stopped::QuadratureLimit {
        run.warnings.push(format!(
            "stopped at {} neurons: no further one lowers the loss on independent points. {}",
            run.network.len(),
            match params.measured.is_some() {
                true => {
                    "What is left of the measurements cannot be told from noise; to go on, give more of them"
                }
                false =>
                    "The quadrature is the limit now, not the network; use more cells or points to go on",
            }
        ));
    }
    if stopped == Stopped::Neurons && run.refused * REFUSED_PART > params.neurons {
        run.warnings.push(format!(
            "{} neurons were refused because the loss on independent points rose with them: {}",
            run.refused,
            match params.measured.is_some() {
                true => "they would have fitted the noise of the measurements",
                false =>
                    "the quadrature limits the errors now. With more cells or points they would be smaller",
            }
        ));
    }
    run.timings.validation = run.guard.time;
    run.timings.gram = run.projection.gram_time();
    run.timings.projection -= run.timings.gram;
    run.warnings.append(&mut run.scanner.notes);
    Ok(Outcome {
        network: run.network,
        stopped,
        warnings: run.warnings,
        timings: run.timings,
    })
}

pub(super) enum Found {
    Neuron {
        score: f64,
        validation_loss: Option<f64>,
    },
    Nothing(Stopped),
}

/// What became of a neuron that was added.
enum Acceptance {
    /// It stays; the loss on the validation points, where it was taken.
    Accepted { validation_loss: Option<f64> },
    /// It is gone again.
    Refused,
}

pub(super) struct Run<'a> {
    /// The loss that is minimised …
    pub(super) training: &'a dyn Sums,
    /// … and where the inner products of neurons are taken: there, too, or on fewer points.
    pub(super) curvature: &'a dyn Sums,
    /// More points, that know the norms of neurons which the others hardly see.
    pub(super) norms: Option<&'a dyn Sums>,
    pub(super) seen: Option<&'a Seen>,
    pub(super) guard: Guard<'a>,
    pub(super) params: &'a OrthogonalParams<'a>,
    pub(super) network: Network,
    pub(super) projection: Projection<'a>,
    scanner: Scanner,
    /// What the choice by decrease knows of the candidates.
    pub(super) board: Option<Board>,
    /// Under which inner product, where the loss is not quadratic.
    pub(super) metric: Option<Metric>,
    /// What was known at the last anchor, where gradients are taken on more points than inner products.
    pub(super) anchored: Option<Anchored<'a>>,
    pub(super) state: State,
    /// Neurons that are chosen already or depend on those chosen.
    pub(super) closed: HashSet<Vec<u64>>,
    /// The coefficients before the last neuron came.
    before: Vec<f64>,
    pub(super) loss_of_zero: f64,
    /// Whether the loss that is added up neuron by neuron parted from the evaluated one.
    loss_parted: bool,
    first_score: Option<f64>,
    /// Neurons that the guard refused.
    refused: usize,
    /// How many neurons there were when they were last to be moved together, whether or not they were.
    pub(super) tried_moving: usize,
    pub(super) warnings: Vec<String>,
    pub(super) timings: Timings,
}

impl<'a> Run<'a> {
    fn new(losses: Losses<'a>, params: &'a OrthogonalParams<'a>) -> Result<Self, SolveError> {
        let Losses {
            training, validation, ..
        } = losses;
        let curvature = losses.curvature.map_or(training, |(few, _)| few);
        let network = Network::zero(training.activation(), params.center.len());
        let loss_of_zero = training.risk(&network)?;
        let state = params.start.and_then(|start| start.guard);
        let guard = Guard::new(validation, &network, state, params.measured)?;
        // Asked for only where it matters: a device has to fetch the host for it.
        let length = match params.delicate {
            true => training
                .at(&network)?
                .root()
                .map_or(usize::MAX, |root| root.length()),
            false => usize::MAX,
        };
        let robust = orthogonalises(params.projection, params.delicate, length, params.neurons);
        let projection = match training.values() {
            _ if losses.curvature.is_some() => {
                Projection::cholesky(curvature).anchored(training, network.dimension)?
            }
            _ if !params.quadratic => Projection::newton(training, robust),
            Some(values) if robust => Projection::orthogonal(training, values),
            _ => Projection::cholesky(training),
        };
        Ok(Self {
            training,
            curvature,
            anchored: losses.curvature.map(|(_, others)| Anchored::new(others)),
            norms: losses.norms,
            seen: losses.seen,
            guard,
            params,
            network,
            projection,
            scanner: Scanner::new(),
            board: None,
            metric: None,
            state: State::default(),
            closed: HashSet::new(),
            before: Vec::new(),
            loss_of_zero,
            loss_parted: false,
            first_score: None,
            refused: 0,
            tried_moving: 0,
            warnings: Vec::new(),
            timings: Timings::default(),
        })
    }

    /// Takes up an interrupted run by the very operations that it did.
    fn replay(&mut self, start: &State, grid: &Grid) -> Result<(), SolveError> {
        let moved = start.polished.unwrap_or(0);
        if moved > 0 {
            self.rebuild(&start.neurons[..moved], grid)?;
            self.state.scores = start.scores[..moved].to_vec();
            self.state.polished = start.polished;
            self.first_score = start.scores.first().map(|score| score.abs());
        }
        let added = start.neurons.iter().zip(&start.scores).enumerate();
        for (n, (neuron, &score)) in added.skip(moved) {
            if start.orthogonal_from == Some(n) {
                self.switch_to_orthogonal()?;
            }
            self.first_score.get_or_insert(score.abs());
            if self.params.selection == Selection::Decrease {
                self.account(grid)?;
            }
            if !self.add(neuron, score)? {
                break;
            }
            self.update_multipliers(grid)?;
        }
        self.state.guard = start.guard;
        Ok(())
    }

    /// Finds the best neuron that can be added, and adds it.
    fn step(&mut self, grid: &Grid) -> Result<Found, SolveError> {
        match self.params.selection {
            Selection::Slope => self.step_by_slope(grid),
            Selection::Decrease => self.step_by_decrease(grid),
        }
    }

    fn step_by_slope(&mut self, grid: &Grid) -> Result<Found, SolveError> {
        let started = Instant::now();
        let rho = self.projection.gradient(&self.network)?;
        let scores = self.scanner.scan(&*rho, grid, self.network.len())?;
        self.timings.argmax += started.elapsed();
        let rounding = ROUNDING * self.first_score.unwrap_or(0.0);
        let mut ranking = Ranking::new(&*rho, grid, scores, rounding, self.params.center);
        self.refine(&*rho, &mut ranking)?;
        self.take_from(ranking)
    }

    /// Adds the best candidate that can be added.
    pub(super) fn take_from(&mut self, mut ranking: Ranking) -> Result<Found, SolveError> {
        let (mut refusals, mut dependent) = (0, 0);
        while let Some((neuron, signed)) = ranking.take_best()? {
            let score = signed.abs();
            let first = *self.first_score.get_or_insert(score);
            if score <= NOISE * first {
                break;
            }
            if self.params.tolerance.is_some_and(|tolerance| score < tolerance) {
                return Ok(Found::Nothing(Stopped::Tolerance));
            }
            if !self.allows(&neuron) {
                continue;
            }
            if !self.add(&neuron, signed)? {
                dependent += 1;
                if dependent == MAX_DEPENDENT {
                    self.switch_to_orthogonal()?;
                }
                continue;
            }
            if let Acceptance::Accepted { validation_loss } = self.judge()? {
                return Ok(Found::Neuron {
                    score,
                    validation_loss,
                });
            }
            refusals += 1;
            if refusals == MAX_REFUSALS {
                break;
            }
        }
        Ok(Found::Nothing(match refusals > 0 && !self.is_solved()? {
            true => Stopped::QuadratureLimit,
            false => Stopped::NoCandidate,
        }))
    }

    /// Whether a loss that tends to zero is there, to rounding.
    fn is_solved(&mut self) -> Result<bool, SolveError> {
        let loss = self.loss(true)?;
        Ok(loss >= 0.0 && loss <= SOLVED * self.loss_of_zero)
    }

    /// Adds the neurons refined from the best of the grid to the candidates.
    fn refine(&mut self, rho: &dyn Rho, ranking: &mut Ranking) -> Result<(), SolveError> {
        let (Some(resolution), Some(slopes)) = (self.params.refine, rho.slopes()) else {
            return Ok(());
        };
        let started = Instant::now();
        let starts = ranking.best_of_lines(REFINED)?;
        for (neuron, score) in refine(&(rho, slopes), &starts, resolution, self.params.bias)? {
            ranking.push(neuron, score);
        }
        self.timings.refine += started.elapsed();
        Ok(())
    }

    /// Asks the guard about the neuron just added; takes it back if it is refused.
    fn judge(&mut self) -> Result<Acceptance, SolveError> {
        let n = self.network.len();
        let due = n == self.params.neurons || (self.params.reported)(n);
        let explained = self.fallen();
        let gram = |v: &[f64]| self.projection.times_gram(v).unwrap_or_default();
        if !self.confirms_newest()? || self.guard.foresees_a_rise(&self.network, &self.before, gram)? {
            self.take_back();
            self.refused += 1;
            return Ok(Acceptance::Refused);
        }
        let verdict = self.guard.judge(&self.network, explained, due)?;
        if let Verdict::Refused = verdict {
            self.take_back();
            self.refused += 1;
            let explained = self.fallen();
            self.guard.after_refusal(&self.network, explained)?;
        }
        self.state.guard = Some(self.guard.state);
        Ok(match verdict {
            Verdict::Accepted(validation_loss) => Acceptance::Accepted { validation_loss },
            Verdict::Refused => Acceptance::Refused,
        })
    }

    fn allows(&self, neuron: &Neuron) -> bool {
        let [low, high] = self.params.bias;
        let slack = 1e-9 * (high - low);
        (low - slack..=high + slack).contains(&neuron.bias) && !self.closed.contains(&key(neuron))
    }

    /// Adds a neuron and computes the coefficients, or finds that it depends on the others.
    fn add(&mut self, neuron: &Neuron, score: f64) -> Result<bool, SolveError> {
        let started = Instant::now();
        let added = self.projection.try_add(&self.network, neuron, score)? == Addition::Added;
        self.closed.insert(key(neuron));
        if added {
            self.network.neurons.push(neuron.clone());
            self.state.neurons.push(neuron.clone());
            self.state.scores.push(score);
            let coefficients = self.projection.coefficients(&self.network.neurons)?;
            self.before = std::mem::replace(&mut self.network.coefficients, coefficients);
        }
        self.timings.projection += started.elapsed();
        Ok(added)
    }

    /// After the loss itself has changed: its value at zero and on the guard's points.
    pub(super) fn measure_anew(&mut self) -> Result<(), SolveError> {
        let zero = Network::zero(self.network.activation, self.network.dimension);
        self.loss_of_zero = self.training.risk(&zero)?;
        self.guard
            .measure_anew(&self.network, 0.5 * self.projection.explained())?;
        self.state.guard = Some(self.guard.state);
        Ok(())
    }

    /// Takes the neuron just added back.
    pub(super) fn take_back(&mut self) {
        self.projection.pop();
        self.state.neurons.pop();
        self.state.scores.pop();
        if let Some(neuron) = self.network.neurons.pop() {
            self.closed.remove(&key(&neuron));
        }
        self.network.coefficients = std::mem::take(&mut self.before);
    }

    fn can_switch(&self) -> Result<bool, SolveError> {
        Ok(self.params.projection == ProjectionKind::Auto
            && self.projection.is_cholesky()
            && holds_values(self.training, &self.network, self.params.neurons, RESORT_WORK)?)
    }

    /// From Cholesky's factor to orthogonal values at the points, where memory allows.
    fn switch_to_orthogonal(&mut self) -> Result<(), SolveError> {
        let can = self.can_switch()?;
        let Some(values) = self.training.values().filter(|_| can) else {
            return Ok(());
        };
        let mut projection = Projection::orthogonal(self.training, values);
        let mut u = Network::zero(self.network.activation, self.network.dimension);
        for neuron in &self.network.neurons {
            let score = projection
                .gradient(&u)?
                .list_scores(std::slice::from_ref(neuron))?[0];
            if projection.try_add(&u, neuron, score)? != Addition::Added {
                return Ok(());
            }
            u = u.advanced(1.0, neuron, 0.0);
        }
        self.warnings.push(format!(
            "at {} neurons the Gram matrix ran out of digits; from there on the values at the points are orthogonalised",
            self.network.len()
        ));
        self.projection = projection;
        self.state.orthogonal_from = Some(self.network.len());
        Ok(())
    }

    /// What the neurons took off the loss.
    pub(super) fn fallen(&self) -> f64 {
        let before = self.anchored.as_ref().map_or(0.0, |anchored| anchored.before);
        0.5 * self.projection.explained() + before
    }

    /// L(u_n) = L(0) − ½ lᵀa, unless that cancels or has lost digits: where figures are reported it is
    /// compared with the loss evaluated at the points.
    fn loss(&mut self, reported: bool) -> Result<f64, SolveError> {
        let estimate = self.loss_of_zero - self.fallen();
        if self.anchored.is_some() {
            return match reported {
                true => self.training.risk(&self.network),
                false => Ok(estimate),
            };
        }
        let cancels = estimate.abs() < 1e-3 * self.loss_of_zero.abs();
        if !(cancels || reported || self.loss_parted) {
            return Ok(estimate);
        }
        let loss = self.training.risk(&self.network)?;
        self.loss_parted |= (loss - estimate).abs() > PARTED * self.loss_of_zero.abs().max(loss.abs());
        Ok(match cancels || self.loss_parted {
            true => loss,
            false => estimate,
        })
    }
}

/// Whether the values at the points of so many neurons, `length` numbers each, are orthogonalised from the start.
pub(crate) fn orthogonalises(kind: ProjectionKind, delicate: bool, length: usize, neurons: usize) -> bool {
    match kind {
        ProjectionKind::Auto => delicate && may_hold(length, neurons, DELICATE_WORK),
        ProjectionKind::Cholesky => false,
        ProjectionKind::Orthogonal => true,
    }
}

/// Whether values at the points are to be had, and may be held for so many neurons.
fn holds_values(sums: &dyn Sums, u: &Network, neurons: usize, work: f64) -> Result<bool, SolveError> {
    Ok(sums
        .at(u)?
        .root()
        .is_some_and(|root| may_hold(root.length(), neurons, work)))
}

fn may_hold(length: usize, neurons: usize, work: f64) -> bool {
    let numbers = length.saturating_mul(neurons);
    numbers <= ORTHOGONAL_BYTES / 8 && numbers as f64 * neurons as f64 <= work
}

pub(super) fn key(neuron: &Neuron) -> Vec<u64> {
    neuron
        .omega
        .iter()
        .chain([&neuron.bias])
        .map(|value| (value + 0.0).to_bits())
        .collect()
}
