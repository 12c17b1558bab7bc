//! Progress on stderr: a line that moves on a terminal, plain lines elsewhere.

use greedy_pde::report::Row;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far a run is.
pub(super) enum ProgressLine {
    Silent,
    Plain,
    Bar(ProgressBar),
}

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
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} n = {pos}/{len}  {msg}  {elapsed} gone, {eta} left")
        {
            bar.set_style(style);
        }
        ProgressLine::Bar(bar)
    }

    /// A step was taken.
    pub(super) fn step(&self, row: &Row, reported: bool) {
        match self {
            ProgressLine::Silent => {}
            ProgressLine::Plain if !reported => {}
            ProgressLine::Plain => eprintln!("n = {:5}  {}  {:.1} s", row.n, figures(row), row.seconds),
            ProgressLine::Bar(bar) => {
                bar.set_position(row.n as u64);
                if reported {
                    bar.set_message(figures(row));
                }
            }
        }
    }

    /// The run is over.
    pub(super) fn finish(&self) {
        if let ProgressLine::Bar(bar) = self {
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
