//! The result directory: written as the run goes, never overwritten unasked, resumable.

use super::Failure;
use super::report::PAGE;
use greedy_pde::greedy::{GuardState, State};
use greedy_pde::network::Network;
use greedy_pde::network_file::{self, HALF_WRITTEN};
use greedy_pde::problem::Problem;
use greedy_pde::report::{Report, Row};
use greedy_pde::run::Progress;
use greedy_pde::sums::TableStore;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const RESULT: &str = "result.json";
pub(super) const HISTORY: &str = "history.csv";
pub(super) const NETWORK: &str = "network.safetensors";
const CHECKPOINT: &str = "checkpoint";
pub(super) const PROBLEM: &str = "problem.toml";
const TABLES: &str = "tables";
/// Points between two savings of the sums of a pass.
const TABLES_EVERY: usize = 1 << 24;
/// Between two checkpoints at least this long passes …
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(200);
/// … and so many times what the last one took.
const CHECKPOINT_SHARE: u32 = 50;

/// What to do about files that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Refuse,
    Overwrite,
    Resume,
}

/// An open result directory.
pub(super) struct Output {
    directory: PathBuf,
    history: File,
    fingerprint: String,
    last_checkpoint: Instant,
    interval: Duration,
    /// The neurons and rows of the run to go on from.
    pub(super) resume: Option<(State, Vec<Row>)>,
}

impl Output {
    /// Opens a directory for a run of `problem`, whose file has this text.
    pub(super) fn open(
        directory: &Path,
        problem: &Problem,
        text: &str,
        existing: Existing,
    ) -> Result<Self, Failure> {
        let input = |what: &str, error: io::Error| {
            Failure::Input(format!("{}: {what}: {error}", directory.display()))
        };
        if holds_a_result(directory) && existing == Existing::Refuse {
            return Err(Failure::Input(format!(
                "{}: already holds a result; nothing was changed. Use --resume to go on from it, --force to overwrite it, or --output for another directory",
                directory.display()
            )));
        }
        let fingerprint = fingerprint(problem, text);
        let resume = match existing {
            Existing::Resume => read_checkpoint(directory, &fingerprint)?,
            _ => None,
        };
        fs::create_dir_all(directory).map_err(|error| input("cannot be made", error))?;
        remove_half_written(directory);
        let mut history = String::new();
        history.push_str(&Row::csv_header());
        history.push('\n');
        for row in resume.iter().flat_map(|(_, rows)| rows) {
            history.push_str(&row.to_csv());
            history.push('\n');
        }
        network_file::write_atomically(&directory.join(HISTORY), history.as_bytes())
            .map_err(|error| input("cannot be written to", error))?;
        if resume.is_none() {
            let mut cleared = vec![RESULT, NETWORK, CHECKPOINT, PAGE];
            // Without a checkpoint there may still be the sums of a pass over the points to go on from.
            if existing != Existing::Resume {
                cleared.push(TABLES);
            }
            for name in cleared {
                match fs::remove_file(directory.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(input("cannot be cleared", error));
                    }
                    _ => {}
                }
            }
        }
        fs::write(directory.join(PROBLEM), text).map_err(|error| input("cannot be written to", error))?;
        let history = File::options()
            .append(true)
            .open(directory.join(HISTORY))
            .map_err(|error| input("cannot be written to", error))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            history,
            fingerprint,
            last_checkpoint: Instant::now(),
            interval: CHECKPOINT_INTERVAL,
            resume,
        })
    }

    /// Where the sums of a long pass over the points are kept.
    pub(super) fn tables(&self) -> TableStore {
        TableStore {
            path: self.directory.join(TABLES),
            run: self.fingerprint.clone(),
            every: TABLES_EVERY,
        }
    }

    /// Notes a step; now and then saves the state.
    pub(super) fn step(&mut self, step: &Progress) -> Result<(), Failure> {
        writeln!(self.history, "{}", step.row.to_csv()).map_err(|error| self.failed(HISTORY, &error))?;
        if self.last_checkpoint.elapsed() >= self.interval || step.last {
            self.checkpoint(step.network, step.state)?;
        }
        Ok(())
    }

    /// Saves the state for `--resume`.
    pub(super) fn checkpoint(&mut self, network: &Network, state: &State) -> Result<(), Failure> {
        let started = Instant::now();
        let mut notes = vec![("run", self.fingerprint.clone())];
        if let Some(from) = state.orthogonal_from {
            notes.push(("orthogonal_from", from.to_string()));
        }
        if let Some(guard) = state.guard {
            let GuardState {
                loss,
                explained,
                interval,
                since,
            } = guard;
            notes.push(("guard", format!("{loss:e} {explained:e} {interval} {since}")));
        }
        let more = [
            ("score", state.scores.as_slice()),
            ("step", state.steps.as_slice()),
        ];
        network_file::save_with(&self.directory.join(CHECKPOINT), network, &more, &notes)
            .map_err(|error| Failure::Solve(format!("{error}; what was written before is kept")))?;
        self.last_checkpoint = Instant::now();
        self.interval = CHECKPOINT_INTERVAL.max(CHECKPOINT_SHARE * started.elapsed());
        Ok(())
    }

    /// Writes the network and the report.
    pub(super) fn finish(&mut self, report: &Report, network: &Network) -> Result<(), Failure> {
        let notes = [
            ("problem", report.problem.clone()),
            ("version", report.version.clone()),
        ];
        network_file::save(&self.directory.join(NETWORK), network, &notes)
            .map_err(|error| Failure::Solve(error.to_string()))?;
        let json = serde_json::to_vec_pretty(report).map_err(|error| Failure::Solve(error.to_string()))?;
        network_file::write_atomically(&self.directory.join(RESULT), &json)
            .map_err(|error| self.failed(RESULT, &error))?;
        self.tables().remove();
        Ok(())
    }

    fn failed(&self, name: &str, error: &io::Error) -> Failure {
        Failure::Solve(format!(
            "{}: cannot be written: {error}; what was written before is kept",
            self.directory.join(name).display()
        ))
    }
}

