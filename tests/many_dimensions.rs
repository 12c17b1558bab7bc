//! Problems in many dimensions: moment tables, lattices, a pass that is interrupted.

mod common;

use common::{config, rate, row, solve};
use greedy_pde::error::SolveError;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::{Event, RunOptions, run};
use greedy_pde::sums::TableStore;
use std::ops::ControlFlow;

fn points(points: usize, neurons: usize) -> Overrides {
    Overrides {
        points: Some(points),
        neurons: Some(neurons),
        ..Overrides::default()
    }
}

#[test]
fn another_separable_problem_in_six_dimensions() {
    let report = solve(&config("separable_6d", points(1 << 16, 64)));
    assert!(rate(&report.rows, 16, |row| row.h1) > 2.0);
    assert!(report.rows.last().unwrap().l2.unwrap() < 5e-3);
    assert!(report.error_uncertainty.unwrap()[0] < 0.02);
}

#[test]
fn a_lattice_beats_halton_by_far() {
    let mut problem = config("ex5_elliptic_10d", points(1 << 16, 96));
    let halton = solve(&problem).rows.last().unwrap().l2.unwrap();
    problem.quadrature.rule = greedy_pde::points::Rule::Lattice {
        points: 1 << 16,
        shift: 0,
    };
    let lattice = solve(&problem).rows.last().unwrap().l2.unwrap();
    assert!(4.0 * lattice < halton, "{lattice} {halton}");
}

#[test]
fn example_5_has_the_papers_errors_at_a_hundredth_of_its_points() {
    let report = solve(&config("ex5_elliptic_10d", points(1_000_000, 64)));
    let last = row(&report, 64);
    assert!(last.l2.unwrap() < 5.2e-3 && last.h1.unwrap() < 0.115, "{last:?}");
}

/// Runs until the pass has seen so many points of the training set; the last event's count.
fn interrupted_run(problem: &Problem, options: &RunOptions, after: usize) -> usize {
    let mut seen = 0;
    let result = run(problem, options, &mut |event| match event {
        Event::Points { done, total } if *total == 1_048_576 => {
            seen = *done;
            match *done >= after {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(result.unwrap_err(), SolveError::Interrupted);
    seen
}

#[test]
fn a_pass_that_was_interrupted_goes_on_to_the_same_network() {
    let directory = tempfile::tempdir().unwrap();
    let mut problem = config("separable_6d", points(1 << 20, 12));
    // One pass only.
    problem.settings.guard = false;
    let options = RunOptions {
        tables: Some(TableStore {
            path: directory.path().join("tables"),
            run: "this very run".to_string(),
            every: 1 << 18,
        }),
        ..RunOptions::default()
    };
    let whole = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
    .1;
    let seen = interrupted_run(&problem, &options, 500_000);
    assert!(seen < 1 << 20);
    let mut first = None;
    let resumed = run(&problem, &options, &mut |event| {
        if let Event::Points {
            done,
            total: 1_048_576,
        } = event
        {
            first.get_or_insert(*done);
        }
        ControlFlow::Continue(())
    });
    assert!(first.unwrap() > seen, "the pass began again");
    assert_eq!(resumed.unwrap().1, whole);
    // The sums of another run, or damaged ones, are not taken up.
    let path = directory.path().join("tables");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(
        run(&problem, &options, &mut |_| ControlFlow::Continue(()))
            .unwrap()
            .1,
        whole
    );
}
