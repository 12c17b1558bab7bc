//! The estimated error of a run beside the true one, and the sentence of a run that should not be used.

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Report;
use greedy_pde::run::{RunOptions, run};
use std::ops::ControlFlow;

fn solved(text: &str, overrides: &Overrides) -> Report {
    let problem = Problem::from_toml(text, "test.toml", overrides).unwrap();
    let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    report
}

/// A shipped problem at a small size.
fn shipped(name: &str, neurons: usize, cells: Option<usize>, points: Option<usize>) -> Report {
    let text = std::fs::read_to_string(format!("configs/{name}.toml")).unwrap();
    let overrides = Overrides {
        neurons: Some(neurons),
        cells,
        points,
        seed: None,
    };
    solved(&text, &overrides)
}

fn within(name: &str, what: &str, error: f64, estimate: f64) {
    let ratio = estimate / error;
    assert!(
        (1.0 / 3.0..=3.0).contains(&ratio),
        "{name}: {what} is {error:.2e}, estimated at {estimate:.2e}"
    );
}

#[test]
fn estimates_of_shipped_problems_are_within_a_factor_of_three() {
    let runs = [
        ("ex1_neumann", 32, Some(500), None),
        ("ex1_dirichlet", 32, Some(500), None),
        ("ex1_pinn", 32, None, None),
        ("ex2_three_peaks", 32, Some(1000), None),
        ("ex3_energy", 32, Some(50), None),
        ("ex3_pinn", 32, None, None),
        ("ex4_biharmonic", 32, Some(50), None),
        ("ex5_elliptic_10d", 64, None, Some(100_000)),
        ("separable_6d", 64, None, Some(16_384)),
        ("cube_3d", 32, Some(8), None),
        ("ex6_oga", 32, Some(30), None),
        ("ex6_poisson_boltzmann", 64, None, None),
    ];
    for (name, neurons, cells, points) in runs {
        let report = shipped(name, neurons, cells, points);
        let (row, estimate) = (report.rows.last().unwrap(), report.estimate.as_ref().unwrap());
        within(name, "the L2 error", row.l2.unwrap(), estimate.l2);
        within(name, "the H1 error", row.h1.unwrap(), estimate.h1);
        if let (Some(error), None) = (row.energy, row.excess) {
            within(name, "the energy error", error, estimate.energy.unwrap());
        }
        // The relaxed algorithm is far from the solution by then, and says so.
        assert_eq!(
            report.usable,
            name != "ex6_poisson_boltzmann",
            "{name}: {:?}",
            report.warnings
        );
    }
}

fn warned(report: &Report, words: &str) {
    let said = report.warnings.iter().any(|warning| warning.contains(words));
    assert!(said, "no `{words}` in {:?}", report.warnings);
}

/// −εu″ + u′ = 1.
fn convection(epsilon: &str, order: usize) -> String {
    format!(
        "name = \"layer\"\n[domain]\ndimension = 1\n[constants]\neps = {epsilon}\n\
         [equation]\nformulation = \"residual\"\noperator = \"-eps*d(u,x,x) + d(u,x)\"\nsource = \"1\"\n\
         [boundary]\ncondition = \"dirichlet\"\nvalue = \"0\"\n[dictionary]\nactivation = \"relu^3\"\n\
         [quadrature]\nrule = \"gauss\"\norder = {order}\ncells = 1000\n[solver]\nneurons = 128\n"
    )
}

#[test]
fn a_layer_that_is_not_found_is_no_result() {
    let report = solved(&convection("0.001", 4), &Overrides::default());
    assert!(!report.usable);
    warned(&report, "the residual is still");
}

#[test]
fn a_validation_loss_far_above_the_training_loss_is_told() {
    let report = solved(&convection("0.01", 2), &Overrides::default());
    warned(&report, "times that on the training points");
}

#[test]
fn a_cube_in_six_dimensions_that_is_hardly_filled_is_no_result() {
    let text = "name = \"six\"\n[domain]\ndimension = 6\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
        source = \"exp(-sum(i, (x[i]-0.5)^2))\"\n[boundary]\ncondition = \"dirichlet\"\npenalty = \"0.01\"\n\
        [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"lattice\"\npoints = 4096\n\
        [solver]\nneurons = 24\n";
    let report = solved(text, &Overrides::default());
    assert!(!report.usable, "{:?}", report.estimate);
    warned(&report, "should not be used");
}

