//! Problems in two and three dimensions: mixed boundaries, fourth order, refinement, the guard.

mod common;

use common::{neurons, rate, row, solve};
use greedy_pde::greedy::Stopped;
use greedy_pde::problem::{Overrides, Problem};

/// A problem on the unit square with this equation and boundary.
fn square(equation: &str, activation: &str) -> Problem {
    let text = format!(
        "name = \"square\"\n[domain]\ndimension = 2\nlower = 0.0\nupper = 1.0\n{equation}\n\
         [dictionary]\nactivation = \"{activation}\"\ncandidates = 32\nbias = [-1.5, 1.5]\n\
         [quadrature]\nrule = \"gauss\"\ncells = 40\norder = 3\n[solver]\nneurons = 64\n"
    );
    Problem::from_toml(&text, "square.toml", &Overrides::default()).unwrap()
}

#[test]
fn dirichlet_on_two_edges_and_natural_on_the_others() {
    let problem = square(
        r#"
[equation]
exact = "sin(pi*x)*cos(pi*y)"
diffusion = "1 + x*y"
reaction = "1"
[[boundary]]
condition = "dirichlet"
faces = ["x[1]-", "x[1]+"]
penalty = "1e-5"
"#,
        "relu^2",
    );
    let report = solve(&problem);
    let last = report.rows.last().unwrap();
    assert!(last.l2.unwrap() < 3e-3, "{last:?}");
    assert!(last.h1.unwrap() < 0.1, "{last:?}");
    assert!(row(&report, 16).h1.unwrap() > 3.0 * last.h1.unwrap());
}

#[test]
fn boundary_data_that_differ_from_edge_to_edge_in_residual_form() {
    // The Neumann data of the upper edge and the Dirichlet data of the left one come from the exact solution.
    let problem = square(
        r#"
[equation]
formulation = "residual"
operator = "-laplacian(u) + d(u, x) + 3*u"
exact = "exp(x)*sin(y + 1)"
[[boundary]]
condition = "dirichlet"
faces = ["x[1]-", "x[1]+", "x[2]-"]
[[boundary]]
condition = "neumann"
faces = ["x[2]+"]
"#,
        "relu^3",
    );
    let report = solve(&problem);
    let last = report.rows.last().unwrap();
    assert!(last.l2.unwrap() < 2e-3, "{last:?}");
    assert!(last.loss < 1e-2 * row(&report, 8).loss, "{last:?}");
}

#[test]
fn a_clamped_plate_has_neither_value_nor_slope_at_its_edges() {
    let problem = square(
        r#"
[equation]
order = 4
diffusion = "1"
reaction = "1"
exact = "(sin(pi*x)*sin(pi*y))^2"
[boundary]
condition = "dirichlet"
penalty = "1e-5"
"#,
        "relu^3",
    );
    let report = solve(&problem);
    let (first, last) = (row(&report, 1), report.rows.last().unwrap());
    assert!(last.l2.unwrap() < 0.04 * first.l2.unwrap(), "{last:?}");
    assert!(last.energy.unwrap() < 0.2 * first.energy.unwrap(), "{last:?}");
}

#[test]
fn a_cube_is_solved_at_the_expected_order() {
    let overrides = Overrides {
        neurons: Some(64),
        cells: Some(12),
        ..Overrides::default()
    };
    let report = solve(&common::config("cube_3d", overrides));
    // ½ + (2(k − m) + 1)/(2d) = 4/3 for k = 3, m = 1, d = 3.
    assert!(rate(&report.rows, 8, |row| row.h1) > 4.0 / 3.0);
    assert!(report.rows.last().unwrap().h1.unwrap() < 0.09);
}

#[test]
fn example_4_has_the_papers_errors() {
    let overrides = Overrides {
        cells: Some(100),
        ..neurons(64)
    };
    let mut problem = common::config("ex4_biharmonic", overrides);
    problem.choose_by_slope();
    let report = solve(&problem);
    let last = report.rows.last().unwrap();
    assert!(last.l2.unwrap() < 1.2 * 3.36e-3, "{last:?}");
    assert!(last.energy.unwrap() < 1.2 * 0.585, "{last:?}");
}

#[test]
fn example_3_in_residual_form_has_the_papers_loss() {
    let report = solve(&common::config("ex3_pinn", neurons(64)));
    assert!(report.rows.last().unwrap().loss < 1.1 * 1.79);
}

#[test]
fn a_coarse_mesh_is_not_overfitted() {
    for refine in [false, true] {
        let overrides = Overrides {
            neurons: Some(200),
            cells: Some(40),
            ..Overrides::default()
        };
        let mut problem = common::config("ex3_energy", overrides);
        problem.dictionary.candidates = 50;
        // Finer than the cells: the argmax sees what the quadrature does not.
        problem.dictionary.offsets = Some(512);
        problem.dictionary.refine = refine;
        let report = solve(&problem);
        let best = report
            .rows
            .iter()
            .filter_map(|row| row.h1)
            .fold(f64::INFINITY, f64::min);
        assert!(report.rows.last().unwrap().h1.unwrap() < 2.0 * best);
        if report.stopped == Stopped::QuadratureLimit {
            assert!(
                report
                    .warnings
                    .iter()
                    .any(|warning| warning.contains("more cells"))
            );
        }
        // The negative control: without the guard the same run destroys its solution.
        problem.settings.guard = false;
        let naive = solve(&problem);
        assert!(
            naive.rows.last().unwrap().h1.unwrap() > 2.0 * best,
            "refine {refine}: {best} {:?}",
            naive.rows.last()
        );
    }
}
