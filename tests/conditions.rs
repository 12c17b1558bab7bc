//! Dirichlet without a penalty, Robin, periodic conditions, jumping coefficients and measurements.

mod common;

use common::{rate, row, solve};
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;

fn problem(dimension: usize, equation: &str, boundary: &str, rest: &str) -> Problem {
    let text = format!(
        "name = \"c\"\n[domain]\ndimension = {dimension}\n[equation]\n{equation}\n{boundary}\n[dictionary]\nactivation = \"relu^3\"\n\
         {rest}\n"
    );
    Problem::from_toml(&text, "tests/data/problem.toml", &Overrides::default()).unwrap()
}

const LINE: &str = "[quadrature]\nrule = \"gauss\"\ncells = 400\norder = 3\n[solver]\nneurons = 64";
const SQUARE: &str = "[quadrature]\nrule = \"gauss\"\ncells = 50\norder = 3\n[solver]\nneurons = 64";

/// One run serves every n: the errors fall with the rate of a natural condition down to rounding.
#[test]
fn a_value_is_held_without_a_penalty() {
    let equation = "exact = \"sin(3*x) + x\"";
    let held = problem(1, equation, "[boundary]\ncondition = \"dirichlet\"", LINE);
    assert!(!held.depends_on_neurons());
    let held = solve(&held);
    let natural = solve(&problem(
        1,
        &format!("reaction = \"1\"\n{equation}"),
        "[boundary]\ncondition = \"neumann\"",
        LINE,
    ));
    let (held_h1, natural_h1) = (row(&held, 64).h1.unwrap(), row(&natural, 64).h1.unwrap());
    assert!(held_h1 < 2.0 * natural_h1, "{held_h1} {natural_h1}");
    assert!(rate(&held.rows, 8, |row| row.h1) > 2.5);
    // A penalty of a fixed strength stays where it is.
    let penalty = solve(&problem(
        1,
        equation,
        "[boundary]\ncondition = \"dirichlet\"\npenalty = 1e-2",
        LINE,
    ));
    assert!(row(&penalty, 64).h1.unwrap() > 1e3 * held_h1);
}

#[test]
fn a_value_is_held_on_an_l_shape_with_a_rate() {
    let text = std::fs::read_to_string("configs/lshape.toml").unwrap();
    let text = text
        .replace("cells = 160", "cells = 80")
        .replace("neurons = 128", "neurons = 64");
    let report = solve(&Problem::from_toml(&text, "configs/l.toml", &Overrides::default()).unwrap());
    assert!(rate(&report.rows, 8, |row| row.energy) > 0.5);
    assert!(row(&report, 64).l2.unwrap() < 0.05);
}

#[test]
fn robin_conditions_have_the_rate_of_natural_ones() {
    let robin = "[boundary]\ncondition = \"robin\"\ncoefficient = \"2 + x\"";
    let equation = "diffusion = \"1 + x\"\nexact = \"exp(x)*sin(3*x)\"";
    let line = solve(&problem(1, equation, robin, LINE));
    assert!(rate(&line.rows, 8, |row| row.h1) > 2.5);
    let square = solve(&problem(2, "exact = \"exp(x)*sin(2*y)\"", robin, SQUARE));
    assert!(rate(&square.rows, 8, |row| row.h1) > 1.3);
    let residual =
        "formulation = \"residual\"\ndiffusion = \"1 + x\"\nreaction = \"1\"\nexact = \"exp(x)*sin(3*x)\"";
    let residual = solve(&problem(1, residual, robin, LINE));
    assert!(row(&residual, 64).l2.unwrap() < 1e-4);
    // Another coefficient is another problem: its data do not fit this solution.
    let wrong = "[boundary]\ncondition = \"robin\"\ncoefficient = \"1\"\nvalue = \"7\"";
    let wrong = solve(&problem(1, equation, wrong, LINE));
    assert!(row(&wrong, 64).l2.unwrap() > 0.1);
}

