//! What a build without the program leaves out.

use std::path::Path;
use std::process::Command;

#[test]
fn the_library_alone_needs_nothing_of_the_command_line() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--no-default-features",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"safetensors"), "{tree}");
    for name in [
        "clap",
        "clap_complete",
        "comfy-table",
        "ctrlc",
        "indicatif",
        "naga",
        "pollster",
        "wgpu",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
}

/// The names of the test files that contain one of these words.
fn tests_with(words: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_this = path.file_name().is_some_and(|name| name == "features.rs");
        if path.extension().is_some_and(|end| end == "rs") && !is_this {
            let text = std::fs::read_to_string(&path).unwrap();
            if words.iter().any(|word| text.contains(word)) {
                names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    names
}

#[test]
fn tests_of_the_program_and_of_devices_are_left_out_with_them() {
    let manifest = include_str!("../Cargo.toml");
    let needs = |name: &str, feature: &str| {
        let sections = manifest.split("[[").filter(|text| text.starts_with("test]]"));
        let mut section = sections.filter(|text| text.contains(&format!("name = \"{name}\"")));
        section.any(|text| {
            let mut lines = text.lines().filter(|line| line.starts_with("required-features"));
            lines.any(|line| line.contains(&format!("\"{feature}\"")))
        })
    };
    let program = tests_with(&["greedy_pde(", "start_run(", "start_long_run(", "CARGO_BIN_EXE"]);
    let devices = tests_with(&["greedy_pde::gpu"]);
    assert!(!program.is_empty() && !devices.is_empty());
    for name in program.iter().filter(|name| *name != "gpu") {
        assert!(
            needs(name, "cli"),
            "{name} runs the program: Cargo.toml must say so"
        );
    }
    for name in &devices {
        assert!(
            needs(name, "gpu"),
            "{name} needs a device: Cargo.toml must say so"
        );
    }
}
