//! `greedy-pde evaluate`: a saved network at listed points.

use super::streams::{failed, tell};
use super::table::csv_line;
use super::{EvaluateArguments, Failure};
use greedy_pde::domain::Domain;
use greedy_pde::network::Network;
use greedy_pde::network_file;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::results::{PROBLEM, SavedRun};
use greedy_pde::sample::{laplacian, of_network};
use greedy_pde::symbol::Symbol;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Points that are read before they are evaluated: memory does not grow with the file.
const CHUNK: usize = 1 << 16;

pub(super) fn execute(arguments: &EvaluateArguments) -> Result<(), Failure> {
    let Evaluated { network, domain } = Evaluated::load(&arguments.network)?;
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
    let mut points = Points::open(&arguments.points, d)?;
    let (mut outside, mut all) = (0, 0);
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", header.join(",")).map_err(failed)?;
    while let Some(chunk) = points.chunk()? {
        all += chunk[0].len();
        outside += domain.as_ref().map_or(0, |domain| count_outside(domain, &chunk));
        for line in lines(&network, &symbols, &chunk) {
            writeln!(out, "{line}").map_err(failed)?;
        }
    }
    out.flush().map_err(failed)?;
    if outside > 0 {
        tell!("warning: {outside} of {all} points are outside the domain: nothing is known about u there");
    }
    Ok(())
}

/// A network, and the domain of its problem where it is known.
struct Evaluated {
    network: Network,
    domain: Option<Domain>,
}

impl Evaluated {
    /// From a result directory, or from a network's file, whose problem may stand beside it.
    fn load(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            let run = SavedRun::load(path)?;
            return Ok(Self {
                network: run.network,
                domain: Some(run.problem.domain),
            });
        }
        let (network, notes) = network_file::load(path).map_err(|error| Failure::Input(error.to_string()))?;
        let beside = Problem::from_path(&path.with_file_name(PROBLEM), &Overrides::default()).ok();
        let domain = beside
            .filter(|problem| {
                notes.get("problem") == Some(&problem.name) && problem.dimension() == network.dimension
            })
            .map(|problem| problem.domain);
        Ok(Self { network, domain })
    }
}

fn count_outside(domain: &Domain, points: &[Vec<f64>]) -> usize {
    (0..points[0].len())
        .filter(|index| !domain.contains(points.iter().map(|x| x[*index])))
        .count()
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
                None if first && is_header(&record, self.dimension) => {}
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

/// Whether a line has a name for each coordinate; what looks like numbers is none.
fn is_header(record: &csv::StringRecord, dimension: usize) -> bool {
    let is_name = |field: &str| {
        let plain = field.trim_matches('"');
        plain.parse::<f64>().is_err() && plain.starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    record.len() == dimension && record.iter().all(is_name)
}
