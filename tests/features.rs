//! What a build without the program leaves out.

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
        "csv",
        "ctrlc",
        "indicatif",
        "wgpu",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
}
