//! Progress on stderr: a line that moves on a terminal, plain lines elsewhere.

use crate::cli::streams::{self, tell};
use greedy_pde::error::SolveError;
use greedy_pde::network::Network;
use greedy_pde::problem::Problem;
use greedy_pde::report::{Report, Row};
use greedy_pde::run::{Event, RunOptions, TimeProgress, run};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::Instant;

/// Shows how far a run is.
pub(super) enum ProgressLine {
    Silent,
    /// A line for every step.
    Every(PassLines),
    Plain(PassLines),
    /// With the number of neurons asked for.
    Bar(ProgressBar, usize),
}

/// A line per tenth of a pass that takes long.
#[derive(Default)]
pub(super) struct PassLines {
    /// Since when, and the last tenth shown.
    state: Cell<Option<(Instant, usize)>>,
}

impl PassLines {
    fn line(&self, done: usize, total: usize) {
        const LONG: f64 = 2.0;
        let (started, shown) = self.state.get().unwrap_or((Instant::now(), 0));
        let tenth = 10 * done / total.max(1);
        let gone = started.elapsed().as_secs_f64();
        let left = gone * (total - done) as f64 / done.max(1) as f64;
        let show = tenth > shown && gone + left > LONG;
        if show {
            tell!(
                "{} % of {total} points  {gone:.0} s gone, about {left:.0} s left",
                10 * tenth
            );
        }
        let next = (started, if show { tenth } else { shown });
        self.state.set((done < total).then_some(next));
    }
}

const TEMPLATE: &str = "{bar:30} {pos}/{len}  {msg}  {elapsed} gone, {eta} left";

impl ProgressLine {
    /// Progress towards `neurons`.
    pub(super) fn new(neurons: usize, quiet: bool) -> Self {
        if quiet || streams::is_silent() {
            return ProgressLine::Silent;
        }
        if !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
            return ProgressLine::Plain(PassLines::default());
        }
        let bar = ProgressBar::new(neurons as u64);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        ProgressLine::Bar(bar, neurons)
    }

    /// A line for every step.
    pub(super) fn every_step() -> Self {
        ProgressLine::Every(PassLines::default())
    }

    /// Something happened.
    pub(super) fn show(&self, event: &Event) {
        match event {
            Event::Points { done, total } => self.points(*done, *total),
            Event::Step(step) => self.step(step.row, step.reported),
            Event::Initial { done, total } => self.initial(*done, *total),
            Event::Moves { done, total } => self.moves(*done, *total),
            Event::Time(step) => self.time(step),
        }
    }

    /// A pass over the points is under way.
    fn points(&self, done: usize, total: usize) {
        match self {
            ProgressLine::Silent => {}
            ProgressLine::Plain(pass) | ProgressLine::Every(pass) => pass.line(done, total),
            ProgressLine::Bar(bar, _) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message("points");
            }
        }
    }

    /// A step was taken.
    fn step(&self, row: &Row, reported: bool) {
        match self {
            ProgressLine::Silent => {}
            ProgressLine::Plain(_) if !reported => {}
            ProgressLine::Plain(_) | ProgressLine::Every(_) => {
                tell!("n = {:5}  {}  {:.1} s", row.n, figures(row), row.seconds)
            }
            ProgressLine::Bar(bar, neurons) => {
                if bar.length() != Some(*neurons as u64) {
                    bar.set_length(*neurons as u64);
                    bar.reset_eta();
                }
                bar.set_position(row.n as u64);
                if reported {
                    bar.set_message(figures(row));
                }
            }
        }
    }

    /// A neuron was found for the initial value of a flow.
    fn initial(&self, done: usize, total: usize) {
        match self {
            ProgressLine::Silent | ProgressLine::Plain(_) => {}
            ProgressLine::Every(_) => tell!("t = 0  n = {done:5} of {total}"),
            ProgressLine::Bar(bar, _) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message("neurons for the initial value");
            }
        }
    }

    /// All neurons are being moved together.
    fn moves(&self, done: usize, total: usize) {
        match self {
            ProgressLine::Silent | ProgressLine::Plain(_) | ProgressLine::Every(_) => {}
            ProgressLine::Bar(bar, _) => {
                bar.set_message(format!("all neurons moved {done} times of {total}"))
            }
        }
    }

    /// A step in time was taken.
    fn time(&self, step: &TimeProgress) {
        let row = step.row;
        let words = || {
            let error = row.l2.map_or(String::new(), |l2| format!("  L2 {l2:.2e}"));
            format!(
                "t = {:.4e}  n = {:4}{error}  energy {:.6e}",
                row.time, row.n, row.energy
            )
        };
        match self {
            ProgressLine::Silent => {}
            ProgressLine::Plain(_) if !step.saved => {}
            ProgressLine::Plain(_) | ProgressLine::Every(_) => {
                let (done, left) = (row.step.max(1) as f64, (step.steps - row.step) as f64);
                tell!(
                    "step {:5}/{}  {}  {:.1} s, about {:.0} s left",
                    row.step,
                    step.steps,
                    words(),
                    row.seconds,
                    row.seconds / done * left
                )
            }
            ProgressLine::Bar(bar, _) => {
                if bar.length() != Some(step.steps as u64) || row.step == 0 {
                    bar.set_length(step.steps as u64);
                    bar.reset_eta();
                }
                bar.set_position(row.step as u64);
                if step.saved {
                    bar.set_message(words());
                }
            }
        }
    }

    /// The run is over.
    pub(super) fn finish(&self) {
        if let ProgressLine::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
    }
}

/// Solves a problem and shows how far it is.
pub(super) fn run_shown(
    problem: &Problem,
    options: &RunOptions,
    quiet: bool,
) -> Result<(Report, Network), SolveError> {
    let progress = ProgressLine::new(problem.settings.neurons, quiet);
    let result = run(problem, options, &mut |event| {
        progress.show(event);
        ControlFlow::Continue(())
    });
    progress.finish();
    result
}

fn figures(row: &Row) -> String {
    let mut parts = Vec::new();
    if let Some(l2) = row.l2 {
        parts.push(format!("L2 {l2:.2e}"));
    }
    if let Some(h1) = row.h1 {
        parts.push(format!("H1 {h1:.2e}"));
    }
    parts.push(format!("loss {:.3e}", row.loss));
    parts.push(format!("score {:.1e}", row.score));
    parts.join("  ")
}
