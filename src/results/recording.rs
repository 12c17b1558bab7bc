//! What a run leaves behind, written down as it goes: in memory, or by a directory on a disk.

use super::checkpoint::{Checkpoint, Place};
use super::problem_text::{beside_its_files, settings};
use crate::estimate::Snapshot;
use crate::flow::FlowState;
use crate::greedy::State;
use crate::network::Network;
use crate::problem::Problem;
use crate::report::{Row, TimeRow};
use crate::run::{Event, Progress, TimeProgress};

/// A run so far: whatever a result directory holds of it, before its end.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The problem as it is solved.
    pub(super) text: String,
    pub(super) settings: String,
    pub(super) rows: Vec<Row>,
    /// Where a flow is, and its rows.
    pub(super) flow: Option<FlowState>,
    pub(super) time_rows: Vec<TimeRow>,
    pub(super) kept: Vec<Snapshot>,
    /// Whether neurons are moved on the way.
    moves: bool,
    place: Place,
    /// The last step; its neurons are the network's.
    last: (Network, State),
}

impl Recording {
    /// A run of `problem`, whose file has this text, that has not begun.
    pub fn new(problem: &Problem, text: &str) -> Self {
        let zero = Network::zero(problem.dictionary.activation, problem.dimension());
        Self {
            text: beside_its_files(text, problem),
            settings: settings(problem),
            rows: Vec::new(),
            flow: None,
            time_rows: Vec::new(),
            kept: Vec::new(),
            moves: problem.settings.polish.is_some(),
            place: Place::default(),
            last: (zero, State::default()),
        }
    }

    /// A run that has come as far as its checkpoint; the problem may ask for more neurons.
    pub fn going_on(problem: &Problem, text: &str, checkpoint: Checkpoint) -> Self {
        let (flow, time_rows) = match checkpoint.flow {
            Some((flow, rows)) => (Some(flow), rows),
            None => (None, Vec::new()),
        };
        Self {
            rows: checkpoint.rows,
            flow,
            time_rows,
            kept: checkpoint.kept,
            place: checkpoint.place,
            last: (checkpoint.network, checkpoint.state),
            ..Self::new(problem, text)
        }
    }

    /// Notes that the run got somewhere.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Step(step) => self.step(step),
            Event::Time(step) => self.time_step(step),
            Event::Points { .. } | Event::Initial { .. } | Event::Moves { .. } => {}
        }
    }

    fn step(&mut self, step: &Progress) {
        if self.is_again(step.row.n) {
            self.rows.pop();
        }
        self.rows.push(step.row.clone());
        Snapshot::keep(&mut self.kept, step.network, self.moves);
        self.place = Place::from(step.place);
        // A step may be too short for copying the neurons twice.
        let state = State {
            neurons: Vec::new(),
            scores: step.state.scores.clone(),
            steps: step.state.steps.clone(),
            ..*step.state
        };
        self.last = (step.network.clone(), state);
    }

    /// Where the sums are done.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the last step had as many neurons, so that one with n takes its place.
    pub(super) fn is_again(&self, n: usize) -> bool {
        self.rows.last().is_some_and(|row| row.n == n)
    }

    fn time_step(&mut self, step: &TimeProgress) {
        self.time_rows.push(step.row.clone());
        self.place = Place::from(step.place);
        self.flow = Some(step.state.clone());
        self.last = (step.network.clone(), State::default());
    }

    /// From which the run can go on.
    pub fn checkpoint(&self) -> Checkpoint {
        let (network, state) = self.last.clone();
        Checkpoint {
            network,
            state,
            kept: self.kept.clone(),
            rows: self.rows.clone(),
            flow: self.flow.clone().map(|flow| (flow, self.time_rows.clone())),
            problem: self.text.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            settings: self.settings.clone(),
            place: self.place.clone(),
        }
    }

    /// The state that a run goes on from, unless it has not begun or moves in time.
    pub(super) fn state(&self) -> Option<State> {
        let (network, state) = &self.last;
        (!network.is_empty() && self.flow.is_none()).then(|| State {
            neurons: network.neurons.clone(),
            ..state.clone()
        })
    }
}
