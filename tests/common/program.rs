//! The program as a user runs it.

use super::{long, write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Runs `greedy-pde` with these arguments in a directory.
pub fn greedy_pde(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Starts a run of the long problem and waits until it has taken some steps.
pub fn start_long_run(directory: &Path, steps: usize) -> Child {
    write(directory, &long());
    start_run(directory, &[], steps)
}

/// Starts a run of the problem in a directory and waits until its history has so many lines.
pub fn start_run(directory: &Path, more: &[&str], steps: usize) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(["solve", "problem.toml", "-q"])
        .args(more)
        .current_dir(directory)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let history = directory.join("runs/small/history.csv");
    while std::fs::read_to_string(&history).map_or(0, |text| text.lines().count()) < steps {
        std::thread::sleep(Duration::from_millis(2));
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
    }
    child
}
