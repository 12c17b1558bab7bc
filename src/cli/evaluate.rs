//! `greedy-pde evaluate`: a saved network at listed points.

use super::table::csv_line;
use super::{EvaluateArguments, Failure};
use greedy_pde::network::Network;
use greedy_pde::network_file;
use greedy_pde::sample::{laplacian, of_network};
use greedy_pde::symbol::Symbol;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Points that are read before they are evaluated: memory does not grow with the file.
const CHUNK: usize = 1 << 16;

pub(super) fn execute(arguments: &EvaluateArguments) -> Result<(), Failure> {
    let (network, _) =
        network_file::load(&arguments.network).map_err(|error| Failure::Input(error.to_string()))?;
    let d = network.dimension;
    let mut header: Vec<String> = (1..=d).map(|i| format!("x{i}")).collect();
    let mut symbols = vec![Symbol::value()];
    header.push("u".to_string());
    if arguments.gradient {
        symbols.extend((0..d).map(|i| Symbol::derivative([i])));
        header.extend((1..=d).map(|i| format!("du_dx{i}")));
    }
    if arguments.laplacian {
        symbols.push(laplacian(d));
        header.push("laplacian_u".to_string());
    }
    let points = Points::open(&arguments.points, d)?;
    let values = |chunk: &[Vec<f64>]| lines(&network, &symbols, chunk);
    match write(&header.join(","), points, values) {
        // Whoever reads has had enough, as `head` does.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => Err(Failure::Solve(format!("the values cannot be written: {error}"))),
        Err(Stop::Input(failure)) => Err(failure),
        Ok(()) => Ok(()),
    }
}

/// Why writing ended.
enum Stop {
    Input(Failure),
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Output(error)
    }
}

/// Header and values on stdout, chunk by chunk.
fn write(header: &str, mut points: Points, values: impl Fn(&[Vec<f64>]) -> Vec<String>) -> Result<(), Stop> {
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{header}")?;
    while let Some(chunk) = points.chunk().map_err(Stop::Input)? {
        for line in values(&chunk) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Points and values, line by line.
fn lines(network: &Network, symbols: &[Symbol], points: &[Vec<f64>]) -> Vec<String> {
    let values = of_network(network, symbols, points);
    let count = points.first().map_or(0, Vec::len);
    (0..count)
        .map(|row| csv_line(points.iter().chain(&values), row))
        .collect()
}

/// Points in a CSV file, chunk by chunk.
struct Points {
    name: String,
    reader: csv::Reader<Box<dyn Read>>,
    dimension: usize,
    first: bool,
}

impl Points {
    fn open(path: &Path, dimension: usize) -> Result<Self, Failure> {
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
            reader,
            dimension,
            first: true,
        })
    }

    /// The next points column by column, if there are any.
    fn chunk(&mut self) -> Result<Option<Vec<Vec<f64>>>, Failure> {
        let mut columns = vec![Vec::new(); self.dimension];
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
                Some(numbers) if numbers.len() == self.dimension => {
                    columns
                        .iter_mut()
                        .zip(numbers)
                        .for_each(|(column, x)| column.push(x));
                }
                // A first line of names is passed over.
                None if first => {}
                _ => return Err(self.bad_line(&record)),
            }
        }
        Ok((!columns[0].is_empty()).then_some(columns))
    }

    fn bad_line(&self, record: &csv::StringRecord) -> Failure {
        let line = record.position().map_or(0, csv::Position::line);
        let text: Vec<&str> = record.iter().collect();
        Failure::Input(format!(
            "{}:{line}: `{}` is not a point: {} separated by commas are needed",
            self.name,
            text.join(","),
            match self.dimension {
                1 => "one number".to_string(),
                d => format!("{d} numbers"),
            }
        ))
    }
}
