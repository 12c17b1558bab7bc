//! The laws of sums over points, and a problem to check them on.

use greedy_pde::activation::Activation;
use greedy_pde::candidates::{Candidates, Grid, Knots, Line};
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::sums::{Accuracy, LocalScore, Rho, Sums};

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

/// A grid with one of the network's lines in it.
pub fn grid(activation: Activation, dimension: usize) -> Grid {
    let knots = Knots {
        first: -1.5,
        step: 0.25,
        count: 13,
    };
    let lines = [0.0, 0.7, 2.0].map(|angle| Line {
        omega: unit(dimension, angle),
        knots,
    });
    Grid::new(lines.to_vec(), activation.has_sweep())
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-11 * scale
}

/// Checks every law, to rounding of double precision, with the neurons of `u` (at least four, no two alike)
/// and of `grid`.
pub fn check_laws(sums: &dyn Sums, u: &Network, grid: &Grid) {
    let zero = Network::zero(sums.activation(), u.dimension);
    let n = u.len();

    // Symmetry of the curvature.
    let columns: Vec<Vec<f64>> = u
        .neurons
        .iter()
        .map(|v| sums.gram_column(v, &u.neurons).unwrap())
        .collect();
    let norm = |i: usize| columns[i][i].sqrt();
    for (j, row) in sums.gram(&u.neurons).unwrap().iter().enumerate() {
        assert_eq!(row.len(), j + 1);
        for (i, product) in row.iter().enumerate() {
            assert!(
                close(*product, columns[j][i], norm(i) * norm(j)),
                "all at once: {i} {j}"
            );
        }
    }
    for (i, column) in columns.iter().enumerate() {
        for (j, product) in column.iter().enumerate() {
            assert!(
                close(*product, columns[j][i], norm(i) * norm(j)),
                "{i} {j}: {product} {} {} {}",
                columns[j][i],
                norm(i),
                norm(j)
            );
        }
    }

    // The gradient is affine with the curvature as its slope: D and its adjoint agree.
    let rho = sums.gradient(u).unwrap();
    let at_zero = sums.gradient(&zero).unwrap().list_scores(&u.neurons).unwrap();
    let at_u = rho.list_scores(&u.neurons).unwrap();
    for i in 0..n {
        let terms = (0..n).map(|j| u.coefficients[j] * columns[j][i]);
        let scale: f64 = terms.clone().map(f64::abs).sum::<f64>() + at_zero[i].abs();
        assert!(
            close(at_u[i], at_zero[i] + terms.sum::<f64>(), scale),
            "gradient {i}"
        );
    }

    // The risk's derivative is the gradient.
    let last = n - 1;
    let moved = |h: f64| {
        let mut moved = u.clone();
        moved.coefficients[last] += h;
        sums.risk(&moved).unwrap()
    };
    let (above, below) = (moved(0.5), moved(-0.5));
    assert!(
        ((above - below) - at_u[last]).abs() < 1e-10 * (above.abs() + below.abs()),
        "risk"
    );

    check_advance(sums, u);
    check_root(sums, u);
    check_squares(sums, &zero, Candidates::List(&u.neurons), &u.neurons);
    let of_grid: Vec<Neuron> = (0..grid.len()).map(|index| grid.neuron(index)).collect();
    check_squares(sums, &zero, Candidates::Grid(grid), &of_grid);
    check_values(sums, u, &columns, &at_u);
    if let Some(slopes) = rho.slopes() {
        // Where the activation is smooth enough: the test problems have at most two derivatives in the loss.
        let smooth = sums.activation().smoothness() >= 5;
        let from = n - n.min(5);
        let local = slopes.slopes_at(&u.neurons[from..]).unwrap();
        for (i, score) in (from..n).zip(&local) {
            let scale = columns[i][i].abs() + at_u[i].abs() + at_zero[i].abs();
            assert!(close(score.value, at_u[i], scale), "value of slope {i}");
            if smooth {
                check_slopes(&*rho, &u.neurons[i], score);
            }
        }
    }
    check_grid(&*rho, grid);
}

/// A field that was advanced is that of the network it stands for.
fn check_advance(sums: &dyn Sums, u: &Network) {
    let g = &u.neurons[0];
    let mut field = sums.at(u).unwrap();
    // Whatever is kept of u is kept by now.
    let before = field.gradient().unwrap().list_scores(&u.neurons).unwrap();
    field.advance(0.75, g, -0.3).unwrap();
    let fresh = sums.at(&u.advanced(0.75, g, -0.3)).unwrap();
    let scores =
        |field: &dyn greedy_pde::sums::Field| field.gradient().unwrap().list_scores(&u.neurons).unwrap();
    for ((a, b), before) in scores(&*field).iter().zip(scores(&*fresh)).zip(before) {
        assert!((a - b).abs() <= 1e-9 * (before.abs() + b.abs()), "{a} {b}");
    }
    let (a, b) = (field.risk().unwrap(), fresh.risk().unwrap());
    assert!((a - b).abs() <= 1e-10 * (a.abs() + b.abs()), "{a} {b}");
}

