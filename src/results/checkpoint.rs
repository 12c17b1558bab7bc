//! What an interrupted run goes on from, in one file.

use super::{ResultsError, history};
use crate::estimate::Snapshot;
use crate::greedy::{GuardState, State};
use crate::network::Network;
use crate::network_file;
use crate::report::Row;
use crate::sums::SumsReport;
use std::path::Path;

/// Where a run was when it was saved.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The solution by then.
    pub network: Network,
    /// What the algorithm must know to go on.
    pub state: State,
    /// Networks on the way, for the estimate of the error.
    pub kept: Vec<Snapshot>,
    /// The figures of every n so far.
    pub rows: Vec<Row>,
    /// The problem as it is solved.
    pub problem: String,
    /// The version of the program.
    pub version: String,
    /// The settings in force, as a text that is the same for the same settings.
    pub settings: String,
    /// `cpu` or `gpu`, the GPU's name, the precision of scores.
    pub place: Place,
}

/// Where the sums of a run were done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// `cpu` or `gpu`.
    pub backend: String,
    /// The GPU's name.
    pub adapter: Option<String>,
    /// How scores are computed.
    pub precision: String,
}

impl From<&SumsReport> for Place {
    fn from(report: &SumsReport) -> Self {
        Self {
            backend: report.backend.to_string(),
            adapter: report.adapter.clone(),
            precision: report.precision.to_string(),
        }
    }
}

impl Checkpoint {
    /// Replaces the file at `path`.
    pub fn save(&self, path: &Path) -> Result<(), network_file::NetworkFileError> {
        let state = &self.state;
        let mut notes = vec![
            ("problem", self.problem.clone()),
            ("version", self.version.clone()),
            ("settings", self.settings.clone()),
            ("history", history::text(&self.rows)),
            ("backend", self.place.backend.clone()),
            ("precision", self.place.precision.clone()),
        ];
        if let Ok(kept) = serde_json::to_string(&self.kept) {
            notes.push(("kept", kept));
        }
        if let Some(adapter) = &self.place.adapter {
            notes.push(("adapter", adapter.clone()));
        }
        if let Some(from) = state.orthogonal_from {
            notes.push(("orthogonal_from", from.to_string()));
        }
        if let Some(guard) = state.guard {
            notes.push(("guard", guard_text(guard)));
        }
        let more = [
            ("score", state.scores.as_slice()),
            ("step", state.steps.as_slice()),
        ];
        network_file::save_with(path, &self.network, &more, &notes)
    }

    /// Reads what [`save`](Self::save) wrote.
    pub fn load(path: &Path) -> Result<Self, ResultsError> {
        let (network, mut more, mut notes) = network_file::load_with(path, &["score", "step"])?;
        let steps = more.pop().unwrap_or_default();
        let scores = more.pop().unwrap_or_default();
        let state = State {
            steps,
            scores,
            guard: notes.get("guard").and_then(|guard| read_guard(guard)),
            orthogonal_from: notes.get("orthogonal_from").and_then(|from| from.parse().ok()),
            neurons: network.neurons.clone(),
        };
        let kept = notes.remove("kept");
        let adapter = notes.remove("adapter");
        let mut note = |name: &str| {
            notes.remove(name).ok_or_else(|| ResultsError::Unreadable {
                path: path.to_path_buf(),
                reason: format!("not a checkpoint of this program: `{name}` is missing"),
            })
        };
        let rows = history::rows(&note("history")?);
        if rows.last().map_or(0, |row| row.n) != network.len() {
            return Err(ResultsError::Unreadable {
                path: path.to_path_buf(),
                reason: format!("damaged: {} neurons, but another history", network.len()),
            });
        }
        Ok(Self {
            network,
            state,
            kept: kept
                .and_then(|kept| serde_json::from_str(&kept).ok())
                .unwrap_or_default(),
            rows,
            problem: note("problem")?,
            version: note("version")?,
            settings: note("settings")?,
            place: Place {
                backend: note("backend")?,
                adapter,
                precision: note("precision")?,
            },
        })
    }
}

fn guard_text(guard: GuardState) -> String {
    let GuardState {
        loss,
        explained,
        interval,
        since,
    } = guard;
    format!("{loss:e} {explained:e} {interval} {since}")
}

fn read_guard(text: &str) -> Option<GuardState> {
    let mut words = text.split(' ');
    Some(GuardState {
        loss: words.next()?.parse().ok()?,
        explained: words.next()?.parse().ok()?,
        interval: words.next()?.parse().ok()?,
        since: words.next()?.parse().ok()?,
    })
}
