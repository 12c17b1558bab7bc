//! What a run has to say: the rows of its table, and everything about how it was made.

use crate::estimate::Estimate;
use crate::greedy::Stopped;
use crate::norms::Errors;
use serde::{Deserialize, Deserializer, Serialize};

fn slope() -> String {
    "slope".to_string()
}

/// The figures after n neurons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The number of neurons.
    pub n: usize,
    /// ‖u − u_n‖ in L².
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2: Option<f64>,
    /// ‖u − u_n‖ in the full H¹ norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h1: Option<f64>,
    /// ‖u − u_n‖ in the energy norm; where the excess is measured, that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// (L(u_n) − L(u)) / (L(0) − L(u)), for a potential or a relaxed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// The loss on the training points.
    #[serde(deserialize_with = "number_or_nan")]
    pub loss: f64,
    /// The loss on independent points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// |⟨∇L(u_(n−1)), g_n⟩|.
    #[serde(deserialize_with = "number_or_nan")]
    pub score: f64,
    /// Σ |aᵢ|.
    #[serde(deserialize_with = "number_or_nan")]
    pub coefficient_l1: f64,
    /// Time since the start of the run.
    #[serde(deserialize_with = "number_or_nan")]
    pub seconds: f64,
}

/// A number that was not finite is null in JSON.
fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The observed order between two rows: log(e₁/e₂) / log(n₂/n₁).
pub fn order(before: Option<(usize, f64)>, now: (usize, f64)) -> String {
    match before {
        Some((n, error)) if n < now.0 && error > 0.0 && now.1 > 0.0 => {
            format!("{:.2}", (error / now.1).ln() / (now.0 as f64 / n as f64).ln())
        }
        _ => "-".to_string(),
    }
}

/// The rows of a run as a table for people: errors with their orders, losses, time.
pub fn table(rows: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let has = |value: fn(&Row) -> Option<f64>| rows.iter().any(|row| value(row).is_some());
    let errors: Vec<Column> = [
        ("L2 error", (|row: &Row| row.l2) as fn(&Row) -> Option<f64>),
        ("H1 error", |row| row.h1),
        // Two things that are called energy are two columns: a norm, or a relative excess.
        ("energy error", |row| row.energy.filter(|_| row.excess.is_none())),
        ("relative excess", |row| row.excess),
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
    (header, lines)
}

/// The figures of a flow after a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeRow {
    /// After how many steps.
    pub step: usize,
    /// t.
    pub time: f64,
    /// The number of neurons.
    pub n: usize,
    /// E(u), up to a constant; not an error.
    #[serde(deserialize_with = "number_or_nan")]
    pub energy: f64,
    /// ‖u(t) − u_n‖ in L².
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<f64>,
    /// The same as a part of ‖u(t)‖.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_relative: Option<f64>,
    /// ‖u(t) − u_n‖ in the full H¹ norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub h1: Option<f64>,
    /// Σ |aᵢ|.
    #[serde(deserialize_with = "number_or_nan")]
    pub coefficient_l1: f64,
    /// Time since the start of the run.
    #[serde(deserialize_with = "number_or_nan")]
    pub seconds: f64,
}

/// A flow as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeReport {
    /// By which formula.
    pub scheme: String,
    /// The last time asked for.
    pub end: f64,
    /// Steps asked for.
    pub steps: usize,
    /// The length of a step.
    pub step: f64,
    /// Neurons of the initial value.
    pub initial_neurons: usize,
    /// Where u was kept.
    pub rows: Vec<TimeRow>,
}