/// The squares of norms are the diagonal of the Gram matrix.
fn check_squares(sums: &dyn Sums, zero: &Network, along: Candidates, neurons: &[Neuron]) {
    let squares = sums.at(zero).unwrap().squares(along).unwrap();
    let largest = squares.iter().fold(0.0f64, |m, s| m.max(*s));
    for (i, (square, neuron)) in squares.iter().zip(neurons).enumerate() {
        let expected = sums.gram_column(neuron, std::slice::from_ref(neuron)).unwrap()[0];
        assert!(
            (square - expected).abs() <= 1e-10 * expected + 1e-12 * largest,
            "square {i}: {square} {expected}"
        );
    }
}

/// A square root of the curvature at u, where there is one, quadratic loss or not.
pub fn check_root(sums: &dyn Sums, u: &Network) {
    let field = sums.at(u).unwrap();
    let Some(root) = field.root() else {
        return;
    };
    let (v, g) = (&u.neurons[1], &u.neurons[u.len() - 1]);
    let values = [root.of(v).unwrap(), root.of(g).unwrap()];
    assert_eq!(values[0].len(), root.length());
    let column = field
        .curvature(&Network::single(u.activation, v))
        .unwrap()
        .list_scores(&[v.clone(), g.clone()])
        .unwrap();
    let scale = (column[0] * root.square(&values[1])).sqrt();
    for (product, expected) in root.products(&values, &values[0]).iter().zip(&column) {
        assert!(close(*product, *expected, scale), "{product} {expected}");
    }
}

/// Values at the points, where there are any.
fn check_values(sums: &dyn Sums, u: &Network, columns: &[Vec<f64>], at_u: &[f64]) {
    let Some(values) = sums.values() else {
        return;
    };
    let norm = |i: usize| columns[i][i].sqrt();
    let of: Vec<Vec<f64>> = u.neurons.iter().map(|v| values.of(v).unwrap()).collect();
    assert_eq!(of[0].len(), values.length());
    for i in 0..of.len() {
        for (j, product) in values.products(&of, &of[i]).iter().enumerate() {
            assert!(
                close(*product, columns[i][j], norm(i) * norm(j)),
                "{i} {j}: {product} {} {} {}",
                columns[j][i],
                norm(i),
                norm(j)
            );
        }
        assert!(close(values.square(&of[i]), columns[i][i], columns[i][i]));
    }
    let of_u: Vec<f64> = (0..values.length())
        .map(|k| of.iter().zip(&u.coefficients).map(|(v, a)| a * v[k]).sum())
        .collect();
    let scores = values
        .gradient_from(&of_u)
        .unwrap()
        .list_scores(&u.neurons)
        .unwrap();
    let size = values.square(&of_u).sqrt();
    for (i, score) in scores.iter().enumerate() {
        assert!(
            close(*score, at_u[i], size * norm(i) + at_u[i].abs()),
            "from values {i}"
        );
    }
}

/// A grid and the list of its neurons, in both accuracies.
fn check_grid(rho: &dyn Rho, grid: &Grid) {
    let list: Vec<Neuron> = (0..grid.len()).map(|i| grid.neuron(i)).collect();
    let one_by_one: Vec<f64> = list
        .iter()
        .map(|neuron| rho.list_scores(std::slice::from_ref(neuron)).unwrap()[0])
        .collect();
    let largest = one_by_one.iter().fold(0.0f64, |m, s| m.max(s.abs()));
    for accuracy in [Accuracy::Fast, Accuracy::Full] {
        let by_grid = rho.scores(Candidates::Grid(grid), accuracy).unwrap();
        let tolerance = 1e-10 * largest + by_grid.error;
        for (a, b) in by_grid.values.iter().zip(&one_by_one) {
            assert!((a - b).abs() <= tolerance, "{accuracy:?}: {a} {b}");
        }
    }
    let as_list = rho.scores(Candidates::List(&list), Accuracy::Fast).unwrap();
    assert_eq!(as_list.error, 0.0, "a list is scored in full");
}

fn check_slopes(rho: &dyn Rho, neuron: &Neuron, score: &LocalScore) {
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
        let values = rho.list_scores(&[moved(i, h), moved(i, -h)]).unwrap();
        let slope = (values[0] - values[1]) / (2.0 * h);
        let scale = score.gradient.iter().map(|g| g.abs()).sum::<f64>() + score.value.abs();
        assert!(
            (slope - score.gradient[i]).abs() < 1e-5 * scale,
            "{slope} {:?}",
            score.gradient
        );
    }
}
