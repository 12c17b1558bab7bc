//! What can go wrong with a result directory.

use super::{CHECKPOINT, PROBLEM, RESULT};
use crate::error::SolveError;
use crate::network_file::NetworkFileError;
use crate::problem::ProblemError;
use std::io;
use std::path::{Path, PathBuf};

/// A result directory that cannot be opened, read or written. Whenever one cannot be opened, nothing in
/// it was changed.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// There is a result, and nobody asked to overwrite it.
    #[error("{}: already holds a result; nothing was changed", .0.display())]
    Exists(PathBuf),
    /// Another process writes there.
    #[error("{}: another run is writing there; nothing was changed", .0.display())]
    InUse(PathBuf),
    /// There is no run to go on from.
    #[error("{}: there is no {CHECKPOINT} to go on from; nothing was changed", .0.display())]
    NothingToResume(PathBuf),
    /// The checkpoint there cannot be read.
    #[error("{0}")]
    DamagedCheckpoint(Box<ResultsError>),
    /// The run there is not a part of the run asked for.
    #[error("{}: belongs to another problem or other settings: {}", path.join(CHECKPOINT).display(), differences.join("; "))]
    OtherProblem {
        /// The directory.
        path: PathBuf,
        /// Which keys differ, and how.
        differences: Vec<String>,
    },
    /// The penalty or the points depend on n, and another n is asked for.
    #[error("{}: is of a run for {there} neurons, and {asked} are asked for. The penalty, the number of points or, with [time], every step of this problem depends on n, so that every n is another problem", path.join(CHECKPOINT).display())]
    DependsOnNeurons {
        /// The directory.
        path: PathBuf,
        /// For how many the run there is.
        there: usize,
        /// How many are asked for.
        asked: usize,
    },
    /// Another version of the program made the run.
    #[error("{}: was made by version {there} of greedy-pde, and this is version {here}: they need not take the same steps", path.join(CHECKPOINT).display())]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// Which one.
        there: String,
        /// This one.
        here: String,
    },
    /// The run there has gone further than what is asked for.
    #[error("{}: the run there has {there} neurons already, and {asked} are asked for; nothing was changed", .path.display())]
    FewerNeurons {
        /// The directory.
        path: PathBuf,
        /// How many there are.
        there: usize,
        /// How many are asked for.
        asked: usize,
    },
    /// Nothing is written through symbolic links.
    #[error("{}: is a symbolic link, and nothing is written through one; nothing was changed", .0.display())]
    Link(PathBuf),
    /// The directory cannot be made or made ready.
    #[error("{}: {what}: {error}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// What cannot be done.
        what: &'static str,
        /// What the operating system said.
        error: io::Error,
    },
    /// The directory has no run to look at.
    #[error("{}: holds no run: neither {RESULT} nor a {CHECKPOINT} with neurons", .0.display())]
    NoRun(PathBuf),
    /// u is not known at this time.
    #[error("{}", not_known(*.time, *.ends))]
    Time {
        /// The time that was asked for.
        time: f64,
        /// The first and the last time that were kept; none where the problem is not in time.
        ends: Option<(f64, f64)>,
    },
    /// A file cannot be read, or is not what it should be.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The network and the problem beside it do not belong together.
    #[error("{}: a network in {network} dimensions, but {PROBLEM} beside it has {problem}", path.display())]
    Dimension {
        /// The directory.
        path: PathBuf,
        /// The network's.
        network: usize,
        /// The problem's.
        problem: usize,
    },
    /// A file cannot be written while the run goes.
    #[error("{}: cannot be written: {error}; what was written before is kept", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// The directory was removed while the run was writing there.
    #[error("{}: the directory is gone, and with it what was written; the run was ended", .0.display())]
    Vanished(PathBuf),
    /// A network or checkpoint that cannot be read.
    #[error(transparent)]
    NetworkFile(#[from] NetworkFileError),
    /// The problem of a run is not one.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The run itself failed.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

impl ResultsError {
    /// A file of `directory` that could not be written, perhaps because the directory is gone.
    pub(super) fn write(directory: &Path, name: &str, error: io::Error) -> Self {
        match directory.is_dir() {
            false => ResultsError::Vanished(directory.to_path_buf()),
            true => ResultsError::Write {
                path: directory.join(name),
                error,
            },
        }
    }

    /// The same for what the network's file said.
    pub(super) fn write_network(directory: &Path, error: NetworkFileError) -> Self {
        match error {
            NetworkFileError::Io { error, path } => {
                let name = Path::new(&path).file_name().unwrap_or_default();
                Self::write(directory, &name.to_string_lossy(), error)
            }
            other => ResultsError::NetworkFile(other),
        }
    }

    /// What to do about it, to be put after the message; `option` says how an option is written where it is asked for.
    pub fn advice(&self, option: &dyn Fn(&str) -> String) -> String {
        let (output, force, resume) = (option("output"), option("force"), option("resume"));
        match self {
            ResultsError::Exists(_) => format!(
                ". Use {resume} to go on from it, {force} to overwrite it, or {output} for another directory"
            ),
            ResultsError::InUse(_) => format!(". Wait for it, or use {output} for another directory"),
            ResultsError::DamagedCheckpoint(_) => {
                format!("; nothing was changed. Use {force} to start again")
            }
            ResultsError::NothingToResume(_) => {
                format!(". Without {resume} a new run begins; {force} overwrites what is there")
            }
            ResultsError::FewerNeurons { .. } => format!(
                ". Ask for as many with {}, or use {output} for another directory",
                option("neurons")
            ),
            ResultsError::OtherProblem { .. }
            | ResultsError::DependsOnNeurons { .. }
            | ResultsError::OtherVersion { .. } => {
                format!(
                    "; nothing was changed. Use {output} for another directory, or {force} to start again"
                )
            }
            _ => String::new(),
        }
    }

    /// Whether the run failed, or could not be saved, after it had begun; else the input was bad.
    pub fn is_failure_of_the_run(&self) -> bool {
        matches!(self, ResultsError::Write { .. } | ResultsError::Vanished(_))
    }
}

fn not_known(time: f64, ends: Option<(f64, f64)>) -> String {
    match ends {
        Some((first, last)) => {
            format!("t = {time} is not between {first} and {last}, the times that this run has")
        }
        None => format!("t = {time} is asked for, but this run is not in time: it has no [time] table"),
    }
}
