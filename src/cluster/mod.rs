//! Processes that share the sums of one run.
//!
//! Every process makes the same decisions from the same sums; only the points are divided. Sums in floating point
//! depend on the order of their terms, so that the order is always the one of a single process: points go in
//! runs whose number does not depend on who adds them up, each process has whole runs, and the sums of runs are
//! added one after the other, carried from process to process.

mod exchange;
#[cfg(feature = "mpi")]
mod mpi;
mod part;
mod relay;
mod threads;
mod whole;
mod wire;

#[cfg(feature = "mpi")]
pub use mpi::join;
pub(crate) use relay::CHUNK;
pub use threads::in_threads;
pub use wire::{Traffic, Wire};

use crate::error::SolveError;
use std::ops::Range;
use std::sync::Arc;
use wire::Counted;

/// A process among those that share the sums of a run.
#[derive(Clone, Default)]
pub struct Cluster {
    /// Nothing where there is but one.
    wire: Option<Arc<Counted>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "process {} of {}", self.rank(), self.size())
    }
}

/// One process.
static ALONE: Cluster = Cluster::alone();

/// Where numbers that a process holds stand among those of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Where they are here; empty where they are not this process's to add.
    pub here: Range<usize>,
    /// The place of the first of them among all.
    pub first: usize,
}

impl Cluster {
    /// One process alone.
    pub const fn alone() -> Self {
        Self { wire: None }
    }

    /// One process alone, for whoever has none at hand.
    pub fn nobody_else() -> &'static Self {
        &ALONE
    }

    /// A process that reaches the others by a wire.
    pub fn new(wire: Box<dyn Wire>) -> Self {
        match wire.size() {
            0 | 1 => Self::alone(),
            _ => Self {
                wire: Some(Arc::new(Counted::new(wire))),
            },
        }
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.wire.as_ref().map_or(0, |wire| wire.rank())
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.wire.as_ref().map_or(1, |wire| wire.size())
    }

    /// Whether there is no other.
    pub fn is_alone(&self) -> bool {
        self.wire.is_none()
    }

    /// Whether this is the one that prints and writes.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether this is the last one.
    pub fn is_last(&self) -> bool {
        self.rank() + 1 == self.size()
    }

    /// What this process sent so far.
    pub fn traffic(&self) -> Traffic {
        self.wire
            .as_ref()
            .map_or_else(Traffic::default, |wire| wire.traffic())
    }

    /// Which of so many pieces of work are this process's.
    pub fn share(&self, pieces: usize) -> Range<usize> {
        self.share_of(self.rank(), pieces)
    }

    /// Which of so many pieces of work are a process's.
    pub fn share_of(&self, rank: usize, pieces: usize) -> Range<usize> {
        // In wide numbers: points times processes may be many.
        let bound = |rank: usize| (pieces as u128 * rank as u128 / self.size() as u128) as usize;
        bound(rank)..bound(rank + 1)
    }

    /// Whether any process says so.
    pub fn any(&self, here: bool) -> bool {
        match &self.wire {
            None => here,
            Some(wire) => wire.gather_one(u64::from(here)).contains(&1),
        }
    }

    /// Goes on only where all can: of several errors all get that of the first process that met one.
    pub fn agree<T>(&self, here: Result<T, SolveError>) -> Result<T, SolveError> {
        let Some(wire) = &self.wire else {
            return here;
        };
        let failures = wire.gather_one(u64::from(here.is_err()));
        match failures.contains(&1) {
            false => here,
            true => Err(wire.first_error(here.err())),
        }
    }

    /// The first process's words, everywhere.
    pub fn from_first(&self, words: Vec<u64>) -> Vec<u64> {
        match &self.wire {
            None => words,
            Some(wire) => wire.tell_all(0, words),
        }
    }

    /// The first process's bytes, everywhere.
    pub fn bytes_from_first(&self, bytes: &[u8]) -> Vec<u8> {
        match &self.wire {
            None => bytes.to_vec(),
            Some(wire) => wire::to_bytes(&wire.tell_all(0, wire::to_words(bytes))),
        }
    }

    /// Everybody's numbers one after the other, of which each process has so many.
    pub fn gathered(&self, numbers: &[f64], lengths: &[usize]) -> Vec<f64> {
        match &self.wire {
            None => numbers.to_vec(),
            Some(wire) => bytemuck::cast_vec(wire.gather(bytemuck::cast_slice(numbers), lengths)),
        }
    }

    /// The numbers of all pieces of work in their order, `width` for each, from those of this process's
    /// [share](Self::share) of them.
    pub fn in_order<const WIDTH: usize>(
        &self,
        pieces: usize,
        mine: Result<Vec<[f64; WIDTH]>, SolveError>,
    ) -> Result<Vec<[f64; WIDTH]>, SolveError> {
        if self.is_alone() {
            return mine;
        }
        let mine = self.agree(mine)?;
        let lengths = (0..self.size()).map(|rank| WIDTH * self.share_of(rank, pieces).len());
        let all = self.gathered(mine.as_flattened(), &lengths.collect::<Vec<_>>());
        let (all, _) = all.as_chunks::<WIDTH>();
        Ok(all.to_vec())
    }

    /// Whether all processes come here within some seconds; where a process failed by itself, the others wait for it
    /// elsewhere.
    pub fn all_end(&self, seconds: f64) -> bool {
        self.wire.as_ref().is_none_or(|wire| wire.all_end(seconds))
    }

    /// One word of everybody, in the order of their numbers.
    pub fn words_of_all(&self, word: u64) -> Vec<u64> {
        self.wire
            .as_ref()
            .map_or_else(|| vec![word], |wire| wire.gather_one(word))
    }

    /// Leaves the others for good: the last thing that a process does.
    pub fn leave(&self) {
        if let Some(wire) = &self.wire {
            wire.leave();
        }
    }

    /// Ends all processes at once, with this exit code.
    pub fn end_all(&self, code: i32) -> ! {
        match &self.wire {
            Some(wire) => wire.end_all(code),
            None => std::process::exit(code),
        }
    }
}
