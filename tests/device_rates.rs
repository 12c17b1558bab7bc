//! Rates on every kind of domain and with every condition, on a device as on the CPU.
//!
//! Without an adapter these tests are shown as ignored; with `GREEDY_PDE_REQUIRE_GPU` set they fail.

mod common;

use common::adapter::{OnAdapter, run_on_adapter};
use common::rate;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Report;
use greedy_pde::run::{BackendChoice, RunOptions, run};
use std::ops::ControlFlow;

fn main() {
    let tests: Vec<OnAdapter> = vec![
        ("domains", domains),
        ("conditions", conditions),
        ("steps_in_time", steps_in_time),
    ];
    run_on_adapter(&[], tests);
}

fn solve(text: &str, backend: BackendChoice) -> Report {
    let problem = Problem::from_toml(text, "tests/data/problem.toml", &Overrides::default()).unwrap();
    let options = RunOptions {
        backend,
        ..RunOptions::default()
    };
    let (report, _) = run(&problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let expected = match backend {
        BackendChoice::Gpu => "gpu",
        _ => "cpu",
    };
    assert_eq!(report.backend, expected, "{text}");
    report
}

/// H1 errors fall with a rate from n = 4 on, and those of the device are those of the CPU.
fn check(name: &str, text: &str, least: f64) {
    let [device, cpu] = [BackendChoice::Gpu, BackendChoice::Cpu].map(|backend| solve(text, backend));
    for report in [&device, &cpu] {
        let rate = rate(&report.rows, 4, |row| row.h1);
        assert!(rate > least, "{name} on {}: order {rate}", report.backend);
    }
    let [device, cpu] = [&device, &cpu].map(|report| report.rows.last().unwrap().h1.unwrap());
    assert!((device / cpu - 1.0).abs() < 0.05, "{name}: {device} {cpu}");
}

fn problem(domain: &str, boundary: &str, quadrature: &str) -> String {
    format!(
        "name = \"rates\"\n[domain]\n{domain}\n[equation]\nreaction = \"1\"\nexact = \"exp(0.5*x)*sin(2*y)\"\n{boundary}\n\
         [dictionary]\nactivation = \"relu^2\"\ncandidates = 32\n[quadrature]\n{quadrature}\n[solver]\nneurons = 16\n"
    )
}

const GAUSS: &str = "rule = \"gauss\"\ncells = 32\norder = 3";

fn domains() {
    let gauss = |cells: usize| format!("rule = \"gauss\"\ncells = {cells}\norder = 3");
    for (domain, quadrature, least) in [
        ("shape = \"ball\"\ndimension = 2", gauss(32), 1.0),
        (
            "shape = \"union\"\nparts = [{lower=[-1,-1],upper=[0,1]},{lower=[0,0],upper=[1,1]}]",
            gauss(32),
            1.0,
        ),
        (
            "shape = \"polygon\"\nvertices = [[-1,-1],[1,-1],[1,1],[-1,1]]\nholes = [[[-0.2,-0.2],[0.3,-0.2],[0,0.4]]]",
            gauss(32),
            1.0,
        ),
        ("shape = \"mesh\"\nfile = \"lshape.msh\"", gauss(40), 1.0),
        ("shape = \"mesh\"\nfile = \"cube.msh\"", gauss(6), 0.6),
        (
            "shape = \"inside\"\nlower = [-1, -1]\nupper = [1, 1]\ninside = \"x^2 + 2*y^2 - 0.8\"",
            "rule = \"lattice\"\npoints = 4096".to_string(),
            0.6,
        ),
    ] {
        check(domain, &problem(domain, "", &quadrature), least);
    }
}

fn conditions() {
    for (boundary, exact, least) in [
        ("condition = \"robin\"\ncoefficient = \"2 + x\"", None, 1.0),
        ("condition = \"dirichlet\"", None, 0.8),
        (
            "condition = \"periodic\"\nfaces = [\"x-\", \"x+\"]",
            Some("cos(2*pi*x)*cosh(y)"),
            0.6,
        ),
    ] {
        let boundary = format!("[boundary]\n{boundary}");
        let mut text = problem("dimension = 2", &boundary, GAUSS);
        if let Some(exact) = exact {
            text = text.replace("exp(0.5*x)*sin(2*y)", exact);
        }
        check(&boundary, &text, least);
    }
}

/// A flow on a device ends where the CPU's does.
fn steps_in_time() {
    let text = problem("dimension = 2", "[boundary]\ncondition = \"neumann\"", GAUSS)
        .replace("exp(0.5*x)*sin(2*y)", "exp(-t)*exp(0.5*x)*sin(2*y)")
        + "[time]\nend = 0.1\nsteps = 5\n";
    let [device, cpu] = [BackendChoice::Gpu, BackendChoice::Cpu].map(|backend| solve(&text, backend));
    let [device, cpu] = [device, cpu].map(|report| report.rows.last().unwrap().l2.unwrap());
    assert!((device / cpu - 1.0).abs() < 0.05, "{device} {cpu}");
    assert!(cpu < 0.1, "{cpu}");
}
