//! The same bytes from any number of processes: here in threads, as in `tests/cluster.rs` by MPI.

use greedy_pde::cluster::{Cluster, in_threads};
use greedy_pde::network::Network;
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::{RunOptions, run, table_axes};
use greedy_pde::sums::{MomentTables, PassOptions, PrecisionChoice, TableStore};
use std::ops::ControlFlow;

fn solved(problem: &Problem, precision: PrecisionChoice, cluster: Cluster) -> Network {
    let options = RunOptions {
        cluster,
        precision,
        ..RunOptions::default()
    };
    run(problem, &options, &mut |_| ControlFlow::Continue(()))
        .unwrap()
        .1
}

fn bits(network: &Network) -> Vec<u64> {
    let neurons = network
        .neurons
        .iter()
        .flat_map(|g| g.omega.iter().chain([&g.bias]));
    neurons
        .chain(&network.coefficients)
        .map(|number| number.to_bits())
        .collect()
}

fn check(equation: &str, dictionary: &str, quadrature: &str, solver: &str) {
    check_in(PrecisionChoice::Auto, equation, dictionary, quadrature, solver);
}

fn check_in(precision: PrecisionChoice, equation: &str, dictionary: &str, quadrature: &str, solver: &str) {
    let text = format!(
        "name = \"shared\"\n[domain]\ndimension = 2\n[equation]\n{equation}\n[dictionary]\n{dictionary}\n\
         [quadrature]\n{quadrature}\n[solver]\n{solver}\n"
    );
    let problem = Problem::from_toml(&text, "shared", &Overrides::default()).unwrap();
    let alone = bits(&solved(&problem, precision, Cluster::alone()));
    assert!(alone.len() > 8, "too few neurons for a test");
    for size in [2, 3, 8] {
        for network in in_threads(size, |cluster| solved(&problem, precision, cluster)) {
            assert_eq!(bits(&network), alone, "{size} processes");
        }
    }
}

const ENERGY: &str =
    "reaction = \"1\"\nexact = \"cos(pi*x)*cos(2*pi*y)\"\n[boundary]\ncondition = \"neumann\"";
const HELD: &str = "exact = \"sin(pi*x)*sin(pi*y)\"\n[boundary]\ncondition = \"dirichlet\"";
const POTENTIAL: &str =
    "potential = \"u^4 + u^2\"\nsource = \"10*cos(pi*x)\"\n[boundary]\ncondition = \"neumann\"";

#[test]
fn neurons_that_are_moved() {
    check(
        ENERGY,
        "activation = \"relu^3\"\ncandidates = 16",
        "rule = \"gauss\"\ncells = 40\ncurvature = 30",
        "neurons = 10\npolish = 3",
    );
}

#[test]
fn by_slope() {
    let solver = "neurons = 8\nselection = \"slope\"\nguard = true";
    check(
        ENERGY,
        "activation = \"relu^2\"",
        "rule = \"gauss\"\ncells = 40",
        solver,
    );
}

/// Whole numbers: of a few points and of many, of an inside and boundaries where some processes have no points, of
/// residuals, and of columns that the host computed.
#[test]
fn in_whole_numbers() {
    let gauss = "rule = \"gauss\"\ncells = 40";
    let halton = "rule = \"halton\"\npoints = 30000";
    let residual = "formulation = \"residual\"\noperator = \"-laplacian(u) + u\"\n\
                    exact = \"cos(pi*x)*y\"\n[boundary]\ncondition = \"dirichlet\"";
    let relu = |power: usize| format!("activation = \"relu^{power}\"\ncandidates = 24");
    for (equation, power, quadrature, solver) in [
        (
            ENERGY,
            2,
            gauss,
            "neurons = 8\nselection = \"slope\"\nguard = true",
        ),
        (ENERGY, 2, halton, "neurons = 8\nselection = \"decrease\""),
        (HELD, 3, gauss, "neurons = 6\nprojection = \"orthogonal\""),
        (residual, 3, gauss, "neurons = 6"),
        (POTENTIAL, 2, halton, "neurons = 5"),
    ] {
        let precision = PrecisionChoice::Integer;
        check_in(precision, equation, &relu(power), quadrature, solver);
    }
}

#[test]
fn by_decrease_with_refinement() {
    let solver = "neurons = 8\nselection = \"decrease\"";
    check(
        ENERGY,
        "activation = \"relu^2\"",
        "rule = \"halton\"\npoints = 30000",
        solver,
    );
}

#[test]
fn by_values_at_the_points_with_boundary_data() {
    let solver = "neurons = 6\nprojection = \"orthogonal\"";
    check(
        HELD,
        "activation = \"relu^3\"",
        "rule = \"gauss\"\ncells = 24",
        solver,
    );
}