/// u at the two ends.
fn jump(problem: &Problem) -> (f64, f64) {
    let (report, network) = run(
        problem,
        &RunOptions::default(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    let ends = greedy_pde::sample::values(&network, &[vec![0.0, 1.0]]);
    (ends[1] - ends[0], report.rows.last().unwrap().l2.unwrap())
}

#[test]
fn a_periodic_solution_does_not_jump() {
    let periodic = "[boundary]\ncondition = \"periodic\"\nfaces = [\"x[1]-\", \"x[1]+\"]";
    let energy = problem(
        1,
        "reaction = \"1\"\nexact = \"cos(2*pi*x) + sin(2*pi*x)\"",
        periodic,
        LINE,
    );
    let (jump, l2) = jump(&energy);
    assert!(jump.abs() < 1e-2 * l2, "{jump:e} {l2:e}");
    assert!(rate(&solve(&energy).rows, 8, |row| row.h1) > 2.5);
    let residual = "formulation = \"residual\"\noperator = \"-laplacian(u) + u\"\nexact = \"cos(2*pi*x)\"";
    let residual = solve(&problem(1, residual, periodic, LINE));
    assert!(row(&residual, 64).l2.unwrap() < 1e-3);
    let square = "[[boundary]]\ncondition = \"periodic\"\nfaces = [\"x-\", \"x+\"]\n[[boundary]]\ncondition = \"neumann\"\nfaces = [\"y-\", \"y+\"]";
    let square = solve(&problem(
        2,
        "reaction = \"1\"\nexact = \"cos(2*pi*x)*cosh(y)\"",
        square,
        SQUARE,
    ));
    assert!(rate(&square.rows, 8, |row| row.h1) > 1.0);
}

#[test]
fn a_jump_of_the_coefficient_at_a_cells_edge_costs_nothing() {
    // a u′ is continuous: u′ is 100 times smaller where a is 100.
    let equation = "diffusion = \"if(x < 0.5, 1, 100)\"\nreaction = \"0\"\nsource = \"1\"\n\
                    exact = \"if(x < 0.5, -x^2/2 + B*x, -x^2/200 + B*x/100 + C)\"";
    let b = (0.125 + (0.5 - 0.125) / 100.0) / (0.5 + 0.5 / 100.0);
    let c = 0.5 / 100.0 - b / 100.0;
    let equation = equation.replace('B', &b.to_string()).replace('C', &c.to_string());
    let report = solve(&problem(
        1,
        &equation,
        "[boundary]\ncondition = \"dirichlet\"",
        &LINE.replace("relu^3", "relu^2"),
    ));
    assert!(report.rows.last().unwrap().l2.unwrap() < 1e-3);
}

#[test]
fn measurements_are_fitted_and_noise_is_not() {
    let report = solve(&Problem::from_path("configs/data_1d.toml".as_ref(), &Overrides::default()).unwrap());
    // The noise is 0.05.
    let l2 = report.rows.last().unwrap().l2.unwrap();
    assert!(l2 < 0.05, "{l2}");
}

#[test]
fn bad_data_are_refused_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let text = "name = \"c\"\n[domain]\ndimension = 1\n[equation]\nformulation = \"fit\"\n[[data]]\nfile = \"d.csv\"\n[dictionary]\n\
                activation = \"relu\"\n[quadrature]\nrule = \"gauss\"\ncells = 10\n[solver]\nneurons = 2\n";
    let name = directory.path().join("p.toml").display().to_string();
    let with = |csv: &str| {
        std::fs::write(directory.path().join("d.csv"), csv).unwrap();
        Problem::from_toml(text, &name, &Overrides::default())
    };
    assert!(with("x1,value\n0.1,2\n0.2,3\n").is_ok());
    for (csv, wanted) in [
        ("0.1,2\n0.2,three\n", "d.csv:2: has `three`"),
        ("0.1,2\n0.2,NaN\n", "d.csv:2: has `NaN`"),
        ("0.1,2\n0.2\n", "d.csv:2: has 1 columns"),
        ("0.1,2,1,4\n", "d.csv:1: has 4 columns"),
        ("0.1,2,-1\n", "weights are positive"),
        ("x1,value\n", "no measurement"),
    ] {
        let error = with(csv).unwrap_err().to_string();
        assert!(error.contains(wanted), "{csv:?}: {error}");
    }
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let refused = |boundary: &str| {
        let text = format!(
            "name = \"c\"\n[domain]\ndimension = 2\n[equation]\nsource = \"1\"\n{boundary}\n[dictionary]\nactivation = \"relu^2\"\n{SQUARE}\n"
        );
        Problem::from_toml(&text, "p.toml", &Overrides::default())
            .unwrap_err()
            .to_string()
    };
    for (boundary, wanted) in [
        ("[boundary]\ncondition = \"robin\"", "needs `coefficient`"),
        (
            "[boundary]\ncondition = \"neumann\"\ncoefficient = \"1\"",
            "belongs to condition = \"robin\"",
        ),
        (
            "[boundary]\ncondition = \"periodic\"\nfaces = [\"x-\"]",
            "not named here",
        ),
        (
            "[boundary]\ncondition = \"robin\"\ncoefficient = \"-1\"",
            "negative",
        ),
        (
            "[boundary]\ncondition = \"periodic\"\nfaces = [\"x-\", \"x+\"]\npenalty = 0.1",
            "penalty",
        ),
    ] {
        let message = refused(boundary);
        assert!(message.contains(wanted), "{boundary}: {message}");
    }
}

#[test]
fn a_jump_inside_a_cell_is_told() {
    let warnings = |equation: &str| {
        problem(1, equation, "[boundary]\ncondition = \"dirichlet\"", LINE)
            .warnings
            .join("\n")
    };
    let energy = |at: &str| format!("diffusion = \"if(x < {at}, 1, 100)\"\nsource = \"1\"");
    assert!(warnings(&energy("0.5013")).contains("inside a cell"));
    assert!(warnings(&energy("0.5")).is_empty());
    let residual = format!("formulation = \"residual\"\n{}", energy("0.5"));
    assert!(warnings(&residual).contains("asks for nothing there"));
}

/// The page of a fit shows what was measured, and a run that ends at the noise does not blame the quadrature.
#[test]
fn measurements_are_shown_and_noise_is_named() {
    let problem = Problem::from_path("configs/data_1d.toml".as_ref(), &Overrides::default()).unwrap();
    let options = RunOptions::default();
    let (report, network) = run(&problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let told = report.warnings.join("\n");
    assert!(told.contains("noise") && !told.contains("quadrature"), "{told}");
    let (chart, _) = greedy_pde::page::along_an_interval(&problem, &network);
    let dots = |name: &str| {
        let series = chart.series.iter().find(|series| series.name.starts_with(name));
        series.map(|series| series.points.len())
    };
    assert_eq!(dots("measurements ("), Some(160));
    assert_eq!(dots("measurements held back"), Some(40));
}
