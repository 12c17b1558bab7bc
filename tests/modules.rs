//! The list of modules in `lib.rs` is the order in which they build on each other.

use std::fs;
use std::path::{Path, PathBuf};

/// The names after `pub mod` in `lib.rs`, in their order.
fn listed() -> Vec<String> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_string).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// The file or folder of a module.
fn files_of(module: &str) -> Vec<PathBuf> {
    let folder = source().join(module);
    match folder.is_dir() {
        true => files(&folder),
        false => vec![folder.with_extension("rs")],
    }
}

/// The modules that a text names as `crate::…`, comments and its own tests left out.
fn named(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    let names = code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_string()
    });
    names.collect()
}

/// What is named by a module that stands before it.
fn backward(order: &[String], module: &str, text: &str) -> Vec<String> {
    let place = |name: &str| order.iter().position(|listed| listed == name);
    let later = named(text).into_iter().filter(|name| place(name) > place(module));
    later.map(|name| format!("{module} names {name}")).collect()
}

#[test]
fn no_module_imports_from_a_later_one() {
    let order = listed();
    let mut wrong = Vec::new();
    for module in &order {
        for file in files_of(module) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("use crate::{"), "{}", file.display());
            wrong.extend(backward(&order, module, &text));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_import_from_a_later_module_would_be_found() {
    let order = listed();
    assert_eq!(
        backward(
            &order,
            "sums",
            "use crate::ridge::Plan;\nuse crate::greedy::State;"
        ),
        ["sums names greedy"]
    );
}

#[test]
fn every_file_belongs_to_a_module_of_the_list() {
    let mut known: Vec<PathBuf> = listed().iter().flat_map(|module| files_of(module)).collect();
    known.extend(files(&source().join("cli")));
    known.extend(["lib.rs", "main.rs"].map(|name| source().join(name)));
    for file in files(&source()) {
        assert!(known.contains(&file), "{}", file.display());
    }
}

#[test]
fn the_map_names_every_module_in_order() {
    let map = include_str!("../docs/architecture.md");
    let table = map.split("\n## ").next().unwrap();
    let cells = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names: Vec<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|name| !name.contains('/') && *name != "cli")
        .map(str::to_string)
        .collect();
    assert_eq!(names, listed());
}

/// The files that a page names, by links and in `code`, with the folder that they are relative to.
fn named_files(page: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join(page)).unwrap();
    let folder = root.join(page).parent().unwrap().to_path_buf();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
    let links = links.map(|link| folder.join(link.split('#').next().unwrap()));
    let starts = ["src/", "tests/", "shaders/", "examples/"];
    let code = text.split('`').skip(1).step_by(2);
    let code = code.filter(|name| starts.iter().any(|start| name.starts_with(start)));
    links.chain(code.map(|name| root.join(name))).collect()
}

#[test]
fn pages_name_only_files_that_exist() {
    let mut count = 0;
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/gpu.md",
        "docs/method.md",
        "docs/problem-files.md",
        "docs/python.md",
        "docs/results.md",
    ] {
        for file in named_files(page) {
            assert!(file.exists(), "{page} names {}", file.display());
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
