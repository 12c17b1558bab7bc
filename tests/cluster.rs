//! The program by `mpirun`: the same bytes, and the same end, from any number of processes.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROBLEM: &str = "name = \"cluster\"\n[domain]\ndimension = 2\n[equation]\nreaction = \"1\"\n\
    exact = \"cos(pi*x)*cos(2*pi*y)\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
    [quadrature]\nrule = \"gauss\"\ncells = 60\n[solver]\nneurons = 24\n";

/// `greedy-pde solve` on the CPU by so many processes; without MPI by none.
fn solve(folder: &Path, ranks: usize, problem: &str, more: &[&str]) -> Command {
    solve_on("cpu", folder, ranks, problem, more)
}

fn solve_on(backend: &str, folder: &Path, ranks: usize, problem: &str, more: &[&str]) -> Command {
    let file = folder.join("problem.toml");
    std::fs::write(&file, problem).unwrap();
    let mut command = by_processes(ranks);
    command.arg("solve").arg(file);
    command.args(["--backend", backend, "--threads", "1", "--no-report", "--output"]);
    command.arg(folder.join("run")).args(more);
    command.stdin(Stdio::null());
    command
}

/// The program by so many processes.
fn by_processes(ranks: usize) -> Command {
    let program = env!("CARGO_BIN_EXE_greedy-pde");
    if ranks == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--quiet", "-n"]);
    command.arg(ranks.to_string()).arg(program);
    command
}

fn network(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("run/network.safetensors")).unwrap()
}

fn done(output: Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The network of a run without MPI.
fn expected() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    done(solve(folder.path(), 0, PROBLEM, &[]).output().unwrap());
    network(folder.path())
}

#[test]
fn the_bytes_are_those_of_one_process() {
    let expected = expected();
    for ranks in 1..=4 {
        let folder = tempfile::tempdir().unwrap();
        let output = solve(folder.path(), ranks, PROBLEM, &[]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr)
            .matches("results are in")
            .count();
        done(output);
        assert_eq!(told, 1, "{ranks} processes");
        assert_eq!(network(folder.path()), expected, "{ranks} processes");
        let result = std::fs::read_to_string(folder.path().join("run/result.json")).unwrap();
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["ranks"], ranks);
    }
}

/// Steps in time, values that multipliers hold, neurons that come on the way.
#[test]
fn a_flow_is_shared() {
    let problem = PROBLEM
        .replace("cos(pi*x)*cos(2*pi*y)", "exp(-t)*sin(pi*x)*sin(2*pi*y)")
        .replace("neumann", "dirichlet")
        + "[time]\nend = 0.2\nsteps = 20\nsave_every = 5\n";
    let folder = tempfile::tempdir().unwrap();
    done(solve(folder.path(), 0, &problem, &[]).output().unwrap());
    let (last, frames) = (network(folder.path()), frames(folder.path()));
    for ranks in [2, 3] {
        let folder = tempfile::tempdir().unwrap();
        done(solve(folder.path(), ranks, &problem, &[]).output().unwrap());
        assert_eq!(network(folder.path()), last, "{ranks} processes");
        assert_eq!(self::frames(folder.path()), frames, "{ranks} processes");
    }
}

fn frames(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("run/frames.safetensors")).unwrap()
}

#[test]
fn an_error_of_the_last_process_ends_all_with_one_message() {
    // Not a number near the last points only.
    let problem = PROBLEM.replace("\"1\"", "\"1 + 1e-9*sqrt(1.99 - x - y)\"");
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let output = solve(folder.path(), 4, &problem, &[]).output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("NaN at x ="), "{said}");
}