/// −u″ + u = f, u = 0 at both ends.
fn held(penalty: &str) -> String {
    format!(
        "name = \"held\"\n[domain]\ndimension = 1\nlower = -1\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
         exact = \"cos(pi/2*x)\"\n[boundary]\ncondition = \"dirichlet\"\npenalty = \"{penalty}\"\n\
         [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 200\n[solver]\nneurons = 24\n"
    )
}

#[test]
fn a_penalty_that_limits_the_error_is_told() {
    warned(
        &solved(&held("0.01"), &Overrides::default()),
        "the penalty limits the error",
    );
    let falling = solved(&held("0.1*n^-2"), &Overrides::default());
    assert!(falling.warnings.is_empty(), "{:?}", falling.warnings);
}

#[test]
fn a_run_that_stops_short_is_told() {
    let text = "name = \"constant\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
        exact = \"1\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
        [quadrature]\nrule = \"gauss\"\ncells = 200\n[solver]\nneurons = 16\n";
    let report = solved(text, &Overrides::default());
    assert!(report.neurons < 16);
    warned(&report, "stopped at");
}

/// Neurons along the axes cannot make a product: no comparison of networks sees it, functions of other shapes do.
#[test]
fn what_the_dictionary_cannot_make_is_seen() {
    let text = "name = \"axes\"\n[domain]\ndimension = 2\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
                source = \"(1 + pi^2)*cos(pi*x) + (1 + 2*pi^2)*cos(pi*x)*cos(pi*y)\"\n[boundary]\ncondition = \"neumann\"\n\
                [dictionary]\nactivation = \"relu^2\"\ndirections = \"axes\"\n[quadrature]\nrule = \"gauss\"\ncells = 32\n\
                [solver]\nneurons = 24\n";
    let report = solved(text, &Overrides::default());
    let estimate = report.estimate.clone().unwrap();
    // ‖cos πx cos πy‖ = ½.
    assert!((0.2..1.5).contains(&estimate.l2), "{estimate:?}");
    assert!(!report.usable, "{:?}", report.warnings);
}

/// An error against `exact` that the estimate does not see is told.
#[test]
fn a_measured_error_that_contradicts_the_estimate_is_told() {
    let text = "name = \"other\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\nsource = \"5\"\n\
                exact = \"cos(pi*x)\"\n[boundary]\ncondition = \"neumann\"\nvalue = \"0\"\n[dictionary]\nactivation = \"relu^2\"\n\
                [quadrature]\nrule = \"gauss\"\ncells = 100\n[solver]\nneurons = 16\n";
    let report = solved(text, &Overrides::default());
    assert!(!report.usable, "{:?} {:?}", report.estimate, report.warnings);
    let told = report
        .warnings
        .iter()
        .any(|warning| warning.contains("should not be used"));
    assert!(told, "{:?}", report.warnings);
}

/// Boundary values that weigh nothing in a residual beside the equation: the result was all wrong, and said to be good to 0.1 %.
#[test]
fn boundary_values_that_weigh_little_are_not_forgotten() {
    let text = "name = \"light\"\n[domain]\ndimension = 2\n[equation]\nformulation = \"residual\"\n\
        operator = \"-1e4*laplacian(u)\"\nsource = \"8e4*sin(3*x)*exp(y)\"\n[boundary]\ncondition = \"dirichlet\"\n\
        value = \"sin(3*x)*exp(y)+x*y\"\n[dictionary]\nactivation = \"relu^4\"\n[quadrature]\nrule = \"gauss\"\n\
        cells = 20\n[solver]\nneurons = 24\n";
    let problem = Problem::from_toml(text, "light.toml", &Overrides::default()).unwrap();
    let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(!report.usable, "{:?}", report.estimate);
    // With a weight that counts it is solved, and said to be.
    let text = text.replace("1e4*", "").replace("8e4", "8");
    let problem = Problem::from_toml(&text, "heavy.toml", &Overrides::default()).unwrap();
    let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(report.usable, "{:?}", report.warnings);
}
