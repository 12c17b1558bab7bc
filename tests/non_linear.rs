//! Equations with a potential, the relaxed algorithm, and what both are compared with.

mod common;

use common::{config, neurons, rate, solve};
use greedy_pde::greedy::StepRule;
use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::report::Row;
use greedy_pde::run::{Event, RunOptions, run};
use greedy_pde::sums::{CpuOptions, CpuSums, Sums};
use greedy_pde::train::{self, Method, Schedule};
use std::ops::ControlFlow;

/// −u″ + u³ = f on (−1, 1).
fn quartic(solver: &str) -> Problem {
    let text = format!(
        "name = \"quartic\"\n[domain]\ndimension = 1\nlower = -1.0\nupper = 1.0\n\
         [equation]\ndiffusion = \"1\"\npotential = \"u^4/4\"\nexact = \"cos(pi*x)\"\n\
         [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\nbias = [-1.0, 1.0]\n\
         [quadrature]\nrule = \"gauss\"\ncells = 400\n[solver]\n{solver}\n"
    );
    Problem::from_toml(&text, "quartic", &Overrides::default()).unwrap()
}

#[test]
fn newton_projections_converge_as_for_a_linear_equation() {
    let report = solve(&quartic("neurons = 64"));
    assert!((rate(&report.rows, 8, |row| row.l2) - 3.0).abs() < 0.4);
    assert!((rate(&report.rows, 8, |row| row.h1) - 2.0).abs() < 0.3);
    // The excess falls like the square of the norm.
    assert!(report.rows.last().unwrap().energy.unwrap() < 1e-6);
}

