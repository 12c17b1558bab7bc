//! The commands as users' scripts see them.

mod common;

use common::{SMALL, greedy_pde, start_long_run, stderr, write};
use greedy_pde::network_file;
use std::path::Path;

fn json(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The n of each row of a report.
fn numbers_of_neurons(report: &serde_json::Value) -> Vec<u64> {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().map(|row| row["n"].as_u64().unwrap()).collect()
}

#[test]
fn solve_prints_a_table_and_keeps_its_results() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(directory.path(), &["solve", "problem.toml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("L2 error") && table.contains("| 20 |"), "{table}");
    let run = directory.path().join("runs/small");
    for name in [
        "result.json",
        "history.csv",
        "network.safetensors",
        "checkpoint",
        "problem.toml",
    ] {
        assert!(run.join(name).exists(), "{name}");
    }
    let history = std::fs::read_to_string(run.join("history.csv")).unwrap();
    assert_eq!(history.lines().count(), 21);
    assert_eq!(std::fs::read_to_string(run.join("problem.toml")).unwrap(), SMALL);
    let (network, notes) = network_file::load(&run.join("network.safetensors")).unwrap();
    assert_eq!(network.len(), 20);
    assert_eq!(notes["problem"], "small");
    assert!((network.value(&[0.3]) - (0.3 * std::f64::consts::PI).cos()).abs() < 1e-2);
}

#[test]
fn json_is_one_object_with_the_agreed_keys() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let arguments = [
        "solve",
        "problem.toml",
        "--json",
        "--neurons",
        "12",
        "--seed",
        "7",
        "--cells",
        "150",
    ];
    let output = greedy_pde(directory.path(), &arguments);
    assert!(output.status.success());
    let report = json(&output);
    assert_eq!(report["problem"], "small");
    assert_eq!(report["algorithm"], "oga");
    assert_eq!(report["backend"], "cpu");
    assert!(report["adapter"].is_null());
    assert_eq!(report["precision"], "f64");
    assert_eq!(report["seed"], 7);
    assert_eq!(report["dimension"], 1);
    assert_eq!(report["points"], 300);
    assert_eq!(report["neurons"], 12);
    assert_eq!(report["stopped"], "neurons");
    assert_eq!(numbers_of_neurons(&report), [1, 2, 4, 8, 12]);
    for key in [
        "l2",
        "h1",
        "energy",
        "loss",
        "validation_loss",
        "score",
        "coefficient_l1",
        "seconds",
    ] {
        assert!(report["rows"][0][key].is_number(), "{key}");
    }
    for key in ["total", "points", "argmax", "refine", "projection", "errors"] {
        assert!(report["seconds"][key].is_number(), "{key}");
    }
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("runs/small/result.json")).unwrap())
            .unwrap();
    assert_eq!(kept, report);
}

#[test]
fn a_result_is_not_overwritten_unless_asked() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    assert!(
        greedy_pde(directory.path(), &["solve", "problem.toml", "-q"])
            .status
            .success()
    );
    let result = directory.path().join("runs/small/result.json");
    let before = std::fs::read(&result).unwrap();
    let refused = greedy_pde(directory.path(), &["solve", "problem.toml", "--neurons", "5"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--resume") && stderr(&refused).contains("--force"));
    assert_eq!(std::fs::read(&result).unwrap(), before);
    let forced = greedy_pde(
        directory.path(),
        &["solve", "problem.toml", "--neurons", "5", "--force", "--json"],
    );
    assert_eq!(json(&forced)["neurons"], 5);
}

fn network(directory: &Path) -> greedy_pde::network::Network {
    network_file::load(&directory.join("runs/small/network.safetensors"))
        .unwrap()
        .0
}

#[test]
fn a_shorter_run_is_resumed_to_the_same_network() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in [whole.path(), parts.path()] {
        write(directory, SMALL);
    }
    assert!(
        greedy_pde(whole.path(), &["solve", "problem.toml", "-q"])
            .status
            .success()
    );
    assert!(
        greedy_pde(parts.path(), &["solve", "problem.toml", "-q", "--neurons", "11"])
            .status
            .success()
    );
    let resumed = greedy_pde(
        parts.path(),
        &["solve", "problem.toml", "-q", "--resume", "--json"],
    );
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert_eq!(network(whole.path()), network(parts.path()));
    assert_eq!(numbers_of_neurons(&json(&resumed)), [1, 2, 4, 8, 16, 20]);
    let history = std::fs::read_to_string(parts.path().join("runs/small/history.csv")).unwrap();
    assert_eq!(history.lines().count(), 21);
}

