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
        assert_eq!(
            String::from_utf8(output.stdout.clone()).unwrap().lines().count(),
            2
        );
        // A run of four neurons says of itself that it is of no use, and nothing else is said.
        assert!(
            stderr(&output)
                .lines()
                .all(|line| line.contains("should not be used"))
        );
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

/// A flow with frames at t = 0, 0.1 and 0.2.
fn flowed(directory: &Path) {
    let text = SMALL
        .replace("dimension = 1", "dimension = 2")
        .replace("cos(pi*x)", "exp(-5*t)*cos(pi*x)")
        .replace("cells = 100", "cells = 16");
    write(
        directory,
        &format!("{text}[time]\nend = 0.2\nsteps = 20\nsave_every = 10\ninitial_neurons = 24\n"),
    );
    let output = greedy_pde(
        directory,
        &["solve", "problem.toml", "-q", "--neurons", "24", "--no-report"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_flow_is_evaluated_at_the_time_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    flowed(directory.path());
    let at = |time: &str| {
        fs::write(directory.path().join("points.csv"), "0.2,0.7\n").unwrap();
        greedy_pde(
            directory.path(),
            &["evaluate", "runs/small", "points.csv", "--time", time],
        )
    };
    let value = |output: &Output| -> f64 {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        text.trim().rsplit(',').next().unwrap().parse().unwrap()
    };
    let exact = |t: f64| (-5.0 * t).exp() * (0.2 * std::f64::consts::PI).cos();
    for time in [0.0, 0.1, 0.2] {
        let output = at(&time.to_string());
        assert!(
            (value(&output) - exact(time)).abs() < 0.02,
            "{time}: {}",
            value(&output)
        );
        assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    }
    let between = at("0.05");
    assert!((value(&between) - 0.5 * (exact(0.0) + exact(0.1))).abs() < 0.02);
    assert!(stderr(&between).contains("was not kept"), "{}", stderr(&between));
    for (time, words) in [("0.3", "is not between 0 and 0.2"), ("-1", "is not between")] {
        let output = at(time);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    solved(directory.path(), 2);
    let output = at("0.1");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not in time"), "{}", stderr(&output));
}

#[test]
fn all_frames_of_a_flow_are_exported() {
    let directory = tempfile::tempdir().unwrap();
    flowed(directory.path());
    let export = |format: &str| {
        let arguments = [
            "export",
            "runs/small",
            "--frames",
            "--grid",
            "5",
            "--format",
            format,
        ];
        let output = greedy_pde(directory.path(), &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let run = directory.path().join("runs/small");
    export("npy");
    let numbers = |name: &str, header: &str| -> Vec<f64> {
        let bytes = fs::read(run.join(name)).unwrap();
        let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert!(String::from_utf8_lossy(&bytes[10..10 + length]).contains(header));
        let (values, rest) = bytes[10 + length..].as_chunks::<8>();
        assert!(rest.is_empty());
        values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    };
    let times = numbers("solution_times.npy", "(3, )");
    assert!((times[1] - 0.1).abs() < 1e-12 && (times[2] - 0.2).abs() < 1e-12);
    let u = numbers("solution.npy", "(3, 5, 5, )");
    assert_eq!(u.len(), 75);
    for (frame, time) in times.iter().enumerate() {
        // The middle of the square.
        let middle = u[25 * frame + 12];
        assert!((middle - (-5.0 * time).exp()).abs() < 0.03, "{time}: {middle}");
    }
    export("csv");
    let csv = fs::read_to_string(run.join("solution.csv")).unwrap();
    assert!(csv.starts_with("t,x1,x2,u,exact\n0,-1,-1,"), "{}", &csv[..60]);
    assert_eq!(csv.lines().count(), 76);
    export("vtk");
    let series = fs::read_to_string(run.join("solution.vtk.series")).unwrap();
    let series: serde_json::Value = serde_json::from_str(&series).unwrap();
    for (index, entry) in series["files"].as_array().unwrap().iter().enumerate() {
        assert_eq!(entry["time"], times[index]);
        assert!(run.join(entry["name"].as_str().unwrap()).exists());
    }
    assert_eq!(series["files"].as_array().unwrap().len(), 3);
    solved(directory.path(), 2);
    let output = greedy_pde(
        directory.path(),
        &["export", "runs/small", "--frames", "--format", "csv", "--force"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--frames is for problems in time"));
}

/// What a run says of itself is said again to whoever takes its values.
#[test]
fn values_of_a_result_that_should_not_be_used_come_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let text = SMALL.replace("cos(pi*x)", "cos(40*pi*x)");
    write(directory.path(), &text);
    let arguments = ["solve", "problem.toml", "-q", "--neurons", "2", "--no-report"];
    assert!(greedy_pde(directory.path(), &arguments).status.success());
    fs::write(directory.path().join("points.csv"), "0.1\n").unwrap();
    for command in [
        &["evaluate", "runs/small", "points.csv"][..],
        &["export", "runs/small", "--format", "csv"],
    ] {
        let output = greedy_pde(directory.path(), command);
        assert!(output.status.success());
        assert!(
            stderr(&output).contains("should not be used"),
            "{}",
            stderr(&output)
        );
    }
}
