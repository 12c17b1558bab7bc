//! The page of a run and its pictures as files.

use super::lock::refuse_link;
use super::{ResultsError, SavedRun};
use crate::atomic_file::write_atomically;
use crate::page::{RunData, page};
use std::fs;
use std::path::{Path, PathBuf};

/// The page's file …
pub const PAGE: &str = "report.html";
/// … and the directory of its pictures.
const PLOTS: &str = "plots";

/// Writes the page of a result directory and says where it is.
pub fn write_page(directory: &Path) -> Result<PathBuf, ResultsError> {
    let run = SavedRun::load(directory)?;
    let page = page(&RunData {
        report: &run.report()?,
        history: &run.history,
        network: &run.network,
        problem: &run.problem,
        text: &run.text,
        frames: &run.frames,
        steps: &run.steps,
    });
    let plots = directory.join(PLOTS);
    refuse_link(&plots)?;
    fs::create_dir_all(&plots).map_err(|error| ResultsError::write(directory, PLOTS, error))?;
    for (name, contents) in &page.files {
        write_atomically(&plots.join(name), contents)
            .map_err(|error| ResultsError::write(&plots, name, error))?;
    }
    let path = directory.join(PAGE);
    write_atomically(&path, page.html.as_bytes())
        .map_err(|error| ResultsError::write(directory, PAGE, error))?;
    Ok(path)
}
