//! A run killed at any moment goes on to the same network, bit for bit.

mod common;

use common::{SMALL, greedy_pde, stderr, write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kills per problem.
const KILLS: u64 = 5;

fn network(directory: &Path) -> Option<Vec<u8>> {
    std::fs::read(directory.join("runs/small/network.safetensors")).ok()
}

/// Kills a run of the problem at random moments, resumes each, and compares.
fn check(text: &str) {
    let whole = tempfile::tempdir().unwrap();
    write(whole.path(), text);
    let started = Instant::now();
    let output = greedy_pde(whole.path(), &["solve", "problem.toml", "-q", "--no-report"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let duration = started.elapsed();
    let expected = network(whole.path()).unwrap();
    let mut resumed_in_the_middle = 0;
    for kill in 0..KILLS {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), text);
        // Spread over the run; where exactly, chance and the machine's load decide.
        let part = (kill as f64 + 0.3 + 0.6 * f64::from(std::process::id() % 97) / 97.0) / KILLS as f64;
        resumed_in_the_middle += usize::from(kill_after(directory.path(), duration.mul_f64(part)));
        // And once more, soon after it has gone on.
        kill_after(directory.path(), duration.mul_f64(0.2));
        let output = greedy_pde(directory.path(), &arguments(directory.path()));
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            network(directory.path()).unwrap() == expected,
            "kill {kill}, after {part:.2} of the run: another network"
        );
        let left: Vec<_> = std::fs::read_dir(directory.path().join("runs/small"))
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with('.')
            })
            .collect();
        assert!(left.is_empty(), "half-written files are left: {left:?}");
    }
    assert!(resumed_in_the_middle > 0, "no run was killed in its middle");
}

/// A run is resumed where there is one: a kill may come before anything was written.
fn arguments(directory: &Path) -> Vec<&'static str> {
    let resume = directory
        .join("runs/small/checkpoint")
        .exists()
        .then_some("--resume");
    ["solve", "problem.toml", "-q", "--no-report"]
        .into_iter()
        .chain(resume)
        .collect()
}

/// Starts or resumes a run and kills it with no warning; whether a checkpoint was there by then.
fn kill_after(directory: &Path, time: Duration) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(arguments(directory))
        .current_dir(directory)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(time);
    // SIGKILL on Unix.
    child.kill().unwrap();
    child.wait().unwrap();
    directory.join("runs/small/checkpoint").exists() && network(directory).is_none()
}

#[test]
fn orthogonal_greedy_by_cholesky() {
    check(
        &SMALL
            .replace("cells = 100", "cells = 20000")
            .replace("neurons = 20", "neurons = 300"),
    );
}

#[test]
fn orthogonal_greedy_with_a_penalty() {
    check(
        &SMALL
            .replace(
                "condition = \"neumann\"",
                "condition = \"dirichlet\"\npenalty = \"1e-4\"",
            )
            .replace("cells = 100", "cells = 2000")
            .replace("neurons = 20", "neurons = 200"),
    );
}

#[test]
fn random_directions_with_the_guard() {
    check(
        &SMALL
            .replace("dimension = 1", "dimension = 3")
            .replace("cos(pi*x)", "cos(pi*x)*cos(pi*y)*cos(pi*z)")
            .replace("cells = 100", "cells = 14")
            .replace(
                "activation = \"relu^2\"",
                "activation = \"relu^2\"\ncandidates = 60\nrefine = true",
            )
            .replace("neurons = 20", "neurons = 60"),
    );
}

#[test]
fn gradients_from_many_points_and_inner_products_from_few() {
    check(
        &SMALL
            .replace("dimension = 1", "dimension = 2")
            .replace("cos(pi*x)", "cos(pi*x)*cos(pi*y)")
            .replace("cells = 100", "cells = 120\ncurvature = 30")
            .replace(
                "activation = \"relu^2\"",
                "activation = \"relu^2\"\ncandidates = 32",
            )
            .replace("neurons = 20", "neurons = 90"),
    );
}

