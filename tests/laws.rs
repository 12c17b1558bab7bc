//! The laws of [`Sums`], checked on the CPU and on moment tables; `gpu.rs` checks them on every adapter.

mod common;

use common::laws::{check_laws, grid, network, problem};
use greedy_pde::activation::Activation;
use greedy_pde::candidates::{self, Candidates, Draw};
use greedy_pde::error::SolveError;
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::sums::{
    Accuracy, CpuOptions, CpuSums, CurvatureRoot, Field, HeldSums, MomentTables, PassOptions, PointValues,
    Remainders, Rho, Scores, Slopes, Sums, SumsReport, TableSums, WholeSums,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cpu(problem: &Problem, cache_bytes: usize) -> CpuSums {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    CpuSums::new(loss, problem.dictionary.activation, CpuOptions { cache_bytes }).unwrap()
}

#[test]
fn the_cpu_obeys_the_laws() {
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
        let activation = problem.dictionary.activation;
        let (u, grid) = (network(activation, dimension), grid(activation, dimension));
        check_laws(&cpu(&problem, 1 << 30), &u, &grid);
    }
}

#[test]
fn whole_numbers_obey_the_laws() {
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (2, "energy", "relu^1"),
        (3, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (1, "residual", "relu^3"),
        (2, "residual", "relu^2"),
        (2, "residual", "relu^5"),
        (1, "energy", "relu^5"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let activation = problem.dictionary.activation;
        let (u, grid) = (network(activation, dimension), grid(activation, dimension));
        let loss = problem.loss(8, Purpose::Training).unwrap();
        let sums = WholeSums::on_the_cpu(loss, &problem.domain, activation, CpuOptions::default()).unwrap();
        check_laws(&sums, &u, &grid);
    }
}

/// With conditions held by multipliers, those of values and of periods;
/// before λ was changed and after it was, twice, with fewer neurons at first.
#[test]
fn held_conditions_obey_the_laws() {
    let value = "[boundary]\ncondition = \"dirichlet\"";
    let period = "[boundary]\ncondition = \"periodic\"\nfaces = [\"x[1]-\", \"x[1]+\"]";
    let residual = "formulation = \"residual\"\noperator = \"-laplacian(u) + 3*u\"";
    let energy = "diffusion = \"1 + x[1]^2\"\nreaction = \"2 + x[1]\"";
    for (dimension, equation, boundary, activation) in [
        (1, energy, value, "relu^2"),
        (2, energy, value, "relu^2"),
        (2, energy, period, "relu^3"),
        (2, energy, value, "tanh"),
        (2, "order = 4\nreaction = \"1\"", period, "relu^3"),
        (2, residual, period, "relu^3"),
    ] {
        let text = format!(
            "name = \"held\"\n[domain]\ndimension = {dimension}\nlower = -1.0\nupper = 1.0\n[equation]\n{equation}\n\
             exact = \"exp(x[1]) + sum(i, cos(2*x[i]))\"\n{boundary}\n[dictionary]\nactivation = \"{activation}\"\n\
             [quadrature]\nrule = \"monte_carlo\"\npoints = 4000\nboundary_points = 300\n[solver]\nneurons = 8\n"
        );
        let problem = Problem::from_toml(&text, "held", &Overrides::default()).unwrap();
        let activation = problem.dictionary.activation;
        let held = problem.held_loss(Purpose::Training).unwrap().unwrap();
        let at_zero = held.completion().unwrap();
        let held = CpuSums::new(held, activation, CpuOptions::default()).unwrap();
        let loss = Box::new(cpu(&problem, 1 << 30));
        let with_multiplier = problem.has_multipliers();
        assert_eq!(with_multiplier, equation != residual);
        let sums = HeldSums::new(loss, (Box::new(held), at_zero), with_multiplier, dimension);
        let (u, grid) = (network(activation, dimension), grid(activation, dimension));
        check_laws(&sums, &u, &grid);
        let Some(multipliers) = sums.multipliers() else {
            continue;
        };
        let before = sums.gradient(&u).unwrap().list_scores(&u.neurons).unwrap();
        let risk = sums.risk(&u).unwrap();
        let first = Network {
            neurons: u.neurons[..10].to_vec(),
            coefficients: u.coefficients[..10].iter().map(|a| 0.5 * a).collect(),
            ..u.clone()
        };
        multipliers.update(&first);
        multipliers.update(&u);
        let changed = sums.gradient(&u).unwrap().list_scores(&u.neurons).unwrap();
        assert_ne!(before, changed);
        check_laws(&sums, &u, &grid);
        multipliers.reset();
        let again = sums.gradient(&u).unwrap().list_scores(&u.neurons).unwrap();
        assert_eq!(before, again);
        assert_eq!(risk, sums.risk(&u).unwrap());
    }
}

/// Sums that are right but for one small thing.
struct Damaged {
    sums: CpuSums,
    damage: Damage,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Gradient,
    Curvature,
    Risk,
    Advance,
    Grid,
    Squares,
}

struct DamagedField<'a>(Box<dyn Field<'a> + 'a>, Damage);
struct DamagedRho<'a>(Box<dyn Rho + 'a>, bool, bool);

