//! A run that is over, in memory: what a result directory has of it.

use crate::error::{Failure, results_error, solve_error};
use crate::network::Network;
use crate::problem::{Files, Problem, attachments};
use greedy_pde::network;
use greedy_pde::network_file;
use greedy_pde::page::{RunData, lead, pictures};
use greedy_pde::report::{Report, Row, TimeRow, table, time_table};
use greedy_pde::results::{
    CHECKPOINT, Checkpoint, Existing, PROBLEM, Recording, ResultDirectory, SavedRun, write_page,
};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};

/// A run that is over.
#[pyclass(frozen, module = "greedy_pde._native")]
pub struct Run {
    problem: Problem,
    report: Report,
    network: network::Network,
    history: Vec<Row>,
    steps: Vec<TimeRow>,
    frames: Vec<(f64, network::Network)>,
    /// What more neurons can be added to; a directory may have lost it.
    checkpoint: Option<Checkpoint>,
}

/// What a run is made from again: text, name and files of its problem, report, network, checkpoint.
type State<'py> = (
    String,
    String,
    Files,
    String,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
);

impl Run {
    /// A run that has just ended.
    pub fn new(problem: Problem, report: Report, network: network::Network, recording: &Recording) -> Self {
        Self::of(problem, report, network, recording.checkpoint())
    }

    fn of(problem: Problem, report: Report, network: network::Network, checkpoint: Checkpoint) -> Self {
        let (steps, frames) = match &checkpoint.flow {
            Some((state, rows)) => {
                let frames = state.frames.iter();
                let frame = |coefficients: &[f64]| checkpoint.network.with_coefficients(coefficients);
                let frames = frames.map(|kept| (kept.time, frame(&kept.coefficients)));
                (rows.clone(), frames.collect())
            }
            None => (Vec::new(), Vec::new()),
        };
        Self {
            problem,
            report,
            network,
            history: checkpoint.rows.clone(),
            steps,
            frames,
            checkpoint: Some(checkpoint),
        }
    }

    /// The run of a directory.
    fn read(directory: &Path) -> Result<Self, Failure> {
        let saved = SavedRun::load(directory)?;
        let report = saved.report()?;
        let file = directory.join(PROBLEM).display().to_string();
        let checkpoint = Checkpoint::load(&directory.join(CHECKPOINT)).ok();
        Ok(Self {
            problem: Problem::read(saved.text, file, &[])?,
            report,
            checkpoint: checkpoint.filter(|checkpoint| checkpoint.network.len() == saved.network.len()),
            network: saved.network,
            history: saved.history,
            steps: saved.steps,
            frames: saved.frames,
        })
    }

    fn write(&self, directory: &Path, checkpoint: &Checkpoint, existing: Existing) -> Result<(), Failure> {
        let (problem, text) = (&self.problem.checked, &self.problem.text);
        let mut results = ResultDirectory::open(directory, problem, text, existing)?;
        let recording = Recording::going_on(problem, text, checkpoint.clone());
        results.keep(problem, &recording, (&self.report, &self.network))?;
        drop(results);
        write_page(directory)?;
        Ok(())
    }

    fn network_at_hand(&self, network: &network::Network) -> Network {
        Network::new(network.clone(), self.problem.checked.domain.clone())
    }
}

/// A column: its name and how to read it.
type Named<R, T> = (&'static str, fn(&R) -> T);

/// Columns of figures, one array each.
fn columns<'py, R>(
    py: Python<'py>,
    rows: &[R],
    counts: &[Named<R, usize>],
    figures: &[Named<R, Option<f64>>],
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, count) in counts {
        let column: Vec<i64> = rows.iter().map(|row| count(row) as i64).collect();
        columns.set_item(name, column.into_pyarray(py))?;
    }
    for (name, figure) in figures {
        let column: Vec<f64> = rows.iter().map(|row| figure(row).unwrap_or(f64::NAN)).collect();
        columns.set_item(name, column.into_pyarray(py))?;
    }
    Ok(columns)
}

#[pymethods]
impl Run {
    /// Reads a result directory.
    #[staticmethod]
    fn load(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        Ok(py.detach(|| Self::read(&directory))?)
    }

