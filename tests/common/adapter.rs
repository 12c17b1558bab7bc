//! Tests that need an adapter: without one they are shown as ignored, with `GREEDY_PDE_REQUIRE_GPU` set they fail.

use greedy_pde::candidates::DirectionKind;
use greedy_pde::gpu::{self, AdapterChoice, Gpu};
use greedy_pde::problem::{Overrides, Problem};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::sync::Arc;

/// A test and its name.
pub type OnAdapter = (&'static str, fn());

/// Runs tests with these variables set.
pub fn run_on_adapter(variables: &[&str], tests: Vec<OnAdapter>) {
    for variable in ["NODEVICE_SELECT"].iter().chain(variables) {
        // SAFETY: no other thread has been started yet.
        unsafe { std::env::set_var(variable, "1") };
    }
    let adapter = gpu::choose(&any_adapter());
    let required = std::env::var_os("GREEDY_PDE_REQUIRE_GPU").is_some();
    if let (Err(error), true) = (&adapter, required) {
        eprintln!("GREEDY_PDE_REQUIRE_GPU is set, but: {error}");
        std::process::exit(1);
    }
    let missing = adapter.is_err();
    let trial = |(name, test): OnAdapter| {
        let run = move || {
            test();
            Ok::<(), Failed>(())
        };
        Trial::test(name, run).with_ignored_flag(missing)
    };
    let trials = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A software adapter, too.
pub fn any_adapter() -> AdapterChoice {
    AdapterChoice {
        name: None,
        software: true,
        ..AdapterChoice::default()
    }
}

/// The adapter, opened.
pub fn open() -> Arc<Gpu> {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    Arc::new(Gpu::open(&adapter).unwrap())
}

/// A shipped problem with so many neurons, made small.
pub fn small(path: &Path, neurons: usize) -> Problem {
    let sized = |cells, points| {
        let overrides = Overrides {
            neurons: Some(neurons),
            cells,
            points,
            ..Overrides::default()
        };
        Problem::from_path(path, &overrides)
    };
    let dimension = Problem::from_path(path, &Overrides::default())
        .unwrap()
        .dimension();
    let cells = [400, 24, 8][dimension.min(3) - 1];
    let mut problem = sized(Some(cells), None)
        .or_else(|_| sized(None, Some(1 << 11)))
        .unwrap();
    problem.dictionary.candidates = problem.dictionary.candidates.min(16);
    if problem.dictionary.directions == DirectionKind::Axes && dimension > 1 {
        // Enough points for moment tables.
        problem = sized(None, Some(1 << 15)).unwrap();
    }
    if let Some(evolution) = &mut problem.evolution {
        (evolution.end, evolution.steps) = (5.0 * evolution.step(), 5);
    }
    problem
}
