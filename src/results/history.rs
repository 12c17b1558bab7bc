//! `history.csv`: the figures of every n.

use crate::report::{Row, TimeRow};
use std::fs;
use std::path::Path;

/// The rows as lines, with a first line of names.
pub(super) fn text(rows: &[Row]) -> String {
    let lines = rows.iter().map(Row::to_csv);
    let mut text: String = [Row::csv_header()]
        .into_iter()
        .chain(lines)
        .flat_map(|line| [line, "\n".to_string()])
        .collect();
    text.shrink_to_fit();
    text
}

/// The rows in a text; lines that are none are passed over.
pub(super) fn rows(text: &str) -> Vec<Row> {
    text.lines().filter_map(Row::from_csv).collect()
}

/// The rows in a file, if there is one.
pub(super) fn read(path: &Path) -> Vec<Row> {
    rows(&fs::read_to_string(path).unwrap_or_default())
}

/// The rows of a flow as lines, with a first line of names.
pub(super) fn time_text(rows: &[TimeRow]) -> String {
    let lines = rows.iter().map(TimeRow::to_csv);
    let lines = [TimeRow::csv_header()].into_iter().chain(lines);
    lines.flat_map(|line| [line, "\n".to_string()]).collect()
}

/// The rows of a flow in a text.
pub(super) fn time_rows(text: &str) -> Vec<TimeRow> {
    text.lines().filter_map(TimeRow::from_csv).collect()
}
