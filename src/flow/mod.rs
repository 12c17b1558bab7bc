//! Gradient flows u_t = −∇E(u), step by step on the same neurons.
//!
//! A step of an implicit scheme minimises (c/2τ)‖u‖² + E(u) − ⟨l, u⟩, where l has what acts at the new time and
//! the earlier u. Its curvature A = (c/τ) M + K is the same in every step: the Gram matrices of the mass M and of A and
//! Cholesky's factor grow by a row with each neuron and are never made anew, and what the choice by decrease knows of the
//! candidates stays. A step costs a projection, and a few neurons where the decrease still asks for them.

mod choice;
mod gram;
mod hold;
mod loads;
mod scheme;
mod solve;
mod steps;
mod system;

pub use loads::{LoadPart, Loads, SumsAt};
pub use scheme::Scheme;
pub use steps::flow;

use crate::candidates::Grid;
use crate::error::SolveError;
use crate::greedy::Selection;
use crate::network::{Network, Neuron};
use crate::sums::Sums;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// What the steps of a flow are made of, on one set of points.
pub struct FlowLosses<'a> {
    /// (c/2τ)‖u‖² + E(u) without a load.
    pub step: &'a dyn Sums,
    /// ½‖u‖².
    pub mass: &'a dyn Sums,
    /// What acts.
    pub loads: &'a Loads<'a>,
    /// The part of the energy that is taken explicitly.
    pub explicit: Option<&'a dyn Sums>,
    /// Conditions that multipliers hold.
    pub held: Option<HeldLosses<'a>>,
    /// `step` at a time, where a coefficient depends on it.
    pub varying: Option<&'a SumsAt<'a>>,
}

/// Conditions Bu = g that multipliers hold, by the penalty ½∫ s (Bu − g)², which is a part of a step's functional.
pub struct HeldLosses<'a> {
    /// ½∫ s (Bu)².
    pub penalty: &'a dyn Sums,
    /// ∫ s g Bu.
    pub loads: &'a Loads<'a>,
}

/// How a flow is followed.
pub struct FlowParams<'a> {
    /// By which formula.
    pub scheme: Scheme,
    /// τ.
    pub step: f64,
    /// How many steps.
    pub steps: usize,
    /// t after so many steps.
    pub time: &'a dyn Fn(usize) -> f64,
    /// The most neurons there may be.
    pub neurons: usize,
    /// The most that the initial value may have.
    pub initial_neurons: usize,
    /// New ones in a step, at most.
    pub neurons_per_step: usize,
    /// What a neuron must take off a step's functional, as a part of ½‖u‖² in the step's norm; without it as much as the
    /// error of time lets count.
    pub tolerance: Option<f64>,
    /// By what new neurons are chosen.
    pub selection: Selection,
    /// The candidates, the same in every step.
    pub grid: &'a Grid,
    /// The smallest and largest bias.
    pub bias: [f64; 2],
    /// The centre of the domain.
    pub center: &'a [f64],
    /// Whether the energy is quadratic, but for what is taken explicitly.
    pub quadratic: bool,
    /// Whether nothing that acts depends on t: then the energy must not rise.
    pub autonomous: bool,
    /// Whether u is kept after so many steps.
    pub saved: &'a dyn Fn(usize) -> bool,
}

/// u at a time, by the coefficients of the first neurons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// After how many steps.
    pub step: usize,
    /// t.
    pub time: f64,
    /// One for each neuron that there was.
    pub coefficients: Vec<f64>,
}

/// What a flow must know to go on by the very operations that it would have done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// The neurons in the order in which they came.
    #[serde(skip)]
    pub neurons: Vec<Neuron>,
    /// How many of them came with the initial value.
    pub initial: usize,
    /// How many steps are done.
    pub step: usize,
    /// The coefficients of u now and at the steps before, the newest first.
    pub history: Vec<Vec<f64>>,
    /// Frames kept so far.
    pub frames: Vec<Frame>,
    /// After how many steps candidates are looked at again, and how many of these are to come.
    pub patience: (usize, usize),
    /// Neurons that independent points refused.
    pub refused: usize,
    /// E(u), and at which steps it rose, though nothing that acts depends on t: how many, and the first.
    pub energy: f64,
    /// See `energy`.
    pub rises: (usize, usize),
    /// What the last step's error in time is of u, about, in the norm of a step.
    #[serde(default)]
    pub time_error: f64,
    /// Whether neurons were wanted when there could be no more.
    pub exhausted: bool,
}

/// A step that was taken.
pub struct FlowStep<'a> {
    /// After how many steps this is.
    pub step: usize,
    /// t.
    pub time: f64,
    /// u.
    pub network: &'a Network,
    /// E(u).
    pub energy: f64,
    /// New neurons.
    pub new: usize,
    /// What the error of this step in time takes off the functional, about, if it is known.
    pub time_error: Option<f64>,
    /// From which the flow can go on.
    pub state: &'a FlowState,
}

/// What a flow led to.
pub struct FlowOutcome {
    /// The last u and everything that led there.
    pub state: FlowState,
    /// Whether the observer ended it.
    pub interrupted: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Sees every step and may end the flow.
pub type FlowObserver<'o> = dyn FnMut(&FlowStep) -> Result<ControlFlow<()>, SolveError> + 'o;
