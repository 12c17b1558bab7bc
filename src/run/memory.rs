//! How much memory a run will take.

use super::losses::{scouted, table_axes};
use super::resources::sample_of_grid;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::greedy::{ANCHORED_EVERY, REFRESH, Selection, orthogonalises};
use crate::loss::{Loss, Term};
use crate::problem::{Algorithm, Problem, Purpose};
use crate::ridge::Plan;
use crate::sums::{MomentTables, scan_bytes};

/// The memory of a run on the CPU, in bytes: the most that is held at any one time, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Points with their coefficients, for training and for validation, or moment tables.
    pub points: usize,
    /// Whether tables of moments stand for the points.
    pub tables: bool,
    /// Whether the training points are generated anew in every pass, not kept.
    pub streamed: bool,
    /// What is known of u and of the gradient at the points.
    pub channels: usize,
    /// Sums and scores of all candidates.
    pub candidates: usize,
    /// The factor of the Gram matrix, or values at the points of every neuron.
    pub projection: usize,
    /// The program itself.
    pub process: usize,
}

/// What a run takes that has nothing to do: code, stacks, memory that threads work in.
const PROCESS_BYTES: usize = 10 << 20;

impl Memory {
    /// What a run of the problem will take, about.
    pub fn of(problem: &Problem) -> Result<Self, SolveError> {
        let training = Set::new(problem, Purpose::Training)?;
        let mut points = training.points;
        if problem.settings.guard {
            points = points.saturating_add(Set::new(problem, Purpose::Validation)?.points);
        }
        let mut channels = training.channels;
        if problem.quadrature.curvature.is_some() {
            let curvature = Set::new(problem, Purpose::Curvature)?;
            let others = Set::new(problem, Purpose::Confirmation)?;
            points = points
                .saturating_add(curvature.points)
                .saturating_add(others.points);
            channels = channels.saturating_add(curvature.channels);
            // The gradient at the first anchor on the validation points, where the guard is.
            if problem.settings.guard && problem.settings.neurons > ANCHORED_EVERY {
                channels = channels.saturating_add(Set::new(problem, Purpose::Validation)?.channels / 2);
            }
        }
        if problem.doubts_norms() {
            points = points.saturating_add(Set::new(problem, Purpose::Norms)?.points);
        }
        if let Some(fewer) = scouted(problem) {
            let scout = Set::new(&fewer, Purpose::Training)?;
            points = points.saturating_add(scout.points);
            channels = channels.saturating_add(scout.channels);
        }
        Ok(Self {
            points,
            tables: training.tables,
            streamed: training.streamed,
            channels,
            candidates: of_candidates(problem, &training),
            projection: of_projection(problem, &training)?,
            process: PROCESS_BYTES,
        })
    }

    /// What one process takes where several share the points: tables apart, each has its part of them, and of what is
    /// known at them.
    pub fn of_one_among(&self, processes: usize) -> usize {
        let points = if self.tables {
            self.points
        } else {
            self.points / processes
        };
        let shared = (self.channels + self.projection) / processes;
        points
            .saturating_add(shared)
            .saturating_add(self.candidates + self.process)
    }

    /// All of it.
    pub fn total(&self) -> usize {
        let parts = [self.points, self.channels, self.candidates, self.projection];
        parts.into_iter().fold(self.process, usize::saturating_add)
    }
}

/// What a set of points takes.
struct Set {
    points: usize,
    channels: usize,
    tables: bool,
    streamed: bool,
    loss: Loss,
}

impl Set {
    fn new(problem: &Problem, purpose: Purpose) -> Result<Self, SolveError> {
        let mut loss = problem.loss(problem.settings.neurons, purpose)?;
        let tables = table_axes(problem, &loss);
        let mut points = 0;
        if let Some((power, axes)) = &tables {
            let inside = loss.terms.remove(0);
            let (double, single) = MomentTables::bytes_held(*power, axes);
            points = match purpose {
                // The pass that comes last has its buffers beside all that is kept.
                Purpose::Training => double.saturating_add(MomentTables::pass_bytes(&inside, *power, axes)),
                _ => single,
            };
        }
        let streamed = loss.bytes() > problem.quadrature.cache_bytes;
        let mut set = Self {
            points,
            channels: 0,
            tables: tables.is_some(),
            streamed,
            loss,
        };
        if !streamed {
            set.points = set.points.saturating_add(set.loss.bytes());
            set.channels = of_channels(problem, &set.loss);
        }
        for functional in problem.functionals(purpose)? {
            if functional.bytes() <= problem.quadrature.cache_bytes {
                let channels = jet_bytes(&functional);
                set.points = set.points.saturating_add(functional.bytes());
                set.channels = set.channels.saturating_add(channels);
            }
        }
        Ok(set)
    }
}

