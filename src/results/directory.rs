//! A result directory that a run writes.

use super::checkpoint::{Checkpoint, Place};
use super::lock::lock;
use super::problem_text::{beside_its_files, differences, files, fingerprint, parse, settings};
use super::{CHECKPOINT, HISTORY, NETWORK, PAGE, PROBLEM, RESULT, ResultsError, TABLES, history};
use crate::atomic_file::{remove_half_written, write_atomically};
use crate::error::SolveError;
use crate::estimate::{Snapshot, is_kept};
use crate::greedy::{State, Stopped};
use crate::network::Network;
use crate::network_file;
use crate::problem::Problem;
use crate::report::{Report, Row};
use crate::run::{Event, Progress, RunOptions, run};
use crate::sums::TableStore;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Points between two savings of the sums of a pass.
const TABLES_EVERY: usize = 1 << 24;
/// Between two checkpoints at least this long passes …
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(200);
/// … and so many times what the last one took.
const CHECKPOINT_SHARE: u32 = 50;

/// What to do about a run that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and refuse.
    Refuse,
    /// Remove it and begin anew.
    Overwrite,
    /// Go on from it.
    Resume,
}

/// A directory that is open for one run; nobody else can open it as long as this lives.
pub struct ResultDirectory {
    path: PathBuf,
    _lock: File,
    history: File,
    /// The problem as it is solved.
    text: String,
    settings: String,
    fingerprint: String,
    resume: Option<State>,
    rows: Vec<Row>,
    kept: Vec<Snapshot>,
    place: Place,
    /// The last step, as long as no checkpoint has it.
    unsaved: Option<(Network, State)>,
    last_checkpoint: Instant,
    interval: Duration,
}

