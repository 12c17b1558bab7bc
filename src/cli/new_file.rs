//! A file that a command was asked to write.

use super::Failure;
use crate::cli::streams::put;
use greedy_pde::atomic_file::AtomicFile;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The place of a file that is not there yet, or may be overwritten.
pub(super) struct NewFile(PathBuf);

impl NewFile {
    /// Refuses to overwrite a file unless asked to: worth knowing before the work of making it.
    pub(super) fn at(path: &Path, force: bool) -> Result<Self, Failure> {
        match path.symlink_metadata().is_ok() && !force {
            false => Ok(Self(path.to_path_buf())),
            true => Err(Failure::Input(format!(
                "{}: is there already; nothing was changed. Use --force to overwrite it, or --output for another file",
                path.display()
            ))),
        }
    }

    /// Writes it whole and prints where it is.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream(|file| file.write_all(bytes))
    }

    /// Writes it piece by piece and prints where it is.
    pub(super) fn stream(
        &self,
        contents: impl FnOnce(&mut AtomicFile) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = AtomicFile::create(&self.0).and_then(|mut file| {
            contents(&mut file)?;
            file.commit()
        });
        written
            .map_err(|error| Failure::Solve(format!("{}: cannot be written: {error}", self.0.display())))?;
        put!("{}", self.0.display());
        Ok(())
    }
}
