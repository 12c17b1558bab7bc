//! Long work on a thread of its own: Python waits for it without holding the interpreter, hears how far it is, and may end it.
//!
//! The worker never touches Python. What it has to say goes through a channel to the thread that called, where callbacks
//! run and signals arrive: so they see the caller's context, and a worker that is left behind cannot get in the way.

use crate::threads::with_threads;
use greedy_pde::report::{Row, TimeRow};
use greedy_pde::run::Event;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So often signals are looked for.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// So long a run that was told to stop may take to do so; then the caller is told without it. Ctrl-C is answered within a second.
const PATIENCE: Duration = Duration::from_millis(500);
/// Who only looks is told at most so often.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// What happened in a run, to be told to Python.
enum Note {
    Points {
        done: usize,
        total: usize,
    },
    Initial {
        done: usize,
        total: usize,
    },
    Step {
        row: Row,
        reported: bool,
    },
    Time {
        row: TimeRow,
        reported: bool,
        steps: usize,
    },
}

impl Note {
    fn of(event: &Event) -> Self {
        match event {
            Event::Points { done, total } => Note::Points {
                done: *done,
                total: *total,
            },
            Event::Initial { done, total } | Event::Moves { done, total } => Note::Initial {
                done: *done,
                total: *total,
            },
            Event::Step(step) => Note::Step {
                row: step.row.clone(),
                reported: step.reported,
            },
            Event::Time(step) => Note::Time {
                row: step.row.clone(),
                reported: step.saved,
                steps: step.steps,
            },
        }
    }

    fn is_step(&self) -> bool {
        matches!(self, Note::Step { .. } | Note::Time { .. })
    }

    fn is_reported(&self) -> bool {
        matches!(
            self,
            Note::Step { reported: true, .. } | Note::Time { reported: true, .. }
        )
    }

    /// Its kind and its figures, by the names they have in the history.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<(&'static str, Bound<'py, PyDict>)> {
        let figures = PyDict::new(py);
        let kind = match self {
            Note::Points { done, total } | Note::Initial { done, total } => {
                figures.set_item("done", done)?;
                figures.set_item("total", total)?;
                match self {
                    Note::Points { .. } => "points",
                    _ => "initial",
                }
            }
            Note::Step { row, reported } => {
                figures.set_item("n", row.n)?;
                for (name, value) in Row::COLUMNS {
                    figures.set_item(name, value(row))?;
                }
                figures.set_item("reported", reported)?;
                "step"
            }
            Note::Time { row, reported, steps } => {
                figures.set_item("step", row.step)?;
                figures.set_item("steps", steps)?;
                figures.set_item("time", row.time)?;
                figures.set_item("n", row.n)?;
                for (name, value) in TimeRow::COLUMNS {
                    figures.set_item(name, value(row))?;
                }
                figures.set_item("reported", reported)?;
                "time"
            }
        };
        Ok((kind, figures))
    }
}

/// Whom the caller wants to be told.
pub struct Listener<'py> {
    /// Called with a kind and figures; that it returns `False` ends the run.
    pub call: Option<Bound<'py, PyAny>>,
    /// Whether the run waits at every step until it was heard.
    pub every_step: bool,
}

/// What the worker has of the caller.
pub struct Watched {
    stop: Arc<AtomicBool>,
    notes: Sender<Note>,
    answers: Receiver<bool>,
    tells: bool,
    every_step: bool,
    last_shown: Option<Instant>,
}

