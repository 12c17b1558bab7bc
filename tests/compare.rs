//! Runs side by side, and against values from elsewhere.

mod common;

use common::{SMALL, greedy_pde, stderr, write};
use std::fs;
use std::path::Path;
use std::process::Output;

fn solved(directory: &Path, name: &str, neurons: &str) {
    write(directory, SMALL);
    let arguments = [
        "solve",
        "problem.toml",
        "-q",
        "--no-report",
        "--neurons",
        neurons,
        "--output",
        name,
    ];
    let output = greedy_pde(directory, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
}

fn compare(directory: &Path, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["compare"].into_iter().chain(arguments.iter().copied()).collect();
    greedy_pde(directory, &arguments)
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn runs_are_compared_in_tables_and_on_a_page() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), "short", "8");
    solved(directory.path(), "long", "24");
    let output = compare(directory.path(), &["short", "long", "--output", "both.html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "short",
        "long",
        "relative",
        "H1 error at n =",
        "| 24 |",
        "both.html",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    // The shorter run has no row at n = 16.
    let line = text.lines().find(|line| line.contains("| 16 |"));
    let line = line.unwrap_or_else(|| text.lines().find(|line| line.contains(" 16 |")).unwrap());
    assert!(line.contains(" - |"), "{line}");
    let page = fs::read_to_string(directory.path().join("both.html")).unwrap();
    assert!(page.matches("<svg").count() >= 4 && !page.contains("NaN"));
    for word in [
        "short",
        "long",
        "against n",
        "against seconds",
        "loss above its lowest limit",
    ] {
        assert!(page.contains(word), "{word}");
    }
    let again = compare(directory.path(), &["short", "long", "--output", "both.html"]);
    assert_eq!(again.status.code(), Some(2));

    let runs = json(&compare(directory.path(), &["short", "long", "--json"]));
    let long = &runs["runs"][1];
    let last = &long["rows"].as_array().unwrap().last().unwrap();
    // ‖cos πx‖ on (−1, 1) is 1 in L², and √(1 + π²) in H¹.
    let h1 = (1.0 + std::f64::consts::PI.powi(2)).sqrt();
    for (relative, error, norm) in [("relative_l2", "l2", 1.0), ("relative_h1", "h1", h1)] {
        let (relative, error) = (long[relative].as_f64().unwrap(), last[error].as_f64().unwrap());
        assert!(
            (relative * norm / error - 1.0).abs() < 1e-6,
            "{relative} {error} {norm}"
        );
    }
}

#[test]
fn a_run_is_compared_with_a_file_of_values() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), "run", "20");
    let places: Vec<f64> = (0..=20).map(|i| -1.0 + 0.1 * f64::from(i)).collect();
    let lines: String = places
        .iter()
        .map(|x| format!("{x},{}\n", (std::f64::consts::PI * x).cos() + 0.5))
        .collect();
    fs::write(directory.path().join("values.csv"), format!("x1,value\n{lines}")).unwrap();
    let output = compare(directory.path(), &["run", "--reference", "values.csv", "--json"]);
    let reference = json(&output)["runs"][0]["reference"].clone();
    // The values are off by one half on purpose.
    assert_eq!(reference["points"], 21);
    for key in ["rms", "max"] {
        assert!(
            (reference[key].as_f64().unwrap() - 0.5).abs() < 1e-2,
            "{reference}"
        );
    }
    let table = compare(directory.path(), &["run", "--reference", "values.csv"]);
    assert!(String::from_utf8(table.stdout).unwrap().contains("rms off by"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), "run", "3");
    fs::write(directory.path().join("values.csv"), "0.5,1\n0.5\n").unwrap();
    fs::write(directory.path().join("empty.csv"), "x,value\n").unwrap();
    for (arguments, words) in [
        (&["run"][..], "one run alone"),
        (&["run", "nowhere"], "nowhere: holds no run"),
        (
            &["run", "--reference", "values.csv"],
            "values.csv:2: `0.5` is not a point and its value: 2 finite numbers",
        ),
        (&["run", "--reference", "empty.csv"], "holds no values"),
        (&["run", "--reference", "none.csv"], "none.csv: cannot be read"),
    ] {
        let output = compare(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}
