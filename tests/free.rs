//! Equations that leave something free: a constant with fluxes all around, an affine function on a free plate.

mod common;

use common::laws::{self, check_laws};
use common::{greedy_pde, solve, stderr};
use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::report::Report;
use greedy_pde::run::{RunOptions, run};
use greedy_pde::sums::{CpuOptions, CpuSums, PinnedSums, Sums};
use std::ops::ControlFlow;

fn text(dimension: usize, equation: &str, boundary: &str, activation: &str) -> String {
    let cells = if dimension == 1 { 200 } else { 16 };
    format!(
        "name = \"t\"\n[domain]\ndimension = {dimension}\n[equation]\n{equation}\n{boundary}\n[dictionary]\n\
         activation = \"{activation}\"\ncandidates = 40\n[quadrature]\nrule = \"gauss\"\ncells = {cells}\n\
         order = 3\n[solver]\nneurons = 40\n"
    )
}

fn problem(text: &str) -> Problem {
    Problem::from_toml(text, "t.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn solved(problem: &Problem) -> (Report, Network) {
    run(
        problem,
        &RunOptions::default(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap()
}

const FLUX: &str = "[boundary]\ncondition = \"neumann\"\n";

#[test]
fn data_that_do_work_on_the_free_constant_have_no_solution() {
    let directory = tempfile::tempdir().unwrap();
    common::write(directory.path(), &text(2, "source = 1", FLUX, "relu^2"));
    for command in ["solve", "check"] {
        let output = greedy_pde(directory.path(), &[command, "problem.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        for words in ["problem.toml:5:", "there is no solution", "∫f + ∫g = 0"] {
            assert!(stderr(&output).contains(words), "{}", stderr(&output));
        }
    }
    let fourth = text(1, "order = 4\nsource = \"x - 0.5\"", "", "relu^3");
    let error = Problem::from_toml(&fourth, "t.toml", &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("an affine function"), "{error}");
}

#[test]
fn compatible_data_give_the_solution_of_mean_zero() {
    let square = problem(&text(2, "source = \"cos(pi*x)\"", FLUX, "relu^2"));
    let (report, network) = solved(&square);
    assert!(
        report.warnings[0].contains("free up to a constant"),
        "{:?}",
        report.warnings
    );
    let pi = std::f64::consts::PI;
    // −Δu = cos πx: u = cos(πx)/π².
    for (x, y) in [(0.1, 0.2), (0.5, 0.9), (0.8, 0.4)] {
        let error = network.value(&[x, y]) - (pi * x).cos() / (pi * pi);
        assert!(error.abs() < 3e-3, "{error} at ({x}, {y})");
    }
    let check = square.words.boundary.join("\n");
    assert!(
        check.contains("u is free up to a constant: fixed by mean 0"),
        "{check}"
    );
}

#[test]
fn errors_are_measured_up_to_what_is_free() {
    for shift in ["", " + 5", " - 1000"] {
        let line = problem(&text(
            1,
            &format!("exact = \"exp(x)*sin(3*x){shift}\""),
            FLUX,
            "relu^2",
        ));
        let report = solve(&line);
        let row = report.rows.last().unwrap();
        assert!(
            row.l2.unwrap() < 1e-5 && row.h1.unwrap() < 2e-3,
            "{shift}: {row:?}"
        );
    }
}

#[test]
fn a_beam_that_nothing_holds_is_free_up_to_an_affine_function() {
    let line = problem(&text(
        1,
        "order = 4\nexact = \"sin(4*x) + 3*x - 7\"",
        "",
        "relu^3",
    ));
    assert_eq!(line.kernel.functions.len(), 2);
    let (report, network) = solved(&line);
    assert!(
        report.rows.last().unwrap().h1.unwrap() < 1e-3,
        "{:?}",
        report.rows.last()
    );
    // Mean slope 0: the ends are at one height.
    assert!((network.value(&[1.0]) - network.value(&[0.0])).abs() < 1e-3);
    // A hinge at one end leaves the rotation about it.
    let hinge = "[boundary]\ncondition = \"value\"\nfaces = [\"x-\"]\npenalty = 1e-6\n";
    let hinged = problem(&text(1, "order = 4\nexact = \"sin(4*x) + 3*x\"", hinge, "relu^3"));
    assert_eq!(hinged.kernel.functions.len(), 1);
    assert!(solve(&hinged).rows.last().unwrap().h1.unwrap() < 1e-2);
}

#[test]
fn a_residual_with_slopes_only_is_free_up_to_a_constant_too() {
    let equation = "formulation = \"residual\"\noperator = \"-laplacian(u)\"\nexact = \"cos(3*x) + 4\"";
    let line = problem(&text(1, equation, FLUX, "relu^4"));
    assert!(
        line.warnings[0].contains("free up to a constant"),
        "{:?}",
        line.warnings
    );
    let report = solve(&line);
    assert!(
        report.rows.last().unwrap().l2.unwrap() < 1e-3,
        "{:?}",
        report.rows.last()
    );
}

#[test]
fn sums_with_functionals_obey_the_laws() {
    let square = problem(&text(2, "exact = \"cos(x*y)\"", FLUX, "relu^3"));
    let sums = |loss| -> Box<dyn Sums> {
        let options = CpuOptions { cache_bytes: 1 << 30 };
        Box::new(CpuSums::new(loss, square.dictionary.activation, options).unwrap())
    };
    let loss = sums(square.loss(8, Purpose::Training).unwrap());
    let functionals = square.functionals(Purpose::Training).unwrap();
    let functionals: Vec<Box<dyn Sums>> = functionals.into_iter().map(sums).collect();
    assert_eq!(functionals.len(), 1);
    let pinned = PinnedSums::new(loss, functionals, square.kernel.stiffness, 2);
    let activation = square.dictionary.activation;
    check_laws(&pinned, &laws::network(activation, 2), &laws::grid(activation, 2));
}

#[test]
fn what_is_held_somewhere_is_not_free() {
    for (equation, boundary) in [
        ("reaction = 1\nexact = \"x^2\"", FLUX),
        ("reaction = \"max(x - 0.9, 0)\"\nexact = \"x^2\"", FLUX),
        ("reaction = 1e-9\nexact = \"x^2\"", FLUX),
        ("potential = \"u^4\"\nexact = \"x^2\"", FLUX),
        (
            "exact = \"x^2\"",
            "[boundary]\ncondition = \"dirichlet\"\npenalty = 1e-9\nfaces = [\"x-\"]\n",
        ),
        (
            "order = 4\nexact = \"x^2\"",
            "[boundary]\ncondition = \"value\"\npenalty = 1e-9\n",
        ),
    ] {
        let line = problem(&text(1, equation, boundary, "relu^3"));
        assert!(line.kernel.is_empty(), "{equation}");
    }
}
