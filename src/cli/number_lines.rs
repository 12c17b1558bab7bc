//! Lines of numbers in a file: points, perhaps with values.

use super::Failure;
use std::io::{self, Read};
use std::path::Path;

/// Lines that are read together: memory does not grow with the file.
const CHUNK: usize = 1 << 16;

/// Lines of so many numbers in a CSV file, chunk by chunk.
pub(super) struct NumberLines {
    name: String,
    /// What a line is.
    what: &'static str,
    reader: csv::Reader<Box<dyn Read>>,
    width: usize,
    first: bool,
}

impl NumberLines {
    /// Opens a file; - is stdin.
    pub(super) fn open(path: &Path, width: usize, what: &'static str) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let source: Box<dyn Read> = if name == "-" {
            Box::new(io::stdin())
        } else {
            let file = std::fs::File::open(path);
            Box::new(file.map_err(|error| Failure::Input(format!("{name}: cannot be read: {error}")))?)
        };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(source);
        Ok(Self {
            name,
            what,
            reader,
            width,
            first: true,
        })
    }

    /// The next lines column by column, if there are any.
    pub(super) fn chunk(&mut self) -> Result<Option<Vec<Vec<f64>>>, Failure> {
        let mut columns = vec![Vec::new(); self.width];
        let mut record = csv::StringRecord::new();
        while columns[0].len() < CHUNK {
            let more = self
                .reader
                .read_record(&mut record)
                .map_err(|error| Failure::Input(format!("{}: {error}", self.name)))?;
            if !more {
                break;
            }
            let numbers: Option<Vec<f64>> = record.iter().map(|field| field.parse().ok()).collect();
            let first = std::mem::replace(&mut self.first, false);
            match numbers {
                Some(numbers) if numbers.len() == self.width && numbers.iter().all(|x| x.is_finite()) => {
                    columns
                        .iter_mut()
                        .zip(numbers)
                        .for_each(|(column, x)| column.push(x));
                }
                None if first && is_header(&record, self.width) => {}
                _ => return Err(self.bad_line(&record)),
            }
        }
        Ok((!columns[0].is_empty()).then_some(columns))
    }

    /// An error that shows the line.
    fn bad_line(&self, record: &csv::StringRecord) -> Failure {
        let line = record.position().map_or(0, csv::Position::line);
        let text: Vec<&str> = record.iter().collect();
        Failure::Input(format!(
            "{}:{line}: `{}` is not {}: {} separated by commas are needed",
            self.name,
            text.join(","),
            self.what,
            match self.width {
                1 => "one finite number".to_string(),
                d => format!("{d} finite numbers"),
            }
        ))
    }
}

/// Whether a line has a name for each column; what looks like numbers is none.
fn is_header(record: &csv::StringRecord, width: usize) -> bool {
    let is_name = |field: &str| {
        let plain = field.trim_matches('"');
        plain.parse::<f64>().is_err() && plain.starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    record.len() == width && record.iter().all(is_name)
}