/// The memory of one function's jets at all points.
fn jet_bytes(loss: &Loss) -> usize {
    let of_term = |term: &Term| term.points.len().saturating_mul(8 * term.symbols.len());
    loss.terms.iter().map(of_term).fold(0, usize::saturating_add)
}

/// Jets of u, where they are kept, and the channels of the gradient.
fn of_channels(problem: &Problem, loss: &Loss) -> usize {
    let jets = jet_bytes(loss);
    let kept = match problem.dictionary.activation.has_sweep() {
        true => jets,
        // What is orthogonalised stands for the jets of u.
        false
            if orthogonalises(
                problem.settings.projection,
                problem.is_delicate(),
                of_values(loss),
                problem.settings.neurons,
            ) =>
        {
            jets
        }
        false => 2 * jets,
    };
    // Newton's method takes gradients on its way, while that of the step is held, and values of u.
    if problem.has_potential() && problem.settings.algorithm == Algorithm::Oga {
        return 2 * kept + 8 * loss.points();
    }
    // Scores are taken afresh now and then, while the newest neuron's channels are held.
    match problem.settings.selection == Selection::Decrease && problem.settings.neurons >= REFRESH {
        true => kept + jets,
        false => kept,
    }
}

/// Bytes per candidate of a ranking: the score and a flag; another flag is touched for those taken only.
const RANKED: usize = 8 + 1;
/// Bytes per candidate more where the decrease is known: scores, squares, what is left of them, weights and a flag.
const WEIGHED: usize = 4 * 8 + 1;
/// Bytes per neuron of a plan without sweeps: position, sign and bias.
const PLANNED: usize = 24;
/// Bytes per direction besides its components and symbols.
const LINE: usize = 160;

/// The sums of a scan, what is planned for it, and the ranking that follows.
fn of_candidates(problem: &Problem, set: &Set) -> usize {
    let (grid, times) = sample_of_grid(problem);
    let plan = Plan::new(problem.dictionary.activation, Candidates::Grid(&grid));
    let scan = match set.loss.terms.is_empty() {
        true => 0,
        false => scan_bytes(&set.loss, set.streamed, &plan, times),
    };
    let mut each = RANKED;
    if !problem.dictionary.activation.has_sweep() {
        each += PLANNED;
    }
    if problem.settings.selection == Selection::Decrease {
        each += WEIGHED;
    }
    let symbols: usize = set.loss.terms.iter().map(|term| term.symbols.len()).sum();
    let line = LINE + 16 * problem.dimension() + 8 * symbols;
    let held = (each * grid.len() + line * grid.lines.len()) as f64 * times;
    scan.saturating_add(held as usize)
}

/// Cholesky's factor, or the values at the points of all neurons.
fn of_projection(problem: &Problem, set: &Set) -> Result<usize, SolveError> {
    let settings = &problem.settings;
    let square = settings.neurons.saturating_mul(settings.neurons);
    if settings.algorithm == Algorithm::Rga {
        return Ok(0);
    }
    let length = of_values(&set.loss);
    let by_values = !set.tables
        && orthogonalises(
            settings.projection,
            problem.is_delicate(),
            length,
            settings.neurons,
        );
    // Newton's method has two Hessians, a factor of one, and the way it came.
    let (matrices, sets) = match problem.has_potential() {
        true => (5 * 8, 3),
        false => (4, 1),
    };
    let mut bytes = square.saturating_mul(matrices);
    if by_values {
        // Besides: the solution, the right-hand side, and the newest in the making.
        let columns = settings.neurons.saturating_mul(sets).saturating_add(4);
        bytes = bytes.saturating_add(length.saturating_mul(8).saturating_mul(columns));
    }
    Ok(bytes)
}

/// How many numbers the values of a function are.
fn of_values(loss: &Loss) -> usize {
    let of_term = |term: &Term| term.points.len().saturating_mul(term.embedding_width());
    loss.terms.iter().map(of_term).fold(0, usize::saturating_add)
}

/// Refuses a run that this machine has not the memory for, if it says how much it has. The points may be divided among
/// processes; each looks for itself, as they may be on machines of their own.
pub fn require_memory(problem: &Problem, processes: usize) -> Result<(), SolveError> {
    let needed = Memory::of(problem)?.of_one_among(processes);
    match available_memory() {
        Some(available) if needed > available => Err(SolveError::TooLarge { needed, available }),
        _ => Ok(()),
    }
}

/// What the operating system could give, to this container if it is one; some do not tell.
fn available_memory() -> Option<usize> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    if system.available_memory() == 0 {
        return None;
    }
    // What a container has read from disk counts against its limit but is given back when needed.
    let container = system.cgroup_limits();
    let container = container.map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    Some(system.available_memory().min(container) as usize)
}
