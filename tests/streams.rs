//! Stdout and stderr that are closed or full, and input that is too much.

#![cfg(unix)]

mod common;

use common::{SMALL, greedy_pde, stderr, write};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn with_streams(directory: &Path, arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(arguments)
        .current_dir(directory)
        .stdout(stdout)
        .stderr(stderr)
        .output()
        .unwrap()
}

/// Where no byte fits.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

const PRINTING: [&[&str]; 6] = [
    &["check", "problem.toml"],
    &["solve", "problem.toml", "--force"],
    &["solve", "problem.toml", "--force", "--json"],
    &["completions", "bash"],
    &["devices"],
    &["reproduce", "table01", "--max-neurons", "16", "-q"],
];

#[test]
fn a_reader_that_has_had_enough_ends_the_program_quietly() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    for arguments in PRINTING {
        let output = with_streams(directory.path(), arguments, closed(), Stdio::piped());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {message}");
        assert!(
            !message.contains("panicked") && !message.contains("error"),
            "{message}"
        );
    }
    assert!(directory.path().join("runs/small/report.html").exists());
}

#[test]
fn results_that_cannot_be_printed_are_an_error_without_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    for arguments in PRINTING {
        let output = with_streams(directory.path(), arguments, full(), Stdio::piped());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(
            message.contains("the results cannot be printed") && !message.contains("panicked"),
            "{message}"
        );
    }
    assert!(directory.path().join("runs/small/result.json").exists());
}

#[test]
fn words_that_nobody_can_read_do_not_stop_a_run() {
    for stream in [full, closed] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), SMALL);
        let arguments = ["solve", "problem.toml", "--verbose"];
        let output = with_streams(directory.path(), &arguments, Stdio::piped(), stream());
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("| 20 |"));
        assert!(directory.path().join("runs/small/result.json").exists());
        let nothing = with_streams(directory.path(), &["check", "no.toml"], Stdio::piped(), stream());
        assert_eq!(nothing.status.code(), Some(2));
    }
}

#[test]
fn too_many_threads_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(
        directory.path(),
        &["solve", "problem.toml", "--threads", "100000"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("at most 1024 threads"),
        "{}",
        stderr(&output)
    );
    let by_variable = Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(["solve", "problem.toml", "-q"])
        .env("RAYON_NUM_THREADS", "100000")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(2));
    assert!(
        stderr(&by_variable).contains("RAYON_NUM_THREADS=100000: at most 1024 threads"),
        "{}",
        stderr(&by_variable)
    );
}

/// A formula of 20,000 parts joined by these operators, which is 1 all the same.
fn long_formula(first: &str, part: &str) -> String {
    format!("{first}{}", part.repeat(20_000))
}

#[test]
fn long_formulas_do_not_overflow_the_stack() {
    let directory = tempfile::tempdir().unwrap();
    let formulas = [
        (
            "exact",
            long_formula("1 + 20000*cos(pi*x)", " - 0.5*cos(pi*x) - 0.5*cos(pi*x)"),
        ),
        ("diffusion", long_formula("1", " + 1e-9*x - 1e-9*x")),
        ("reaction", long_formula("1", " * (2 + x) / (2 + x)")),
        ("reaction", format!("max(1{})", ", min(x, 1) - 1".repeat(10_000))),
    ];
    for (key, formula) in formulas {
        let text = match key {
            "exact" => SMALL.replace("exact = \"cos(pi*x)\"", &format!("exact = \"{formula}\"")),
            _ => SMALL.replace(&format!("{key} = \"1\""), &format!("{key} = \"{formula}\"")),
        };
        write(directory.path(), &text.replace("cells = 100", "cells = 20"));
        let output = greedy_pde(
            directory.path(),
            &["solve", "problem.toml", "--force", "--neurons", "3", "-q"],
        );
        let start = &formula[..20];
        assert!(output.status.success(), "{start} …: {}", stderr(&output));
    }
}
