//! The problems that others have published.

mod common;

use common::{neurons, solve};
use greedy_pde::problem::Problem;

/// Every file of configs/field, made small, is solved, and its error falls: in the norm of the energy that is minimised
/// (of the fourth order L2 follows much later), in L2 where a residual is.
#[test]
fn errors_fall_in_every_published_problem() {
    let mut files = 0;
    for entry in std::fs::read_dir("configs/field").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        files += 1;
        let mut overrides = neurons(24);
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("cells = ") {
            overrides.cells = Some(if text.contains("dimension = 4") { 4 } else { 12 });
        } else if text.contains("residual") {
            overrides.points = Some(16384);
        } else {
            // The norms of neurons in corners need so many.
            overrides.points = Some(65536);
        }
        let problem = Problem::from_path(&path, &overrides).unwrap();
        let rows = solve(&problem).rows;
        let energies: Option<Vec<f64>> = rows.iter().map(|row| row.energy).collect();
        let falls = match energies {
            Some(energies) => energies[energies.len() - 1] < 0.85 * energies[0],
            None => rows[rows.len() - 1].l2.unwrap() < 0.7 * rows[0].l2.unwrap(),
        };
        assert!(falls, "{}: {rows:?}", path.display());
    }
    assert_eq!(files, 8);
}
