//! The first few processes of a cluster, as a cluster of their own.

use super::wire::Counted;
use super::{Cluster, Wire};
use std::sync::Arc;

struct Part {
    whole: Arc<Counted>,
    size: usize,
}

impl Cluster {
    /// The first `size` processes, for those that belong to them; the others have no part in what these do.
    pub fn first(&self, size: usize) -> Option<Self> {
        if self.rank() >= size {
            return None;
        }
        Some(match &self.wire {
            Some(whole) if size > 1 => Self::new(Box::new(Part {
                whole: Arc::clone(whole),
                size: size.min(self.size()),
            })),
            _ => Self::alone(),
        })
    }
}

impl Wire for Part {
    fn rank(&self) -> usize {
        self.whole.rank()
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, words: &[u64]) {
        self.whole.send(to, words);
    }

    fn receive(&self, from: usize, words: &mut [u64]) {
        self.whole.receive(from, words);
    }

    fn exchange(&self, other: usize, outgoing: &[u64], incoming: &mut [u64]) {
        self.whole.exchange(other, outgoing, incoming);
    }

    /// Whoever has the words tells half of those who do not.
    fn broadcast(&self, from: usize, words: &mut [u64]) {
        let place = (self.rank() + self.size - from) % self.size;
        let at = |place: usize| (place + from) % self.size;
        let mut reach = 1;
        while reach < self.size {
            if place < reach && place + reach < self.size {
                self.send(at(place + reach), words);
            } else if (reach..2 * reach).contains(&place) {
                self.receive(at(place - reach), words);
            }
            reach *= 2;
        }
    }

    fn gather(&self, own: &[u64], lengths: &[usize]) -> Vec<u64> {
        let mut all = vec![0; lengths.iter().sum()];
        let mut rest = all.as_mut_slice();
        for (rank, &length) in lengths.iter().enumerate() {
            let (words, others) = rest.split_at_mut(length);
            if rank == self.rank() {
                words.copy_from_slice(own);
            }
            self.broadcast(rank, words);
            rest = others;
        }
        all
    }

    fn all_end(&self, seconds: f64) -> bool {
        self.whole.all_end(seconds)
    }

    fn leave(&self) {}

    fn end_all(&self, code: i32) -> ! {
        self.whole.end_all(code)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::in_threads;

    #[test]
    fn a_part_of_a_cluster_is_one() {
        for size in 1..=5 {
            let all = in_threads(5, |cluster| {
                let part = cluster.first(size)?;
                let rank = part.rank() as u64;
                let mut told = [rank as f64];
                part.tell_all(size - 1, &mut told);
                Some((part.words_of_all(rank), told[0]))
            });
            for (rank, found) in all.into_iter().enumerate() {
                let expected = ((0..size as u64).collect(), (size - 1) as f64);
                assert_eq!(found, (rank < size).then_some(expected));
            }
        }
    }
}
