//! A result directory that a run writes.

use super::checkpoint::Checkpoint;
use super::lock::lock;
use super::problem_text::{beside_its_files, differences, files, fingerprint, parse, settings};
use super::recording::Recording;
use super::{CHECKPOINT, FRAMES, HISTORY, NETWORK, PAGE, PROBLEM, RESULT, ResultsError, TABLES, history};
use crate::atomic_file::{remove_half_written, write_atomically};
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::greedy::{State, Stopped};
use crate::network::Network;
use crate::network_file;
use crate::problem::Problem;
use crate::report::Report;
use crate::run::{Event, RunOptions, run};
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
    /// `history.csv`; none as long as the files of an earlier run are still there: they are removed only when this one is
    /// known to begin.
    history: Option<File>,
    fingerprint: String,
    resume: Option<State>,
    recording: Recording,
    /// Whether the last step is in the checkpoint.
    is_saved: bool,
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
        let beside = &beside_its_files(text, problem);
        if existing == Existing::Resume && !path.join(CHECKPOINT).exists() {
            return Err(ResultsError::NothingToResume(path.to_path_buf()));
        }
        fs::create_dir_all(path).map_err(failed("cannot be made"))?;
        let lock = lock(path)?;
        if existing == Existing::Refuse && holds_a_result(path) {
            return Err(ResultsError::Exists(path.to_path_buf()));
        }
        let earlier = match existing {
            Existing::Resume => Some(checkpoint_of(path, problem, beside)?),
            _ => None,
        };
        remove_half_written(path);
        let fresh = earlier.is_none();
        let recording = match earlier {
            Some(earlier) => Recording::going_on(problem, text, earlier),
            None => Recording::new(problem, text),
        };
        let mut directory = Self {
            path: path.to_path_buf(),
            _lock: lock,
            history: None,
            fingerprint: fingerprint(problem, beside),
            resume: recording.state(),
            recording,
            is_saved: true,
            last_checkpoint: Instant::now(),
            interval: CHECKPOINT_INTERVAL,
        };
        if existing != Existing::Overwrite || !holds_a_result(path) {
            directory.begin(problem, fresh)?;
        }
        Ok(directory)
    }

    /// Makes the directory this run's: what an earlier one left is removed, if this one begins afresh.
    fn begin(&mut self, problem: &Problem, fresh: bool) -> Result<(), ResultsError> {
        let path = self.path.clone();
        let failed = |what: &'static str| {
            let path = path.clone();
            move |error: io::Error| ResultsError::Open { path, what, error }
        };
        let unwritten = "cannot be written to";
        if fresh {
            clear(&path).map_err(failed("cannot be cleared"))?;
            for (name, bytes) in files(problem) {
                write_atomically(&path.join(name), bytes).map_err(failed(unwritten))?;
            }
            let text = self.recording.text.as_bytes();
            write_atomically(&path.join(PROBLEM), text).map_err(failed(unwritten))?;
        }
        self.write_history(problem).map_err(failed(unwritten))?;
        if self.resume.is_none() && self.recording.flow.is_none() {
            // From the first moment there is something to resume.
            self.is_saved = false;
            self.save_state()?;
        }
        Ok(())
    }

    /// How many neurons the run goes on from, if it is resumed.
    pub fn resumed_from(&self) -> Option<usize> {
        self.resume.as_ref().map(|state| state.neurons.len())
    }

    /// How many steps in time the run goes on from, if it is resumed.
    pub fn resumed_step(&self) -> Option<usize> {
        self.recording.flow.as_ref().map(|flow| flow.step)
    }

    /// Solves the problem, or goes on solving it. The observer sees every step and may end the run,
    /// which can then be resumed; whatever ends the run, the last step is saved.
    pub fn run(
        &mut self,
        problem: &Problem,
        options: &RunOptions,
        observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> Result<(Report, Network), ResultsError> {
        if !options.cluster.is_alone() {
            self.tell_where_to_go_on(&options.cluster)?;
        }
        let began = self.resume.as_ref().map(|_| self.recording.place().clone());
        let recording = &self.recording;
        let options = RunOptions {
            resume: self.resume.take().map(|state| (state, recording.rows.clone())),
            kept: recording.kept.clone(),
            flow: recording
                .flow
                .clone()
                .map(|flow| (flow, recording.time_rows.clone())),
            tables: Some(self.tables()),
            ..options.clone()
        };
        let mut failure = None;
        let result = run(problem, &options, &mut |event| {
            if let Err(error) = self.note(problem, event) {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            let flow = observer(event);
            // Who ends a run may not wait for the figures of its end.
            if flow.is_break()
                && let Err(error) = self.save_state()
            {
                failure = Some(error);
            }
            flow
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let saved = self.save_state();
        let (mut report, network) = result.map_err(|error| self.explained(problem, error))?;
        saved?;
        report
            .warnings
            .extend(began.and_then(|began| began.parts_from(&report)));
        if self.history.is_none() {
            self.begin(problem, true)?;
        }
        if report.stopped != Stopped::Interrupted {
            self.finish(&report, &network)?;
        }
        Ok((report, network))
    }

    /// Hands the checkpoint to the other processes, which have no part in the directory.
    fn tell_where_to_go_on(&self, cluster: &Cluster) -> Result<(), ResultsError> {
        let read = match self.resume.is_some() || self.recording.flow.is_some() {
            true => fs::read(self.path.join(CHECKPOINT)),
            false => Ok(Vec::new()),
        };
        let bytes = read.map_err(|error| ResultsError::Open {
            path: self.path.clone(),
            what: "cannot be read",
            error,
        })?;
        cluster.bytes_from_first(&bytes);
        Ok(())
    }

    /// Sums that cannot be saved may mean that the directory is gone; a formula that has no value has its place in the file.
    fn explained(&self, problem: &Problem, error: SolveError) -> ResultsError {
        match error {
            SolveError::Tables(_) if !self.path.is_dir() => ResultsError::Vanished(self.path.clone()),
            error => match problem.places.explain(&error) {
                Some(error) => ResultsError::Problem(error),
                None => error.into(),
            },
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

    /// Notes that the run got somewhere.
    fn note(&mut self, problem: &Problem, event: &Event) -> Result<(), ResultsError> {
        if self.history.is_none() && !matches!(event, Event::Points { done: 0, .. }) {
            self.begin(problem, true)?;
        }
        let again = matches!(event, Event::Step(step) if self.recording.is_again(step.row.n));
        self.recording.note(event);
        let line = match event {
            Event::Step(step) => step.row.to_csv(),
            Event::Time(step) => step.row.to_csv(),
            // Moving all neurons takes long: what there is before it is not to be lost.
            Event::Moves { done: 0, .. } => return self.save_state(),
            Event::Points { .. } | Event::Initial { .. } | Event::Moves { .. } => return Ok(()),
        };
        self.is_saved = false;
        match again {
            true => self
                .write_history(problem)
                .map_err(|error| self.failed(HISTORY, error))?,
            false => self.add_to_history(&line)?,
        }
        match self.last_checkpoint.elapsed() >= self.interval {
            true => self.save_state(),
            false => Ok(()),
        }
    }

    /// Writes the history so far, to which lines are added from there on.
    fn write_history(&mut self, problem: &Problem) -> io::Result<()> {
        let lines = match problem.evolution {
            Some(_) => history::time_text(&self.recording.time_rows),
            None => history::text(&self.recording.rows),
        };
        let path = self.path.join(HISTORY);
        write_atomically(&path, lines.as_bytes())?;
        self.history = Some(File::options().append(true).open(path)?);
        Ok(())
    }

    fn add_to_history(&mut self, line: &str) -> Result<(), ResultsError> {
        match &mut self.history {
            Some(history) => writeln!(history, "{line}").map_err(|error| self.failed(HISTORY, error)),
            None => Ok(()),
        }
    }

    /// Writes a checkpoint of the last step, unless there is one.
    fn save_state(&mut self) -> Result<(), ResultsError> {
        if self.is_saved {
            return Ok(());
        }
        let started = Instant::now();
        let saved = self.recording.checkpoint().save(&self.path.join(CHECKPOINT));
        saved.map_err(|error| ResultsError::write_network(&self.path, error))?;
        self.is_saved = true;
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
        if let Some(history) = &self.history {
            history.sync_all().map_err(|error| self.failed(HISTORY, error))?;
        }
        network_file::save(&self.path.join(NETWORK), network, &notes)
            .map_err(|error| ResultsError::write_network(&self.path, error))?;
        if let Some(flow) = &self.recording.flow {
            let frames = flow.frames.iter();
            let frames: Vec<(f64, &[f64])> = frames
                .map(|frame| (frame.time, frame.coefficients.as_slice()))
                .collect();
            network_file::save_frames(&self.path.join(FRAMES), network, &frames, &notes)
                .map_err(|error| ResultsError::write_network(&self.path, error))?;
        }
        self.write(PROBLEM, self.recording.text.as_bytes())?;
        let json = serde_json::to_vec_pretty(report)
            .map_err(|error| self.failed(RESULT, io::Error::other(error)))?;
        self.write(RESULT, &json)?;
        self.tables().remove();
        Ok(())
    }

    /// The run as it was written down.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Writes a run that was made elsewhere, by the same problem: afterwards the directory is as if it had been made here.
    pub fn keep(
        &mut self,
        problem: &Problem,
        recording: &Recording,
        (report, network): (&Report, &Network),
    ) -> Result<(), ResultsError> {
        self.recording = recording.clone();
        self.begin(problem, true)?;
        self.is_saved = false;
        self.save_state()?;
        match report.stopped {
            Stopped::Interrupted => Ok(()),
            _ => self.finish(report, network),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        write_atomically(&self.path.join(name), bytes).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> ResultsError {
        ResultsError::write(&self.path, name, error)
    }
}

/// Takes part in a run whose directory the first process has: all that differs from
/// [`ResultDirectory::run`] is that nothing is written.
pub fn take_part(
    problem: &Problem,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event) -> ControlFlow<()>,
) -> Result<(Report, Network), ResultsError> {
    let bytes = options.cluster.bytes_from_first(&[]);
    let path = Path::new(CHECKPOINT);
    let mut options = RunOptions {
        tables: Some(TableStore {
            path: PathBuf::from(TABLES),
            run: String::new(),
            every: TABLES_EVERY,
        }),
        ..options.clone()
    };
    if !bytes.is_empty() {
        let checkpoint = Checkpoint::of_bytes(&bytes, path)?;
        options.resume = match checkpoint.flow {
            Some(_) => None,
            None => Some((checkpoint.state, checkpoint.rows)),
        };
        options.flow = checkpoint.flow;
        options.kept = checkpoint.kept;
    }
    Ok(run(problem, &options, observer)?)
}

/// Removes what an earlier run left; sums over the points know which run they belong to.
fn clear(directory: &Path) -> io::Result<()> {
    for name in [RESULT, NETWORK, FRAMES, CHECKPOINT, PAGE] {
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
