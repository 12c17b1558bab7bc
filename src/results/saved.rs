//! A run read again: a finished one from its result, any other from its checkpoint.

use super::checkpoint::Checkpoint;
use super::problem_text::parse;
use super::{CHECKPOINT, HISTORY, NETWORK, PROBLEM, RESULT, ResultsError, history};
use crate::error::SolveError;
use crate::greedy::Stopped;
use crate::network::Network;
use crate::network_file;
use crate::norms::ErrorMeter;
use crate::problem::{Problem, Purpose};
use crate::report::{Report, Row, Seconds};
use std::fs;
use std::path::Path;

/// A run as its directory has it.
pub struct SavedRun {
    /// What was solved.
    pub problem: Problem,
    /// Its text.
    pub text: String,
    /// The solution.
    pub network: Network,
    /// The figures of every n.
    pub history: Vec<Row>,
    /// The report of a finished run, or what is known of another.
    origin: Origin,
}

enum Origin {
    Result(Box<Report>),
    Checkpoint(Box<Checkpoint>),
}

impl SavedRun {
    /// Reads a result directory. Everything comes from one origin: the result, or the checkpoint of a
    /// run that has gone further and was interrupted.
    pub fn load(directory: &Path) -> Result<Self, ResultsError> {
        let path = directory.join(CHECKPOINT);
        let checkpoint = path.exists().then(|| Checkpoint::load(&path));
        let result = match directory.join(RESULT).exists() {
            true => Some(read_report(directory)?),
            false => None,
        };
        let further = |checkpoint: &Checkpoint| {
            let there = result.as_ref().map_or(0, |report| report.neurons);
            checkpoint.network.len() > there
        };
        match (checkpoint, result.is_some()) {
            (Some(Ok(checkpoint)), _) if further(&checkpoint) => Self::unfinished(directory, checkpoint),
            (Some(Err(error)), false) => Err(error),
            (checkpoint, true) => {
                let rows = checkpoint.and_then(Result::ok).map(|checkpoint| checkpoint.rows);
                let report = read_report(directory)?;
                let same = rows.filter(|rows| rows.last().map_or(0, |row| row.n) == report.neurons);
                let history = same.unwrap_or_else(|| history::read(&directory.join(HISTORY)));
                Self::finished(directory, report, history)
            }
            _ => Err(ResultsError::NoRun(directory.to_path_buf())),
        }
    }

    fn finished(directory: &Path, report: Report, history: Vec<Row>) -> Result<Self, ResultsError> {
        let (network, _) = network_file::load(&directory.join(NETWORK))?;
        let text = read(&directory.join(PROBLEM))?;
        Self::new(
            directory,
            text,
            network,
            history,
            Origin::Result(Box::new(report)),
        )
    }

    fn unfinished(directory: &Path, checkpoint: Checkpoint) -> Result<Self, ResultsError> {
        let (text, network) = (checkpoint.problem.clone(), checkpoint.network.clone());
        let history = checkpoint.rows.clone();
        Self::new(
            directory,
            text,
            network,
            history,
            Origin::Checkpoint(Box::new(checkpoint)),
        )
    }

    fn new(
        directory: &Path,
        text: String,
        network: Network,
        history: Vec<Row>,
        origin: Origin,
    ) -> Result<Self, ResultsError> {
        let name = directory.join(PROBLEM).display().to_string();
        let problem = parse(&text, &name)?;
        if network.dimension != problem.dimension() {
            return Err(ResultsError::Dimension {
                path: directory.to_path_buf(),
                network: network.dimension,
                problem: problem.dimension(),
            });
        }
        Ok(Self {
            problem,
            text,
            network,
            history,
            origin,
        })
    }

    /// Whether the run came to its end.
    pub fn is_finished(&self) -> bool {
        matches!(self.origin, Origin::Result(_))
    }

    /// The report of the run; of an interrupted one it is put together from the checkpoint, and the
    /// errors of its last network are measured now.
    pub fn report(&self) -> Result<Report, SolveError> {
        match &self.origin {
            Origin::Result(report) => Ok((**report).clone()),
            Origin::Checkpoint(checkpoint) => self.report_so_far(checkpoint),
        }
    }

    fn report_so_far(&self, checkpoint: &Checkpoint) -> Result<Report, SolveError> {
        let problem = &self.problem;
        let neurons = problem.settings.neurons;
        let meter = ErrorMeter::new(problem, neurons)?;
        let mut rows: Vec<Row> = self
            .history
            .iter()
            .filter(|row| Row::is_always_reported(row.n))
            .cloned()
            .collect();
        if let Some(last) = self.history.last().filter(|row| !Row::is_always_reported(row.n)) {
            let mut row = last.clone();
            if let Some(meter) = &meter {
                row.set_errors(&meter.errors(&self.network)?);
            }
            rows.push(row);
        }
        let total = self.history.last().map_or(0.0, |row| row.seconds);
        let loss = problem.loss(neurons, Purpose::Training)?;
        Ok(Report {
            problem: problem.name.clone(),
            version: checkpoint.version.clone(),
            algorithm: problem.settings.algorithm.name().to_string(),
            selection: problem.settings.selection.name().to_string(),
            backend: checkpoint.place.backend.clone(),
            adapter: checkpoint.place.adapter.clone(),
            precision: checkpoint.place.precision.clone(),
            device: None,
            coefficients: crate::report::COEFFICIENTS.to_string(),
            seed: problem.settings.seed,
            dimension: problem.dimension(),
            points: loss.points(),
            error_points: meter.as_ref().map(ErrorMeter::points),
            error_uncertainty: None,
            neurons: self.network.len(),
            stopped: Stopped::Interrupted,
            warnings: vec![format!(
                "this run was interrupted at {} of {neurons} neurons",
                self.network.len()
            )],
            estimate: None,
            usable: true,
            rows,
            seconds: Seconds {
                total,
                ..Seconds::default()
            },
            settings: problem.settings_json(),
        })
    }
}

fn read_report(directory: &Path) -> Result<Report, ResultsError> {
    let path = directory.join(RESULT);
    serde_json::from_str(&read(&path)?).map_err(|error| ResultsError::Unreadable {
        path,
        reason: error.to_string(),
    })
}

fn read(path: &Path) -> Result<String, ResultsError> {
    fs::read_to_string(path).map_err(|error| ResultsError::Unreadable {
        path: path.to_path_buf(),
        reason: format!("cannot be read: {error}"),
    })
}
