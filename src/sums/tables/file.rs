//! Moment tables on disk, so that a pass over many points can be taken up in its middle.

use super::MomentTables;
use crate::atomic_file::AtomicFile;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

/// Where a pass keeps its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStore {
    /// The file.
    pub path: PathBuf,
    /// Names the problem and its settings: sums of another run are not taken up.
    pub run: String,
    /// The sums are saved after every so many points.
    pub every: usize,
}

/// The first word of the file.
const MAGIC: &str = "greedy-pde-moments-1";

impl TableStore {
    /// Replaces the file by the sums over the first `done` points.
    pub(super) fn save(&self, tables: &mut MomentTables, done: usize) -> io::Result<()> {
        let mut file = AtomicFile::create(&self.path)?;
        writeln!(file, "{MAGIC}\n{}\n{done}", self.run)?;
        let mut check = Check::default();
        for column in tables.columns() {
            check.add(column);
            file.write_all(bytemuck::cast_slice(column))?;
        }
        file.write_all(&check.0.to_le_bytes())?;
        file.commit()
    }

    /// Reads sums into tables of the same shape; how many points they are of. Without a whole file of
    /// this very run there are none, and the tables stay as they are or are cleared.
    pub(super) fn load(&self, tables: &mut MomentTables) -> Option<usize> {
        let mut reader = BufReader::with_capacity(1 << 20, File::open(&self.path).ok()?);
        let done = read_header(&mut reader, &self.run)?;
        match read_columns(&mut reader, tables) {
            Ok(true) => Some(done),
            _ => {
                tables.clear();
                None
            }
        }
    }

    /// Removes the file: the run is done.
    pub fn remove(&self) {
        // If it is not there, so much the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn read_header(reader: &mut impl Read, run: &str) -> Option<usize> {
    let mut line = || -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            reader.read_exact(&mut byte).ok()?;
            match byte[0] {
                b'\n' => return String::from_utf8(bytes).ok(),
                _ if bytes.len() > 4096 => return None,
                byte => bytes.push(byte),
            }
        }
    };
    if line()? != MAGIC || line()? != run {
        return None;
    }
    line()?.parse().ok()
}

/// Whether the columns are there, whole and undamaged.
fn read_columns(reader: &mut impl Read, tables: &mut MomentTables) -> io::Result<bool> {
    let mut check = Check::default();
    for column in tables.columns() {
        reader.read_exact(bytemuck::cast_slice_mut(column))?;
        check.add(column);
    }
    let mut expected = [0; 8];
    reader.read_exact(&mut expected)?;
    Ok(check.0 == u64::from_le_bytes(expected))
}

/// A sum that notices damage.
#[derive(Default)]
struct Check(u64);

impl Check {
    fn add(&mut self, column: &[f64]) {
        for value in column {
            self.0 = (self.0.rotate_left(5) ^ value.to_bits()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
}
