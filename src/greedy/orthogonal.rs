//! The orthogonal greedy algorithm.

use super::guard::{Guard, Verdict};
use super::{Outcome, State, Step, Stopped, Timings};
use crate::backend::{AnyBackend, LocalScore};
use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::problem::ProjectionKind;
use crate::projection::{Cholesky, Newton, Orthogonal, Projection};
use crate::refine::{Landscape, Resolution, refine};
use crate::search::BestFirst;
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
/// Refinement starts from the best neurons of this many directions.
const REFINED: usize = 4;
/// Memory up to which the values at the points are held for the robust projection.
const ORTHOGONAL_BYTES: usize = 2 << 30;
/// Work (numbers × neurons) that the robust projection may cost where it is needed from the start …
const STIFF_WORK: f64 = 2e11;
/// … and where it is the last resort.
const RESORT_WORK: f64 = 3e10;

/// What [`orthogonal`] needs to know.
pub struct OrthogonalParams<'a> {
    /// n, the number of neurons to find.
    pub neurons: usize,
    /// End when the best score is below this.
    pub tolerance: Option<f64>,
    /// How coefficients are computed.
    pub projection: ProjectionKind,
    /// Whether the loss is quadratic; else coefficients are found by Newton's method.
    pub quadratic: bool,
    /// Whether the problem is stiff (a penalty), so that the robust projection is taken from the start.
    pub stiff: bool,
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
    training: &'a mut AnyBackend,
    validation: Option<&'a mut AnyBackend>,
    params: &'a OrthogonalParams<'a>,
    observer: &mut dyn FnMut(&Step) -> Result<ControlFlow<()>, SolveError>,
) -> Result<Outcome, SolveError> {
    let mut run = Run::new(training, validation, params)?;
    if let Some(start) = params.start {
        run.replay(start)?;
    }
    let mut grid = (params.grid)(0);
    let stopped = loop {
        if run.network.len() >= params.neurons {
            break Stopped::Neurons;
        }
        if !params.fixed_grid {
            grid = (params.grid)(run.network.len() as u64);
        }
        let (score, validation_loss) = match run.step(&grid)? {
            Found::Neuron {
                score,
                validation_loss,
            } => (score, validation_loss),
            Found::Nothing(stopped) => break stopped,
        };
        let loss = run.loss()?;
        let flow = observer(&Step {
            network: &run.network,
            state: &run.state,
            score,
            loss,
            validation_loss,
            last: run.network.len() == params.neurons,
        })?;
        if flow.is_break() {
            break Stopped::Interrupted;
        }
    };
    if stopped == Stopped::QuadratureLimit {
        run.warnings.push(format!(
            "stopped at {} neurons: no further one lowers the loss on independent points. The quadrature is the \
             limit now, not the network; use more cells or points to go on",
            run.network.len()
        ));
    }
    if stopped == Stopped::Neurons && run.refused * REFUSED_PART > params.neurons {
        run.warnings.push(format!(
            "{} neurons were refused because the loss on independent points rose with them: the quadrature \
             limits the errors now. With more cells or points they would be smaller",
            run.refused
        ));
    }
    run.timings.validation = run.guard.time;
    Ok(Outcome {
        network: run.network,
        stopped,
        warnings: run.warnings,
        timings: run.timings,
    })
}

enum Found {
    Neuron {
        score: f64,
        validation_loss: Option<f64>,
    },
    Nothing(Stopped),
}

struct Run<'a> {
    training: &'a mut AnyBackend,
    guard: Guard<'a>,
    params: &'a OrthogonalParams<'a>,
    network: Network,
    projection: Projection,
    state: State,
    /// Neurons that are chosen already or depend on those chosen.
    closed: HashSet<Vec<u64>>,
    loss_of_zero: f64,
    first_score: Option<f64>,
    /// ⟨∇L(0), g⟩ on a grid that stays the same.
    scores_of_zero: Option<Vec<f64>>,
    /// Neurons that the guard refused.
    refused: usize,
    warnings: Vec<String>,
    timings: Timings,
}

impl<'a> Run<'a> {
    fn new(
        training: &'a mut AnyBackend,
        validation: Option<&'a mut AnyBackend>,
        params: &'a OrthogonalParams<'a>,
    ) -> Result<Self, SolveError> {
        let network = Network::zero(training.activation(), params.center.len());
        let loss_of_zero = training.risk(&network)?;
        let guard = Guard::new(validation, &network, params.start.and_then(|start| start.guard))?;
        let robust = match params.projection {
            ProjectionKind::Auto => params.stiff && holds_embeddings(training, params.neurons, STIFF_WORK),
            ProjectionKind::Cholesky => false,
            ProjectionKind::Orthogonal => training.embedding_length().is_some(),
        };
        Ok(Self {
            training,
            guard,
            params,
            network,
            projection: if !params.quadratic {
                Projection::Newton(Newton::default())
            } else if robust {
                Projection::Orthogonal(Orthogonal::default())
            } else {
                Projection::Cholesky(Cholesky::default())
            },
            state: State::default(),
            closed: HashSet::new(),
            loss_of_zero,
            first_score: None,
            scores_of_zero: None,
            refused: 0,
            warnings: Vec::new(),
            timings: Timings::default(),
        })
    }