/// Writes a file that a command was asked for, unless there is one already, and prints where it is.
pub(super) fn write_new(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    refuse_existing(path, force)?;
    network_file::write_atomically(path, bytes)
        .map_err(|error| Failure::Solve(format!("{}: cannot be written: {error}", path.display())))?;
    println!("{}", path.display());
    Ok(())
}

/// Refuses to overwrite a file unless asked to: worth knowing before the work of making it.
pub(super) fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    match path.exists() && !force {
        false => Ok(()),
        true => Err(Failure::Input(format!(
            "{}: is there already; nothing was changed. Use --force to overwrite it, or --output for another file",
            path.display()
        ))),
    }
}

/// Removes what a killed run was about to write.
fn remove_half_written(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(HALF_WRITTEN)) {
        // What cannot be removed does no harm.
        let _ = fs::remove_file(entry.path());
    }
}

/// Whether a directory has anything that took work to make; a run that failed before its first neuron
/// leaves nothing of the kind.
fn holds_a_result(directory: &Path) -> bool {
    let steps = fs::read_to_string(directory.join(HISTORY)).map_or(0, |history| history.lines().count());
    steps > 1
        || [RESULT, NETWORK, CHECKPOINT, TABLES]
            .iter()
            .any(|name| directory.join(name).exists())
}

/// Names a run: the problem's text and the settings in force, but for the number of neurons where a
/// longer run begins like a shorter one.
fn fingerprint(problem: &Problem, text: &str) -> String {
    let mut settings = problem.settings_json();
    if !problem.depends_on_neurons() {
        settings["solver"]["neurons"] = serde_json::Value::Null;
    }
    // FNV-1a
    let hash = text
        .bytes()
        .chain(settings.to_string().bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{} {hash:016x}", env!("CARGO_PKG_VERSION"))
}

type Resumed = Option<(State, Vec<Row>)>;

fn read_checkpoint(directory: &Path, fingerprint: &str) -> Result<Resumed, Failure> {
    let path = directory.join(CHECKPOINT);
    if !path.exists() {
        return Ok(None);
    }
    let (network, mut more, notes) = network_file::load_with(&path, &["score", "step"])
        .map_err(|error| Failure::Input(format!("{error}; use --force to start again")))?;
    if notes.get("run").map(String::as_str) != Some(fingerprint) {
        return Err(Failure::Input(format!(
            "{}: belongs to another problem, other settings or another version; use --force to start again",
            path.display()
        )));
    }
    let history = fs::read_to_string(directory.join(HISTORY)).unwrap_or_default();
    let rows: Vec<Row> = history
        .lines()
        .filter_map(Row::from_csv)
        .filter(|row| row.n <= network.len())
        .collect();
    let steps = more.pop().unwrap_or_default();
    let scores = more.pop().unwrap_or_default();
    let state = State {
        steps,
        guard: notes.get("guard").and_then(|guard| read_guard(guard)),
        orthogonal_from: notes.get("orthogonal_from").and_then(|from| from.parse().ok()),
        neurons: network.neurons,
        scores,
    };
    Ok(Some((state, rows)))
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
