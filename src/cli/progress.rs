//! Progress on stderr: a line that moves on a terminal, plain lines elsewhere.

use greedy_pde::report::Row;
use greedy_pde::run::Event;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far a run is.
pub(super) enum ProgressLine {
    Silent,
    Plain,
    /// With the number of neurons asked for.
    Bar(ProgressBar, usize),
}

const TEMPLATE: &str = "{bar:30} {pos}/{len}  {msg}  {elapsed} gone, {eta} left";

impl ProgressLine {
    /// Progress towards `neurons`.
    pub(super) fn new(neurons: usize, quiet: bool) -> Self {
        if quiet {
            return ProgressLine::Silent;
        }
        if !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
            return ProgressLine::Plain;
        }
        let bar = ProgressBar::new(neurons as u64);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        ProgressLine::Bar(bar, neurons)
    }

    /// Something happened.
    pub(super) fn show(&self, event: &Event) {
        match event {
            Event::Points { done, total } => self.points(*done, *total),
            Event::Step(step) => self.step(step.row, step.reported),
        }
    }

    /// A pass over the points is under way.
    fn points(&self, done: usize, total: usize) {
        let percent = |count: usize| 100 * count / total.max(1);
        match self {
            ProgressLine::Silent => {}
            // A line per tenth of a long pass.
            ProgressLine::Plain => {
                let before = done.saturating_sub(1 << 16);
                if total >= 10_000_000 && percent(done) / 10 > percent(before) / 10 {
                    eprintln!("{} % of {total} points", percent(done));
                }
            }
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
            ProgressLine::Plain if !reported => {}
            ProgressLine::Plain => eprintln!("n = {:5}  {}  {:.1} s", row.n, figures(row), row.seconds),
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

    /// The run is over.
    pub(super) fn finish(&self) {
        if let ProgressLine::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
    }
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
