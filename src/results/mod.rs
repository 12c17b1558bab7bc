//! A run on disk: a directory that is written as the run goes, is never overwritten unasked, and from
//! which the run can be resumed, looked at and compared.
//!
//! The checkpoint is the one source of an unfinished run: network, state, history and the problem as it
//! is solved stand in one file that is replaced in one move, so that no two files can contradict each
//! other. `history.csv` and `problem.toml` are for people and other programs.
//!
//! The algorithms know nothing of all this: [`ResultDirectory`] is an observer of [`crate::run::run`].

mod checkpoint;
mod directory;
mod error;
mod history;
mod lock;
mod page_files;
mod problem_text;
mod recording;
mod saved;

pub use checkpoint::Checkpoint;
pub use directory::{Existing, ResultDirectory, take_part};
pub use error::ResultsError;
pub use page_files::{PAGE, write_page};
pub use problem_text::with_overrides;
pub use recording::Recording;
pub use saved::SavedRun;

/// The report, as `--json` prints it.
pub const RESULT: &str = "result.json";
/// The figures of every n.
pub const HISTORY: &str = "history.csv";
/// The solution of a finished run.
pub const NETWORK: &str = "network.safetensors";
/// u at every time that a flow kept.
pub const FRAMES: &str = "frames.safetensors";
/// What an interrupted run goes on from.
pub const CHECKPOINT: &str = "checkpoint";
/// The problem as it was solved.
pub const PROBLEM: &str = "problem.toml";
/// The sums of a long pass over the points, as long as it is under way.
pub const TABLES: &str = "tables";
/// Held by the run that writes here.
pub const LOCK: &str = "lock";
