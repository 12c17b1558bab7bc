//! The laws of a backend and a problem to check them on.

use greedy_pde::activation::Activation;
use greedy_pde::backend::AnyBackend;
use greedy_pde::candidates::{Candidates, Grid, Knots, Line};
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem};

/// A problem with variable coefficients, a boundary term and several symbols.
pub fn problem(dimension: usize, formulation: &str, activation: &str) -> Problem {
    let equation = match formulation {
        "energy" => "diffusion = \"1 + sum(i, x[i]^2)\"\nreaction = \"2 + x[1]\"",
        "fourth" => "order = 4\ndiffusion = \"1 + x[1]^2\"\nreaction = \"1\"",
        _ => "formulation = \"residual\"\noperator = \"-(1 + x[1])*laplacian(u) + d(u, x[1]) + 3*u\"",
    };
    let boundary = match formulation {
        "residual" => "condition = \"neumann\"",
        _ => "condition = \"dirichlet\"\npenalty = \"0.01\"",
    };
    let text = format!(
        "name = \"laws\"\n[domain]\ndimension = {dimension}\nlower = -1.0\nupper = 1.0\n[equation]\n{equation}\n\
         exact = \"exp(x[1]) + sum(i, cos(2*x[i]))\"\n[boundary]\n{boundary}\n\
         [dictionary]\nactivation = \"{activation}\"\n\
         [quadrature]\nrule = \"monte_carlo\"\npoints = 9000\nboundary_points = 500\n[solver]\nneurons = 8\n"
    );
    Problem::from_toml(&text, "laws", &Overrides::default()).unwrap()
}

pub fn unit(dimension: usize, angle: f64) -> Vec<f64> {
    let mut omega = vec![0.3 * angle.sin(); dimension];
    omega[0] = angle.cos();
    if dimension > 1 {
        omega[1] = angle.sin();
    }
    let norm = omega.iter().map(|o| o * o).sum::<f64>().sqrt();
    omega.iter().map(|o| o / norm).collect()
}

/// Twenty neurons on one direction, more on others: both the spline and the direct way are taken.
pub fn network(activation: Activation, dimension: usize) -> Network {
    let mut neurons: Vec<Neuron> = (0..20)
        .map(|i| {
            let sign = if i % 3 == 0 { -1.0 } else { 1.0 };
            Neuron {
                omega: unit(dimension, 0.7).iter().map(|o| sign * o).collect(),
                bias: -0.9 + 0.09 * f64::from(i),
            }
        })
        .collect();
    neurons.extend((0..5).map(|i| Neuron {
        omega: unit(dimension, 1.0 + f64::from(i)),
        bias: 0.1 * f64::from(i),
    }));
    let coefficients = (0..25).map(|i| (f64::from(i) * 0.7).sin()).collect();
    Network {
        activation,
        dimension,
        neurons,
        coefficients,
    }
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-11 * scale
}

