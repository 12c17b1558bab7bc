//! The text of a problem as it is solved, and what two of them differ in.

use super::ResultsError;
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
