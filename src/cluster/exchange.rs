//! What every two processes have for each other.

use super::Cluster;
use super::wire::Counted;

/// So many numbers at a time are held of all other processes together …
const HELD: usize = 1 << 20;
/// … but of each at least so many.
const LEAST: usize = 1 << 12;

impl Counted {
    /// The others, in an order in which two always come to each other at the same time: nobody waits in a circle.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let (rank, size) = (self.rank(), self.size());
        let others = (0..size).map(move |round| (round + size - rank) % size);
        others.filter(move |&other| other != rank)
    }
}

impl Cluster {
    /// part ← part + Σ over the first `groups` processes, in their order, of this process's [share](Self::share) of their
    /// numbers.
    pub fn add_in_order(&self, groups: usize, numbers: &[f64], part: &mut [f64]) {
        let Some(wire) = &self.wire else {
            add(part, numbers);
            return;
        };
        let (rank, size) = (wire.rank(), wire.size());
        let chunk = (HELD / size).max(LEAST);
        // Everybody goes in as many steps as who has most.
        let steps = numbers.len().div_ceil(size).div_ceil(chunk);
        let mut theirs = vec![Vec::new(); size];
        for step in 0..steps {
            let of = |other: usize| {
                let share = self.share_of(other, numbers.len());
                let start = (share.start + step * chunk).min(share.end);
                start..(start + chunk).min(share.end)
            };
            let own = of(rank);
            for other in wire.others() {
                let outgoing = if rank < groups { of(other) } else { 0..0 };
                theirs[other].resize(if other < groups { own.len() } else { 0 }, 0.0);
                let (outgoing, incoming) = (&numbers[outgoing], &mut theirs[other]);
                let incoming = bytemuck::cast_slice_mut(incoming);
                wire.exchange(other, bytemuck::cast_slice(outgoing), incoming);
            }
            let start = self.share(numbers.len()).start;
            let part = &mut part[own.start - start..own.end - start];
            for (of_rank, theirs) in theirs.iter().enumerate().take(groups) {
                add(
                    part,
                    if of_rank == rank {
                        &numbers[own.clone()]
                    } else {
                        theirs
                    },
                );
            }
        }
    }

    /// All numbers, everywhere, from everybody's [share](Self::share) of them.
    pub fn tell_parts(&self, part: &[f64], numbers: &mut [f64]) {
        let length = numbers.len();
        numbers[self.share(length)].copy_from_slice(part);
        for (wire, other) in self
            .wire
            .iter()
            .flat_map(|wire| wire.others().map(move |other| (wire, other)))
        {
            let incoming = &mut numbers[self.share_of(other, length)];
            let incoming = bytemuck::cast_slice_mut(incoming);
            wire.exchange(other, bytemuck::cast_slice(part), incoming);
        }
    }
}

fn add(total: &mut [f64], terms: &[f64]) {
    total
        .iter_mut()
        .zip(terms)
        .for_each(|(total, term)| *total += term);
}

#[cfg(test)]
mod tests {
    use crate::cluster::in_threads;

    #[test]
    fn shares_are_added_in_the_order_of_the_groups() {
        let number = |rank: usize, k: usize| 1.0 / (1 + (k * 31 + rank * 7) % 1009) as f64;
        for (size, length, groups) in [(1, 50, 1), (2, 300_001, 2), (3, 17, 2), (5, 40_000, 5), (8, 3, 1)] {
            let expected: Vec<f64> = (0..length)
                .map(|k| (0..groups).fold(0.5, |sum, rank| sum + number(rank, k)))
                .collect();
            let all = in_threads(size, |cluster| {
                let mut numbers: Vec<f64> = (0..length).map(|k| number(cluster.rank(), k)).collect();
                let mut part = vec![0.5; cluster.share(length).len()];
                cluster.add_in_order(groups, &numbers, &mut part);
                cluster.tell_parts(&part, &mut numbers);
                numbers
            });
            assert!(all.iter().all(|numbers| *numbers == expected), "{size} {length}");
        }
    }
}