impl ResultDirectory {
    /// Opens a directory for a run of `problem`, whose file has this text (see
    /// [`with_overrides`](super::with_overrides) where settings did not come from the file).
    pub fn open(
        path: &Path,
        problem: &Problem,
        text: &str,
        existing: Existing,
    ) -> Result<Self, ResultsError> {
        let failed = |what: &'static str| {
            move |error: io::Error| ResultsError::Open {
                path: path.to_path_buf(),
                what,
                error,
            }
        };
        let text = &beside_its_files(text, problem);
        if existing == Existing::Resume && !path.join(CHECKPOINT).exists() {
            return Err(ResultsError::NothingToResume(path.to_path_buf()));
        }
        fs::create_dir_all(path).map_err(failed("cannot be made"))?;
        let lock = lock(path)?;
        if existing == Existing::Refuse && holds_a_result(path) {
            return Err(ResultsError::Exists(path.to_path_buf()));
        }
        let earlier = match existing {
            Existing::Resume => Some(checkpoint_of(path, problem, text)?),
            _ => None,
        };
        remove_half_written(path);
        if earlier.is_none() {
            clear(path).map_err(failed("cannot be cleared"))?;
            for (name, bytes) in files(problem) {
                write_atomically(&path.join(name), bytes).map_err(failed("cannot be written to"))?;
            }
            write_atomically(&path.join(PROBLEM), text.as_bytes()).map_err(failed("cannot be written to"))?;
        }
        let (state, rows, kept) = earlier.map_or_else(Default::default, |earlier| {
            (earlier.state, earlier.rows, earlier.kept)
        });
        write_atomically(&path.join(HISTORY), history::text(&rows).as_bytes())
            .map_err(failed("cannot be written to"))?;
        let history = File::options()
            .append(true)
            .open(path.join(HISTORY))
            .map_err(failed("cannot be written to"))?;
        let mut directory = Self {
            path: path.to_path_buf(),
            _lock: lock,
            history,
            text: text.to_string(),
            settings: settings(problem),
            fingerprint: fingerprint(problem, text),
            resume: Some(state).filter(|state| !state.neurons.is_empty()),
            rows,
            kept,
            place: Place::default(),
            unsaved: None,
            last_checkpoint: Instant::now(),
            interval: CHECKPOINT_INTERVAL,
        };
        if directory.resume.is_none() {
            // From the first moment there is something to resume.
            let zero = Network::zero(problem.dictionary.activation, problem.dimension());
            directory.unsaved = Some((zero, State::default()));
            directory.save_state()?;
        }
        Ok(directory)
    }

    /// How many neurons the run goes on from, if it is resumed.
    pub fn resumed_from(&self) -> Option<usize> {
        self.resume.as_ref().map(|state| state.neurons.len())
    }

    /// Solves the problem, or goes on solving it. The observer sees every step and may end the run,
    /// which can then be resumed; whatever ends the run, the last step is saved.
    pub fn run(
        &mut self,
        problem: &Problem,
        options: &RunOptions,
        observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> Result<(Report, Network), ResultsError> {
        let options = RunOptions {
            resume: self.resume.take().map(|state| (state, self.rows.clone())),
            kept: self.kept.clone(),
            tables: Some(self.tables()),
            ..options.clone()
        };
        let mut failure = None;
        let result = run(problem, &options, &mut |event| {
            if let Event::Step(step) = event
                && let Err(error) = self.step(step)
            {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            observer(event)
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let saved = self.save_state();
        let (report, network) = result.map_err(|error| self.explained(error))?;
        saved?;
        if report.stopped != Stopped::Interrupted {
            self.finish(&report, &network)?;
        }
        Ok((report, network))
    }

    /// Sums that cannot be saved may mean that the directory is gone.
    fn explained(&self, error: SolveError) -> ResultsError {
        match error {
            SolveError::Tables(_) if !self.path.is_dir() => ResultsError::Vanished(self.path.clone()),
            error => error.into(),
        }
    }

    /// Where the sums of a long pass over the points are kept.
    fn tables(&self) -> TableStore {
        TableStore {
            path: self.path.join(TABLES),
            run: self.fingerprint.clone(),
            every: TABLES_EVERY,
        }
    }

    /// Notes a step; now and then saves the state.
    fn step(&mut self, step: &Progress) -> Result<(), ResultsError> {
        writeln!(self.history, "{}", step.row.to_csv()).map_err(|error| self.failed(HISTORY, error))?;
        self.rows.push(step.row.clone());
        if is_kept(step.network.len()) {
            self.kept.push(Snapshot {
                coefficients: step.network.coefficients.clone(),
            });
        }
        self.place = Place::from(step.place);
        // The state's neurons are the network's; a step may be too short for copying them twice.
        let state = State {
            neurons: Vec::new(),
            scores: step.state.scores.clone(),
            steps: step.state.steps.clone(),
            ..*step.state
        };
        self.unsaved = Some((step.network.clone(), state));
        match self.last_checkpoint.elapsed() >= self.interval {
            true => self.save_state(),
            false => Ok(()),
        }
    }

    /// Writes a checkpoint of the last step, unless there is one.
    fn save_state(&mut self) -> Result<(), ResultsError> {
        let Some((network, state)) = self.unsaved.take() else {
            return Ok(());
        };
        let started = Instant::now();
        let checkpoint = Checkpoint {
            network,
            state,
            kept: self.kept.clone(),
            rows: std::mem::take(&mut self.rows),
            problem: self.text.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            settings: self.settings.clone(),
            place: self.place.clone(),
        };
        let saved = checkpoint.save(&self.path.join(CHECKPOINT));
        self.rows = checkpoint.rows;
        saved.map_err(|error| ResultsError::write_network(&self.path, error))?;
        self.last_checkpoint = Instant::now();
        self.interval = CHECKPOINT_INTERVAL.max(CHECKPOINT_SHARE * started.elapsed());
        Ok(())
    }

    /// Writes the network and the report.
    fn finish(&mut self, report: &Report, network: &Network) -> Result<(), ResultsError> {
        let notes = [
            ("problem", report.problem.clone()),
            ("version", report.version.clone()),
        ];
        self.history
            .sync_all()
            .map_err(|error| self.failed(HISTORY, error))?;
        network_file::save(&self.path.join(NETWORK), network, &notes)
            .map_err(|error| ResultsError::write_network(&self.path, error))?;
        self.write(PROBLEM, self.text.as_bytes())?;
        let json = serde_json::to_vec_pretty(report)
            .map_err(|error| self.failed(RESULT, io::Error::other(error)))?;
        self.write(RESULT, &json)?;
        self.tables().remove();
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        write_atomically(&self.path.join(name), bytes).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> ResultsError {
        ResultsError::write(&self.path, name, error)
    }
}

/// Removes what an earlier run left.
fn clear(directory: &Path) -> io::Result<()> {
    for name in [RESULT, NETWORK, CHECKPOINT, PAGE, TABLES] {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a directory has anything that took work to make; a run that failed before its first neuron
/// leaves nothing of the kind. What cannot be read may have.
fn holds_a_result(directory: &Path) -> bool {
    let checkpoint = directory.join(CHECKPOINT);
    [RESULT, NETWORK, TABLES, PAGE]
        .iter()
        .any(|name| directory.join(name).exists())
        || !history::read(&directory.join(HISTORY)).is_empty()
        || (checkpoint.exists() && !Checkpoint::load(&checkpoint).is_ok_and(|found| found.network.is_empty()))
}

/// The checkpoint of a directory, if it is a part of the run that is asked for.
fn checkpoint_of(directory: &Path, problem: &Problem, text: &str) -> Result<Checkpoint, ResultsError> {
    let checkpoint = Checkpoint::load(&directory.join(CHECKPOINT))
        .map_err(|error| ResultsError::DamagedCheckpoint(Box::new(error)))?;
    let path = || directory.to_path_buf();
    let differences = differences(&checkpoint.problem, text);
    if !differences.is_empty() {
        return Err(ResultsError::OtherProblem {
            path: path(),
            differences,
        });
    }
    let here = env!("CARGO_PKG_VERSION");
    if checkpoint.version != here {
        return Err(ResultsError::OtherVersion {
            path: path(),
            there: checkpoint.version,
            here: here.to_string(),
        });
    }
    for (name, bytes) in files(problem) {
        if fs::read(directory.join(&name)).ok().as_deref() != Some(bytes) {
            return Err(ResultsError::OtherProblem {
                path: path(),
                differences: vec![format!("the file `{name}` has another content")],
            });
        }
    }
    let asked = problem.settings.neurons;
    if checkpoint.settings != settings(problem) {
        let name = directory.join(CHECKPOINT).display().to_string();
        let there = parse(&checkpoint.problem, &name)?.settings.neurons;
        return Err(match there == asked {
            false => ResultsError::DependsOnNeurons {
                path: path(),
                there,
                asked,
            },
            true => ResultsError::OtherVersion {
                path: path(),
                there: format!("{} with other defaults", checkpoint.version),
                here: here.to_string(),
            },
        });
    }
    let there = checkpoint.network.len();
    if there > asked {
        return Err(ResultsError::FewerNeurons {
            path: path(),
            there,
            asked,
        });
    }
    Ok(checkpoint)
}
