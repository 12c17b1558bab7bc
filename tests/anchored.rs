//! Gradients from many points, inner products from few.

mod common;

use common::solve;
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::projection::{Addition, Projection};
use greedy_pde::sums::{CpuOptions, CpuSums, Sums};

fn text(cells: usize, curvature: usize, neurons: usize) -> String {
    format!(
        "name = \"anchored\"\n[domain]\ndimension = 2\n[equation]\ndiffusion = \"1 + x*y\"\nreaction = \"1\"\n\
         exact = \"cos(2*pi*x)*cos(pi*y)\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\n\
         activation = \"relu^2\"\ncandidates = 24\n[quadrature]\nrule = \"gauss\"\ncells = {cells}\n\
         curvature = {curvature}\n[solver]\nneurons = {neurons}\n"
    )
}

fn problem(text: &str) -> Problem {
    Problem::from_toml(text, "anchored", &Overrides::default()).unwrap()
}

fn sums(problem: &Problem, purpose: Purpose) -> CpuSums {
    let loss = problem.loss(8, purpose).unwrap();
    CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap()
}

/// Inner products on a sixteenth of the points give the errors of inner products on all of them; on these few
/// points alone the errors are far larger.
#[test]
fn few_points_for_inner_products_are_enough() {
    let h1 = |text: &str| {
        let report = solve(&problem(text));
        let last = report.rows.last().unwrap().clone();
        (report.neurons, last.h1.unwrap())
    };
    let (_, whole) = h1(&text(120, 120, 128));
    let (neurons, anchored) = h1(&text(120, 30, 128));
    let (_, few) = h1(&text(30, 30, 128));
    assert_eq!(neurons, 128);
    assert!(anchored < 1.1 * whole, "{anchored} {whole}");
    assert!(few > 2.0 * anchored, "{few} {anchored}");
}

/// Neurons in several directions, some of them close to each other.
fn neurons() -> Vec<Neuron> {
    (0..8)
        .map(|i| {
            let angle = 0.7 * f64::from(i);
            Neuron {
                omega: vec![angle.cos(), angle.sin()],
                bias: 0.1 * f64::from(i) - 0.4,
            }
        })
        .collect()
}

/// After a few corrections the gradient on all points vanishes on the neurons, as after a projection there;
/// before, it does not.
#[test]
fn corrections_lead_to_the_projection_on_all_points() {
    let problem = problem(&text(60, 15, 8));
    let (fine, coarse) = (
        sums(&problem, Purpose::Training),
        sums(&problem, Purpose::Curvature),
    );
    assert!(coarse.points() * 16 == fine.points());
    let mut projection = Projection::cholesky(&coarse).anchored(&fine, 2).unwrap();
    let mut u = Network::zero(problem.dictionary.activation, 2);
    let load = fine.gradient(&u).unwrap().list_scores(&neurons()).unwrap();
    let size = load.iter().fold(0.0, |size: f64, score| size.max(score.abs()));
    for neuron in neurons() {
        let score = projection
            .gradient(&u)
            .unwrap()
            .list_scores(std::slice::from_ref(&neuron))
            .unwrap()[0];
        assert_eq!(projection.try_add(&u, &neuron, score).unwrap(), Addition::Added);
        u.neurons.push(neuron);
        u.coefficients = projection.coefficients(&u.neurons).unwrap();
    }
    let left = |u: &Network| {
        let scores = fine.gradient(u).unwrap().list_scores(&u.neurons).unwrap();
        scores.iter().fold(0.0, |size: f64, score| size.max(score.abs())) / size
    };
    let before = left(&u);
    let mut gained = Vec::new();
    for _ in 0..3 {
        gained.push(projection.correct(&u).unwrap());
        u.coefficients = projection.coefficients(&u.neurons).unwrap();
    }
    assert!(before > 1e-6, "{before}");
    assert!(left(&u) < 1e-4 * before, "{} {before}", left(&u));
    assert!(
        gained.windows(2).all(|pair| pair[1] < 0.01 * pair[0]),
        "{gained:?}"
    );
    // The same from nothing, by conjugate gradients; the projection knows of it.
    let mut at_once = Projection::cholesky(&coarse).anchored(&fine, 2).unwrap();
    for row in coarse.gram(&u.neurons).unwrap() {
        assert_eq!(at_once.try_add_row(&row), Some(Addition::Added));
    }
    let mut settled = u.with_coefficients(&vec![0.0; u.len()]);
    assert!(at_once.settle(&mut settled, 0.0, 1e-16).unwrap());
    assert!(left(&settled) < 1e-4 * before, "{} {before}", left(&settled));
    let known = at_once.coefficients(&u.neurons).unwrap();
    let largest = known.iter().fold(0.0, |size: f64, a| size.max(a.abs()));
    for (a, b) in known.iter().zip(&settled.coefficients) {
        assert!((a - b).abs() < 1e-6 * largest, "{a} {b}");
    }
}

