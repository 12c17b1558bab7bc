//! Nothing is lost or mixed up in a result directory.

mod common;

use common::{SMALL, greedy_pde, start_long_run, stderr, write};
use greedy_pde::results::{Checkpoint, SavedRun};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

const RUN: &str = "runs/small";

fn solve(directory: &Path, more: &[&str]) -> Output {
    let arguments: Vec<&str> = ["solve", "problem.toml", "-q", "--no-report"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    greedy_pde(directory, &arguments)
}

fn solved(directory: &Path, text: &str, more: &[&str]) {
    write(directory, text);
    let output = solve(directory, more);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Every file of the run with its contents.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory.join(RUN))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Asserts that a command is refused as bad input with these words and changes nothing.
fn refused(directory: &Path, more: &[&str], words: &[&str]) {
    let before = contents(directory);
    let output = solve(directory, more);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for word in words {
        assert!(
            stderr(&output).contains(word),
            "`{word}` is not in {}",
            stderr(&output)
        );
    }
    assert!(
        contents(directory) == before,
        "a refused command has changed something"
    );
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A problem whose run ends after a few neurons, long before the first regular checkpoint.
fn constant() -> String {
    SMALL
        .replace("cos(pi*x)", "1")
        .replace("lower = -1.0\nupper = 1.0\n", "")
}

#[test]
fn a_run_that_ends_early_leaves_a_checkpoint_and_is_not_destroyed_by_resume() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), &constant(), &[]);
    let result = json(&directory.path().join(RUN).join("result.json"));
    assert!(result["neurons"].as_u64().unwrap() < 20, "{result}");
    // Another problem with the same name.
    write(
        directory.path(),
        &constant().replace("\"1\"\n\n", "\"cos(pi*x)\"\n\n"),
    );
    refused(
        directory.path(),
        &["--resume"],
        &[r#"`equation.exact` was "1" and is "cos(pi*x)""#, "--force"],
    );
    // The same problem goes on, and finds nothing more.
    write(directory.path(), &constant());
    assert!(solve(directory.path(), &["--resume"]).status.success());
    let again = json(&directory.path().join(RUN).join("result.json"));
    assert_eq!(again["neurons"], result["neurons"]);
}

#[test]
fn resume_without_a_checkpoint_is_an_error_that_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let nothing = solve(directory.path(), &["--resume"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        stderr(&nothing).contains("there is no checkpoint to go on from"),
        "{}",
        stderr(&nothing)
    );
    assert!(!directory.path().join("runs").exists());
    solved(directory.path(), SMALL, &[]);
    fs::remove_file(directory.path().join(RUN).join("checkpoint")).unwrap();
    refused(
        directory.path(),
        &["--resume", "--neurons", "40"],
        &["there is no checkpoint"],
    );
    assert!(solve(directory.path(), &["--force"]).status.success());
}

#[test]
fn fewer_neurons_than_there_are_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), SMALL, &[]);
    refused(
        directory.path(),
        &["--resume", "--neurons", "8"],
        &["has 20 neurons already", "8 are asked for"],
    );
}

#[test]
fn a_penalty_that_depends_on_n_is_named_as_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let text = SMALL.replace(
        "condition = \"neumann\"",
        "condition = \"dirichlet\"\npenalty = \"0.1*n^-2\"",
    );
    solved(directory.path(), &text, &[]);
    refused(
        directory.path(),
        &["--resume", "--neurons", "30"],
        &["for 20 neurons, and 30 are asked for", "depends on n", "--force"],
    );
    // As many as before are no other problem.
    assert!(solve(directory.path(), &["--resume"]).status.success());
}

#[test]
fn comments_do_not_make_another_problem() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), SMALL, &["--neurons", "10"]);
    write(directory.path(), &format!("# the same\n{SMALL}"));
    assert!(solve(directory.path(), &["--resume"]).status.success());
}