/// The rows of a flow as a table for people.
pub fn time_table(rows: &[TimeRow]) -> (Vec<String>, Vec<Vec<String>>) {
    let known = rows.iter().any(|row| row.l2.is_some());
    let names = [
        "step", "t", "n", "energy", "L2 error", "relative", "H1 error", "seconds",
    ];
    let is_shown = |column: &usize| known || !(4..7).contains(column);
    let shown = |cells: Vec<String>| -> Vec<String> {
        let cells = cells
            .into_iter()
            .enumerate()
            .filter(|(column, _)| is_shown(column));
        cells.map(|(_, cell)| cell).collect()
    };
    let number = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.3e}"));
    let line = |row: &TimeRow| {
        shown(vec![
            row.step.to_string(),
            format!("{:.4e}", row.time),
            row.n.to_string(),
            format!("{:.6e}", row.energy),
            number(row.l2),
            number(row.l2_relative),
            number(row.h1),
            format!("{:.2}", row.seconds),
        ])
    };
    let header = shown(names.map(str::to_string).to_vec());
    (header, rows.iter().map(line).collect())
}

/// A column of the history of a flow: its name and how to read it.
pub type TimeColumn = (&'static str, fn(&TimeRow) -> Option<f64>);

impl TimeRow {
    /// The columns after step, time and n, in the order of `history.csv`.
    pub const COLUMNS: [TimeColumn; 6] = [
        ("energy", |row| Some(row.energy)),
        ("l2", |row| row.l2),
        ("l2_relative", |row| row.l2_relative),
        ("h1", |row| row.h1),
        ("coefficient_l1", |row| Some(row.coefficient_l1)),
        ("seconds", |row| Some(row.seconds)),
    ];

    /// The first line of `history.csv`.
    pub fn csv_header() -> String {
        let names: Vec<&str> = Self::COLUMNS.iter().map(|(name, _)| *name).collect();
        format!("step,time,n,{}", names.join(","))
    }

    /// A line of `history.csv`; what was not measured is empty.
    pub fn to_csv(&self) -> String {
        let values: Vec<String> = Self::COLUMNS
            .iter()
            .map(|(_, value)| value(self).map_or(String::new(), |value| format!("{value:e}")))
            .collect();
        format!("{},{:e},{},{}", self.step, self.time, self.n, values.join(","))
    }

    /// Reads a line of `history.csv`.
    pub fn from_csv(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim_end().split(',').collect();
        let [
            step,
            time,
            n,
            energy,
            l2,
            l2_relative,
            h1,
            coefficient_l1,
            seconds,
        ] = fields[..]
        else {
            return None;
        };
        Some(Self {
            step: step.parse().ok()?,
            time: time.parse().ok()?,
            n: n.parse().ok()?,
            energy: energy.parse().ok()?,
            l2: l2.parse().ok(),
            l2_relative: l2_relative.parse().ok(),
            h1: h1.parse().ok(),
            coefficient_l1: coefficient_l1.parse().ok()?,
            seconds: seconds.parse().ok()?,
        })
    }
}

/// A column of a table: its name and how to read it.
pub type Column = (&'static str, fn(&Row) -> Option<f64>);

impl Row {
    /// Whether n is in every report: the powers of two.
    pub fn is_always_reported(n: usize) -> bool {
        n.is_power_of_two()
    }

    /// Notes the errors that were measured.
    pub fn set_errors(&mut self, errors: &Errors) {
        self.l2 = Some(errors.l2);
        self.h1 = Some(errors.h1);
        self.energy = errors.energy;
        self.excess = errors.excess;
    }

    /// The columns after n, in the order of `history.csv`.
    pub const COLUMNS: [Column; 9] = [
        ("l2", |row| row.l2),
        ("h1", |row| row.h1),
        ("energy", |row| row.energy),
        ("loss", |row| Some(row.loss)),
        ("validation_loss", |row| row.validation_loss),
        ("score", |row| Some(row.score)),
        ("coefficient_l1", |row| Some(row.coefficient_l1)),
        ("seconds", |row| Some(row.seconds)),
        ("excess", |row| row.excess),
    ];

    /// The first line of `history.csv`.
    pub fn csv_header() -> String {
        let names: Vec<&str> = Self::COLUMNS.iter().map(|(name, _)| *name).collect();
        format!("n,{}", names.join(","))
    }

    /// A line of `history.csv`; what was not measured is empty.
    pub fn to_csv(&self) -> String {
        let values: Vec<String> = Self::COLUMNS
            .iter()
            .map(|(_, value)| value(self).map_or(String::new(), |value| format!("{value:e}")))
            .collect();
        format!("{},{}", self.n, values.join(","))
    }

    /// Reads a line of `history.csv`.
    pub fn from_csv(line: &str) -> Option<Self> {
        let mut fields = line.trim_end().split(',');
        let n = fields.next()?.parse().ok()?;
        let mut values: Vec<Option<f64>> = fields.map(|field| field.parse().ok()).collect();
        // Histories of version 0.1 end with the seconds.
        if values.len() == Self::COLUMNS.len() - 1 {
            values.push(None);
        }
        let [
            l2,
            h1,
            energy,
            loss,
            validation_loss,
            score,
            coefficient_l1,
            seconds,
            excess,
        ] = values[..]
        else {
            return None;
        };
        Some(Self {
            n,
            l2,
            h1,
            energy,
            loss: loss?,
            validation_loss,
            score: score?,
            coefficient_l1: coefficient_l1?,
            seconds: seconds?,
            excess,
        })
    }
}

/// Where the time went, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Everything.
    pub total: f64,
    /// Making points and coefficients that are kept.
    pub points: f64,
    /// Scores of all candidates.
    pub argmax: f64,
    /// Newton's method on the best.
    pub refine: f64,
    /// Gram columns: sums over the points.
    pub gram: f64,
    /// Coefficients.
    pub projection: f64,
    /// The loss on independent points.
    pub validation: f64,
    /// Errors against the exact solution.
    pub errors: f64,
}

/// Results of earlier versions did not say.
fn one() -> usize {
    1
}

fn usable() -> bool {
    true
}

/// Where coefficient formulas are evaluated.
pub const COEFFICIENTS: &str = "host f64";

/// What a device did for a run, over all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Its name.
    pub adapter: String,
    /// How it adds up.
    pub precision: String,
    /// Bytes sent up.
    pub bytes_up: u64,
    /// Bytes that came down.
    pub bytes_down: u64,
    /// How often work was handed over.
    pub submissions: u64,
    /// Points along directions whose sums were made in scans.
    #[serde(default)]
    pub point_directions: u64,
    /// Seconds that it worked by its own clock, where it has one.
    pub seconds: Option<f64>,
}

