//! Any text as a problem file: read, or refused with a message; never a panic, never a hang.
#![no_main]

use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::Memory;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Problem::from_toml(text, "fuzzed.toml", &Overrides::default()) {
        Ok(problem) => {
            let _ = problem.loss(problem.settings.neurons, Purpose::Training);
            let _ = Memory::of(&problem);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
