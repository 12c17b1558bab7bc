//! Ten thousand damaged problem files and formulas: an answer in no time, never a panic.

mod common;

use common::{greedy_pde, stderr, write};
use greedy_pde::domain::{Mesh, read_gmsh};
use greedy_pde::expression::parse;
use greedy_pde::points::philox_uniforms;
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::Memory;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The shipped files, to be damaged.
const FILES: [&str; 12] = [
    include_str!("../configs/cube_3d.toml"),
    include_str!("../configs/ex1_dirichlet.toml"),
    include_str!("../configs/ex1_neumann.toml"),
    include_str!("../configs/ex1_pinn.toml"),
    include_str!("../configs/ex2_three_peaks.toml"),
    include_str!("../configs/ex3_energy.toml"),
    include_str!("../configs/ex3_pinn.toml"),
    include_str!("../configs/ex4_biharmonic.toml"),
    include_str!("../configs/ex5_elliptic_10d.toml"),
    include_str!("../configs/ex6_poisson_boltzmann.toml"),
    include_str!("../configs/ex6_oga.toml"),
    include_str!("../configs/separable_6d.toml"),
];

/// What is put into files: pieces that mean something, in the wrong place.
const PIECES: [&str; 36] = [
    "",
    "=",
    "[",
    "]",
    "\"",
    "((((",
    ")",
    "^",
    "-",
    "1e309",
    "-1",
    "0",
    "nan",
    "inf",
    "999999999999999999",
    "1000000000000",
    "1e-300",
    "x[11]",
    "sum(i, ",
    "prod(j, x[i])",
    "d(u, x[1])",
    "laplacian(u)",
    "sigmoid",
    "relu^9",
    "relu^3",
    "\"box\"",
    "\"ball\"",
    "true",
    "\n",
    "#",
    "\u{0}",
    "é",
    "u^4",
    "log(0)",
    "[[boundary]]\n",
    "potential = \"-u^2\"\n",
];

/// The n-th damaged file: some places cut, doubled or replaced.
fn damaged(index: u64) -> String {
    let chance = philox_uniforms(2026, 99, index, 16);
    let pick = |s: f64, count: usize| ((s * count as f64) as usize).min(count - 1);
    let mut text = FILES[pick(chance[0], FILES.len())].to_string();
    for damage in 0..1 + pick(chance[1], 3) {
        let s = &chance[2 + 4 * damage..];
        // At the border of a word: damage there goes deeper than a syntax error.
        let borders: Vec<usize> = text
            .char_indices()
            .filter(|(_, c)| !c.is_alphanumeric())
            .map(|(at, _)| at)
            .collect();
        let Some(&start) = borders.get(pick(s[0], borders.len().max(1))) else {
            continue;
        };
        let end = borders
            .iter()
            .copied()
            .find(|at| *at > start)
            .unwrap_or(text.len());
        let piece = PIECES[pick(s[1], PIECES.len())];
        match pick(s[2], 4) {
            0 => text.replace_range(start..end, piece),
            1 => text.insert_str(start, piece),
            2 => {
                // The value of a line.
                let line = text[..start].rfind('=').map_or(start, |at| at + 1);
                let stop = text[line..].find('\n').map_or(text.len(), |at| line + at);
                text.replace_range(line..stop, &format!(" {piece}"));
            }
            _ => {
                let word = text[start..end].to_string();
                text.insert_str(start, &word);
            }
        }
    }
    text
}

/// Everything up to the solve itself.
fn read(text: &str) -> bool {
    let Ok(problem) = Problem::from_toml(text, "damaged.toml", &Overrides::default()) else {
        return false;
    };
    let loss = problem.loss(problem.settings.neurons, Purpose::Training);
    loss.is_ok() && Memory::of(&problem).is_ok()
}

#[test]
fn ten_thousand_damaged_files_are_read_or_refused() {
    const COUNT: u64 = 10_000;
    let mut accepted = 0;
    for index in 0..COUNT {
        let text = damaged(index);
        let started = Instant::now();
        let result = std::panic::catch_unwind(|| read(&text));
        assert!(result.is_ok(), "file {index} panics:\n{text}");
        accepted += usize::from(result.unwrap());
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "file {index} takes too long:\n{text}"
        );
    }
    // Were nearly all refused at once, or nearly none, this test would test little.
    assert!((500..9500).contains(&accepted), "{accepted} of {COUNT} accepted");
}

#[test]
fn the_program_ends_with_an_agreed_code() {
    let directory = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for index in 0..150 {
        let text = damaged(index);
        if read(&text) {
            continue;
        }
        refused += 1;
        write(directory.path(), &text);
        let output = greedy_pde(directory.path(), &["solve", "problem.toml"]);
        let code = output.status.code();
        assert_eq!(code, Some(2), "file {index}: {}\n{text}", stderr(&output));
        assert!(
            stderr(&output).starts_with("error: problem.toml"),
            "{}",
            stderr(&output)
        );
    }
    assert!(refused > 30);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_formula_makes_the_parser_panic(text in "[-+*/^(),.0-9a-z\\[\\] ]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_formula_makes_a_problem_panic(
        text in r"(sin|cos|exp|log|sqrt|abs|min|max|sum|prod|x|y|pi|u|[0-9]|[-+*/^(),]|x\[[0-9]\]|i){0,25}"
    ) {
        let file = format!(
            "name = \"p\"\n[domain]\ndimension = 2\n[equation]\nexact = \"{text}\"\nreaction = \"1\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"halton\"\npoints = 64\n[solver]\nneurons = 2\n"
        );
        read(&file);
    }
}

/// As a fuzzer does: a mesh that has an inside and a boundary, or a message.
fn read_mesh(bytes: &[u8]) {
    for dimension in [2, 3] {
        match read_gmsh(bytes, dimension).and_then(|raw| Mesh::new(dimension, raw)) {
            Ok(mesh) => {
                assert!(!mesh.faces().is_empty() && mesh.volumes().iter().all(|volume| *volume > 0.0))
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn what_the_fuzzers_began_with_passes() {
    let mut count = 0;
    for target in ["problem_file", "expression", "mesh_file"] {
        for entry in std::fs::read_dir(format!("fuzz/corpus/{target}")).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            match target {
                "expression" => drop(parse(&text)),
                "mesh_file" => read_mesh(&bytes),
                _ => drop(read(&text)),
            }
            count += 1;
        }
    }
    assert!(count > 10);
}