impl Sums for Damaged {
    fn activation(&self) -> Activation {
        self.sums.activation()
    }
    fn points(&self) -> usize {
        self.sums.points()
    }
    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        Ok(Box::new(DamagedField(self.sums.at(u)?, self.damage)))
    }
    fn values(&self) -> Option<&dyn PointValues> {
        None
    }
    fn remainders(&self) -> Option<&dyn Remainders> {
        None
    }
    fn report(&self) -> SumsReport {
        self.sums.report()
    }
}

impl<'a> Field<'a> for DamagedField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let (off, grid) = (self.1 == Damage::Gradient, self.1 == Damage::Grid);
        Ok(Box::new(DamagedRho(self.0.gradient()?, off, grid)))
    }
    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let off = self.1 == Damage::Curvature;
        Ok(Box::new(DamagedRho(self.0.curvature(v)?, off, false)))
    }
    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let mut squares = self.0.squares(along)?;
        if self.1 == Damage::Squares {
            squares[0] *= 1.0 + 1e-6;
        }
        Ok(squares)
    }
    fn risk(&self) -> Result<f64, SolveError> {
        let factor = if self.1 == Damage::Risk { 1.0 + 1e-7 } else { 1.0 };
        Ok(factor * self.0.risk()?)
    }
    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        self.0.root()
    }
    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        let off = if self.1 == Damage::Advance { 1e-6 } else { 0.0 };
        self.0.advance(factor + off, g, coefficient)
    }
}

impl Rho for DamagedRho<'_> {
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError> {
        let mut scores = self.0.scores(along, accuracy)?;
        let on_grid = matches!(along, Candidates::Grid(_)) && self.2;
        if (self.1 || on_grid) && scores.values.len() > 2 {
            let sizes = scores.values.iter_mut();
            let largest = sizes.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
            *largest *= 1.0 + 1e-6;
        }
        Ok(scores)
    }
    fn slopes(&self) -> Option<&dyn Slopes> {
        None
    }
}

/// The negative control: each law notices when it is broken.
#[test]
fn broken_laws_are_noticed() {
    let problem = problem(2, "energy", "relu^2");
    let activation = problem.dictionary.activation;
    let (u, grid) = (network(activation, 2), grid(activation, 2));
    for damage in [
        Damage::Gradient,
        Damage::Curvature,
        Damage::Risk,
        Damage::Advance,
        Damage::Grid,
        Damage::Squares,
    ] {
        let sums = cpu(&problem, 1 << 30);
        let damaged = Damaged { sums, damage };
        let outcome = catch_unwind(AssertUnwindSafe(|| check_laws(&damaged, &u, &grid)));
        assert!(outcome.is_err(), "{damage:?} went unnoticed");
    }
}

#[test]
fn streaming_and_caching_give_the_same_bits() {
    let problem = problem(2, "energy", "relu^2");
    let u = network(problem.dictionary.activation, 2);
    let (cached, streamed) = (cpu(&problem, 1 << 30), cpu(&problem, 0));
    let scores = |sums: &CpuSums| {
        let rho = Sums::gradient(sums, &u).unwrap();
        let grid = grid(problem.dictionary.activation, 2);
        let on_grid = rho.scores(Candidates::Grid(&grid), Accuracy::Full).unwrap();
        (rho.list_scores(&u.neurons).unwrap(), on_grid.values)
    };
    assert_eq!(scores(&cached), scores(&streamed));
    assert_eq!(cached.risk(&u).unwrap(), streamed.risk(&u).unwrap());
}