/// ‖P⊥g‖² of many neurons at once is that of each alone, and its slopes are its derivatives: for an energy with two
/// coefficients, for a residual and with a term on the boundary.
#[test]
fn remainders_of_many_are_those_of_each() {
    let residual = text(20, 20, 8)
        .replace(
            "diffusion = \"1 + x*y\"\nreaction = \"1\"",
            "formulation = \"residual\"\noperator = \"-laplacian(u) + (1 + x)*d(u, y) + u\"",
        )
        .replace("relu^2", "relu^4");
    for text in [text(20, 20, 8), residual] {
        let problem = problem(&text);
        let sums = sums(&problem, Purpose::Training);
        let mut projection = Projection::cholesky(&sums);
        let mut u = Network::zero(problem.dictionary.activation, 2);
        for neuron in neurons().into_iter().take(5) {
            assert_eq!(projection.try_add(&u, &neuron, 0.0).unwrap(), Addition::Added);
            u.neurons.push(neuron);
            u.coefficients.push(0.0);
        }
        let list = &neurons()[5..];
        let together = projection.remainders(&u.neurons, list).unwrap().unwrap();
        for (g, many) in list.iter().zip(&together) {
            let (square, rho) = projection.remainder(&u.neurons, g).unwrap().unwrap();
            assert!(
                (many.value - square).abs() < 1e-10 * (1.0 + square),
                "{} {square}",
                many.value
            );
            let slopes = rho.slopes().unwrap().slopes_at(std::slice::from_ref(g)).unwrap();
            for (a, b) in many.gradient.iter().zip(&slopes[0].gradient) {
                assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
            }
            // Half the derivative of the square in the bias.
            let step = 1e-5;
            let at = |shift: f64| {
                let moved = Neuron {
                    bias: g.bias + shift,
                    ..g.clone()
                };
                projection.remainder(&u.neurons, &moved).unwrap().unwrap().0
            };
            let difference = 0.5 * (at(step) - at(-step)) / (2.0 * step);
            let slope = many.gradient[2];
            assert!(
                (difference - slope).abs() < 1e-3 * (1e-3 + slope.abs()),
                "{difference} {slope}"
            );
        }
    }
}

#[test]
fn a_part_that_makes_no_sense_is_told() {
    let error = |text: &str| {
        let error = Problem::from_toml(text, "anchored", &Overrides::default()).unwrap_err();
        error.to_string()
    };
    let more = error(&text(20, 30, 8));
    assert!(
        more.contains("there are only 20") && more.contains("curvature"),
        "{more}"
    );
    let slope = error(&(text(20, 10, 8) + "selection = \"slope\"\n"));
    assert!(slope.contains("selection = \"decrease\""), "{slope}");
    let zero = error(&text(20, 0, 8));
    assert!(zero.contains("curvature"), "{zero}");
}
