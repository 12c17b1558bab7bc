//! The text of a problem as it is solved, and what two of them differ in.

use super::{CHECKPOINT, FRAMES, HISTORY, NETWORK, PAGE, PROBLEM, RESULT, ResultsError, TABLES};
use crate::problem::{Overrides, Problem, ProblemError};
use std::collections::BTreeMap;
use toml_edit::{DocumentMut, Item, Value};

/// The one key that may differ between a run and its continuation.
const NEURONS: &str = "solver.neurons";

/// A problem file with the values of flags in their places, its comments kept: what is stored is what
/// was solved.
pub fn with_overrides(text: &str, name: &str, overrides: &Overrides) -> Result<String, ProblemError> {
    if *overrides == Overrides::default() {
        return Ok(text.to_string());
    }
    let bad = |message: String| ProblemError::new(name, message);
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| bad(error.to_string()))?;
    let changes = [
        ("solver", "neurons", overrides.neurons.map(|n| n as u64)),
        ("quadrature", "points", overrides.points.map(|n| n as u64)),
        ("quadrature", "cells", overrides.cells.map(|n| n as u64)),
        ("solver", "seed", overrides.seed),
    ];
    for (table, key, value) in changes {
        let Some(value) = value else {
            continue;
        };
        let number =
            i64::try_from(value).map_err(|_| bad(format!("`{table}.{key}`: {value} is too large")))?;
        put(&mut document[table][key], number);
    }
    Ok(document.to_string())
}

/// The files of a problem by the names they have beside its text in a result directory.
pub(super) fn files(problem: &Problem) -> Vec<(String, &[u8])> {
    let mut named: Vec<(String, &[u8])> = Vec::new();
    for (number, file) in problem.files.iter().enumerate() {
        let name = file.file_name();
        let taken = [
            PROBLEM, RESULT, HISTORY, NETWORK, FRAMES, CHECKPOINT, PAGE, TABLES, "lock",
        ]
        .contains(&name.as_str());
        let other = named
            .iter()
            .any(|(known, bytes)| *known == name && **bytes != *file.bytes);
        let name = match taken || other {
            true => format!("{number}-{name}"),
            false => name,
        };
        named.push((name, &file.bytes));
    }
    named
}

/// The text of a problem with the files it names beside it.
pub(super) fn beside_its_files(text: &str, problem: &Problem) -> String {
    let (Ok(mut document), false) = (text.parse::<DocumentMut>(), problem.files.is_empty()) else {
        return text.to_string();
    };
    let mut names = files(problem).into_iter().map(|(name, _)| name);
    let mut put = |item: &mut Item| {
        if let (Some(old), Some(name)) = (item.as_value(), names.next()) {
            let mut value = Value::from(name);
            *value.decor_mut() = old.decor().clone();
            *item = Item::Value(value);
        }
    };
    // In the order in which they were read.
    if let Some(file) = document
        .get_mut("domain")
        .and_then(|domain| domain.get_mut("file"))
    {
        put(file);
    }
    if let Some(tables) = document.get_mut("data").and_then(Item::as_array_of_tables_mut) {
        tables
            .iter_mut()
            .filter_map(|table| table.get_mut("file"))
            .for_each(put);
    }
    document.to_string()
}

/// Puts a number in place of what is there; what stands around it, such as a comment, stays.
fn put(item: &mut Item, number: i64) {
    let mut value = Value::from(number);
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}

/// Which keys two problems differ in, and how. Comments, order and spelling of numbers do not count, nor
/// does the number of neurons: a longer run begins like a shorter one.
pub(super) fn differences(there: &str, here: &str) -> Vec<String> {
    let (there, here) = (keys(there), keys(here));
    let names: std::collections::BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let shown = |value: Option<&String>| value.map_or("not given".to_string(), Clone::clone);
    names
        .into_iter()
        .filter(|name| name.as_str() != NEURONS && there.get(*name) != here.get(*name))
        .map(|name| {
            let (was, is) = (shown(there.get(name)), shown(here.get(name)));
            format!("`{name}` was {was} and is {is}")
        })
        .collect()
}

/// Every key with its value.
fn keys(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        flatten("", &toml::Value::Table(table), &mut found);
    }
    found
}

fn flatten(key: &str, value: &toml::Value, found: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let key = match key {
                    "" => name.clone(),
                    key => format!("{key}.{name}"),
                };
                flatten(&key, value, found);
            }
        }
        toml::Value::Float(number) => {
            found.insert(key.to_string(), number.to_string());
        }
        value => {
            found.insert(key.to_string(), value.to_string());
        }
    }
}

/// The settings in force, but for the number of neurons where a longer run begins like a shorter one.
pub(super) fn settings(problem: &Problem) -> String {
    let mut settings = problem.settings_json();
    if !problem.depends_on_neurons() {
        settings["solver"]["neurons"] = serde_json::Value::Null;
    }
    settings.to_string()
}

/// Names a run for files that must not be mixed up with another's.
pub(super) fn fingerprint(problem: &Problem, text: &str) -> String {
    let mut keys = keys(text);
    keys.remove(NEURONS);
    // FNV-1a
    let hash = format!("{keys:?}{}", settings(problem))
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{} {hash:016x}", env!("CARGO_PKG_VERSION"))
}

/// Reads the problem of a run.
pub(super) fn parse(text: &str, name: &str) -> Result<Problem, ResultsError> {
    Ok(Problem::from_toml(text, name, &Overrides::default())?)
}
