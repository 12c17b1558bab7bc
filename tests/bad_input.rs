//! Bad input: a clear message with the place, the agreed exit code, nothing overwritten.

mod common;

use common::{SMALL, greedy_pde, long, start_long_run, stderr, write};

/// Replaces a piece of the small problem, solves, and expects an exit code and words in the message.
fn expect(from: &str, to: &str, code: i32, words: &[&str]) {
    assert!(SMALL.contains(from), "{from}");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &SMALL.replacen(from, to, 1));
    let output = greedy_pde(directory.path(), &["solve", "problem.toml"]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{to}: {message}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(message.contains(word), "{to}: `{word}` is not in:\n{message}");
    }
    assert!(!directory.path().join("runs/small/result.json").exists());
}

#[test]
fn an_unknown_key_is_named_with_a_suggestion() {
    expect(
        "diffusion =",
        "diffusoin =",
        2,
        &[
            "problem.toml:9:1",
            "diffusoin",
            "did you mean `diffusion`?",
            "^^^^",
        ],
    );
    expect("[solver]", "[solvr]", 2, &["solvr", "did you mean `solver`?"]);
}

#[test]
fn a_missing_exponent() {
    expect(
        "cos(pi*x)",
        "x^ + 1",
        2,
        &["problem.toml:11:", "equation.exact", "x^ + 1"],
    );
    expect("cos(pi*x)", "x^", 2, &["problem.toml:11:", "found the end"]);
    expect("lower = -1.0", "lower = -1.0e", 2, &["problem.toml:5:"]);
}

#[test]
fn an_unknown_function() {
    expect(
        "cos(pi*x)",
        "1 + sinn(x)",
        2,
        &["problem.toml:11:14", "did you mean `sin`?", "^^^^"],
    );
}

#[test]
fn a_coordinate_that_does_not_exist() {
    let two = SMALL
        .replace("dimension = 1", "dimension = 2")
        .replace("cos(pi*x)", "x[1] + x[3]");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &two);
    let output = greedy_pde(directory.path(), &["solve", "problem.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("x[3] does not exist: the dimension is 2"));
}

#[test]
fn an_unclosed_parenthesis() {
    expect(
        "cos(pi*x)",
        "cos(pi*x",
        2,
        &["problem.toml:11:13", "never closed"],
    );
}

#[test]
fn numbers_out_of_range() {
    expect(
        "cells = 100",
        "cells = -5",
        2,
        &["problem.toml:21:9", "quadrature.cells", "not -5"],
    );
    expect(
        "upper = 1.0",
        "upper = -2.0",
        2,
        &["problem.toml:6:", "lower = -1 is not below upper = -2"],
    );
    expect("neurons = 20", "neurons = 0", 2, &["solver.neurons"]);
    expect(
        "cells = 100",
        "cells = 100\norder = 1000",
        2,
        &["quadrature.order"],
    );
    expect("cells = 100", "cells = 2.5", 2, &["problem.toml:21:"]);
    expect("dimension = 1", "dimension = 1\nradius = 2.0", 2, &["radius"]);
}

#[test]
fn settings_that_do_not_fit_together() {
    expect("relu^2", "relu^0", 2, &["dictionary.activation", "relu^k"]);
    expect("\"neumann\"", "\"robin\"", 2, &["coefficient"]);
    expect("cells = 100", "points = 100", 2, &["cells"]);
    expect("exact = \"cos(pi*x)\"", "", 2, &["source"]);
    expect(
        "diffusion = \"1\"\nreaction = \"1\"",
        "formulation = \"residual\"\noperator = \"u^2\"",
        2,
        &["linear"],
    );
}

#[test]
fn an_activation_that_is_not_smooth_enough_is_refused_with_the_reason() {
    let text = SMALL
        .replace(
            "diffusion = \"1\"\nreaction = \"1\"",
            "formulation = \"residual\"\noperator = \"-laplacian(u) + u\"",
        )
        .replace("relu^2", "relu^1");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &text);
    let output = greedy_pde(directory.path(), &["solve", "problem.toml"]);
    assert_eq!(output.status.code(), Some(2));
    for word in ["not smooth enough", "order 2", "use relu^2 or higher"] {
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}

#[test]
fn a_formula_that_is_not_finite_stops_the_run_with_the_point() {
    expect(
        "cos(pi*x)",
        "sqrt(x)",
        2,
        &["problem.toml:", "equation.exact", "source is NaN at x = [-0."],
    );
    expect(
        "reaction = \"1\"",
        "reaction = \"1/(x - x)\"",
        2,
        &["problem.toml:10:", "equation.reaction", "at x = ["],
    );
}

#[test]
fn a_negative_coefficient_is_shown_in_the_file() {
    expect(
        "diffusion = \"1\"",
        "diffusion = \"x\"",
        2,
        &["problem.toml:9:", "equation.diffusion", "not convex"],
    );
    expect(
        "reaction = \"1\"",
        "reaction = -1",
        2,
        &[
            "problem.toml:10:",
            "equation.reaction",
            "must not be negative: it is -1",
        ],
    );
}

#[test]
fn a_penalty_that_is_no_number() {
    let dirichlet = |penalty: &str| format!("\"dirichlet\"\npenalty = {penalty}");
    let words = [
        "problem.toml:15:",
        "boundary.penalty",
        "coordinates cannot stand in it",
    ];
    expect("\"neumann\"", &dirichlet("\"x\""), 2, &words);
    let words = ["problem.toml:15:", "boundary.penalty", "this is inf"];
    expect("\"neumann\"", &dirichlet("\"1/0\""), 2, &words);
    expect(
        "\"neumann\"",
        &dirichlet("-1.0"),
        2,
        &["must be a positive number"],
    );
}

#[test]
fn a_lattice_in_too_many_dimensions_is_not_about_its_points() {
    let text = SMALL
        .replace("dimension = 1", "dimension = 33")
        .replace("cos(pi*x)", "x[1]")
        .replace(
            "rule = \"gauss\"\ncells = 100",
            "rule = \"lattice\"\npoints = 512",
        );
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &text);
    let output = greedy_pde(directory.path(), &["check", "problem.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("up to 32 dimensions") && !message.contains("near by"),
        "{message}"
    );
}

#[test]
fn messages_say_things_once_and_in_words() {
    expect(
        "exact = \"cos(pi*x)\"",
        "",
        2,
        &["`equation`: needs `source`, or `exact`"],
    );
    let residual = SMALL
        .replace(
            "diffusion = \"1\"\nreaction = \"1\"",
            "formulation = \"residual\"\noperator = \"-laplacian(u)\"",
        )
        .replace("relu^2", "relu");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &residual);
    let message = stderr(&greedy_pde(directory.path(), &["check", "problem.toml"]));
    assert!(message.contains("the 2nd derivative"), "{message}");
}

