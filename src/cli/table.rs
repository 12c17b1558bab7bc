//! Tables for people.

use comfy_table::{CellAlignment, Table, presets};
use greedy_pde::report::{Row, TimeRow};

/// A plain table whose columns are right-aligned.
pub(super) fn plain(header: impl Into<comfy_table::Row>, rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A line of a CSV file: one number of each column.
pub(super) fn csv_line<'a>(columns: impl Iterator<Item = &'a Vec<f64>>, index: usize) -> String {
    let numbers: Vec<String> = columns.map(|column| column[index].to_string()).collect();
    numbers.join(",")
}

/// The rows of a run.
pub(super) fn of_run(rows: &[Row]) -> Table {
    let (header, lines) = greedy_pde::report::table(rows);
    plain(header, lines)
}

/// The rows of a flow.
pub(super) fn of_flow(rows: &[TimeRow]) -> Table {
    let (header, lines) = greedy_pde::report::time_table(rows);
    plain(header, lines)
}
