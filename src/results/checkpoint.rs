//! What an interrupted run goes on from, in one file.

use super::{ResultsError, history};
use crate::estimate::Snapshot;
use crate::flow::FlowState;
use crate::greedy::{GuardState, State};
use crate::network::Network;
use crate::network_file;
use crate::report::{Report, Row, TimeRow};
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
    /// Where a flow is, with the figures of every step so far.
    pub flow: Option<(FlowState, Vec<TimeRow>)>,
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

impl Place {
    /// What is to be said of a run that began here and went on elsewhere: sums in other numbers round differently.
    pub(super) fn parts_from(&self, report: &Report) -> Option<String> {
        let here = (self.backend.as_str(), self.precision.as_str());
        let there = (report.backend.as_str(), report.precision.as_str());
        let alike = here == there || (here.1 == there.1 && here.1 == "integer") || here.1.is_empty();
        (!alike).then(|| {
            format!(
                "this run began on the {} ({}) and went on on the {} ({}): its network is as good as, but not to the byte, that of \
                 a run in one place",
                here.0, here.1, there.0, there.1
            )
        })
    }
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
        network_file::save_with(path, &self.network, &self.columns(), &self.notes())
    }

    /// The bytes that [`save`](Self::save) writes, for [`of_bytes`](Self::of_bytes).
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        network_file::bytes_with(&self.network, &self.columns(), &self.notes())
    }

    fn columns(&self) -> [(&'static str, &[f64]); 2] {
        [
            ("score", self.state.scores.as_slice()),
            ("step", self.state.steps.as_slice()),
        ]
    }

    /// What is noted beside the numbers, with a checksum of all.
    fn notes(&self) -> Vec<(&'static str, String)> {
        let mut notes = self.facts();
        let columns = self.columns().map(|(_, column)| column);
        let facts = notes.iter().map(|(name, fact)| (*name, fact.as_str()));
        notes.push((CHECKSUM, checksum(&self.network, columns, facts)));
        notes
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let state = &self.state;
        let mut notes = vec![
            ("problem", self.problem.clone()),
            ("version", self.version.clone()),
            ("settings", self.settings.clone()),
            (
                "history",
                match &self.flow {
                    Some((_, rows)) => history::time_text(rows),
                    None => history::text(&self.rows),
                },
            ),
            ("backend", self.place.backend.clone()),
            ("precision", self.place.precision.clone()),
        ];
        if let Ok(kept) = serde_json::to_string(&self.kept) {
            notes.push(("kept", kept));
        }
        if let Some(Ok(flow)) = self.flow.as_ref().map(|(state, _)| serde_json::to_string(state)) {
            notes.push(("flow", flow));
        }
        if let Some(adapter) = &self.place.adapter {
            notes.push(("adapter", adapter.clone()));
        }
        if let Some(from) = state.orthogonal_from {
            notes.push(("orthogonal_from", from.to_string()));
        }
        if let Some(neurons) = state.polished {
            notes.push(("polished", neurons.to_string()));
        }
        if let Some(guard) = state.guard {
            notes.push(("guard", guard_text(guard)));
        }
        notes
    }

    /// Reads what [`save`](Self::save) wrote.
    pub fn load(path: &Path) -> Result<Self, ResultsError> {
        Self::of(network_file::load_with(path, &["score", "step"])?, path)
    }

    /// Reads the bytes of such a file.
    pub fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, ResultsError> {
        Self::of(network_file::load_bytes(bytes, path, &["score", "step"])?, path)
    }

    fn of((network, mut more, mut notes): network_file::Loaded, path: &Path) -> Result<Self, ResultsError> {
        let steps = more.pop().unwrap_or_default();
        let scores = more.pop().unwrap_or_default();
        if let Some(noted) = notes.remove(CHECKSUM) {
            // The network's own note is not among the facts.
            let facts = notes.iter().filter(|(name, _)| *name != "activation");
            let facts = facts.map(|(name, fact)| (name.as_str(), fact.as_str()));
            if noted != checksum(&network, [&scores, &steps], facts) {
                return Err(ResultsError::Unreadable {
                    path: path.to_path_buf(),
                    reason: "damaged: its checksum is another one".to_string(),
                });
            }
        }
        let state = State {
            steps,
            scores,
            guard: notes.get("guard").and_then(|guard| read_guard(guard)),
            polished: notes.get("polished").and_then(|n| n.parse().ok()),
            orthogonal_from: notes.get("orthogonal_from").and_then(|from| from.parse().ok()),
            neurons: network.neurons.clone(),
        };
        let damaged = |reason: String| ResultsError::Unreadable {
            path: path.to_path_buf(),
            reason: format!("damaged: {reason}"),
        };
        if state
            .polished
            .is_some_and(|moved| moved > state.scores.len().min(network.len()))
        {
            return Err(damaged(format!("{} neurons, but more were moved", network.len())));
        }
        let flow = match notes.remove("flow") {
            Some(text) => {
                let mut flow: FlowState =
                    serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
                flow.neurons.clone_from(&network.neurons);
                let rows = history::time_rows(notes.get("history").map_or("", String::as_str));
                if rows.last().map(|row| row.step) != Some(flow.step)
                    || flow.history.first().map(Vec::len) != Some(network.len())
                    || flow.initial > network.len()
                    || flow
                        .frames
                        .iter()
                        .any(|frame| frame.coefficients.len() > network.len())
                {
                    return Err(damaged(format!("{} steps, but another history", flow.step)));
                }
                Some((flow, rows))
            }
            None => None,
        };
        let kept = notes.remove("kept");
        let adapter = notes.remove("adapter");
        let mut note = |name: &str| {
            notes.remove(name).ok_or_else(|| ResultsError::Unreadable {
                path: path.to_path_buf(),
                reason: format!("not a checkpoint of this program: `{name}` is missing"),
            })
        };
        let rows = match &flow {
            Some(_) => Vec::new(),
            None => history::rows(&note("history")?),
        };
        if flow.is_none() && rows.last().map_or(0, |row| row.n) != network.len() {
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
            flow,
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

/// The note that holds the checksum.
const CHECKSUM: &str = "checksum";

/// A checksum of a checkpoint's numbers and of its facts, in whatever order these come.
fn checksum<'f>(
    network: &Network,
    columns: [&[f64]; 2],
    facts: impl Iterator<Item = (&'f str, &'f str)>,
) -> String {
    let mut sum = crc32fast::Hasher::new();
    for neuron in &network.neurons {
        sum.update(bytemuck::cast_slice(&neuron.omega));
        sum.update(&neuron.bias.to_le_bytes());
    }
    for column in [network.coefficients.as_slice()].into_iter().chain(columns) {
        sum.update(bytemuck::cast_slice(column));
    }
    let mut facts: Vec<(&str, &str)> = facts.collect();
    facts.sort_unstable();
    for (name, fact) in facts {
        sum.update(name.as_bytes());
        sum.update(fact.as_bytes());
    }
    format!("{:08x}", sum.finalize())
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