fn on_a_square_with_a_potential() -> String {
    SMALL
        .replace("dimension = 1", "dimension = 2")
        .replace("reaction = \"1\"", "potential = \"cosh(u)\"")
        .replace("cos(pi*x)", "cos(pi*x)*cos(pi*y)")
}

#[test]
fn relaxed_greedy_with_a_potential() {
    check(
        &on_a_square_with_a_potential()
            .replace(
                "activation = \"relu^2\"",
                "activation = \"sigmoid\"\ndirections = \"box\"\nweights = [-8.0, 8.0]\ncandidates = 24\noffsets = 24",
            )
            .replace("rule = \"gauss\"\ncells = 100", "rule = \"monte_carlo\"\npoints = 20000")
            .replace("neurons = 20", "algorithm = \"rga\"\nradius = 8.0\nneurons = 150"),
    );
}

#[test]
fn orthogonal_greedy_with_newtons_method() {
    check(
        &on_a_square_with_a_potential()
            .replace(
                "activation = \"relu^2\"",
                "activation = \"relu^2\"\ncandidates = 40",
            )
            .replace("cells = 100", "cells = 30")
            .replace("neurons = 20", "neurons = 70"),
    );
}

#[test]
fn a_resumed_run_has_the_estimate_of_one_that_was_not_interrupted() {
    use greedy_pde::results::{Existing, ResultDirectory};
    let text = "name = \"estimated\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
        exact = \"cos(pi*x)\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
        [quadrature]\nrule = \"gauss\"\ncells = 100\n[solver]\nneurons = 24\n";
    let problem =
        greedy_pde::problem::Problem::from_toml(text, "estimated.toml", &Default::default()).unwrap();
    let solve = |path: &std::path::Path, existing: Existing, most: usize| {
        let mut directory = ResultDirectory::open(path, &problem, text, existing).unwrap();
        let options = greedy_pde::run::RunOptions::default();
        let observer = &mut |event: &greedy_pde::run::Event| match event {
            greedy_pde::run::Event::Step(step) if step.row.n == most => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        };
        directory.run(&problem, &options, observer).unwrap().0
    };
    let folder = tempfile::tempdir().unwrap();
    let (whole, halves) = (folder.path().join("whole"), folder.path().join("halves"));
    let expected = solve(&whole, Existing::Refuse, usize::MAX).estimate.unwrap();
    solve(&halves, Existing::Refuse, 20);
    let resumed = solve(&halves, Existing::Resume, usize::MAX).estimate.unwrap();
    assert!((resumed.h1 - expected.h1).abs() <= 1e-9 * expected.h1);
}

/// Sums in other numbers round differently: a run that goes on elsewhere than it began says so.
#[test]
fn a_run_that_goes_on_in_other_numbers_says_so() {
    use greedy_pde::results::{Existing, ResultDirectory};
    use greedy_pde::run::{Event, RunOptions};
    use greedy_pde::sums::PrecisionChoice;
    let problem = greedy_pde::problem::Problem::from_toml(SMALL, "small.toml", &Default::default()).unwrap();
    let solve = |path: &Path, existing: Existing, precision: PrecisionChoice, most: usize| {
        let mut directory = ResultDirectory::open(path, &problem, SMALL, existing).unwrap();
        let options = RunOptions {
            precision,
            ..RunOptions::default()
        };
        let observer = &mut |event: &Event| match event {
            Event::Step(step) if step.row.n == most => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        };
        let warnings = directory.run(&problem, &options, observer).unwrap().0.warnings;
        warnings
            .iter()
            .any(|text| text.contains("this run began on the cpu (f64)"))
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, precision) in [
        ("same", PrecisionChoice::Auto),
        ("other", PrecisionChoice::Integer),
    ] {
        let path = folder.path().join(name);
        assert!(!solve(&path, Existing::Refuse, PrecisionChoice::Auto, 5));
        assert_eq!(
            solve(&path, Existing::Resume, precision, usize::MAX),
            precision == PrecisionChoice::Integer
        );
    }
}