    /// Writes a result directory.
    fn save(&self, py: Python<'_>, directory: PathBuf, force: bool) -> PyResult<()> {
        let Some(checkpoint) = &self.checkpoint else {
            return Err(results_error(
                "the directory that this run was loaded from had no checkpoint: copy the directory instead",
            ));
        };
        let existing = match force {
            true => Existing::Overwrite,
            false => Existing::Refuse,
        };
        Ok(py.detach(|| self.write(&directory, checkpoint, existing))?)
    }

    #[getter]
    fn problem(&self) -> Problem {
        self.problem.clone()
    }

    /// The report as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        serde_json::to_string(&self.report).map_err(|error| solve_error(error.to_string()))
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.report.warnings.clone()
    }

    /// The columns of `history.csv`.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.report.time.is_none() {
            return columns(py, &self.history, &[("n", |row| row.n)], &Row::COLUMNS);
        }
        let time: Named<TimeRow, Option<f64>> = ("time", |row| Some(row.time));
        let figures: Vec<_> = [time].into_iter().chain(TimeRow::COLUMNS).collect();
        columns(
            py,
            &self.steps,
            &[("step", |row| row.step), ("n", |row| row.n)],
            &figures,
        )
    }

    #[getter]
    fn network(&self) -> Network {
        self.network_at_hand(&self.network)
    }

    /// The times at which u was kept.
    #[getter]
    fn times(&self) -> Vec<f64> {
        self.frames.iter().map(|(time, _)| *time).collect()
    }

    /// u at the time of this number.
    fn frame(&self, index: usize) -> PyResult<Network> {
        match self.frames.get(index) {
            Some((_, network)) => Ok(self.network_at_hand(network)),
            None => Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "{index}: there are {} frames",
                self.frames.len()
            ))),
        }
    }

    /// The run in a sentence or two.
    #[getter]
    fn lead(&self) -> String {
        lead(&self.report)
    }

    /// The rows as a table for people: names, and lines of cells.
    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        match &self.report.time {
            Some(time) => time_table(&time.rows),
            None => table(&self.report.rows),
        }
    }

    /// The estimate of the error, if there is one.
    #[getter]
    fn estimate(&self) -> Option<String> {
        self.report.estimate.as_ref().map(|estimate| estimate.in_words())
    }

    /// The page's pictures: the name of each and its SVG.
    fn pictures(&self, py: Python<'_>) -> Vec<(String, String)> {
        py.detach(|| {
            let problem = match self.steps.last() {
                Some(row) => self.problem.checked.at_time(row.time),
                None => self.problem.checked.clone(),
            };
            pictures(&RunData {
                report: &self.report,
                history: &self.history,
                network: &self.network,
                problem: &problem,
                text: &self.problem.text,
                frames: &self.frames,
                steps: &self.steps,
            })
        })
    }

    /// What [`Run::from_state`] makes the run from again.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        let bytes = |bytes: Result<Vec<u8>, String>| bytes.map(|bytes| PyBytes::new(py, &bytes));
        let network = bytes(network_file::bytes_with(&self.network, &[], &[])).map_err(solve_error)?;
        let checkpoint = self.checkpoint.as_ref();
        let checkpoint = checkpoint.map(|checkpoint| bytes(checkpoint.to_bytes()).map_err(solve_error));
        let problem = &self.problem;
        Ok((
            problem.text.clone(),
            problem.file.clone(),
            problem.files(),
            self.report()?,
            network,
            checkpoint.transpose()?,
        ))
    }

    /// A run from its state.
    #[staticmethod]
    fn from_state(
        text: String,
        file: String,
        files: Files,
        report: &str,
        network: &[u8],
        checkpoint: Option<&[u8]>,
    ) -> PyResult<Self> {
        let nowhere = Path::new("the state of a run");
        let Some(checkpoint) = checkpoint else {
            return Err(results_error(
                "a run without a checkpoint cannot be copied: load it again",
            ));
        };
        let problem = Problem::read(text, file, &attachments(files))?;
        let report = serde_json::from_str(report).map_err(|error| results_error(error.to_string()))?;
        let network = network_file::load_bytes(network, nowhere, &[]);
        let (network, _, _) = network.map_err(|error| results_error(error.to_string()))?;
        let checkpoint = Checkpoint::of_bytes(checkpoint, nowhere).map_err(Failure::from)?;
        Ok(Self::of(problem, report, network, checkpoint))
    }
}
