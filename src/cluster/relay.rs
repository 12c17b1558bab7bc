//! Sums that are carried from process to process, each adding its own in order.

use super::wire::Counted;
use super::{Cluster, Share};
use crate::error::SolveError;
use crate::vector::{CarriedDot, DOT_STATE};
use rayon::prelude::*;
use std::ops::Range;

/// Up to so many words of all processes together everybody gets all and adds them up by itself: one message each.
const FEW: usize = 4096;
/// Longer sums go in chunks of so many numbers: a process sends one while the next adds its own to the one before.
pub(crate) const CHUNK: usize = 1 << 13;
/// Scalar products go in this many groups, for the same reason.
const GROUPS: usize = 16;

impl Cluster {
    /// Σ over all runs, in their order from zero on, of sums of `length` numbers. `mine` are those of this process's
    /// [share](Self::share) of the runs.
    pub fn fold(
        &self,
        runs: usize,
        length: usize,
        mine: Result<Vec<Vec<f64>>, SolveError>,
    ) -> Result<Vec<f64>, SolveError> {
        let Some(wire) = &self.wire else {
            let mut total = vec![0.0; length];
            mine?.iter().for_each(|run| add(&mut total, run));
            return Ok(total);
        };
        // Whoever failed takes part as if it had nothing to add, so that nobody waits.
        let (parts, failure) = match mine {
            Ok(parts) => (parts, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let (total, failed) = match runs.saturating_mul(length) <= FEW {
            true => self.fold_few(wire, runs, length, &parts, failure.is_some()),
            false => fold_many(wire, length, &parts, failure.is_some()),
        };
        match failed {
            false => Ok(total),
            true => Err(wire.first_error(failure)),
        }
    }

    /// Σ over all runs, in their order from zero on, of sums that come in pieces of these lengths, far more than one. Each
    /// process gets the sums of its [share](Self::share) of the pieces, one after the other.
    pub fn fold_pieces(
        &self,
        lengths: &[usize],
        mine: Result<Vec<Vec<&[f64]>>, SolveError>,
    ) -> Result<Vec<f64>, SolveError> {
        let runs = self.agree(mine)?;
        let last = self.size() - 1;
        let mut total = Vec::new();
        let mut buffer = Vec::new();
        for pieces in chunks(lengths) {
            let numbers: usize = lengths[pieces.clone()].iter().sum();
            buffer.clear();
            buffer.resize(numbers, 0.0);
            if let (Some(wire), Some(before)) = (&self.wire, self.rank().checked_sub(1)) {
                wire.receive(before, bytemuck::cast_slice_mut(&mut buffer));
            }
            for run in &runs {
                let mut rest = buffer.as_mut_slice();
                for piece in &run[pieces.clone()] {
                    let (own, others) = rest.split_at_mut(piece.len());
                    add(own, piece);
                    rest = others;
                }
            }
            match &self.wire {
                Some(wire) if self.rank() < last => wire.send(self.rank() + 1, bytemuck::cast_slice(&buffer)),
                _ => total.extend_from_slice(&buffer),
            }
        }
        Ok(self.scattered(lengths, total))
    }

    /// The last process's numbers, to each those of its share of the pieces.
    fn scattered(&self, lengths: &[usize], mut total: Vec<f64>) -> Vec<f64> {
        let Some(wire) = &self.wire else {
            return total;
        };
        let numbers = |rank: usize| lengths[self.share_of(rank, lengths.len())].iter().sum();
        let last = wire.size() - 1;
        if wire.rank() < last {
            total.resize(numbers(wire.rank()), 0.0);
            wire.receive(last, bytemuck::cast_slice_mut(&mut total));
            return total;
        }
        let mut start = 0;
        for rank in 0..last {
            let end = start + numbers(rank);
            wire.send(rank, bytemuck::cast_slice(&total[start..end]));
            start = end;
        }
        total.split_off(start)
    }

    /// Numbers go from the first process to the last and back; the others have no part in it.
    pub fn to_and_fro(&self, numbers: &mut [f64]) {
        let Some(wire) = &self.wire else { return };
        let (words, last) = (bytemuck::cast_slice_mut(numbers), wire.size() - 1);
        match wire.rank() {
            0 => {
                wire.send(last, words);
                wire.receive(last, words);
            }
            rank if rank == last => {
                wire.receive(0, words);
                wire.send(0, words);
            }
            _ => {}
        }
    }

    /// One process's numbers, everywhere.
    pub fn tell_all(&self, from: usize, numbers: &mut [f64]) {
        if let Some(wire) = &self.wire {
            wire.broadcast(from, bytemuck::cast_slice_mut(numbers));
        }
    }

    fn fold_few(
        &self,
        wire: &Counted,
        runs: usize,
        length: usize,
        parts: &[Vec<f64>],
        failed: bool,
    ) -> (Vec<f64>, bool) {
        let lengths: Vec<usize> = (0..wire.size())
            .map(|rank| 1 + length * self.share_of(rank, runs).len())
            .collect();
        let mut own = vec![u64::from(failed)];
        own.extend(parts.iter().flatten().map(|number| number.to_bits()));
        own.resize(lengths[wire.rank()], 0);
        let all: Vec<f64> = bytemuck::cast_vec(wire.gather(&own, &lengths));
        let (mut total, mut any, mut rest) = (vec![0.0; length], false, all.as_slice());
        for of_rank in lengths {
            let (own, others) = rest.split_at(of_rank);
            any |= own[0].to_bits() != 0;
            own[1..]
                .chunks_exact(length.max(1))
                .for_each(|run| add(&mut total, run));
            rest = others;
        }
        (total, any)
    }

    /// The scalar products of values with each column, where every process holds [shares](Share) of them: the same
    /// numbers as [`dot`](crate::vector::dot) of the whole, of which there are `length`.
    pub fn dots(&self, length: usize, shares: &[Share], columns: &[&[f64]], values: &[f64]) -> Vec<f64> {
        let Some(wire) = &self.wire else {
            return columns
                .par_iter()
                .map(|column| crate::vector::dot(column, values))
                .collect();
        };
        let (rank, last) = (wire.rank(), wire.size() - 1);
        let mut states = vec![CarriedDot::default(); columns.len()];
        let group = columns.len().div_ceil(GROUPS).max(1);
        for (index, share) in shares.iter().enumerate() {
            if index > 0 && last > 0 {
                pass(wire, last, 0, &mut states);
            }
            for (states, columns) in states.chunks_mut(group).zip(columns.chunks(group)) {
                if rank > 0 {
                    receive(wire, rank - 1, states);
                }
                let here = share.here.clone();
                states.par_iter_mut().zip(columns).for_each(|(state, column)| {
                    state.add(&column[here.clone()], &values[here.clone()], share.first, length);
                });
                if rank < last {
                    send(wire, rank + 1, states);
                }
            }
        }
        let mut products: Vec<u64> = states.iter().map(|state| state.sum().to_bits()).collect();
        wire.broadcast(last, &mut products);
        bytemuck::cast_vec(products)
    }
}

fn fold_many(wire: &Counted, length: usize, parts: &[Vec<f64>], failed: bool) -> (Vec<f64>, bool) {
    let (rank, last) = (wire.rank(), wire.size() - 1);
    // The last number tells whether anybody failed.
    let mut total = vec![0.0; length + 1];
    let mut start = 0;
    while start <= length {
        let end = (start + CHUNK).min(length + 1);
        let chunk = &mut total[start..end];
        if rank > 0 {
            wire.receive(rank - 1, bytemuck::cast_slice_mut(chunk));
        }
        for part in parts {
            add(chunk, &part[start..end.min(length)]);
        }
        if end > length && failed {
            chunk[length - start] = 1.0;
        }
        if rank < last {
            wire.send(rank + 1, bytemuck::cast_slice(chunk));
        }
        start = end;
    }
    wire.broadcast(last, bytemuck::cast_slice_mut(&mut total));
    let any = total.pop() != Some(0.0);
    (total, any)
}

/// Pieces in groups of about [`CHUNK`] numbers.
fn chunks(lengths: &[usize]) -> Vec<Range<usize>> {
    let (mut chunks, mut start, mut held) = (Vec::new(), 0, 0);
    for (index, length) in lengths.iter().enumerate() {
        if held > 0 && held + length > CHUNK {
            chunks.push(start..index);
            (start, held) = (index, 0);
        }
        held += length;
    }
    chunks.push(start..lengths.len());
    chunks
}

fn add(total: &mut [f64], terms: &[f64]) {
    total
        .iter_mut()
        .zip(terms)
        .for_each(|(total, term)| *total += term);
}

fn send(wire: &Counted, to: usize, states: &[CarriedDot]) {
    let words: Vec<u64> = states
        .iter()
        .flat_map(|state| state.numbers())
        .map(f64::to_bits)
        .collect();
    wire.send(to, &words);
}

fn receive(wire: &Counted, from: usize, states: &mut [CarriedDot]) {
    let mut words = vec![0; DOT_STATE * states.len()];
    wire.receive(from, &mut words);
    for (state, words) in states.iter_mut().zip(words.chunks_exact(DOT_STATE)) {
        *state = CarriedDot::from_numbers(words.iter().map(|&bits| f64::from_bits(bits)));
    }
}

/// From one process to another, where that is another.
fn pass(wire: &Counted, from: usize, to: usize, states: &mut [CarriedDot]) {
    match wire.rank() {
        rank if rank == from => send(wire, to, states),
        rank if rank == to => receive(wire, from, states),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::in_threads;
    use crate::vector::dot;

    fn number(k: usize) -> f64 {
        ((k * 7919 + 13) % 1009) as f64 / 97.0 - 5.0 + 1e-9 * k as f64
    }

    #[test]
    fn sums_of_runs_are_those_of_one_process() {
        for (runs, length) in [(1, 3), (17, 5), (32, 1), (32, 20_000), (5, 8192), (3, 8191)] {
            let run = |r: usize| -> Vec<f64> { (0..length).map(|k| number(r * length + k)).collect() };
            let alone = Cluster::alone()
                .fold(runs, length, Ok((0..runs).map(run).collect()))
                .unwrap();
            for size in [2, 3, 4, 8, 40] {
                let all = in_threads(size, |cluster| {
                    let mine = cluster.share(runs).map(run).collect();
                    cluster.fold(runs, length, Ok(mine)).unwrap()
                });
                assert!(all.iter().all(|sum| *sum == alone), "{runs} {length} {size}");
            }
        }
    }

    #[test]
    fn sums_of_pieces_are_those_of_one_process() {
        let lengths: Vec<usize> = (0..23).map(|piece| 700 + 331 * (piece % 5)).collect();
        let length: usize = lengths.iter().sum();
        let run = |r: usize| -> Vec<f64> { (0..length).map(|k| number(r * length + k)).collect() };
        let runs: Vec<Vec<f64>> = (0..32).map(run).collect();
        let alone = Cluster::alone().fold(32, length, Ok(runs.clone())).unwrap();
        for size in [1, 2, 3, 8, 40] {
            let all = in_threads(size, |cluster| {
                let pieces = |run: &'_ Vec<f64>| -> Vec<Range<usize>> {
                    let ends = lengths.iter().scan(0, |end, length| {
                        *end += length;
                        Some(*end - length..*end)
                    });
                    ends.inspect(|range| assert!(range.end <= run.len())).collect()
                };
                let mine = runs[cluster.share(32)].iter();
                let mine = mine.map(|run| pieces(run).into_iter().map(|range| &run[range]).collect());
                cluster.fold_pieces(&lengths, Ok(mine.collect())).unwrap()
            });
            assert_eq!(all.concat(), alone, "{size}");
        }
    }

    #[test]
    fn everybody_gets_the_first_error() {
        for length in [1, 10_000] {
            let all = in_threads(4, |cluster| {
                let mine = match cluster.rank() {
                    0 | 2 => Ok(vec![vec![0.5; length]; cluster.share(9).len()]),
                    rank => Err(SolveError::NotFinite {
                        what: format!("rank {rank}"),
                        value: f64::NAN,
                        point: vec![1.0],
                    }),
                };
                cluster.fold(9, length, mine).unwrap_err().to_string()
            });
            assert!(
                all.iter().all(|error| error.starts_with("rank 1 is NaN")),
                "{all:?}"
            );
        }
    }

    #[test]
    fn products_are_those_of_one_process() {
        // Two parts, as of a loss and what is held beside it, and one that only the last process adds.
        for (first, second) in [(100, 0), (4096, 13), (1003, 5), (10, 3)] {
            let length = first + second + 2;
            let whole =
                |seed: usize| -> Vec<f64> { (0..length).map(|k| number(seed * length + k)).collect() };
            let columns: Vec<Vec<f64>> = (1..40).map(whole).collect();
            let values = whole(0);
            let expected: Vec<f64> = columns.iter().map(|column| dot(column, &values)).collect();
            for size in [2, 3, 8] {
                let all = in_threads(size, |cluster| {
                    let (a, b) = (cluster.share(first), cluster.share(second));
                    let here = |column: &Vec<f64>| -> Vec<f64> {
                        let b = first + b.start..first + b.end;
                        [&column[a.clone()], &column[b], &column[length - 2..]].concat()
                    };
                    let held = a.len() + b.len();
                    let shares = [
                        Share {
                            here: 0..a.len(),
                            first: a.start,
                        },
                        Share {
                            here: a.len()..held,
                            first: first + b.start,
                        },
                        Share {
                            here: if cluster.is_last() { held..held + 2 } else { 0..0 },
                            first: length - 2,
                        },
                    ];
                    let columns: Vec<Vec<f64>> = columns.iter().map(here).collect();
                    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
                    cluster.dots(length, &shares, &columns, &here(&values))
                });
                assert!(
                    all.iter().all(|products| *products == expected),
                    "{first} {second} {size}"
                );
            }
        }
    }
}
