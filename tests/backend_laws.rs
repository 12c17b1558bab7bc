//! The laws of [`Backend`], checked on the CPU; `gpu.rs` checks them on every adapter's.

mod common;

use common::laws::{check_laws, network, problem};
use greedy_pde::activation::Activation;
use greedy_pde::backend::{CpuBackend, CpuOptions};
use greedy_pde::candidates::Candidates;
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem, Purpose};

fn cpu(problem: &Problem, cache_bytes: usize) -> CpuBackend {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    CpuBackend::new(loss, problem.dictionary.activation, CpuOptions { cache_bytes }).unwrap()
}

#[test]
fn the_cpu_backend_obeys_the_laws() {
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (2, "energy", "relu^1"),
        (3, "energy", "relu^2"),
        (2, "energy", "sigmoid"),
        (2, "fourth", "relu^3"),
        (1, "residual", "relu^3"),
        (2, "residual", "relu^2"),
        (2, "residual", "tanh"),
        (2, "residual", "relu^5"),
        (3, "energy", "relu^5"),
        (1, "energy", "relu^5"),
    ] {
        let problem = problem(dimension, formulation, activation);
        check_laws(&mut cpu(&problem, 1 << 30), dimension);
    }
}

#[test]
fn streaming_and_caching_give_the_same_bits() {
    let problem = problem(2, "energy", "relu^2");
    let u = network(problem.dictionary.activation, 2);
    let (mut cached, mut streamed) = (cpu(&problem, 1 << 30), cpu(&problem, 0));
    let along = Candidates::List(&u.neurons);
    use greedy_pde::backend::Backend;
    assert_eq!(
        cached.gradient(&u, along).unwrap(),
        streamed.gradient(&u, along).unwrap()
    );
    assert_eq!(cached.risk(&u).unwrap(), streamed.risk(&u).unwrap());
}

/// The score of the definition, by a plain loop over points that a rule gives.
#[test]
fn scores_are_the_weak_form_of_the_equation() {
    let text = "name = \"plain\"\n[domain]\ndimension = 1\nlower = -1.0\nupper = 1.0\n[equation]\n\
        diffusion = \"2 + x\"\nreaction = \"3\"\nsource = \"x^2\"\n[boundary]\ncondition = \"neumann\"\nvalue = \"5\"\n\
        [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 7\norder = 3\n[solver]\nneurons = 1\n";
    let problem = Problem::from_toml(text, "plain", &Overrides::default()).unwrap();
    let mut backend = cpu(&problem, 1 << 20);
    let u = network(Activation::Relu(2), 1);
    let g = Neuron {
        omega: vec![-1.0],
        bias: 0.25,
    };
    let single = Network::single(Activation::Relu(2), &g);
    let points = greedy_pde::points::CompositeGauss::new(7, 3, 1);
    let (mut columns, mut weights) = (vec![vec![0.0; 21]], vec![0.0; 21]);
    points.fill(0..21, &mut columns, &mut weights);
    let mut expected = -5.0 * (single.value(&[-1.0]) + single.value(&[1.0]));
    for (s, w) in columns[0].iter().zip(&weights) {
        let x = [2.0 * s - 1.0];
        let bilinear =
            (2.0 + x[0]) * u.gradient(&x)[0] * single.gradient(&x)[0] + 3.0 * u.value(&x) * single.value(&x);
        expected += 2.0 * w * (bilinear - x[0] * x[0] * single.value(&x));
    }
    use greedy_pde::backend::Backend;
    let score = backend.gradient(&u, Candidates::List(&[g])).unwrap()[0];
    assert!((score - expected).abs() < 1e-12, "{score} {expected}");
}

/// Tables and sums over the points are two ways to the same numbers, boundary data included. (Seven
/// steps: no Halton point lies on a knot, where the slope of relu^1 is anyone's choice.)
#[test]
fn moment_tables_agree_with_sums_over_the_points() {
    use greedy_pde::backend::{Backend, MomentBackend, MomentTables, PassOptions};
    for activation in ["relu^1", "relu^2", "relu^3", "relu^4"] {
        let text = format!(
            "name = \"axes\"\n[domain]\ndimension = 3\nlower = [0.0, -1.0, 0.0]\nupper = [1.0, 1.0, 2.0]\n[equation]\n\
             diffusion = \"1 + x[1]*x[3]\"\nreaction = \"2 + x[2]\"\nexact = \"exp(x[1]) + x[2]*x[3]\"\n\
             [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"{activation}\"\ndirections = \"axes\"\n\
             bias = [-3.0, 3.0]\noffsets = 7\n[quadrature]\nrule = \"halton\"\npoints = 20000\n[solver]\nneurons = 8\n"
        );
        let problem = Problem::from_toml(&text, "axes", &Overrides::default()).unwrap();
        let mut sums = cpu(&problem, 1 << 30);
        let mut loss = problem.loss(8, Purpose::Training).unwrap();
        let (power, axes) = greedy_pde::run::table_axes(&problem, &loss).unwrap();
        let inside = loss.terms.remove(0);
        let tables = MomentTables::new(&inside, power, axes, PassOptions::default(), &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let rest = CpuBackend::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap();
        let mut moments = MomentBackend::new(tables, inside.points.len(), Some(rest));
        assert_eq!(sums.points(), moments.points());
        let rule = problem.quadrature.rule;
        let grid = greedy_pde::search::grid(&problem.dictionary, &problem.domain, &rule, 0, 0);
        let neurons: Vec<Neuron> = (0..grid.len())
            .step_by(7)
            .map(|index| grid.neuron(index))
            .collect();
        let u = Network {
            activation: problem.dictionary.activation,
            dimension: 3,
            coefficients: (0..neurons.len()).map(|i| (i as f64).cos()).collect(),
            neurons,
        };
        let close = |a: &[f64], b: &[f64]| {
            let largest = b.iter().fold(0.0f64, |m, s| m.max(s.abs()));
            a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-11 * largest)
        };
        // Neurons that some point activates.
        let mut active = u.neurons.iter().filter(|v| {
            let itself = Candidates::List(std::slice::from_ref(*v));
            moments.curvature(&u, v, itself).unwrap()[0] > 0.0
        });
        let (v, other) = (active.next().unwrap().clone(), active.last().unwrap().clone());
        for along in [Candidates::Grid(&grid), Candidates::List(&u.neurons)] {
            assert!(close(
                &moments.gradient(&u, along).unwrap(),
                &sums.gradient(&u, along).unwrap()
            ));
            let column = sums.curvature(&u, &v, along).unwrap();
            assert!(close(&moments.curvature(&u, &v, along).unwrap(), &column));
            // The negative control.
            assert!(!close(&moments.curvature(&u, &other, along).unwrap(), &column));
        }
        let (a, b) = (moments.risk(&u).unwrap(), sums.risk(&u).unwrap());
        assert!((a - b).abs() < 1e-10 * b.abs(), "{a} {b}");
    }
}
