//! What is printed: results on stdout, everything else on stderr.
//!
//! Whoever reads may close the pipe or run out of space. A reader that has had enough ends the program
//! quietly; words on stderr that nobody can read stop nothing.

use super::Failure;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether another process does the talking.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Prints nothing from here on: another process does.
pub(super) fn fall_silent() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Prints again: nobody else will.
pub(super) fn speak() {
    SILENT.store(false, Ordering::Relaxed);
}

/// Whether another process does the talking.
pub(super) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// Prints a line of results.
pub(super) fn print(line: Arguments) -> Result<(), Failure> {
    if is_silent() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(failed)
}

/// What it means that results cannot be printed.
pub(super) fn failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::NobodyReads,
        _ => Failure::Solve(format!("the results cannot be printed: {error}")),
    }
}

/// Prints a line for the user's eyes only.
pub fn note(line: Arguments) {
    if is_silent() {
        return;
    }
    // There is nowhere to complain.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a line of results, or returns why it cannot be.
macro_rules! put {
    ($($words:tt)*) => {
        $crate::cli::streams::print(format_args!($($words)*))?
    };
}

/// Prints a line on stderr, if that can be done.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::cli::streams::note(format_args!($($words)*))
    };
}

pub(crate) use {put, tell};