impl Watched {
    /// Tells the caller of an event, and whether to go on.
    pub fn observe(&mut self, event: &Event) -> ControlFlow<()> {
        if self.is_stopped() {
            return ControlFlow::Break(());
        }
        if self.tells && !self.tell(Note::of(event)) {
            return ControlFlow::Break(());
        }
        match self.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Whether the caller goes on.
    fn tell(&mut self, note: Note) -> bool {
        let asks = self.every_step && note.is_step();
        let is_recent = self.last_shown.is_some_and(|shown| shown.elapsed() < SHOWN_EVERY);
        if !asks && is_recent && !note.is_reported() {
            return true;
        }
        self.last_shown = Some(Instant::now());
        // A caller that is gone has raised the flag before.
        let told = self.notes.send(note).is_ok();
        match asks {
            true => told && self.answers.recv().unwrap_or(false),
            false => true,
        }
    }

    /// Whether the caller wants an end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until no run that its caller left behind writes to a directory.
    pub fn wait_for_left_behind(&self, directory: &Path) {
        while is_left_behind(directory) && !self.is_stopped() {
            thread::sleep(HEARTBEAT / 5);
        }
    }
}

/// Runs that did not stop as fast as their callers wanted to go on, by their directories.
static LEFT_BEHIND: Mutex<Vec<(PathBuf, JoinHandle<()>)>> = Mutex::new(Vec::new());

fn is_left_behind(directory: &Path) -> bool {
    let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|(_, handle)| !handle.is_finished());
    left.iter().any(|(path, _)| path == directory)
}

fn leave_behind(directory: PathBuf, handle: JoinHandle<()>) {
    let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
    left.push((directory, handle));
}

/// Does the work and waits for it, unless a signal or an exception of the listener comes before.
pub fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    listener: &Listener<'_>,
    threads: Option<usize>,
    directory: Option<&Path>,
    work: impl FnOnce(&mut Watched) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (notes, heard) = channel();
    // The interpreter is let go of while this thread waits, for which what it holds must be shareable.
    let heard = Mutex::new(heard);
    let (answer, answers) = channel();
    let (done, result) = channel();
    let mut watched = Watched {
        stop: Arc::clone(&stop),
        notes,
        answers,
        tells: listener.call.is_some(),
        every_step: listener.every_step,
        last_shown: None,
    };
    let worker = move || {
        let outcome = with_threads(threads, || work(&mut watched));
        // Whoever has left does not want it.
        let _ = done.send(outcome);
        drop(watched);
    };
    let worker = thread::Builder::new()
        .name("greedy-pde".to_string())
        .spawn(worker)?;
    if let Err(exception) = wait(py, listener, &heard, &answer, &stop) {
        stop.store(true, Ordering::Relaxed);
        // A worker that waits for an answer gets none.
        drop(answer);
        part_from(py, worker, directory);
        return Err(exception);
    }
    match py.detach(|| worker.join()) {
        Ok(()) => result
            .recv()
            .unwrap_or_else(|_| Err(crate::error::solve_error("the run ended without a result"))),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Gives a worker that was told to stop some time to do so; then goes on without it.
fn part_from(py: Python<'_>, worker: JoinHandle<()>, directory: Option<&Path>) {
    let patience = Instant::now() + PATIENCE;
    py.detach(|| {
        while !worker.is_finished() && Instant::now() < patience {
            thread::sleep(HEARTBEAT / 10);
        }
    });
    if let (false, Some(directory)) = (worker.is_finished(), directory) {
        leave_behind(directory.to_path_buf(), worker);
    }
}

/// Hears what the worker has to say until it has nothing more to say.
fn wait(
    py: Python<'_>,
    listener: &Listener<'_>,
    heard: &Mutex<Receiver<Note>>,
    answer: &Sender<bool>,
    stop: &AtomicBool,
) -> PyResult<()> {
    loop {
        let note = hear(py, heard);
        py.check_signals()?;
        match note {
            Ok(note) => {
                let goes_on = told(py, listener, &note)?;
                if !goes_on {
                    stop.store(true, Ordering::Relaxed);
                }
                if listener.every_step && note.is_step() {
                    // A worker that is gone needs no answer.
                    let _ = answer.send(goes_on);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Waits for a note without holding the interpreter.
fn hear(py: Python<'_>, heard: &Mutex<Receiver<Note>>) -> Result<Note, RecvTimeoutError> {
    py.detach(|| {
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.recv_timeout(HEARTBEAT)
    })
}

/// Tells Python, and hears whether to go on.
fn told(py: Python<'_>, listener: &Listener<'_>, note: &Note) -> PyResult<bool> {
    let Some(call) = &listener.call else {
        return Ok(true);
    };
    let (kind, figures) = note.to_python(py)?;
    let answer = call.call1((kind, figures))?;
    Ok(!answer.is(&*pyo3::types::PyBool::new(py, false)))
}
