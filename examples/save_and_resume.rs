//! Saves a run as it goes, is interrupted, and goes on from the files alone: to the same network, bit
//! for bit, as a run that nobody disturbed.
//!
//!     cargo run --release --example save_and_resume

use greedy_pde::greedy::Stopped;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::results::{Existing, ResultDirectory, SavedRun};
use greedy_pde::run::{Event, RunOptions, run};
use std::error::Error;
use std::ops::ControlFlow;

const PROBLEM: &str = r#"
name = "saved"
[domain]
dimension = 1
[equation]
diffusion = "1"
reaction = "1"
exact = "cos(3*pi*x)"
[boundary]
condition = "neumann"
[dictionary]
activation = "relu^2"
[quadrature]
rule = "gauss"
cells = 500
[solver]
neurons = 48
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let problem = Problem::from_toml(PROBLEM, "saved", &Overrides::default())?;
    let options = RunOptions::default();
    let directory = tempfile::tempdir()?;

    // Someone ends the run after 20 neurons …
    let mut results = ResultDirectory::open(directory.path(), &problem, PROBLEM, Existing::Refuse)?;
    let (report, _) = results.run(&problem, &options, &mut |event| match event {
        Event::Step(step) if step.row.n == 20 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })?;
    drop(results);
    assert_eq!(report.stopped, Stopped::Interrupted);

    // … and what there is by then can be looked at.
    let unfinished = SavedRun::load(directory.path())?;
    println!(
        "interrupted at {} neurons: u(0.5) = {:+.4}",
        unfinished.network.len(),
        unfinished.network.value(&[0.5])
    );
    assert!(!unfinished.is_finished());
    assert_eq!(unfinished.network.len(), 20);

    // Another process, another day: all it needs is in the directory.
    let mut results = ResultDirectory::open(directory.path(), &problem, PROBLEM, Existing::Resume)?;
    assert_eq!(results.resumed_from(), Some(20));
    let (_, network) = results.run(&problem, &options, &mut |_| ControlFlow::Continue(()))?;
    drop(results);

    let (_, undisturbed) = run(&problem, &options, &mut |_| ControlFlow::Continue(()))?;
    assert_eq!(network, undisturbed, "a resumed run ends with the same network");
    let saved = SavedRun::load(directory.path())?;
    assert!(saved.is_finished());
    assert_eq!(saved.history.len(), 48);
    let h1 = saved.report()?.rows.last().and_then(|row| row.h1);
    println!(
        "resumed to {} neurons: H1 error {:.1e}",
        network.len(),
        h1.unwrap_or(f64::NAN)
    );
    Ok(())
}

#[test]
fn a_run_is_saved_and_resumed_by_the_library_alone() -> Result<(), Box<dyn Error>> {
    main()
}