#[test]
fn numbers_and_formulas_stand_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let text = SMALL
        .replace("diffusion = \"1\"", "diffusion = 1")
        .replace("reaction = \"1\"", "reaction = 1.0")
        .replace("lower = -1.0", "lower = \"-pi/4\"")
        .replace(
            "upper = 1.0",
            "upper = [\"width\"]\n[constants]\nwidth = \"pi/4\"",
        )
        .replace(
            "condition = \"neumann\"",
            "condition = \"dirichlet\"\npenalty = 1e-4\nvalue = 0",
        )
        .replace("neurons = 20", "neurons = 20\ntolerance = \"1e-12\"");
    write(directory.path(), &text);
    let output = greedy_pde(directory.path(), &["check", "problem.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("the value is 0 on all of the boundary, by a penalty with δ = 0.0001"),
        "{told}"
    );
    assert!(told.contains("0.785398"), "{told}");
    // The reverse: a weight as a formula.
    let residual = SMALL
        .replace(
            "diffusion = \"1\"\nreaction = \"1\"",
            "formulation = \"residual\"\noperator = \"u - laplacian(u)\"",
        )
        .replace(
            "condition = \"neumann\"",
            "condition = \"neumann\"\nweight = \"100\"",
        );
    write(directory.path(), &residual);
    let output = greedy_pde(directory.path(), &["check", "problem.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("with weight 100")
    );
}

#[test]
fn a_file_that_is_not_there_or_not_a_problem() {
    let directory = tempfile::tempdir().unwrap();
    let output = greedy_pde(directory.path(), &["solve", "missing.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("missing.toml: cannot be read"));
    for text in ["", "= 3", "name = 5", "\u{0}\u{1}", "[[domain]]"] {
        write(directory.path(), text);
        let output = greedy_pde(directory.path(), &["check", "problem.toml"]);
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        assert!(
            stderr(&output).starts_with("error: problem.toml"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn flags_that_make_no_sense() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    for arguments in [
        &["solve", "problem.toml", "--points", "100"][..],
        &["solve", "problem.toml", "--neurons", "0"],
        &["solve", "problem.toml", "--neurons", "many"],
        &["solve", "problem.toml", "--force", "--resume"],
        &["solve"],
        &["sovle", "problem.toml"],
        &["reproduce", "table99"],
    ] {
        let output = greedy_pde(directory.path(), arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(!stderr(&output).is_empty());
    }
}

#[test]
fn an_output_directory_that_cannot_be_made() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    std::fs::write(directory.path().join("occupied"), "a file").unwrap();
    let output = greedy_pde(
        directory.path(),
        &["solve", "problem.toml", "--output", "occupied/run"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("occupied/run"), "{}", stderr(&output));
    assert_eq!(
        std::fs::read(directory.path().join("occupied")).unwrap(),
        b"a file"
    );
}

#[test]
fn more_points_than_anyone_can_wait_for_are_refused_with_the_time() {
    expect(
        "rule = \"gauss\"\ncells = 100",
        "rule = \"halton\"\npoints = 1_000_000_000_000",
        2,
        &[
            "problem.toml:21:",
            "quadrature.points",
            "1e12 points",
            "278 hours",
        ],
    );
    expect(
        "cells = 100",
        "cells = 100_000_000_000",
        2,
        &["problem.toml:21:", "quadrature.cells", "hours"],
    );
}

#[test]
fn more_memory_than_there_is_is_refused_with_the_estimate() {
    expect(
        "activation = \"relu^2\"",
        "activation = \"relu^2\"\ndirections = \"box\"\nweights = [-1.0, 1.0]\ncandidates = 10_000_000\noffsets = 1_000_000",
        2,
        &["GiB of memory", "are free", "candidates"],
    );
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(
        directory.path(),
        &["check", "problem.toml", "--neurons", "1000000000"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("at most 65536"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_full_disk_stops_the_run_and_keeps_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &long());
    // No file may grow beyond 8 KiB: to the program it looks like a full disk.
    let command = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} solve problem.toml -q",
        env!("CARGO_BIN_EXE_greedy-pde")
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &command])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("what was written before is kept"), "{message}");
    let history = std::fs::read_to_string(directory.path().join("runs/small/history.csv")).unwrap();
    assert!(history.lines().count() > 20, "{history}");
}

#[cfg(unix)]
#[test]
fn a_vanished_output_directory_stops_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let child = start_long_run(directory.path(), 10);
    let run = directory.path().join("runs/small");
    // A checkpoint may be written at this very moment, and the directory with it.
    while std::fs::remove_dir_all(&run).is_err() {}
    let output = child.wait_with_output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("runs/small"), "{message}");
}
