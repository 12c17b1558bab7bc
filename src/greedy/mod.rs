//! The greedy algorithms: one neuron at a time, the one that the gradient of the loss favours most.

mod by_decrease;
mod decrease;
mod guard;
mod multipliers;
mod orthogonal;
mod polish;
mod relaxed;
mod selection;

pub(crate) use by_decrease::ANCHORED_EVERY;
pub(crate) use decrease::{Board, REFRESH};
pub use guard::GuardState;
pub(crate) use orthogonal::orthogonalises;
pub use orthogonal::{OrthogonalParams, orthogonal};
pub use polish::{Moves, Polish, is_moved_at};
pub use relaxed::{RelaxedParams, StepRule, relaxed};
pub use selection::Ranking;

use crate::candidates::Seen;
use crate::network::{Network, Neuron};
use crate::sums::Sums;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// By what the next neuron is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The slope |⟨∇L(u), g⟩|, as in the paper.
    Slope,
    /// The decrease of the loss after the projection.
    Decrease,
}

impl Selection {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Selection::Slope => "slope",
            Selection::Decrease => "decrease",
        }
    }
}

/// The losses of a run, each with whatever does its sums.
#[derive(Clone, Copy)]
pub struct Losses<'a> {
    /// The loss that is minimised.
    pub training: &'a dyn Sums,
    /// The same loss on fewer points, for the inner products of neurons: then the orthogonal algorithm takes only
    /// the gradient on all of them, and that only now and then ([`Anchor`](crate::projection::Anchor)). And on as
    /// many others, which confirm the norms.
    pub curvature: Option<(&'a dyn Sums, &'a dyn Sums)>,
    /// The same loss on more points, to know which candidates' norms are known.
    pub norms: Option<&'a dyn Sums>,
    /// Tells which neurons the points of the inner products see.
    pub seen: Option<&'a Seen>,
    /// The same loss on fewer points, which finds the candidates worth a closer look of the relaxed algorithm.
    pub scout: Option<&'a dyn Sums>,
    /// Independent points: for the guard, or to report the loss there.
    pub validation: Option<&'a dyn Sums>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// All neurons asked for were found.
    Neurons,
    /// The best score fell below the tolerance.
    Tolerance,
    /// No candidate was left that adds anything but rounding.
    NoCandidate,
    /// No candidate lowers the loss on independent points: the quadrature cannot tell them apart.
    QuadratureLimit,
    /// The observer asked to stop.
    Interrupted,
}

impl Stopped {
    /// For people.
    pub fn in_words(self) -> &'static str {
        match self {
            Stopped::Neurons => "All neurons asked for were found.",
            Stopped::Tolerance => "The tolerance was reached.",
            Stopped::NoCandidate => "No candidate was left that adds anything but rounding.",
            Stopped::QuadratureLimit => "It ended where no candidate lowers the loss on independent points.",
            Stopped::Interrupted => "It was interrupted.",
        }
    }
}

/// What a run must know to go on from its middle by the very operations that led there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// The neurons chosen.
    pub neurons: Vec<Neuron>,
    /// ⟨∇L(u_(n−1)), g_n⟩ of each.
    pub scores: Vec<f64>,
    /// α of each step of the relaxed algorithm.
    pub steps: Vec<f64>,
    /// After how many neurons the projection changed to orthogonal values, if it did.
    pub orthogonal_from: Option<usize>,
    /// How many neurons there were when all were last moved together, if they were.
    pub polished: Option<usize>,
    /// What the guard remembers.
    pub guard: Option<GuardState>,
}

/// A step that was taken.
#[derive(Debug)]
pub struct Step<'a> {
    /// The network after the step.
    pub network: &'a Network,
    /// |⟨∇L(u_(n−1)), g_n⟩| of the neuron chosen.
    pub score: f64,
    /// From which the run can be resumed.
    pub state: &'a State,
    /// The loss on the training points.
    pub loss: f64,
    /// The loss on the validation points, if it was taken.
    pub validation_loss: Option<f64>,
    /// Whether the run ends with this step.
    pub last: bool,
    /// Where the neurons are being moved together: then this is no step of its own.
    pub moves: Option<Moves>,
}

/// Time spent in each part of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// Scores of all candidates.
    pub argmax: Duration,
    /// Newton's method on the best.
    pub refine: Duration,
    /// Gram columns.
    pub gram: Duration,
    /// Coefficients.
    pub projection: Duration,
    /// The loss on independent points.
    pub validation: Duration,
}

/// What a run found.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The solution.
    pub network: Network,
    /// Why it ended.
    pub stopped: Stopped,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Where the time went.
    pub timings: Timings,
}
