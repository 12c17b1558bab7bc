//! How processes reach each other, and what went that way.

use crate::error::SolveError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ways of words of 64 bits between processes. All of them call the same methods in the same order.
pub trait Wire: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Sends words to another process.
    fn send(&self, to: usize, words: &[u64]);

    /// Waits for as many words from another process as it sends.
    fn receive(&self, from: usize, words: &mut [u64]);

    /// Sends words to another process that at the same time sends some here.
    fn exchange(&self, other: usize, outgoing: &[u64], incoming: &mut [u64]) {
        if self.rank() < other {
            self.send(other, outgoing);
        }
        self.receive(other, incoming);
        if self.rank() > other {
            self.send(other, outgoing);
        }
    }

    /// The words of one process, everywhere.
    fn broadcast(&self, from: usize, words: &mut [u64]);

    /// Everybody's words one after the other, of which each process has so many.
    fn gather(&self, own: &[u64], lengths: &[usize]) -> Vec<u64>;

    /// Whether all processes call this within some seconds.
    fn all_end(&self, seconds: f64) -> bool;

    /// Leaves the others for good.
    fn leave(&self);

    /// Ends all processes at once, with this exit code.
    fn end_all(&self, code: i32) -> !;
}

/// What a process sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many messages; to tell something to all is one to each.
    pub messages: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

impl std::ops::Sub for Traffic {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// A wire that counts.
pub(super) struct Counted {
    wire: Box<dyn Wire>,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    pub(super) fn new(wire: Box<dyn Wire>) -> Self {
        Self {
            wire,
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    fn count(&self, messages: usize, words: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes
            .fetch_add(8 * (messages * words) as u64, Ordering::Relaxed);
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.wire.rank()
    }

    pub(super) fn size(&self) -> usize {
        self.wire.size()
    }

    pub(super) fn send(&self, to: usize, words: &[u64]) {
        self.count(1, words.len());
        self.wire.send(to, words);
    }

    pub(super) fn receive(&self, from: usize, words: &mut [u64]) {
        self.wire.receive(from, words);
    }

    pub(super) fn exchange(&self, other: usize, outgoing: &[u64], incoming: &mut [u64]) {
        self.count(1, outgoing.len());
        self.wire.exchange(other, outgoing, incoming);
    }

    pub(super) fn broadcast(&self, from: usize, words: &mut [u64]) {
        if self.rank() == from {
            self.count(self.size() - 1, words.len());
        }
        self.wire.broadcast(from, words);
    }

    pub(super) fn gather(&self, own: &[u64], lengths: &[usize]) -> Vec<u64> {
        self.count(self.size() - 1, own.len());
        self.wire.gather(own, lengths)
    }

    /// One word of everybody.
    pub(super) fn gather_one(&self, word: u64) -> Vec<u64> {
        self.gather(&[word], &vec![1; self.size()])
    }

    /// Words of one process whose number the others do not know.
    pub(super) fn tell_all(&self, from: usize, mut words: Vec<u64>) -> Vec<u64> {
        let mut length = [words.len() as u64];
        self.broadcast(from, &mut length);
        words.resize(length[0] as usize, 0);
        self.broadcast(from, &mut words);
        words
    }

    /// The error of the first process that has one; there is one.
    pub(super) fn first_error(&self, here: Option<SolveError>) -> SolveError {
        let own = here.as_ref().map_or_else(Vec::new, encoded);
        let lengths: Vec<usize> = self
            .gather_one(own.len() as u64)
            .into_iter()
            .map(|length| length as usize)
            .collect();
        let all = self.gather(&own, &lengths);
        let rank = lengths.iter().position(|&length| length > 0).unwrap_or(0);
        match here {
            Some(own) if rank == self.rank() => own,
            _ => decoded(&all[..lengths.get(rank).copied().unwrap_or(0)]),
        }
    }

    pub(super) fn all_end(&self, seconds: f64) -> bool {
        self.wire.all_end(seconds)
    }

    pub(super) fn leave(&self) {
        self.wire.leave();
    }

    pub(super) fn end_all(&self, code: i32) -> ! {
        self.wire.end_all(code)
    }
}

/// Bytes as words, with their number.
pub(super) fn to_words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    std::iter::once(bytes.len() as u64).chain(words).collect()
}

/// What [`to_words`] was given.
pub(super) fn to_bytes(words: &[u64]) -> Vec<u8> {
    let Some((length, words)) = words.split_first() else {
        return Vec::new();
    };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(*length as usize);
    bytes
}

/// The kinds of errors that are decided upon, or end a run in ways of their own.
const NOT_FINITE: u64 = 0;
const NOT_CONVEX: u64 = 1;
const INPUT: u64 = 2;
const OTHER: u64 = 3;

fn encoded(error: &SolveError) -> Vec<u64> {
    let at = |kind: u64, what: &str, value: f64, point: &[f64]| {
        let mut words = vec![kind, value.to_bits(), point.len() as u64];
        words.extend(point.iter().map(|x| x.to_bits()));
        words.extend(to_words(what.as_bytes()));
        words
    };
    match error {
        SolveError::NotFinite { what, value, point } => at(NOT_FINITE, what, *value, point),
        SolveError::NotConvex { what, value, point } => at(NOT_CONVEX, what, *value, point),
        other => {
            let kind = if other.is_bad_input() { INPUT } else { OTHER };
            at(kind, &other.to_string(), 0.0, &[])
        }
    }
}

fn decoded(words: &[u64]) -> SolveError {
    let (Some(&kind), Some(&value), Some(&length)) = (words.first(), words.get(1), words.get(2)) else {
        return SolveError::Elsewhere {
            message: "another process failed".to_string(),
            bad_input: false,
        };
    };
    let (point, what) = words[3..].split_at((length as usize).min(words.len() - 3));
    let what = String::from_utf8_lossy(&to_bytes(what)).into_owned();
    let point = point.iter().map(|&bits| f64::from_bits(bits)).collect();
    let value = f64::from_bits(value);
    match kind {
        NOT_FINITE => SolveError::NotFinite { what, value, point },
        NOT_CONVEX => SolveError::NotConvex { what, value, point },
        _ => SolveError::Elsewhere {
            message: what,
            bad_input: kind == INPUT,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_bytes_survive_the_way() {
        let error = SolveError::NotFinite {
            what: "source: 1/x".to_string(),
            value: f64::INFINITY,
            point: vec![0.0, -0.25],
        };
        assert_eq!(decoded(&encoded(&error)), error);
        let input = SolveError::TooLarge {
            needed: 1 << 40,
            available: 1 << 30,
        };
        assert_eq!(decoded(&encoded(&input)).to_string(), input.to_string());
        assert!(decoded(&encoded(&input)).is_bad_input());
        for text in ["", "a", "12345678", "1234567890"] {
            assert_eq!(to_bytes(&to_words(text.as_bytes())), text.as_bytes());
        }
    }
}
