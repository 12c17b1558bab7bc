//! Measurements: from a CSV file to a term of the loss.

use super::attachment::Attachment;
use super::build::{Builder, Built};
use super::file::{File, FileData};
use super::settings::Purpose;
use super::source::positive;
use crate::domain::{DomainError, Region};
use crate::expression::Graph;
use crate::loss::{Density, Formula, TermSpec};
use crate::points::Listed;
use crate::symbol::Symbol;
use std::sync::Arc;
use toml::Spanned;

/// Every so manieth measurement is held back for the guard …
const HELD_BACK: usize = 5;
/// … if there are at least so many.
const FEWEST: usize = 10;

/// Measurements (x, value) with weights, which the loss takes as weight · mean of (u(x) − value)².
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// The factor on the mean.
    weight: f64,
    /// Those that the run sees, and those the guard has.
    training: Arc<Listed>,
    validation: Arc<Listed>,
    /// How many there are in all.
    pub count: usize,
    /// As it is typed.
    pub file: String,
}

impl Data {
    /// Its term of the loss.
    pub(super) fn term(&self, graph: &mut Graph, purpose: Purpose) -> TermSpec {
        let listed = match purpose {
            Purpose::Training | Purpose::Curvature | Purpose::Confirmation | Purpose::Norms => &self.training,
            Purpose::Validation | Purpose::Errors => &self.validation,
        };
        let one = graph.number(1.0);
        // The value stands after the coordinates.
        let value = graph.coordinate(listed.coordinates.len());
        TermSpec {
            region: Region::Interior,
            scale: self.weight,
            listed: Some(Arc::clone(listed)),
            density: Density::Residual {
                parts: vec![(Symbol::value(), Formula::new("1", one))],
                source: Formula::new("a measured value", value),
            },
        }
    }

    /// The measurements that the run sees, and those that were held back for the guard: x and the value at it.
    pub fn measured(&self) -> [Vec<(Vec<f64>, f64)>; 2] {
        let rows = |listed: &Listed| {
            let point = |k: usize| listed.coordinates.iter().map(|column| column[k]).collect();
            let values = listed.attributes[0].iter().enumerate();
            values.map(|(k, value)| (point(k), *value)).collect()
        };
        match Arc::ptr_eq(&self.training, &self.validation) {
            true => [rows(&self.training), Vec::new()],
            false => [rows(&self.training), rows(&self.validation)],
        }
    }

    /// How many were held back for the guard.
    pub fn held_back(&self) -> usize {
        match Arc::ptr_eq(&self.training, &self.validation) {
            true => 0,
            false => self.validation.attributes[0].len(),
        }
    }

    /// What it is, for people.
    pub fn in_words(&self) -> String {
        let held = match Arc::ptr_eq(&self.training, &self.validation) {
            true => String::new(),
            false => format!(
                ", {} of them held back for the guard",
                self.validation.weights.len()
            ),
        };
        format!(
            "{} measurements in {}, weight {}{held}",
            self.count, self.file, self.weight
        )
    }
}

/// A measurement.
struct Row {
    point: Vec<f64>,
    value: f64,
    weight: f64,
}

impl Builder<'_> {
    pub(super) fn data(&mut self, file: &File) -> Built<Vec<Data>> {
        let tables = file.data.iter();
        tables
            .map(|table| self.data_table(table, file.solver.guard))
            .collect()
    }

    fn data_table(&mut self, table: &FileData, guard: bool) -> Built<Data> {
        let weight = match &table.weight {
            Some(weight) => positive(&self.source, "data.weight", weight, &self.constants)?,
            None => 1.0,
        };
        let attachment = Attachment::read(&self.source, "data.file", &table.file)?;
        let rows = rows(&attachment.bytes, self.dimension)
            .map_err(|error| attachment.refused(&self.source, "data.file", &table.file, error))?;
        self.warn_of_data_outside(&rows, &table.file);
        let count = rows.len();
        let holds_back = guard && count >= FEWEST;
        let is_held = |index: usize| holds_back && index % HELD_BACK == HELD_BACK / 2;
        let part = |held: bool| {
            let chosen = rows.iter().enumerate();
            let chosen = chosen.filter(|(index, _)| is_held(*index) == held);
            listed(chosen.map(|(_, row)| row), self.dimension)
        };
        let training = Arc::new(part(false));
        let validation = match holds_back {
            true => Arc::new(part(true)),
            false => Arc::clone(&training),
        };
        self.files.push(attachment);
        Ok(Data {
            weight,
            training,
            validation,
            count,
            file: table.file.get_ref().clone(),
        })
    }

    fn warn_of_data_outside(&mut self, rows: &[Row], file: &Spanned<String>) {
        let outside = rows
            .iter()
            .filter(|row| !self.domain.contains(row.point.iter().copied()));
        let count = outside.count();
        if count > 0 {
            self.warnings.push(format!(
                "{count} of {} measurements in {} are outside the domain: they are fitted, but nothing else is known about \
                 u there",
                rows.len(),
                file.get_ref()
            ));
        }
    }
}

