//! What several test files share: running the program as a user does, the laws of a backend.

#![allow(dead_code)]

pub mod laws;

use std::path::Path;
use std::process::{Command, Output};

/// Runs `greedy-pde` with these arguments in a directory.
pub fn greedy_pde(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_greedy-pde"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// A small problem that is solved in no time.
pub const SMALL: &str = r#"name = "small"

[domain]
dimension = 1
lower = -1.0
upper = 1.0

[equation]
diffusion = "1"
reaction = "1"
exact = "cos(pi*x)"

[boundary]
condition = "neumann"

[dictionary]
activation = "relu^2"

[quadrature]
rule = "gauss"
cells = 100

[solver]
neurons = 20
"#;

/// Writes a problem file into a directory.
pub fn write(directory: &Path, text: &str) {
    std::fs::write(directory.join("problem.toml"), text).unwrap();
}

/// What a program printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
