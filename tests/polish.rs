//! All neurons moved together: better networks of as many neurons, to the same bytes after an interruption.

use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::projection::{Addition, Projection};
use greedy_pde::refine::{Room, Together};
use greedy_pde::report::Report;
use greedy_pde::results::{Existing, ResultDirectory};
use greedy_pde::run::{Event, RunOptions, run};
use greedy_pde::sums::{CpuOptions, CpuSums, Sums};
use std::ops::ControlFlow;
use std::path::Path;

const CUBE: &str = "name = \"cube\"\n[domain]\ndimension = 3\n[equation]\nreaction = \"1\"\n\
    exact = \"cos(pi*x)*cos(pi*y)*cos(pi*z)\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\n\
    activation = \"relu^3\"\ncandidates = 64\n[quadrature]\nrule = \"gauss\"\ncells = 7\ncurvature = 5\n\
    order = 3\n[solver]\nneurons = 32\n";

fn problem(text: &str) -> Problem {
    Problem::from_toml(text, "polish.toml", &Overrides::default()).unwrap()
}

fn solved(text: &str) -> (Report, Network) {
    run(&problem(text), &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

fn h1(report: &Report) -> f64 {
    report.rows.last().unwrap().h1.unwrap()
}

#[test]
fn moved_neurons_are_better_ones() {
    let residual = CUBE
        .replace(
            "reaction = \"1\"",
            "formulation = \"residual\"\noperator = \"-laplacian(u) + u\"",
        )
        .replace("curvature = 5\n", "");
    for (text, at_most) in [(CUBE, 0.5), (residual.as_str(), 0.7)] {
        let (before, _) = solved(text);
        let (after, network) = solved(&format!("{text}polish = 10\n"));
        assert_eq!(network.len(), 32);
        assert!(
            h1(&after) < at_most * h1(&before),
            "{} {}",
            h1(&after),
            h1(&before)
        );
        let last = after.rows.last().unwrap();
        let before = before.rows.last().unwrap();
        assert!(last.validation_loss.unwrap() < before.validation_loss.unwrap());
        let length = |omega: &[f64]| omega.iter().map(|o| o * o).sum::<f64>();
        assert!(
            network
                .neurons
                .iter()
                .all(|g| (length(&g.omega) - 1.0).abs() < 1e-12)
        );
    }
}

#[test]
fn the_estimate_holds_when_neurons_have_moved() {
    let (report, _) = solved(&CUBE.replace("neurons = 32", "neurons = 64\npolish = 4"));
    let (estimate, measured) = (report.estimate.unwrap(), report.rows.last().unwrap().h1.unwrap());
    let ratio = estimate.h1 / measured;
    assert!((0.2..8.0).contains(&ratio), "{ratio}");
    assert!(report.usable);
    // Too few neurons more than were moved to compare with those.
    let (report, _) = solved(&CUBE.replace("neurons = 32", "neurons = 40\npolish = 4"));
    assert!(report.usable && report.estimate.unwrap().relative_h1 < 0.3);
}

/// With nobody to confirm them, neurons that lie between the points would have taken thousands off the loss.
#[test]
fn gaps_between_the_points_are_not_fallen_for() {
    let text = "name = \"gaps\"\n[domain]\ndimension = 2\n[equation]\nreaction = \"1\"\n\
        exact = \"exp(-3*(x - 0.3)^2 - 5*(y - 0.6)^2)*cos(4*x*y)\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\n\
        activation = \"relu^4\"\n[quadrature]\nrule = \"gauss\"\ncells = 50\norder = 2\n[solver]\nneurons = 64\n\
        guard = false\npolish = 8\n";
    let (report, _) = solved(text);
    let last = report.rows.last().unwrap();
    assert!(last.loss > -1.4, "{last:?}");
    assert!(last.h1.unwrap() < 2.0, "{last:?}");
}

#[test]
fn directions_in_planes_stay_there() {
    let text = CUBE
        .replace("cos(pi*x)*cos(pi*y)*cos(pi*z)", "cos(pi*x)*cos(pi*y) + sin(y*z)")
        .replace("candidates = 64", "directions = \"pairs\"");
    let (before, unmoved) = solved(&text);
    let (after, network) = solved(&format!("{text}polish = 6\n"));
    let loss = |report: &Report| report.rows.last().unwrap().validation_loss.unwrap();
    assert!(loss(&after) < loss(&before), "{} {}", loss(&after), loss(&before));
    assert_ne!(network.neurons, unmoved.neurons);
    for neuron in &network.neurons {
        assert!(neuron.omega.iter().filter(|&&o| o != 0.0).count() <= 2);
    }
}

/// The projection onto these neurons, and u.
fn projected<'a>(sums: &'a dyn Sums, neurons: &[Neuron]) -> (Projection<'a>, Network) {
    let mut projection = Projection::cholesky(sums);
    let mut u = Network::zero(sums.activation(), 3);
    for neuron in neurons {
        let score = sums
            .gradient(&u)
            .unwrap()
            .list_scores(std::slice::from_ref(neuron))
            .unwrap()[0];
        assert_eq!(projection.try_add(&u, neuron, score).unwrap(), Addition::Added);
        u = u.advanced(1.0, neuron, 0.0);
        u.coefficients = projection.coefficients(&u.neurons).unwrap();
    }
    (projection, u)
}

/// The shorter a step, the closer is what it gains after the projection to what its model says.
#[test]
fn short_steps_gain_what_is_predicted() {
    let text = CUBE
        .replace("neurons = 32", "neurons = 12")
        .replace("curvature = 5\n", "");
    let problem = problem(&text);
    let (_, network) = solved(&text);
    let loss = problem.loss(12, Purpose::Training).unwrap();
    let sums = CpuSums::new(loss, network.activation, CpuOptions::default()).unwrap();
    let (projection, u) = projected(&sums, &network.neurons);
    let room = Room {
        center: vec![0.5; 3],
        spread: vec![0.3; 3],
        bound: false,
    };
    let gradient = sums.gradient(&u).unwrap();
    let scores = gradient.slopes().unwrap().slopes_at(&u.neurons).unwrap();
    let factor = projection.factor().unwrap();
    let equations = Together::new(&sums, factor, (&u, &scores), &room).unwrap();
    let ratio = |damping: f64| {
        let step = equations.step(damping, &mut || Ok(())).unwrap().unwrap();
        let (_, moved) = projected(&sums, &step.neurons);
        (sums.risk(&u).unwrap() - sums.risk(&moved).unwrap()) / step.predicted
    };
    let (long, short) = ((ratio(1.0) - 1.0).abs(), (ratio(1000.0) - 1.0).abs());
    assert!(short < 0.01 && short < long, "{long} {short}");
}

/// Runs until `stop` says so; the bytes of the network then.
fn run_until(path: &Path, text: &str, existing: Existing, stop: &dyn Fn(&Event) -> bool) -> Vec<u8> {
    let problem = problem(text);
    let mut directory = ResultDirectory::open(path, &problem, text, existing).unwrap();
    let observer = &mut |event: &Event| match stop(event) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    directory.run(&problem, &RunOptions::default(), observer).unwrap();
    std::fs::read(path.join("network.safetensors")).unwrap_or_default()
}

#[test]
fn an_interrupted_run_ends_with_the_same_bytes() {
    let text = CUBE.replace("neurons = 32", "neurons = 44\npolish = 3");
    let slope = text
        .replace("curvature = 5\n", "")
        .replace("polish", "selection = \"slope\"\npolish");
    let after_moving = |event: &Event| matches!(event, Event::Step(step) if step.row.n == 38);
    let while_moving = |event: &Event| matches!(event, Event::Moves { done: 1, .. });
    for text in [text, slope] {
        let folder = tempfile::tempdir().unwrap();
        let whole = run_until(&folder.path().join("whole"), &text, Existing::Refuse, &|_| false);
        for (name, stop) in [
            ("after", &after_moving as &dyn Fn(&Event) -> bool),
            ("while", &while_moving),
        ] {
            let path = folder.path().join(name);
            let partial = run_until(&path, &text, Existing::Refuse, stop);
            assert_ne!(partial, whole);
            let resumed = run_until(&path, &text, Existing::Resume, &|_| false);
            assert!(resumed == whole, "interrupted {name} moving");
        }
    }
}

/// Where no further neuron is found all are moved once more, and others may be found then. The history has each n once, and an
/// interruption in the middle of it does not show.
#[test]
fn a_run_that_ends_early_moves_its_neurons() {
    let unmoved = CUBE
        .replace("candidates = 64", "candidates = 4\noffsets = 3\nrefine = false")
        .replace("neurons = 32", "neurons = 40");
    let text = format!("{unmoved}polish = 2\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    let steps = std::cell::RefCell::new(vec![0]);
    let noted = |event: &Event| {
        if let Event::Step(step) = event {
            steps.borrow_mut().push(step.row.n);
        }
        false
    };
    let whole = run_until(&path, &text, Existing::Refuse, &noted);
    let steps = steps.into_inner();
    let again = steps.windows(2).find(|pair| pair[0] == pair[1]);
    let again = again.expect("no neurons were moved at an early end")[0];
    // So few candidates are soon used up, unless the neurons move away from them.
    assert!(solved(&unmoved).1.len() <= again && steps.ends_with(&[40]));
    let history = std::fs::read_to_string(path.join("history.csv")).unwrap();
    let counts = history
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap());
    let expected: Vec<String> = (1..=steps[steps.len() - 1]).map(|n| n.to_string()).collect();
    assert_eq!(counts.collect::<Vec<_>>(), expected);

    let last = std::cell::Cell::new(0);
    let at_the_end = |event: &Event| match event {
        Event::Step(step) => {
            last.set(step.row.n);
            false
        }
        _ => last.get() == again && matches!(event, Event::Moves { .. }),
    };
    let path = folder.path().join("interrupted");
    assert_ne!(run_until(&path, &text, Existing::Refuse, &at_the_end), whole);
    assert_eq!(last.get(), again);
    let resumed = run_until(&path, &text, Existing::Resume, &|_| false);
    assert!(resumed == whole, "interrupted while moving at {again} neurons");
}

#[test]
fn what_cannot_be_moved_is_refused_with_its_place() {
    let moved = format!("{CUBE}polish = 3\n");
    for (from, to, reason) in [
        (
            "[solver]",
            "[solver]\nalgorithm = \"rga\"\nradius = 2.0",
            "relaxed",
        ),
        ("candidates = 64", "directions = \"axes\"", "sphere"),
        ("\"relu^3\"", "\"tanh\"", "relu^k"),
        ("reaction = \"1\"", "potential = \"cosh(u)\"", "linear"),
        ("\"neumann\"", "\"dirichlet\"", "multipliers"),
        ("polish = 3", "polish = -1", "whole number"),
        ("polish = 3", "polish = 3\nprojection = \"orthogonal\"", "Gram"),
    ] {
        let mut text = moved.replace(from, to);
        if !to.contains("polish") {
            text = text.replace("curvature = 5\n", "");
        }
        let error = Problem::from_toml(&text, "polish.toml", &Overrides::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(reason), "{to}: {message}");
        let line = 1 + text.lines().position(|line| line.starts_with("polish")).unwrap();
        assert!(
            message.contains(&format!("polish.toml:{line}:")),
            "{line}: {message}"
        );
    }
}