/// The score of the definition, by a plain loop over points that a rule gives.
#[test]
fn scores_are_the_weak_form_of_the_equation() {
    let text = "name = \"plain\"\n[domain]\ndimension = 1\nlower = -1.0\nupper = 1.0\n[equation]\n\
        diffusion = \"2 + x\"\nreaction = \"3\"\nsource = \"x^2\"\n[boundary]\ncondition = \"neumann\"\nvalue = \"5\"\n\
        [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 7\norder = 3\n[solver]\nneurons = 1\n";
    let problem = Problem::from_toml(text, "plain", &Overrides::default()).unwrap();
    let sums = cpu(&problem, 1 << 20);
    let u = network(Activation::Relu(2), 1);
    let g = Neuron {
        omega: vec![-1.0],
        bias: 0.25,
    };
    let single = Network::single(Activation::Relu(2), &g);
    let points = greedy_pde::points::CompositeGauss::new(&[7], 3);
    let (mut columns, mut weights) = (vec![vec![0.0; 21]], vec![0.0; 21]);
    points.fill(0..21, &mut columns, &mut weights);
    let mut expected = -5.0 * (single.value(&[-1.0]) + single.value(&[1.0]));
    for (s, w) in columns[0].iter().zip(&weights) {
        let x = [2.0 * s - 1.0];
        let bilinear =
            (2.0 + x[0]) * u.gradient(&x)[0] * single.gradient(&x)[0] + 3.0 * u.value(&x) * single.value(&x);
        expected += 2.0 * w * (bilinear - x[0] * x[0] * single.value(&x));
    }
    let score = sums.gradient(&u).unwrap().list_scores(&[g]).unwrap()[0];
    assert!((score - expected).abs() < 1e-12, "{score} {expected}");
}

/// Tables and sums over the points are two ways to the same numbers, boundary data included. (Seven
/// steps: no Halton point lies on a knot, where the slope of relu^1 is anyone's choice.)
#[test]
fn moment_tables_agree_with_sums_over_the_points() {
    for activation in ["relu^1", "relu^2", "relu^3", "relu^4"] {
        let text = format!(
            "name = \"axes\"\n[domain]\ndimension = 3\nlower = [0.0, -1.0, 0.0]\nupper = [1.0, 1.0, 2.0]\n[equation]\n\
             diffusion = \"1 + x[1]*x[3]\"\nreaction = \"2 + x[2]\"\nexact = \"exp(x[1]) + x[2]*x[3]\"\n\
             [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"{activation}\"\ndirections = \"axes\"\n\
             bias = [-3.0, 3.0]\noffsets = 7\n[quadrature]\nrule = \"halton\"\npoints = 20000\n[solver]\nneurons = 8\n"
        );
        let problem = Problem::from_toml(&text, "axes", &Overrides::default()).unwrap();
        let sums = cpu(&problem, 1 << 30);
        let mut loss = problem.loss(8, Purpose::Training).unwrap();
        let (power, axes) = greedy_pde::run::table_axes(&problem, &loss).unwrap();
        let inside = loss.terms.remove(0);
        let tables = MomentTables::new(&inside, power, axes, PassOptions::default(), &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let rest = CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap();
        let moments = TableSums::new(tables, inside.points.len(), Some(rest));
        assert_eq!(sums.points(), moments.points());
        let rule = problem.quadrature.rule;
        let draw = Draw {
            seed: 0,
            step: Some(0),
        };
        let grid = candidates::grid(&problem.dictionary, &problem.domain, &rule, draw);
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
        let norm = |v: &Neuron| moments.gram_column(v, std::slice::from_ref(v)).unwrap()[0];
        let active: Vec<Neuron> = u.neurons.iter().filter(|v| norm(v) > 0.0).cloned().collect();
        let (v, other) = (&active[0], &active[active.len() - 1]);
        for along in [Candidates::Grid(&grid), Candidates::List(&u.neurons)] {
            let scores = |sums: &dyn Sums, v: Option<&Neuron>| {
                let field = sums.at(&u).unwrap();
                let rho = match v {
                    Some(v) => field.curvature(&Network::single(u.activation, v)).unwrap(),
                    None => field.gradient().unwrap(),
                };
                rho.scores(along, Accuracy::Full).unwrap().values
            };
            assert!(close(&scores(&moments, None), &scores(&sums, None)));
            assert!(close(&scores(&moments, Some(v)), &scores(&sums, Some(v))));
            // The negative control.
            assert!(!close(&scores(&moments, Some(other)), &scores(&sums, Some(v))));
        }
        let u_of_active = Network {
            coefficients: (0..active.len()).map(|i| (i as f64).sin()).collect(),
            neurons: active,
            ..u.clone()
        };
        check_laws(&moments, &u_of_active, &grid);
        let (a, b) = (moments.risk(&u).unwrap(), sums.risk(&u).unwrap());
        assert!((a - b).abs() < 1e-10 * b.abs(), "{a} {b}");
    }
}
