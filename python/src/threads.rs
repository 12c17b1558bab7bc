//! The threads that do the work.

use pyo3::PyResult;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use rayon::ThreadPoolBuilder;
use std::sync::OnceLock;

/// As on the command line: more only get in each other's way.
const MOST_THREADS: usize = 1024;

/// The process that loaded this module.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Remembers which process this is.
pub fn note_process() {
    PROCESS.get_or_init(std::process::id);
}

/// A fork has the memory of its parent, but not the threads of its pool: work given to that pool would wait for ever.
fn is_fork() -> bool {
    PROCESS
        .get()
        .is_some_and(|&process| process != std::process::id())
}

/// Refuses numbers of threads that make no sense.
pub fn checked(threads: Option<usize>) -> PyResult<Option<usize>> {
    match threads {
        None | Some(1..=MOST_THREADS) => Ok(threads),
        Some(other) => Err(PyValueError::new_err(format!(
            "threads={other}: a whole number from 1 to {MOST_THREADS} is needed"
        ))),
    }
}

/// Does the work with so many threads, or with all there are.
///
/// Without a number the pool is the one that all of the process shares, and who waits for it is no part of it: runs in
/// several Python threads take turns piece by piece, and a callback may evaluate a network while its run waits.
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if threads.is_none() && !is_fork() {
        return Ok(work());
    }
    // 0 stands for all there are.
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
    Ok(pool.install(work))
}