    /// Takes up an interrupted run by the very operations that it did.
    fn replay(&mut self, start: &State) -> Result<(), SolveError> {
        for (n, (neuron, &score)) in start.neurons.iter().zip(&start.scores).enumerate() {
            if start.orthogonal_from == Some(n) {
                self.switch_to_orthogonal()?;
            }
            self.first_score.get_or_insert(score.abs());
            if !self.add(neuron, score)? {
                break;
            }
        }
        self.state.guard = start.guard;
        Ok(())
    }

    /// Finds the best neuron that can be added, and adds it.
    fn step(&mut self, grid: &Grid) -> Result<Found, SolveError> {
        let pool = self.pool(grid)?;
        let (mut refusals, mut dependent) = (0, 0);
        let rounding = self.rounding();
        let center = self.params.center;
        let activity = |index: usize| pool.neuron(index).argument(center);
        for index in BestFirst::new(&pool.scores, rounding, &activity) {
            let signed = pool.scores[index];
            let score = signed.abs();
            let first = *self.first_score.get_or_insert(score);
            if score <= NOISE * first {
                break;
            }
            if self.params.tolerance.is_some_and(|tolerance| score < tolerance) {
                return Ok(Found::Nothing(Stopped::Tolerance));
            }
            let neuron = pool.neuron(index);
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
            if let Some(validation_loss) = self.is_accepted()? {
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
        Ok(Found::Nothing(if refusals > 0 {
            Stopped::QuadratureLimit
        } else {
            Stopped::NoCandidate
        }))
    }

    /// The error of a score.
    fn rounding(&self) -> f64 {
        ROUNDING * self.first_score.unwrap_or(0.0)
    }

    /// The grid's neurons and those refined from its best, with their scores.
    fn pool<'g>(&mut self, grid: &'g Grid) -> Result<Pool<'g>, SolveError> {
        let started = Instant::now();
        let scores = self.scores(Candidates::Grid(grid))?;
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(SolveError::Breakdown {
                neurons: self.network.len(),
            });
        }
        self.timings.argmax += started.elapsed();
        let mut pool = Pool {
            grid,
            scores,
            refined: Vec::new(),
        };
        if let Some(resolution) = self.params.refine {
            let started = Instant::now();
            let center = self.params.center;
            let activity = |index: usize| grid.neuron(index).argument(center);
            let starts: Vec<(Neuron, f64)> = BestFirst::new(&pool.scores, self.rounding(), &activity)
                .of_lines(grid, REFINED)
                .into_iter()
                .map(|index| (grid.neuron(index), pool.scores[index]))
                .collect();
            let bias = self.params.bias;
            for (neuron, score) in refine(self, &starts, resolution, bias)? {
                pool.refined.push(neuron);
                pool.scores.push(score);
            }
            self.timings.refine += started.elapsed();
        }
        Ok(pool)
    }

    /// Asks the guard about the neuron just added; takes it back if it is refused. If it stays, the
    /// loss on the validation points comes back, where that was taken.
    fn is_accepted(&mut self) -> Result<Option<Option<f64>>, SolveError> {
        let n = self.network.len();
        let due = n == self.params.neurons || (self.params.reported)(n);
        let explained = 0.5 * self.projection.explained();
        let verdict = self.guard.judge(&self.network, explained, due)?;
        if let Verdict::Refused = verdict {
            self.take_back();
            self.refused += 1;
            let explained = 0.5 * self.projection.explained();
            self.guard.after_refusal(&self.network, explained)?;
        }
        self.state.guard = Some(self.guard.state);
        Ok(match verdict {
            Verdict::Accepted(loss) => Some(loss),
            Verdict::Refused => None,
        })
    }

    fn allows(&self, neuron: &Neuron) -> bool {
        let [low, high] = self.params.bias;
        let slack = 1e-9 * (high - low);
        (low - slack..=high + slack).contains(&neuron.bias) && !self.closed.contains(&key(neuron))
    }

    /// ⟨∇L(u), g⟩ for each candidate, by the most accurate way at hand.
    fn scores(&mut self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let Some(embedded) = self.projection.embedded().filter(|values| !values.is_empty()) else {
            return self.training.gradient(&self.network, along);
        };
        // ⟨∇L(u), g⟩ = E(u)·E(g) + ⟨∇L(0), g⟩. With a stiff penalty the coefficients cannot carry u to
        // the accuracy that its gradient needs; its values at the points can.
        let mut scores = self.training.embedding_adjoint(embedded, along)?;
        let fixed = self.params.fixed_grid && matches!(along, Candidates::Grid(_));
        let at_zero = match self.scores_of_zero.take().filter(|_| fixed) {
            Some(known) => known,
            None => {
                let zero = Network::zero(self.network.activation, self.network.dimension);
                self.training.gradient(&zero, along)?
            }
        };
        scores
            .iter_mut()
            .zip(&at_zero)
            .for_each(|(score, zero)| *score += zero);
        if fixed {
            self.scores_of_zero = Some(at_zero);
        }
        Ok(scores)
    }

    /// Adds a neuron and computes the coefficients, or finds that it depends on the others.
    fn add(&mut self, neuron: &Neuron, score: f64) -> Result<bool, SolveError> {
        let mut started = Instant::now();
        let added = if let Projection::Newton(newton) = &mut self.projection {
            let mut network = self.network.clone();
            network.neurons.push(neuron.clone());
            newton.try_add(self.training, &network)?
        } else {
            let products = self
                .projection
                .products(self.training, &self.network.neurons, neuron)?;
            self.timings.gram += started.elapsed();
            started = Instant::now();
            self.projection.try_add(products, score)
        };
        self.closed.insert(key(neuron));
        if added.is_ok() {
            self.network.neurons.push(neuron.clone());
            self.state.neurons.push(neuron.clone());
            self.state.scores.push(score);
            self.network.coefficients = self.projection.coefficients();
            self.polish()?;
        }
        self.timings.projection += started.elapsed();
        Ok(added.is_ok())
    }

    /// One step of iterative refinement with the gradient taken at the points, where coefficients
    /// may have lost digits.
    fn polish(&mut self) -> Result<(), SolveError> {
        if !self.projection.is_delicate() {
            return Ok(());
        }
        let residual = self
            .training
            .gradient(&self.network, Candidates::List(&self.network.neurons))?;
        let correction = self.projection.solve(&residual);
        for (a, c) in self.network.coefficients.iter_mut().zip(correction) {
            *a -= c;
        }
        Ok(())
    }

    fn take_back(&mut self) {
        self.projection.pop();
        self.state.neurons.pop();
        self.state.scores.pop();
        if let Some(neuron) = self.network.neurons.pop() {
            self.closed.remove(&key(&neuron));
        }
        self.network.coefficients = self.projection.coefficients();
    }

    fn can_switch(&self) -> bool {
        self.params.projection == ProjectionKind::Auto
            && matches!(self.projection, Projection::Cholesky(_))
            && holds_embeddings(self.training, self.params.neurons, RESORT_WORK)
    }

    /// From Cholesky's factor to orthogonal values at the points, where memory allows.
    fn switch_to_orthogonal(&mut self) -> Result<(), SolveError> {
        if !self.can_switch() {
            return Ok(());
        }
        let zero = Network::zero(self.network.activation, self.network.dimension);
        let at_zero = self
            .training
            .gradient(&zero, Candidates::List(&self.network.neurons))?;
        let mut projection = Projection::Orthogonal(Orthogonal::default());
        for (n, (neuron, mut score)) in self.network.neurons.iter().zip(at_zero).enumerate() {
            let candidate = Candidates::List(std::slice::from_ref(neuron));
            if let Some(embedded) = projection.embedded().filter(|values| !values.is_empty()) {
                score += self.training.embedding_adjoint(embedded, candidate)?[0];
            }
            let products = projection.products(self.training, &self.network.neurons[..n], neuron)?;
            let added = projection.try_add(products, score);
            if added.is_err() {
                return Ok(());
            }
        }
        self.warnings.push(format!(
            "at {} neurons the Gram matrix ran out of digits; from there on the values at the points are orthogonalised",
            self.network.len()
        ));
        self.projection = projection;
        self.state.orthogonal_from = Some(self.network.len());
        Ok(())
    }

    /// L(u_n) = L(0) − ½ lᵀa, unless that cancels.
    fn loss(&mut self) -> Result<f64, SolveError> {
        let estimate = self.loss_of_zero - 0.5 * self.projection.explained();
        if estimate.abs() >= 1e-3 * self.loss_of_zero.abs() {
            Ok(estimate)
        } else {
            self.training.risk(&self.network)
        }
    }
}

/// What a step chooses from.
struct Pool<'g> {
    grid: &'g Grid,
    /// Of the grid's neurons, then of the refined ones.
    scores: Vec<f64>,
    refined: Vec<Neuron>,
}

impl Pool<'_> {
    fn neuron(&self, index: usize) -> Neuron {
        match index.checked_sub(self.grid.len()) {
            Some(place) => self.refined[place].clone(),
            None => self.grid.neuron(index),
        }
    }
}

impl Landscape for Run<'_> {
    fn scores(&mut self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        Run::scores(self, Candidates::List(neurons))
    }

    fn slopes(&mut self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        self.training.local_scores(&self.network, neurons)
    }
}

fn holds_embeddings(backend: &AnyBackend, neurons: usize, work: f64) -> bool {
    backend.embedding_length().is_some_and(|length| {
        let numbers = length.saturating_mul(neurons);
        numbers <= ORTHOGONAL_BYTES / 8 && numbers as f64 * neurons as f64 <= work
    })
}

fn key(neuron: &Neuron) -> Vec<u64> {
    neuron
        .omega
        .iter()
        .chain([&neuron.bias])
        .map(|value| (value + 0.0).to_bits())
        .collect()
}
