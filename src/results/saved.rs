//! A run read again: a finished one from its result, any other from its checkpoint.

use super::checkpoint::Checkpoint;
use super::problem_text::parse;
use super::{CHECKPOINT, FRAMES, HISTORY, NETWORK, PROBLEM, RESULT, ResultsError, history};
use crate::error::SolveError;
use crate::greedy::Stopped;
use crate::network::Network;
use crate::network_file;
use crate::norms::ErrorMeter;
use crate::problem::{Problem, Purpose};
use crate::report::{Report, Row, Seconds, TimeRow};
use crate::run::{last_row, time_report};
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
    /// u at the times that a flow kept.
    pub frames: Vec<(f64, Network)>,
    /// The figures of every step of a flow.
    pub steps: Vec<TimeRow>,
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
            if checkpoint.flow.is_some() {
                return result.is_none();
            }
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
        let in_time = report.time.is_some();
        let mut run = Self::new(
            directory,
            text,
            network,
            history,
            Origin::Result(Box::new(report)),
        )?;
        if in_time {
            run.frames = network_file::load_frames(&directory.join(FRAMES))?;
            run.steps = history::time_rows(&read(&directory.join(HISTORY))?);
            run.history = Vec::new();
        }
        Ok(run.at_last_time())
    }

    fn unfinished(directory: &Path, checkpoint: Checkpoint) -> Result<Self, ResultsError> {
        let (text, network) = (checkpoint.problem.clone(), checkpoint.network.clone());
        let history = checkpoint.rows.clone();
        let (frames, steps) = match &checkpoint.flow {
            Some((state, rows)) => {
                let frame = |coefficients: &[f64]| network.with_coefficients(coefficients);
                let frames = state.frames.iter();
                let frames = frames.map(|kept| (kept.time, frame(&kept.coefficients)));
                (frames.collect(), rows.clone())
            }
            None => (Vec::new(), Vec::new()),
        };
        let run = Self::new(
            directory,
            text,
            network,
            history,
            Origin::Checkpoint(Box::new(checkpoint)),
        )?;
        Ok(Self { frames, steps, ..run }.at_last_time())
    }

    /// Formulas in t, such as the exact solution, have the time of the network.
    fn at_last_time(mut self) -> Self {
        if let Some(row) = self.steps.last() {
            self.problem = self.problem.at_time(row.time);
        }
        self
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
            frames: Vec::new(),
            steps: Vec::new(),
            origin,
        })
    }

    /// The same at another time of a flow: the last network, and the formulas in t, are those of that time. Between two frames u is
    /// taken on the line from one to the other; `true` where it is.
    pub fn at_time(mut self, time: f64) -> Result<(Self, bool), ResultsError> {
        let ends = self.frames.first().zip(self.frames.last());
        let ends = ends.map(|((first, _), (last, _))| (*first, *last));
        let slack = 1e-9 * ends.map_or(0.0, |(first, last)| last - first);
        let Some((first, last)) = ends.filter(|(a, b)| (a - slack..=b + slack).contains(&time)) else {
            return Err(ResultsError::Time { time, ends });
        };
        let time = time.clamp(first, last);
        let after = self.frames.iter().position(|(t, _)| *t >= time - slack);
        let after = after.unwrap_or(self.frames.len() - 1);
        let (then, next) = &self.frames[after];
        let between = (then - time).abs() > slack;
        self.network = match between.then(|| &self.frames[after - 1]) {
            None => next.clone(),
            Some((before, earlier)) => on_the_line(earlier, next, (time - before) / (then - before)),
        };
        self.problem = self.problem.at_time(time);
        Ok((self, between))
    }

    /// Whether the result says anything about the solution, as far as the run knows.
    pub fn is_usable(&self) -> bool {
        match &self.origin {
            Origin::Result(report) => report.usable,
            Origin::Checkpoint(_) => true,
        }
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
        let flow = problem.evolution.as_ref().zip(checkpoint.flow.as_ref());
        let time = flow.map(|(evolution, (state, rows))| time_report(evolution, state, rows.clone()));
        rows.extend(self.steps.last().map(last_row));
        let total = rows.last().map_or(0.0, |row| row.seconds);
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
            ranks: 1,
            error_points: meter.as_ref().map(ErrorMeter::points),
            error_uncertainty: None,
            neurons: self.network.len(),
            stopped: Stopped::Interrupted,
            warnings: vec![match self.steps.last() {
                Some(row) => format!("this run was interrupted at t = {}", row.time),
                None => format!(
                    "this run was interrupted at {} of {neurons} neurons",
                    self.network.len()
                ),
            }],
            estimate: None,
            usable: true,
            rows,
            time,
            seconds: Seconds {
                total,
                ..Seconds::default()
            },
            settings: problem.settings_json(),
        })
    }
}

/// (1 − part) earlier + part later, where the neurons of the earlier one are the first ones of the later.
fn on_the_line(earlier: &Network, later: &Network, part: f64) -> Network {
    let before = earlier.coefficients.iter().copied().chain(std::iter::repeat(0.0));
    let both = later.coefficients.iter().zip(before);
    Network {
        coefficients: both.map(|(b, a)| a + part * (b - a)).collect(),
        ..later.clone()
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