/// Whole numbers add up to the same in any order, by the CPU or by adapters: each process has one of its own, or all the
/// same one, here one that runs on the CPU. Points on the boundary are few, so that some processes have none.
#[test]
fn whole_numbers_are_those_of_one_process() {
    let small = PROBLEM
        .replace("cells = 60", "cells = 40")
        .replace("cos(pi*x)*cos(2*pi*y)", "sin(pi*x)*sin(2*pi*y)")
        .replace("\"neumann\"", "\"dirichlet\"\npenalty = 0.01")
        .replace("neurons = 24", "neurons = 6");
    let solved = |backend: &str, ranks: usize| {
        let folder = tempfile::tempdir().unwrap();
        let precision = ["--precision", "integer"];
        let mut command = solve_on(backend, folder.path(), ranks, &small, &precision);
        done(command.output().unwrap());
        let result = std::fs::read_to_string(folder.path().join("run/result.json")).unwrap();
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["backend"], backend);
        assert_eq!(result["precision"], "integer");
        network(folder.path())
    };
    let expected = solved("cpu", 0);
    for ranks in 1..=4 {
        assert!(solved("cpu", ranks) == expected, "{ranks} processes");
    }
    for ranks in [0, 2, 3] {
        assert!(
            solved("gpu", ranks) == expected,
            "{ranks} processes with adapters"
        );
    }
}

/// The other commands that solve: told once, and the same figures as from one process.
#[test]
fn tables_and_benchmarks_are_shared() {
    let by = |ranks: usize, arguments: &str| {
        let mut command = by_processes(ranks);
        let output = command
            .args(arguments.split(' '))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout.clone()).unwrap();
        done(output);
        told
    };
    let table = "reproduce table01 --max-neurons 32 --threads 1 -q";
    // All but the time it took.
    let figures = |ranks: usize| -> Vec<String> {
        let told = by(ranks, table);
        let rows = told.lines().filter(|line| line.starts_with('|'));
        rows.map(str::to_string).collect()
    };
    let alone = figures(0);
    assert!(alone.iter().any(|row| row.starts_with("| 32 |")), "{alone:?}");
    assert_eq!(figures(2), alone);
    let pass = "bench cluster --pass-points 60000 --threads 1 --json";
    let scaling: serde_json::Value = serde_json::from_str(&by(2, pass)).unwrap();
    assert!(scaling["bandwidth"].as_f64().unwrap() > 0.0);
    assert_eq!(scaling["measurements"].as_array().unwrap().len(), 8);
}

#[test]
fn bad_input_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let problem = PROBLEM.replace("relu^2", "relu^^2");
    let output = solve(folder.path(), 3, &problem, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn a_killed_process_ends_the_job_and_another_number_goes_on() {
    let long = PROBLEM.replace("neurons = 24", "neurons = 80");
    let folder = tempfile::tempdir().unwrap();
    let mut job = solve(folder.path(), 3, &long, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let history = folder.path().join("run/history.csv");
    let lines = || std::fs::read_to_string(&history).map_or(0, |text| text.lines().count());
    let started = Instant::now();
    while lines() < 8 {
        assert!(started.elapsed() < Duration::from_secs(60), "no step was taken");
        assert!(job.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(400));
    let victim = last_child(job.id());
    assert!(
        Command::new("kill")
            .args(["-9", &victim.to_string()])
            .status()
            .unwrap()
            .success()
    );
    let killed = Instant::now();
    assert!(!job.wait().unwrap().success());
    assert!(killed.elapsed() < Duration::from_secs(10));
    assert!(!folder.path().join("run/network.safetensors").exists());
    done(solve(folder.path(), 2, &long, &["--resume"]).output().unwrap());
    let whole = tempfile::tempdir().unwrap();
    done(solve(whole.path(), 0, &long, &[]).output().unwrap());
    assert_eq!(network(folder.path()), network(whole.path()));
}

/// The last process that another one started.
fn last_child(parent: u32) -> u32 {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name, in brackets, may have spaces.
        let after = stat.rsplit(')').next().unwrap_or_default();
        let of_parent = after.split_whitespace().nth(1).and_then(|id| id.parse().ok()) == Some(parent);
        let is_ours = stat.contains("(greedy-pde)");
        if let (true, Some(id)) = (of_parent && is_ours, stat.split(' ').next()) {
            children.push(id.parse().unwrap());
        }
    }
    children.sort_unstable();
    *children.last().expect("mpirun has children")
}
