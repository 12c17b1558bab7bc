//! Tables for people.

use comfy_table::{CellAlignment, Table, presets};
use greedy_pde::report::{Column, Row};

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

/// The observed order between two rows: log(e₁/e₂) / log(n₂/n₁).
pub(super) fn order(before: Option<(usize, f64)>, now: (usize, f64)) -> String {
    match before {
        Some((n, error)) if n < now.0 && error > 0.0 && now.1 > 0.0 => {
            format!("{:.2}", (error / now.1).ln() / (now.0 as f64 / n as f64).ln())
        }
        _ => "-".to_string(),
    }
}

/// The rows of a run: errors with their orders, losses, time.
pub(super) fn of_run(rows: &[Row]) -> Table {
    let has = |value: fn(&Row) -> Option<f64>| rows.iter().any(|row| value(row).is_some());
    let errors: Vec<Column> = [
        ("L2 error", (|row: &Row| row.l2) as fn(&Row) -> Option<f64>),
        ("H1 error", |row| row.h1),
        ("energy error", |row| row.energy),
    ]
    .into_iter()
    .filter(|(_, value)| has(*value))
    .collect();
    let mut header = vec!["n".to_string()];
    for (name, _) in &errors {
        header.extend([name.to_string(), "order".to_string()]);
    }
    header.extend(["loss", "validation", "seconds"].map(str::to_string));
    let lines = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let mut line = vec![row.n.to_string()];
            for (_, value) in &errors {
                let before = index
                    .checked_sub(1)
                    .and_then(|i| Some((rows[i].n, value(&rows[i])?)));
                let now = value(row);
                line.push(now.map_or("-".to_string(), |error| format!("{error:.3e}")));
                line.push(now.map_or("-".to_string(), |error| order(before, (row.n, error))));
            }
            line.push(format!("{:.6e}", row.loss));
            line.push(
                row.validation_loss
                    .map_or("-".to_string(), |loss| format!("{loss:.6e}")),
            );
            line.push(format!("{:.2}", row.seconds));
            line
        })
        .collect();
    plain(header, lines)
}