#[test]
fn points_that_are_generated_anew() {
    let quadrature = "rule = \"gauss\"\ncells = 40\ncache_mib = 0";
    check(ENERGY, "activation = \"relu^2\"", quadrature, "neurons = 5");
}

const PASS: &str = "name = \"pass\"\n[domain]\ndimension = 3\n[equation]\ndiffusion = \"1 + x\"\nreaction = \"2 + y\"\n\
    exact = \"cos(x) + sin(3*y) + z^2\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
    directions = \"axes\"\noffsets = 12\n[quadrature]\nrule = \"halton\"\npoints = 30000\n[solver]\nneurons = 8\n";

/// The tables of a pass in groups of 2500 points, or where it was ended after so many points; and how many it had to do.
fn pass(cluster: Cluster, store: Option<&TableStore>, last: usize) -> (Option<Vec<u64>>, usize) {
    let problem = Problem::from_toml(PASS, "pass", &Overrides::default()).unwrap();
    let loss = problem.loss(8, Purpose::Training).unwrap();
    let (power, axes) = table_axes(&problem, &loss).unwrap();
    let options = PassOptions {
        cluster: cluster.clone(),
        points_per_group: 2500,
        store,
        ..PassOptions::default()
    };
    let mut seen = None;
    let mut observer = |done: usize, _: usize| {
        seen.get_or_insert(done);
        // Whoever is asked to stop, all do.
        match cluster.any(done >= last && cluster.is_last()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let tables = MomentTables::new(&loss.terms[0], power, axes, options, &mut observer).ok();
    let numbers = tables.map(|tables| {
        let across = tables.across(0, &vec![1.0; tables.axes[0].count * (power + 1)], 2);
        let lists = [&tables.values, &tables.slopes, &tables.loads, &tables.slope_loads];
        let numbers = lists.into_iter().flatten().flatten().chain(&across);
        numbers.map(|number| number.to_bits()).collect()
    });
    (numbers, seen.unwrap_or(0))
}

/// A pass over the points in groups: the sums of a process do not show who had which.
#[test]
fn tables_of_moments() {
    let alone = pass(Cluster::alone(), None, usize::MAX).0;
    assert!(alone.is_some());
    for size in [2, 3, 5, 8] {
        for (of_process, _) in in_threads(size, |cluster| pass(cluster, None, usize::MAX)) {
            assert!(of_process == alone, "{size} processes");
        }
    }
}

/// A pass that was ended is taken up where it was, by other numbers of processes, and by one.
#[test]
fn a_shared_pass_is_taken_up() {
    let alone = pass(Cluster::alone(), None, usize::MAX).0;
    let folder = tempfile::tempdir().unwrap();
    let store = TableStore {
        path: folder.path().join("tables"),
        run: "this".to_string(),
        every: usize::MAX,
    };
    let store = Some(&store);
    let ended = in_threads(3, |cluster| pass(cluster, store, 7500));
    assert!(ended.iter().all(|(tables, _)| tables.is_none()));
    // The next round of two has the groups after the first three.
    let ended = in_threads(2, |cluster| pass(cluster, store, 12_500));
    assert!(
        ended
            .iter()
            .all(|(tables, first)| tables.is_none() && *first == 12_500)
    );
    for (tables, first) in in_threads(4, |cluster| pass(cluster, store, usize::MAX)) {
        assert_eq!(first, 22_500);
        assert!(tables == alone);
    }
    assert!(pass(Cluster::alone(), store, usize::MAX).0 == alone);
}

/// Steps in time with loads that move, and a potential.
#[test]
fn flows() {
    for equation in [
        "exact = \"sin(x - 2*t)*y\"\n[boundary]\ncondition = \"dirichlet\"",
        "potential = \"u^4\"\nsource = \"t*x\"\n[boundary]\ncondition = \"neumann\"",
    ] {
        let time = "neurons = 12\n[time]\nend = 0.1\nsteps = 3\ninitial = \"x*y\"\ninitial_neurons = 6";
        check(
            equation,
            "activation = \"relu^2\"",
            "rule = \"gauss\"\ncells = 16",
            time,
        );
    }
}

/// Relaxed steps, and Newton's method, with a potential.
#[test]
fn potentials() {
    for solver in [
        "neurons = 10\nalgorithm = \"rga\"\nradius = 4",
        "neurons = 8\nalgorithm = \"oga\"",
    ] {
        check(
            POTENTIAL,
            "activation = \"relu^2\"",
            "rule = \"monte_carlo\"\npoints = 9000",
            solver,
        );
    }
}
