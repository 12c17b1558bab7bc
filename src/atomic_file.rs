//! Files that are there whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How half-written files begin; what a killed run leaves of them may be removed.
const HALF_WRITTEN: &str = ".half-written-";

/// A file that is written beside its place and put there in one move: at every moment either the old or
/// the new one is there, whole. A symbolic link in its place is replaced, not followed.
pub struct AtomicFile {
    writer: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will stand at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(HALF_WRITTEN);
        #[cfg(unix)]
        {
            // As for any other file the user's mask decides; temporary files are private by default.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(directory.unwrap_or(Path::new(".")))?;
        Ok(Self {
            writer: BufWriter::with_capacity(1 << 18, file),
            path: path.to_path_buf(),
        })
    }

    /// Puts the file in its place.
    pub fn commit(self) -> io::Result<()> {
        let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a whole file, so that at every moment either the old or the new one is there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Removes what a killed run was about to write.
pub fn remove_half_written(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(HALF_WRITTEN)) {
        // What cannot be removed does no harm.
        let _ = std::fs::remove_file(entry.path());
    }
}