#[test]
fn a_damaged_history_is_written_anew_from_the_checkpoint() {
    let whole = tempfile::tempdir().unwrap();
    solved(whole.path(), SMALL, &["--neurons", "40"]);
    let figures = |directory: &Path| -> Vec<serde_json::Value> {
        let mut rows = json(&directory.join(RUN).join("result.json"))["rows"].take();
        for row in rows.as_array_mut().unwrap() {
            row["seconds"].take();
        }
        rows.as_array().unwrap().clone()
    };
    let expected = figures(whole.path());
    let damages: [fn(&Path); 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| {
            let text = fs::read_to_string(path).unwrap();
            let short: Vec<&str> = text.lines().take(8).collect();
            fs::write(path, short.join("\n")).unwrap();
        },
        |path| {
            let text = fs::read_to_string(path).unwrap().replace("\n7,", "\n9,");
            fs::write(path, text.replace("\n16,", "\nsixteen,")).unwrap();
        },
    ];
    for damage in damages {
        let directory = tempfile::tempdir().unwrap();
        solved(directory.path(), SMALL, &[]);
        let history = directory.path().join(RUN).join("history.csv");
        damage(&history);
        let output = solve(directory.path(), &["--resume", "--neurons", "40"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(figures(directory.path()), expected);
        let text = fs::read_to_string(history).unwrap();
        let numbers: Vec<&str> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap())
            .collect();
        let wanted: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
        assert_eq!(numbers, wanted);
    }
}

/// Waits until a checkpoint has more than so many neurons.
fn wait_for_checkpoint(directory: &Path, neurons: usize) {
    let path = directory.join(RUN).join("checkpoint");
    while Checkpoint::load(&path).map_or(0, |found| found.network.len()) <= neurons {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_second_run_in_a_directory_is_refused_and_a_killed_one_lets_go() {
    let directory = tempfile::tempdir().unwrap();
    let first = start_long_run(directory.path(), 5);
    for more in [["--force"], ["--resume"], ["--json"]] {
        let second = solve(directory.path(), &more);
        assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
        assert!(
            stderr(&second).contains("another run is writing there"),
            "{}",
            stderr(&second)
        );
    }
    killed(first);
    let after = solve(directory.path(), &["--force", "--neurons", "3"]);
    assert!(after.status.success(), "{}", stderr(&after));
}

/// A run that cannot begin leaves what it was to overwrite.
#[test]
fn a_formula_without_a_value_leaves_the_old_result() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), SMALL, &[]);
    let before = contents(directory.path());
    write(directory.path(), &SMALL.replace("cos(pi*x)", "sqrt(x)"));
    let refused = solve(directory.path(), &["--force"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn what_is_stored_is_what_was_solved() {
    let directory = tempfile::tempdir().unwrap();
    let text = SMALL
        .replace("cells = 100\n", "")
        .replace("neurons = 20", "neurons = 20 # enough");
    let flags = ["--cells", "80", "--neurons", "12", "--seed", "5"];
    solved(directory.path(), &text, &flags);
    let stored = fs::read_to_string(directory.path().join(RUN).join("problem.toml")).unwrap();
    for line in ["cells = 80", "neurons = 12 # enough", "seed = 5"] {
        assert!(stored.contains(line), "`{line}` is not in\n{stored}");
    }
    for command in [
        vec!["report", RUN],
        vec!["export", RUN, "--format", "csv"],
        vec!["solve", "runs/small/problem.toml", "--output", "again"],
    ] {
        let output = greedy_pde(directory.path(), &command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    let network = |name: &str| fs::read(directory.path().join(name).join("network.safetensors")).unwrap();
    assert!(network("again") == network(RUN), "the stored problem is another");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_symbolic_links() {
    for name in [
        "problem.toml",
        "history.csv",
        "result.json",
        "checkpoint",
        "lock",
        "plots",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let precious = directory.path().join("precious");
        if name == "plots" {
            fs::create_dir(&precious).unwrap();
        } else {
            fs::write(&precious, "mine").unwrap();
        }
        fs::create_dir_all(directory.path().join(RUN)).unwrap();
        std::os::unix::fs::symlink(&precious, directory.path().join(RUN).join(name)).unwrap();
        write(directory.path(), SMALL);
        greedy_pde(directory.path(), &["solve", "problem.toml", "-q", "--force"]);
        if name == "plots" {
            assert_eq!(fs::read_dir(&precious).unwrap().count(), 0, "{name}");
        } else {
            assert_eq!(fs::read_to_string(&precious).unwrap(), "mine", "{name}");
        }
    }
}

/// How far a killed run got, by its page, its values and its table.
fn assert_consistent(directory: &Path, least: usize) {
    let run = SavedRun::load(&directory.join(RUN)).unwrap();
    let n = run.network.len();
    assert!(n > least && !run.is_finished(), "{n}");
    assert_eq!(run.history.len(), n);
    let report = run.report().unwrap();
    assert_eq!(report.neurons, n);
    let last = report.rows.last().unwrap();
    assert!(last.n == n && last.h1.is_some());
    fs::write(directory.join("points.csv"), "0.25\n0.5\n").unwrap();
    for command in [
        vec!["report", RUN],
        vec!["export", RUN, "--format", "csv", "--force"],
        vec!["evaluate", RUN, "points.csv"],
    ] {
        let output = greedy_pde(directory, &command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    let page = fs::read_to_string(directory.join(RUN).join("report.html")).unwrap();
    assert!(page.contains(&format!("interrupted at {n} of 1500 neurons")));
}

#[test]
fn an_interrupted_run_is_evaluated_exported_and_reported_from_its_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let child = start_long_run(directory.path(), 2);
    wait_for_checkpoint(directory.path(), 0);
    killed(child);
    assert_consistent(directory.path(), 0);
}

#[test]
fn an_extended_run_that_was_interrupted_is_reported_from_one_source() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), &common::long(), &["--neurons", "30"]);
    let child = common::start_run(directory.path(), &["--resume"], 2);
    wait_for_checkpoint(directory.path(), 30);
    killed(child);
    assert_consistent(directory.path(), 30);
}

#[test]
fn a_vanished_directory_is_not_said_to_be_kept() {
    let directory = tempfile::tempdir().unwrap();
    let child = start_long_run(directory.path(), 20);
    // A checkpoint may be written at this very moment, and the directory with it.
    while fs::remove_dir_all(directory.path().join("runs")).is_err() {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("the directory is gone"),
        "{}",
        stderr(&output)
    );
}