/// Checks every law, to rounding of double precision.
pub fn check_laws(backend: &mut AnyBackend, dimension: usize) {
    let activation = backend.activation();
    let u = network(activation, dimension);
    let zero = Network::zero(activation, dimension);
    let (v, g) = (&u.neurons[3], &u.neurons[22]);
    let all = Candidates::List(&u.neurons);

    // Symmetry of the curvature.
    let columns: Vec<Vec<f64>> = u
        .neurons
        .iter()
        .map(|v| backend.curvature(&zero, v, all).unwrap())
        .collect();
    let norm = |i: usize| columns[i][i].sqrt();
    for (i, column) in columns.iter().enumerate() {
        for (j, product) in column.iter().enumerate() {
            assert!(close(*product, columns[j][i], norm(i) * norm(j)), "{i} {j}");
        }
    }

    // The gradient is affine with the curvature as its slope: D and its adjoint agree.
    let at_zero = backend.gradient(&zero, all).unwrap();
    let at_u = backend.gradient(&u, all).unwrap();
    for i in 0..25 {
        let slope: f64 = (0..25).map(|j| u.coefficients[j] * columns[j][i]).sum();
        let scale: f64 = (0..25).map(|j| (u.coefficients[j] * columns[j][i]).abs()).sum();
        assert!(
            close(at_u[i], at_zero[i] + slope, scale + at_zero[i].abs()),
            "{i}"
        );
    }

    // The risk's derivative is the gradient.
    let step = |h: f64| {
        let mut moved = u.clone();
        moved.coefficients[22] += h;
        moved
    };
    let (above, below) = (
        backend.risk(&step(0.5)).unwrap(),
        backend.risk(&step(-0.5)).unwrap(),
    );
    assert!(((above - below) - at_u[22]).abs() < 1e-10 * (above.abs() + below.abs()));

    // The embedding and its adjoint.
    if let Some(embedded) = backend.embedding(v).unwrap() {
        assert_eq!(embedded.len(), backend.embedding_length().unwrap());
        let other = backend.embedding(g).unwrap().unwrap();
        let product: f64 = embedded.iter().zip(&other).map(|(a, b)| a * b).sum();
        assert!(close(product, columns[3][22], norm(3) * norm(22)));
        let adjoint = backend.embedding_adjoint(&embedded, all).unwrap();
        for i in 0..25 {
            assert!(close(adjoint[i], columns[3][i], norm(3) * norm(i)));
        }
    }

    // Local scores: the values of the gradient, and its slopes by differences.
    // Where the activation is smooth enough: the test problems have at most two derivatives in the loss.
    let smooth = activation.smoothness() >= 5;
    let local = backend.local_scores(&u, &u.neurons[20..]).unwrap();
    for (score, (neuron, value)) in local.iter().zip(u.neurons[20..].iter().zip(&at_u[20..])) {
        assert!(close(
            score.value,
            *value,
            columns[22][22].abs() + value.abs() + at_zero[20].abs()
        ));
        if smooth {
            check_slopes(backend, &u, neuron, score);
        }
    }

    // A grid and the list of its neurons.
    let knots = Knots {
        first: -1.5,
        step: 0.25,
        count: 13,
    };
    let lines = [0.0, 0.7, 2.0].map(|angle| Line {
        omega: unit(dimension, angle),
        knots,
    });
    let grid = Grid::new(lines.to_vec(), activation.relu_power().is_some());
    let list: Vec<Neuron> = (0..grid.len()).map(|i| grid.neuron(i)).collect();
    let by_grid = backend.gradient(&u, Candidates::Grid(&grid)).unwrap();
    let one_by_one: Vec<f64> = list
        .iter()
        .map(|neuron| {
            backend
                .gradient(&u, Candidates::List(std::slice::from_ref(neuron)))
                .unwrap()[0]
        })
        .collect();
    let largest = one_by_one.iter().fold(0.0f64, |m, s| m.max(s.abs()));
    for (a, b) in by_grid.iter().zip(&one_by_one) {
        assert!((a - b).abs() < 1e-10 * largest, "{a} {b}");
    }
}

fn check_slopes(
    backend: &mut AnyBackend,
    u: &Network,
    neuron: &Neuron,
    score: &greedy_pde::backend::LocalScore,
) {
    let d = neuron.omega.len();
    let h = 1e-4;
    let moved = |i: usize, h: f64| {
        let mut neuron = neuron.clone();
        if i < d {
            neuron.omega[i] += h;
        } else {
            neuron.bias += h;
        }
        neuron
    };
    for i in 0..=d {
        let local = backend.local_scores(u, &[moved(i, h), moved(i, -h)]).unwrap();
        let slope = (local[0].value - local[1].value) / (2.0 * h);
        let scale = score.gradient.iter().map(|g| g.abs()).sum::<f64>() + score.value.abs();
        assert!(
            (slope - score.gradient[i]).abs() < 1e-5 * scale,
            "{slope} {:?}",
            score.gradient
        );
    }
}
