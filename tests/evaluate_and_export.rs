//! Values of a saved solution: at listed points and on grids.

mod common;

use common::{SMALL, greedy_pde, stderr, write};
use std::fs;
use std::path::Path;
use std::process::Output;

/// A solved problem in d dimensions.
fn solved(directory: &Path, dimension: usize) {
    let text = SMALL
        .replace("dimension = 1", &format!("dimension = {dimension}"))
        .replace("cos(pi*x)", "cos(pi*x[1])")
        .replace(
            "activation = \"relu^2\"",
            "activation = \"relu^2\"\ndirections = \"axes\"\noffsets = 10",
        )
        .replace("rule = \"gauss\"\ncells = 100", "rule = \"halton\"\npoints = 500");
    write(directory, &text);
    let arguments = [
        "solve",
        "problem.toml",
        "-q",
        "--neurons",
        "4",
        "--no-report",
        "--force",
    ];
    let output = greedy_pde(directory, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
}

fn evaluate(directory: &Path, points: &str) -> Output {
    fs::write(directory.join("points.csv"), points).unwrap();
    greedy_pde(directory, &["evaluate", "runs/small", "points.csv"])
}

#[test]
fn a_first_line_that_looks_like_numbers_is_not_a_header() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), 2);
    for points in [
        "0.1 0.2\n0.3,0.4\n",
        "0.1;0.2\n0.3,0.4\n",
        "0.1,a\n0.3,0.4\n",
        "x\n0.3,0.4\n",
        "x,y,z\n0.3,0.4\n",
        "1.2.3,1\n0.3,0.4\n",
    ] {
        let output = evaluate(directory.path(), points);
        assert_eq!(output.status.code(), Some(2), "{points}");
        assert!(
            stderr(&output).contains("points.csv:1:") && stderr(&output).contains("is not a point"),
            "{}",
            stderr(&output)
        );
    }
    for points in ["x,y\n0.3,0.4\n", "\"x 1\",_b\n0.3,0.4\n", "0.3,0.4\n"] {
        let output = evaluate(directory.path(), points);
        assert!(output.status.success(), "{points}: {}", stderr(&output));
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
        assert!(output.stderr.is_empty());
    }
    solved(directory.path(), 1);
    for points in ["0.1;0.2\n0.3\n", "0.1 0.2\n0.3\n"] {
        assert_eq!(
            evaluate(directory.path(), points).status.code(),
            Some(2),
            "{points}"
        );
    }
}

#[test]
fn points_outside_the_domain_are_counted_in_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), 2);
    let points = "0.1,0.2\n1.5,0\n1,1\n0,-3\n";
    let from_directory = evaluate(directory.path(), points);
    let from_file = greedy_pde(
        directory.path(),
        &["evaluate", "runs/small/network.safetensors", "points.csv"],
    );
    for output in [&from_directory, &from_file] {
        assert!(output.status.success());
        assert!(
            stderr(output).contains("2 of 4 points are outside the domain"),
            "{}",
            stderr(output)
        );
    }
    assert_eq!(from_directory.stdout, from_file.stdout);
}

#[test]
fn a_grid_that_is_too_fine_is_refused_with_the_numbers() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), 4);
    let export = |more: &[&str]| {
        let arguments: Vec<&str> = ["export", "runs/small", "--format"]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        greedy_pde(directory.path(), &arguments)
    };
    let fine = export(&["csv", "--grid", "101"]);
    assert_eq!(fine.status.code(), Some(2));
    assert!(
        stderr(&fine).contains("104060401 points, and at most 100000000 are written: --grid 100"),
        "{}",
        stderr(&fine)
    );
    let vtk = export(&["vtk", "--grid", "101"]);
    assert_eq!(vtk.status.code(), Some(2));
    assert!(
        stderr(&vtk).contains("vtk is for 2 and 3 dimensions; this network has 4"),
        "{}",
        stderr(&vtk)
    );
    // Without a grid, one that can be looked at.
    assert!(export(&["npy"]).status.success());
    let bytes = fs::metadata(directory.path().join("runs/small/solution.npy"))
        .unwrap()
        .len();
    assert_eq!(bytes, 8 * 32_u64.pow(4) + 128);
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_grid_is_exported_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    solved(directory.path(), 10);
    // 4^10 points: 88 MB of coordinates and values if they were held.
    let shell = format!(
        "ulimit -v {}; exec '{}' export runs/small --format npy --grid 4",
        100 << 10,
        env!("CARGO_BIN_EXE_greedy-pde")
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &shell])
        .env("RAYON_NUM_THREADS", "1")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let bytes = fs::metadata(directory.path().join("runs/small/solution.npy"))
        .unwrap()
        .len();
    assert!(bytes > 8 << 20);
}