/// The result of a run, as `--json` prints it and `result.json` keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The problem's name.
    pub problem: String,
    /// The version of this program.
    pub version: String,
    /// `oga` or `rga`.
    pub algorithm: String,
    /// By what neurons were chosen: `slope` or `decrease`. Results from before there was a choice have the slope.
    #[serde(default = "slope")]
    pub selection: String,
    /// `cpu` or `gpu`.
    pub backend: String,
    /// The GPU's name.
    pub adapter: Option<String>,
    /// How scores are computed.
    pub precision: String,
    /// What a device did; nothing on the CPU path.
    #[serde(default)]
    pub device: Option<DeviceReport>,
    /// Where coefficient formulas are evaluated: always on the host, in f64.
    pub coefficients: String,
    /// The seed.
    pub seed: u64,
    /// d.
    pub dimension: usize,
    /// N, over all terms of the loss.
    pub points: usize,
    /// How many processes shared the sums.
    #[serde(default = "one")]
    pub ranks: usize,
    /// Independent points for the errors, inside the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_points: Option<usize>,
    /// The estimated relative uncertainty of `l2` and `h1` in the last row, where these points are a sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_uncertainty: Option<[f64; 2]>,
    /// How many neurons the result has.
    pub neurons: usize,
    /// Why the run ended.
    pub stopped: Stopped,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// How large the errors are, by what is known without the exact solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Whether the result says anything about the solution; if not, a warning says why.
    #[serde(default = "usable")]
    pub usable: bool,
    /// n = 1, 2, 4, 8, … and the last; of a flow the last u.
    pub rows: Vec<Row>,
    /// The steps of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeReport>,
    /// Where the time went.
    pub seconds: Seconds,
    /// The settings in force, defaults and flags included.
    pub settings: serde_json::Value,
}
