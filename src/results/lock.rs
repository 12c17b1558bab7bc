//! One run at a time in a directory.

use super::{LOCK, ResultsError};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Locks a directory until the file that is returned is closed: by whoever holds it, or by the operating
/// system when the process ends, however it ends. The empty file stays; removing it would let a third
/// run lock a new one while the second still waits for the old.
pub(super) fn lock(directory: &Path) -> Result<File, ResultsError> {
    let path = directory.join(LOCK);
    refuse_link(&path)?;
    let open = |error| ResultsError::Open {
        path: directory.to_path_buf(),
        what: "cannot be written to",
        error,
    };
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(open)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse(directory.to_path_buf())),
        // Some network file systems have no locks; there the user must take care.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(error)) => Err(open(error)),
    }
}

/// Refuses a path that is a symbolic link.
pub(super) fn refuse_link(path: &Path) -> Result<(), ResultsError> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Err(ResultsError::Link(path.to_path_buf())),
        _ => Ok(()),
    }
}
