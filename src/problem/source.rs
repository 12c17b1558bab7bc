//! The text of a problem file: errors that point into it, values that must lie in a range.

use super::ProblemError;
use super::attachment::Attachment;
use super::build::Built;
use super::typed::{Real, Text};
use crate::expression::{ExpressionError, Scope, parse};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The text errors point into.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a str,
    /// Files that were read before, or never were on a disk.
    pub(super) held: &'a [Attachment],
}

impl Source<'_> {
    pub(super) fn error(&self, key: &str, span: Range<usize>, message: impl Into<String>) -> ProblemError {
        ProblemError::new(self.name, message).at(self.text, span).key(key)
    }

    /// An error of the TOML reader, with a suggestion for a misspelt key.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ProblemError {
        let message = error.message().trim().replace("field", "key").replace('\n', ", ");
        let message = message.replace("expected i64", "expected a whole number");
        let mut quoted = message.split('`').skip(1).step_by(2);
        let help = match (message.starts_with("unknown"), quoted.next()) {
            (true, Some(typed)) => quoted
                .map(|known| (strsim::damerau_levenshtein(typed, known), known))
                .min()
                .filter(|(distance, known)| *distance <= 2.max(known.len() / 3))
                .map(|(_, known)| format!("did you mean `{known}`?")),
            _ => None,
        };
        let mut result = ProblemError::new(self.name, message);
        if let Some(span) = error.span() {
            result = result.at(self.text, span);
        }
        match help {
            Some(help) => result.help(help),
            None => result,
        }
    }

    /// An error inside a formula, at its place inside the string.
    pub(super) fn formula(&self, key: &str, text: &Spanned<Text>, error: &ExpressionError) -> ProblemError {
        let span = text.span();
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let place = match raw.find(&**text.get_ref()) {
            Some(offset) => {
                let start = span.start + offset;
                start + error.span.start..start + error.span.end
            }
            // Escapes moved the characters: point at the whole string.
            None => span,
        };
        self.error(key, place, error.message.clone())
    }
}

pub(super) fn count(source: &Source, key: &str, value: &Spanned<i64>, least: i64, most: i64) -> Built<usize> {
    let number = *value.get_ref();
    if (least..=most).contains(&number) {
        Ok(number as usize)
    } else {
        Err(source.error(
            key,
            value.span(),
            format!("must be a whole number from {least} to {most}, not {number}"),
        ))
    }
}

pub(super) fn optional_count(
    source: &Source,
    key: &str,
    value: &Option<Spanned<i64>>,
    least: i64,
    most: i64,
) -> Built<Option<usize>> {
    value
        .as_ref()
        .map(|value| count(source, key, value, least, most))
        .transpose()
}

/// A number, or the value of a formula in the constants of the file.
pub(super) fn real(
    source: &Source,
    key: &str,
    value: &Spanned<Real>,
    constants: &BTreeMap<String, f64>,
) -> Built<f64> {
    let text = match value.get_ref() {
        Real::Number(number) => return Ok(*number),
        Real::Formula(text) => Spanned::new(value.span(), text.clone()),
    };
    let scope = Scope {
        constants: constants.clone(),
        ..Scope::default()
    };
    parse(text.get_ref())
        .and_then(|ast| scope.constant(&ast))
        .map_err(|error| source.formula(key, &text, &error))
}

pub(super) fn finite(
    source: &Source,
    key: &str,
    value: &Spanned<Real>,
    constants: &BTreeMap<String, f64>,
) -> Built<f64> {
    let number = real(source, key, value, constants)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(source.error(key, value.span(), "must be a finite number"))
    }
}

pub(super) fn positive(
    source: &Source,
    key: &str,
    value: &Spanned<Real>,
    constants: &BTreeMap<String, f64>,
) -> Built<f64> {
    match finite(source, key, value, constants)? {
        number if number > 0.0 => Ok(number),
        number => Err(source.error(key, value.span(), format!("must be positive, not {number}"))),
    }
}

pub(super) fn interval(source: &Source, key: &str, value: &Spanned<[f64; 2]>) -> Built<[f64; 2]> {
    let [low, high] = *value.get_ref();
    if low.is_finite() && high.is_finite() && low < high {
        Ok([low, high])
    } else {
        Err(source.error(
            key,
            value.span(),
            format!("[{low}, {high}] is not an interval: the first must be below the second"),
        ))
    }
}
