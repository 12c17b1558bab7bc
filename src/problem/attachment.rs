//! Files that a problem file names: they are a part of the problem.

use super::ProblemError;
use super::build::Built;
use super::source::Source;
use crate::domain::DomainError;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;

/// Larger files are not read.
const LARGEST: u64 = 1 << 30;

/// A file that a problem names, with what was in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The path as it is typed.
    pub typed: String,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

impl Attachment {
    /// Reads a file, unless it is held already; its path starts from the folder of the problem file.
    pub(super) fn read(source: &Source, key: &str, path: &Spanned<String>) -> Built<Self> {
        let typed = path.get_ref();
        if let Some(held) = source.held.iter().find(|file| file.typed == *typed) {
            return Ok(held.clone());
        }
        let folder = Path::new(source.name).parent().unwrap_or(Path::new(""));
        let full = folder.join(typed);
        let failed = |why: String| {
            source
                .error(key, path.span(), format!("{} {why}", full.display()))
                .help("the path starts from the folder of the problem file")
        };
        // Devices and pipes may never end.
        let about = std::fs::metadata(&full).map_err(|error| failed(format!("cannot be read: {error}")))?;
        if !about.is_file() || about.len() > LARGEST {
            return Err(failed("is not a file of at most 1 GiB".to_string()));
        }
        let bytes = std::fs::read(&full).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Ok(Self {
            typed: typed.clone(),
            bytes: bytes.into(),
        })
    }

    /// The last part of its path.
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.typed).file_name();
        name.map_or_else(|| "file".to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// A number that tells contents apart (FNV-1a).
    pub fn digest(&self) -> u64 {
        self.bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// The error for what is wrong in the file.
    pub(super) fn refused(
        &self,
        source: &Source,
        key: &str,
        path: &Spanned<String>,
        error: DomainError,
    ) -> ProblemError {
        let line = error.line.map_or(String::new(), |line| format!(":{line}"));
        let message = format!("{}{line}: {}", self.typed, error.message);
        let refused = source.error(key, path.span(), message);
        match error.help {
            Some(help) => refused.help(help),
            None => refused,
        }
    }
}