#[test]
fn a_foreign_or_damaged_checkpoint_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    assert!(
        greedy_pde(directory.path(), &["solve", "problem.toml", "-q"])
            .status
            .success()
    );
    let other = greedy_pde(
        directory.path(),
        &["solve", "problem.toml", "--resume", "--cells", "50"],
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("other settings"), "{}", stderr(&other));
    std::fs::write(directory.path().join("runs/small/checkpoint"), b"rubbish").unwrap();
    let damaged = greedy_pde(directory.path(), &["solve", "problem.toml", "--resume"]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(
        stderr(&damaged).contains("not a network") && stderr(&damaged).contains("--force"),
        "{}",
        stderr(&damaged)
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_saves_its_state_and_exits_130() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start_long_run(directory.path(), 20);
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(directory.path().join("runs/small/checkpoint").exists());
    assert!(!directory.path().join("runs/small/result.json").exists());
}

#[test]
fn check_says_what_would_be_solved() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(directory.path(), &["check", "problem.toml", "--neurons", "9"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "(-1, 1)",
        "−Δu + u = f",
        "f such that u = cos(pi*x) solves it",
        "the flux is that of the exact solution on all of the boundary",
        "less than a second",
        "KiB for points",
        "200 in 1 term",
        "9 neurons",
        "candidates",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    assert!(!directory.path().join("runs").exists());
}

#[test]
fn check_rounds_what_it_shows() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &SMALL
            .replace("dimension = 1", "dimension = 2")
            .replace("cells = 100", "cells = 5"),
    );
    let output = greedy_pde(directory.path(), &["check", "problem.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("b in [-1.414, 1.414]"), "{text}");
}

#[test]
fn bench_measures_only_the_dimensions_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [
        "bench",
        "--dimensions",
        "2",
        "--points",
        "1000",
        "--directions",
        "1",
        "--json",
    ];
    let output = greedy_pde(directory.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let measured = json(&output);
    assert_eq!(measured["argmax"].as_array().unwrap().len(), 1);
    assert_eq!(measured["argmax"][0]["dimension"], 2);
    assert_eq!(measured["pass"].as_array().unwrap().len(), 0);
    assert!(!stderr(&output).contains("10-D"));
}

#[test]
fn a_dictionary_finer_than_its_quadrature_is_warned_about() {
    let directory = tempfile::tempdir().unwrap();
    let fine = SMALL.replace(
        "activation = \"relu^2\"",
        "activation = \"relu^2\"\noffsets = 1000",
    );
    write(directory.path(), &fine);
    let guarded = greedy_pde(directory.path(), &["check", "problem.toml"]);
    assert!(
        guarded.status.success() && !stderr(&guarded).contains("warning"),
        "{}",
        stderr(&guarded)
    );
    write(
        directory.path(),
        &fine.replace("neurons = 20", "neurons = 20\nguard = false"),
    );
    let bare = greedy_pde(directory.path(), &["check", "problem.toml"]);
    assert!(
        bare.status.success() && stderr(&bare).contains("closer than the 100 cells"),
        "{}",
        stderr(&bare)
    );
}

#[test]
fn reproduce_prints_ours_beside_the_papers() {
    let directory = tempfile::tempdir().unwrap();
    let output = greedy_pde(
        directory.path(),
        &["reproduce", "table01", "--max-neurons", "32", "-q"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["7.70e-5", "| 32 |", "ratio", "order"] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

#[test]
fn a_run_that_failed_at_once_does_not_occupy_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &SMALL.replace("cos(pi*x)", "sqrt(x)"));
    assert_eq!(
        greedy_pde(directory.path(), &["solve", "problem.toml"])
            .status
            .code(),
        Some(2)
    );
    write(directory.path(), SMALL);
    assert!(
        greedy_pde(directory.path(), &["solve", "problem.toml", "-q"])
            .status
            .success()
    );
}

#[test]
fn an_adapter_that_is_not_there_is_bad_input() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(
        directory.path(),
        &["solve", "problem.toml", "--adapter", "no such thing"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no GPU adapter named like `no such thing`"),
        "{}",
        stderr(&output)
    );
}