fn listed<'r>(rows: impl Iterator<Item = &'r Row>, dimension: usize) -> Listed {
    let mut listed = Listed {
        coordinates: vec![Vec::new(); dimension],
        attributes: vec![Vec::new()],
        weights: Vec::new(),
    };
    for row in rows {
        let columns = listed.coordinates.iter_mut().zip(&row.point);
        columns.for_each(|(column, x)| column.push(*x));
        listed.attributes[0].push(row.value);
        listed.weights.push(row.weight);
    }
    let sum: f64 = listed.weights.iter().sum();
    listed.weights.iter_mut().for_each(|weight| *weight /= sum);
    listed
}

/// What is wrong with a line of names: a known one in another column than it belongs to. Others may be anything.
fn misplaced(record: &csv::StringRecord, dimension: usize) -> Option<String> {
    let place = |name: &str| {
        let name = name.trim_matches('"').to_lowercase();
        let letter = ["x", "y", "z"].iter().position(|letter| *letter == name);
        let number = name
            .strip_prefix('x')
            .and_then(|number| number.parse::<usize>().ok());
        let number = number.and_then(|number| number.checked_sub(1));
        let coordinate = letter.filter(|_| dimension <= 3).or(number);
        match name.as_str() {
            "value" | "u" => Some(dimension),
            "weight" => Some(dimension + 1),
            _ => coordinate,
        }
    };
    let mut names = record.iter().enumerate();
    names.find_map(|(column, name)| {
        let place = place(name)?;
        (place != column).then(|| {
            format!(
                "has the name `{}` over column {}, which is column {}",
                name.escape_debug(),
                column + 1,
                place + 1
            )
        })
    })
}

/// The lines of a file: x1 … xd, value, and a weight if there is one more column. A first line of names may be there.
fn rows(bytes: &[u8], dimension: usize) -> Result<Vec<Row>, DomainError> {
    let wanted = {
        let names: Vec<String> = (1..=dimension).map(|i| format!("x{i}")).collect();
        format!("{}, value and, if it is wanted, weight", names.join(", "))
    };
    let at = |line: usize, message: String| DomainError {
        line: Some(line),
        ..DomainError::new(message).help(format!("the columns are {wanted}, separated by commas"))
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(bytes);
    let mut rows = Vec::new();
    let mut width = None;
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(index + 1, |place| place.line() as usize);
            at(line, "is not text in columns".to_string())
        })?;
        let line = record.position().map_or(index + 1, |place| place.line() as usize);
        let names = index == 0 && record.iter().all(|cell| cell.parse::<f64>().is_err());
        if ![dimension + 1, dimension + 2].contains(&record.len()) {
            let message = format!(
                "has {} columns, not {} or {}",
                record.len(),
                dimension + 1,
                dimension + 2
            );
            return Err(at(line, message));
        }
        let first = *width.get_or_insert(record.len());
        if record.len() != first {
            let message = format!("has {} columns, and the first line has {first}", record.len());
            return Err(at(line, message));
        }
        if names {
            if let Some(message) = misplaced(&record, dimension) {
                return Err(at(line, message));
            }
            continue;
        }
        let number = |cell: &str| match cell.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(at(
                line,
                format!("has `{}` where a number is expected", cell.escape_debug()),
            )),
        };
        let mut numbers = record
            .iter()
            .map(number)
            .collect::<Result<Vec<f64>, DomainError>>()?;
        let weight = match record.len() == dimension + 2 {
            true => numbers.pop().unwrap_or(1.0),
            false => 1.0,
        };
        if weight <= 0.0 {
            return Err(at(line, format!("has the weight {weight}; weights are positive")));
        }
        let value = numbers.pop().unwrap_or(0.0);
        rows.push(Row {
            point: numbers,
            value,
            weight,
        });
    }
    match rows.is_empty() {
        true => Err(at(1, "has no measurement".to_string())),
        false => Ok(rows),
    }
}