#[test]
fn the_relaxed_algorithm_converges_and_keeps_its_coefficients_bounded() {
    let problem = quartic("algorithm = \"rga\"\nradius = 25.0\nneurons = 512");
    let mut largest = 0.0_f64;
    let (report, _) = run(&problem, &RunOptions::default(), &mut |event| {
        if let Event::Step(step) = event {
            largest = largest.max(step.row.coefficient_l1);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(largest <= 25.0 * (1.0 + 1e-12), "{largest}");
    let at = |n| common::row(&report, n).energy.unwrap();
    assert!(at(512) < 0.4 && at(512) < 0.2 * at(64), "{} {}", at(64), at(512));
}

#[test]
fn a_line_search_beats_the_papers_steps() {
    let mut problem = quartic("algorithm = \"rga\"\nradius = 25.0\nneurons = 64");
    let paper = solve(&problem).rows.last().unwrap().energy.unwrap();
    problem.settings.step = StepRule::LineSearch;
    let searched = solve(&problem).rows.last().unwrap().energy.unwrap();
    assert!(searched < paper, "{searched} {paper}");
}

#[test]
fn example_6_has_the_papers_excess_or_less() {
    let report = solve(&config("ex6_poisson_boltzmann", neurons(128)));
    assert_eq!(report.points, 1639);
    assert!(report.rows.last().unwrap().energy.unwrap() < 0.6);
}

#[test]
fn example_6_by_orthogonal_selection_and_newton() {
    let text = std::fs::read_to_string("configs/ex6_poisson_boltzmann.toml")
        .unwrap()
        .replace("algorithm = \"rga\"", "algorithm = \"oga\"")
        .replace(
            "activation = \"sigmoid\"\ndirections = \"box\"",
            "activation = \"relu^2\"\ndirections = \"sphere\"",
        )
        .replace("weights = [-20.0, 20.0]", "")
        .replace("bias = [-20.0, 20.0]", "bias = [-2.0, 2.0]")
        .replace("offsets = 32", "offsets = 128")
        .replace("rule = \"monte_carlo\"", "rule = \"gauss\"")
        .replace("points = \"n^2/10\"", "cells = 40");
    let problem = Problem::from_toml(&text, "ex6", &neurons(40)).unwrap();
    let report = solve(&problem);
    let last = report.rows.last().unwrap();
    assert!(last.energy.unwrap() < 2e-2, "{last:?}");
}

#[test]
fn a_potential_that_is_not_convex_is_refused_with_the_place() {
    let text = "name = \"bad\"\n[domain]\ndimension = 1\n[equation]\npotential = \"u^4/4 - u^2/2\"\nsource = \"1\"\n\
                [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
                [quadrature]\nrule = \"gauss\"\ncells = 10\n[solver]\nneurons = 2\n";
    let error = Problem::from_toml(text, "bad.toml", &Overrides::default()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("convex") && message.contains("u = 0, x = ["),
        "{message}"
    );
}

#[test]
fn trained_networks_have_the_gradient_of_their_loss() {
    let problem = config("ex1_neumann", neurons(6));
    let loss = problem.loss(6, Purpose::Training).unwrap();
    let activation = problem.dictionary.activation;
    let sums = CpuSums::new(loss, activation, CpuOptions::default()).unwrap();
    let network = train::random_network(activation, 1, 6, 3);
    let gradient = train::gradient(&sums, &network).unwrap();
    let h = 1e-6;
    let moved = |k: usize, h: f64| -> Network {
        let mut network = network.clone();
        match k % 3 {
            0 => network.coefficients[k / 3] += h,
            1 => network.neurons[k / 3].omega[0] += h,
            _ => network.neurons[k / 3].bias += h,
        }
        network
    };
    for (k, slope) in gradient.iter().enumerate() {
        let (up, down) = (
            sums.risk(&moved(k, h)).unwrap(),
            sums.risk(&moved(k, -h)).unwrap(),
        );
        assert!(((up - down) / (2.0 * h) - slope).abs() < 1e-5 * (1.0 + slope.abs()));
    }
    // Both methods, and L-BFGS after them, lower the loss.
    let schedule = Schedule {
        epochs: 200,
        ..Schedule::PAPER
    };
    let start = sums.risk(&network).unwrap();
    for method in [Method::Sgd { momentum: 0.0 }, Method::Adam] {
        let trained = train::descend(&sums, &network, method, &schedule, &mut |_| {}).unwrap();
        let first = sums.risk(&trained).unwrap();
        let further = train::lbfgs(&sums, &trained, 50).unwrap();
        assert!(first < start && sums.risk(&further).unwrap() < first);
    }
}

/// −u″ + u³ = 100 sin 3x, u = 0 at both ends, by finite differences and Newton's method.
fn reference(cells: usize) -> Vec<f64> {
    let h = 1.0 / cells as f64;
    let mut u = vec![0.0; cells + 1];
    for _ in 0..60 {
        // A tridiagonal system for the correction.
        let (mut upper, mut rhs) = (vec![0.0; cells + 1], vec![0.0; cells + 1]);
        for i in 1..cells {
            let x = i as f64 * h;
            let residual =
                (2.0 * u[i] - u[i - 1] - u[i + 1]) / (h * h) + f64::powi(u[i], 3) - 100.0 * (3.0 * x).sin();
            let diagonal = 2.0 / (h * h) + 3.0 * u[i] * u[i] + upper[i - 1] / (h * h);
            upper[i] = -1.0 / (h * h) / diagonal;
            rhs[i] = (-residual + rhs[i - 1] / (h * h)) / diagonal;
        }
        let mut correction = 0.0;
        for i in (1..cells).rev() {
            correction = rhs[i] - upper[i] * correction;
            u[i] += correction;
        }
    }
    u
}

/// A stiff penalty beside a potential used to end after four neurons: the Hessian had no digits left.
#[test]
fn a_potential_with_a_stiff_penalty_goes_on() {
    for (penalty, tolerance) in [("1e-6", 2e-3), ("0.1*n^-2", 5e-2)] {
        let text = format!(
            "name = \"stiff\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\npotential = \"u^4/4\"\n\
             source = \"100*sin(3*x)\"\n[boundary]\ncondition = \"dirichlet\"\npenalty = \"{penalty}\"\n\
             [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 500\n\
             [solver]\nneurons = 48\n"
        );
        let problem = Problem::from_toml(&text, "stiff", &Overrides::default()).unwrap();
        let (report, network) = run(&problem, &RunOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(report.neurons, 48, "penalty {penalty}");
        let expected = reference(2000);
        for i in (0..=2000).step_by(100) {
            let u = network.value(&[i as f64 / 2000.0]);
            assert!(
                (u - expected[i]).abs() < tolerance,
                "{penalty}: {u} {}",
                expected[i]
            );
        }
    }
}

#[test]
fn a_norm_and_an_excess_have_two_names() {
    let text = |equation: &str| {
        let equation = format!("exact = \"cos(pi*x)\"\n{equation}");
        common::SMALL.replace("reaction = \"1\"\nexact = \"cos(pi*x)\"", &equation)
    };
    for (equation, is_excess) in [("reaction = 1", false), ("potential = \"u^2/2\"", true)] {
        let problem = Problem::from_toml(&text(equation), "t.toml", &Overrides::default()).unwrap();
        let report = solve(&problem);
        let row = report.rows.last().unwrap();
        assert_eq!(row.excess.is_some(), is_excess, "{row:?}");
        let (header, _) = greedy_pde::report::table(&report.rows);
        assert_eq!(
            header.contains(&"relative excess".to_string()),
            is_excess,
            "{header:?}"
        );
        assert_eq!(
            header.contains(&"energy error".to_string()),
            !is_excess,
            "{header:?}"
        );
        assert_eq!(Row::from_csv(&row.to_csv()).unwrap(), *row);
        // The excess of a quadratic energy is the square of the norm's part; both keys stay.
        if is_excess {
            assert_eq!(row.energy, row.excess);
        }
    }
    // A history written before there were two names.
    assert_eq!(
        Row::from_csv("1,2e0,3e0,4e0,5e0,6e0,7e0,8e0,9e0").unwrap().excess,
        None
    );
}
