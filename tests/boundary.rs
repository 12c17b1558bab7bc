//! What a boundary means: natural data of the exact solution, the conditions of order 4.

mod common;

use common::solve;
use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;

/// A problem from its parts.
fn problem(dimension: usize, equation: &str, boundary: &str, how: &str) -> Problem {
    let text =
        format!("name = \"t\"\n[domain]\ndimension = {dimension}\n[equation]\n{equation}\n{boundary}\n{how}");
    Problem::from_toml(&text, "t.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

const LINE: &str = "[dictionary]\nactivation = \"relu^3\"\n[quadrature]\nrule = \"gauss\"\ncells = 200\norder = 4\n\
                    [solver]\nneurons = 32\n";
const RESIDUAL_LINE: &str = "[dictionary]\nactivation = \"relu^6\"\n[quadrature]\nrule = \"gauss\"\ncells = 200\n\
                             order = 4\n[solver]\nneurons = 24\n";
const PLATE: &str = "[dictionary]\nactivation = \"relu^3\"\ncandidates = 40\n[quadrature]\nrule = \"gauss\"\n\
                     cells = 20\norder = 3\n[solver]\nneurons = 60\n";

/// The last L² error.
fn l2(problem: &Problem) -> f64 {
    let report = solve(problem);
    report.rows.last().unwrap().l2.unwrap()
}

fn network(problem: &Problem) -> Network {
    run(
        problem,
        &RunOptions::default(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap()
    .1
}

#[test]
fn without_a_boundary_table_the_flux_is_that_of_the_exact_solution() {
    let line = problem(1, "reaction = 1\nexact = \"sin(3*x)\"", "", LINE);
    assert!(l2(&line) < 1e-6, "{}", l2(&line));
    assert!(line.words.boundary[0].contains("that of the exact solution on all of the boundary"));
    let cube = problem(
        3,
        "reaction = 1\nexact = \"sin(x + 2*y) + z^2\"",
        "",
        "[dictionary]\nactivation = \"relu^2\"\ncandidates = 60\n[quadrature]\nrule = \"gauss\"\ncells = 8\n\
         [solver]\nneurons = 40\n",
    );
    assert!(l2(&cube) < 0.03, "{}", l2(&cube));
}

#[test]
fn faces_that_no_table_names_and_those_with_none_have_the_exact_flux() {
    for rest in [
        "",
        "[[boundary]]\ncondition = \"none\"\nfaces = [\"y-\", \"y+\"]\n",
    ] {
        let boundary = format!(
            "[[boundary]]\ncondition = \"dirichlet\"\npenalty = 1e-4\nfaces = [\"x-\", \"x[1]+\"]\n{rest}"
        );
        let square = problem(
            2,
            "exact = \"exp(x)*y^2\"",
            &boundary,
            &PLATE.replace("relu^3", "relu^2"),
        );
        assert!(l2(&square) < 0.01, "{}", l2(&square));
        assert!(
            square.words.boundary[1].contains("the flux is that of the exact solution on"),
            "{:?}",
            square.words.boundary
        );
    }
}

#[test]
fn without_an_exact_solution_the_flux_is_zero_and_said_to_be() {
    // u = cosh(1 − x)/cosh 1 where u(0) = 1 and the flux at 1 is 0.
    let line = problem(
        1,
        "reaction = 1\nsource = 0",
        "[boundary]\ncondition = \"dirichlet\"\nvalue = 1\npenalty = 1e-8\nfaces = [\"x-\"]\n",
        LINE,
    );
    assert!((network(&line).value(&[1.0]) - 1.0 / 1f64.cosh()).abs() < 1e-5);
    assert_eq!(
        line.words.boundary[1],
        "the flux is 0 on x[1]+, naturally: nothing to enforce"
    );
}

#[test]
fn a_simply_supported_beam_reaches_its_height() {
    let beam = |condition: &str| {
        problem(
            1,
            "order = 4\nsource = \"pi^4*sin(pi*x)\"",
            &format!("[boundary]\ncondition = \"{condition}\"\npenalty = \"1e-8\"\n"),
            LINE,
        )
    };
    for condition in ["simply_supported", "value"] {
        let supported = network(&beam(condition)).value(&[0.5]);
        assert!((supported - 1.0).abs() < 1e-5, "{condition}: {supported}");
    }
    // u = sin πx − πx(1 − x) has u = u' = 0 at both ends.
    let clamped = 1.0 - std::f64::consts::PI / 4.0;
    for condition in ["clamped", "dirichlet"] {
        let height = network(&beam(condition)).value(&[0.5]);
        assert!((height - clamped).abs() < 1e-5, "{condition}: {height}");
    }
    // That `dirichlet` clamps is said before and after a run.
    let warning = &beam("dirichlet").warnings[0];
    assert!(
        warning.contains("clamped") && warning.contains("simply_supported"),
        "{warning}"
    );
    assert!(beam("dirichlet").words.boundary[0].starts_with("clamped: the value is 0 and the normal"));
    assert!(beam("clamped").warnings.is_empty());
}

/// Conditions at the ends of a beam that make its problem well-posed.
const BEAMS: [&str; 6] = [
    "[boundary]\ncondition = \"clamped\"\nP\n",
    "[boundary]\ncondition = \"simply_supported\"\nP\n",
    "[[boundary]]\ncondition = \"clamped\"\nfaces = [\"x-\"]\nP\n[[boundary]]\ncondition = \"free\"\nfaces = [\"x+\"]\n",
    "[[boundary]]\ncondition = \"value\"\nP\n[[boundary]]\ncondition = \"slope\"\nP\n",
    "[[boundary]]\ncondition = \"slope\"\nfaces = [\"x-\"]\nP\n[[boundary]]\ncondition = \"value\"\nfaces = [\"x+\"]\nP\n",
    "[[boundary]]\ncondition = \"clamped\"\nfaces = [\"x+\"]\nP\n",
];

#[test]
fn beams_of_all_kinds_in_energy_form() {
    for boundary in BEAMS {
        let beam = problem(
            1,
            "order = 4\ndiffusion = \"1 + x\"\nexact = \"exp(x)*sin(2*x) + x^3\"",
            &boundary.replace('P', "penalty = 1e-8"),
            LINE,
        );
        assert!(l2(&beam) < 2e-5, "{boundary}: {}", l2(&beam));
    }
}

#[test]
fn beams_of_all_kinds_in_residual_form() {
    // A residual has no natural conditions: each end says two things.
    let whole = BEAMS[..4].iter().map(|boundary| boundary.to_string());
    let sliding = "[[boundary]]\ncondition = \"clamped\"\nfaces = [\"x-\"]\n\
                   [[boundary]]\ncondition = \"simply_supported\"\nfaces = [\"x+\"]\nmoment = \"exp(1)*(4*cos(2) - 3*sin(2)) + 6\"\n";
    for boundary in whole.chain([sliding.to_string()]) {
        let beam = problem(
            1,
            "formulation = \"residual\"\noperator = \"bilaplacian(u)\"\nexact = \"exp(x)*sin(2*x) + x^3\"",
            &boundary.replace('P', ""),
            RESIDUAL_LINE,
        );
        assert!(beam.warnings.is_empty(), "{:?}", beam.warnings);
        assert!(l2(&beam) < 1e-3, "{boundary}: {}", l2(&beam));
    }
}

#[test]
fn plates_of_all_kinds_in_energy_form() {
    let exact = "order = 4\nreaction = 1\nexact = \"sin(pi*x)*cos(2*y) + x*y^2\"";
    let mixed = "[[boundary]]\ncondition = \"clamped\"\nfaces = [\"x-\", \"x+\"]\npenalty = 1e-5\n\
                 [[boundary]]\ncondition = \"simply_supported\"\nfaces = [\"y-\"]\npenalty = 1e-5\n\
                 [[boundary]]\ncondition = \"slope\"\nfaces = [\"y+\"]\npenalty = 1e-5\n";
    for boundary in [
        "[boundary]\ncondition = \"clamped\"\npenalty = 1e-5\n",
        "[boundary]\ncondition = \"simply_supported\"\npenalty = 1e-5\n",
        "[boundary]\ncondition = \"free\"\n",
        mixed,
        "",
    ] {
        let plate = problem(2, exact, boundary, PLATE);
        assert!(l2(&plate) < 0.02, "{boundary}: {}", l2(&plate));
    }
}

#[test]
fn plates_in_residual_form() {
    let how = PLATE
        .replace("relu^3", "relu^5")
        .replace("cells = 20", "cells = 10");
    for condition in ["clamped", "simply_supported"] {
        let plate = problem(
            2,
            "formulation = \"residual\"\noperator = \"bilaplacian(u)\"\nexact = \"sin(2*x)*cos(y)\"",
            &format!("[boundary]\ncondition = \"{condition}\"\nweight = \"100\"\n"),
            &how,
        );
        assert!(l2(&plate) < 0.02, "{condition}: {}", l2(&plate));
    }
}

#[test]
fn a_disk_can_be_clamped() {
    let text = |condition| {
        format!(
            "name = \"t\"\n[domain]\nshape = \"ball\"\ndimension = 2\n[equation]\norder = 4\n\
             exact = \"(1 - x^2 - y^2)^2\"\n[boundary]\ncondition = \"{condition}\"\npenalty = 1e-6\n{}",
            PLATE.replace("cells = 20", "cells = 12")
        )
    };
    for condition in ["clamped", "simply_supported"] {
        let disk = Problem::from_toml(&text(condition), "t.toml", &Overrides::default()).unwrap();
        assert!(l2(&disk) < 0.02, "{condition}: {}", l2(&disk));
    }
}

/// The message for a boundary that makes no sense.
fn refused(equation: &str, boundary: &str) -> String {
    let text = format!("name = \"t\"\n[domain]\ndimension = 1\n[equation]\n{equation}\n{boundary}\n{LINE}");
    let error = Problem::from_toml(&text, "t.toml", &Overrides::default()).unwrap_err();
    error.to_string()
}

#[test]
fn conditions_that_do_not_fit_are_refused() {
    let second = "reaction = 1\nsource = 1";
    let fourth = "order = 4\nsource = 1";
    let clamped = "[boundary]\ncondition = \"clamped\"\npenalty = 1e-4\n";
    assert!(refused(second, clamped).contains("conditions of order 4"));
    assert!(refused(second, "[boundary]\ncondition = \"slope\"\n").contains("neumann"));
    assert!(refused(fourth, &format!("{clamped}moment = 1\n")).contains("no use for `moment`"));
    let free = "[boundary]\ncondition = \"free\"\nvalue = 1\n";
    assert!(refused(fourth, free).contains("only be taken from `exact`"));
    assert!(refused(second, "[boundary]\ncondition = \"none\"\nvalue = 1\n").contains("no use for `value`"));
    let twice = "[[boundary]]\ncondition = \"clamped\"\nfaces = [\"x-\"]\npenalty = 1e-4\n\
                 [[boundary]]\ncondition = \"slope\"\nfaces = [\"x-\"]\npenalty = 1e-4\n";
    assert!(refused(fourth, twice).contains("the face x[1]- already has a condition"));
}

#[test]
fn a_residual_with_too_few_conditions_says_so() {
    let warnings = |boundary: &str| {
        problem(
            1,
            "formulation = \"residual\"\noperator = \"-laplacian(u) + u\"\nexact = \"exp(-x)\"",
            boundary,
            LINE,
        )
        .warnings
    };
    let one = warnings("[boundary]\ncondition = \"dirichlet\"\nfaces = [\"x-\"]\n");
    assert!(
        one[0].contains("needs 2 conditions") && one[0].contains("has 1"),
        "{one:?}"
    );
    assert!(warnings("[boundary]\ncondition = \"dirichlet\"\n").is_empty());
    // Value and slope at one end determine the solution, too.
    assert!(warnings("[boundary]\ncondition = \"clamped\"\nfaces = [\"x-\"]\n").is_empty());
}
