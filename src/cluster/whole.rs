//! Whole numbers of all processes: they add up to the same in every order.

use super::Cluster;
use super::wire::Counted;

/// An i128 goes in two words, of which the lower has so many bits: words of many processes are added without a carry.
const LOWER: u32 = 32;

impl Cluster {
    /// The largest of everybody's numbers, place by place.
    pub fn largest(&self, numbers: &[i64]) -> Vec<i64> {
        let mut largest = numbers.to_vec();
        for of_rank in self.lists_of_all(numbers) {
            let places = largest.iter_mut().zip(of_rank);
            places.for_each(|(largest, number)| *largest = number.max(*largest));
        }
        largest
    }

    /// The sums of everybody's numbers, place by place.
    pub fn total(&self, numbers: Vec<i128>) -> Vec<i128> {
        if self.is_alone() {
            return numbers;
        }
        let words: Vec<i64> = numbers.iter().flat_map(|&number| in_words(number)).collect();
        let mut total = vec![0; words.len()];
        self.lists_of_all(&words)
            .iter()
            .for_each(|of_rank| add(&mut total, of_rank));
        total
            .as_chunks()
            .0
            .iter()
            .map(|&words| from_words(words))
            .collect()
    }

    /// Everybody's numbers, of which each has as many as it likes.
    pub fn lists_of_all(&self, own: &[i64]) -> Vec<Vec<i64>> {
        let Some(wire) = &self.wire else {
            return vec![own.to_vec()];
        };
        let lengths = wire.gather_one(own.len() as u64);
        let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        let all: Vec<i64> = bytemuck::cast_vec(wire.gather(bytemuck::cast_slice(own), &lengths));
        let mut rest = all.as_slice();
        let mut lists = Vec::with_capacity(lengths.len());
        for length in lengths {
            let (list, others) = rest.split_at(length);
            lists.push(list.to_vec());
            rest = others;
        }
        lists
    }

    /// The sums, place by place, of what everybody has for this process; `parts` is what this one has for each. Everybody
    /// has as many numbers for a process as that has itself, and their sum fits 128 bits.
    pub fn total_of_own(&self, parts: &[Vec<i128>]) -> Vec<i128> {
        let own = &parts[self.rank()];
        let Some(wire) = &self.wire else {
            return own.clone();
        };
        // Where everybody's numbers are small their sums fit a word.
        let largest = parts.iter().flatten().map(|number| number.unsigned_abs()).max();
        let is_small = largest.unwrap_or(0) < (i64::MAX / self.size() as i64) as u128;
        match self.any(!is_small) {
            false => exchanged(wire, parts, |number| [number as i64], |[word]| i128::from(word)),
            true => exchanged(wire, parts, in_words, from_words),
        }
    }
}

/// The sums of what everybody has for this process, as so many words for each number.
fn exchanged<const WORDS: usize>(
    wire: &Counted,
    parts: &[Vec<i128>],
    to_words: impl Fn(i128) -> [i64; WORDS],
    from_words: impl Fn([i64; WORDS]) -> i128,
) -> Vec<i128> {
    let words = |part: &[i128]| -> Vec<i64> { part.iter().flat_map(|&number| to_words(number)).collect() };
    let mut total = words(&parts[wire.rank()]);
    let mut theirs = vec![0i64; total.len()];
    for other in wire.others() {
        let outgoing = words(&parts[other]);
        let incoming = bytemuck::cast_slice_mut(&mut theirs);
        wire.exchange(other, bytemuck::cast_slice(&outgoing), incoming);
        add(&mut total, &theirs);
    }
    total
        .as_chunks()
        .0
        .iter()
        .map(|&words| from_words(words))
        .collect()
}

fn in_words(number: i128) -> [i64; 2] {
    [(number >> LOWER) as i64, (number & ((1 << LOWER) - 1)) as i64]
}

fn from_words([upper, lower]: [i64; 2]) -> i128 {
    (i128::from(upper) << LOWER) + i128::from(lower)
}

fn add(total: &mut [i64], terms: &[i64]) {
    total
        .iter_mut()
        .zip(terms)
        .for_each(|(total, term)| *total += term);
}

#[cfg(test)]
mod tests {
    use crate::cluster::in_threads;

    fn number(k: usize, wide: bool) -> i128 {
        let number = (k as i128 * 7919 + 13) % 1009 - 500;
        if wide { number << 70 | 5 } else { number }
    }

    #[test]
    fn sums_are_those_of_one_process() {
        for (size, wide) in [(1, true), (2, false), (3, true), (4, false), (5, true), (8, true)] {
            let of_rank = |rank: usize, to: usize| -> Vec<i128> {
                (0..10 + to).map(|k| number(k + 100 * rank, wide)).collect()
            };
            let sum = |to: usize, k: usize| (0..size).map(|rank| of_rank(rank, to)[k]).sum::<i128>();
            let all = in_threads(size, |cluster| {
                let parts: Vec<Vec<i128>> = (0..size).map(|to| of_rank(cluster.rank(), to)).collect();
                (
                    cluster.total_of_own(&parts),
                    cluster.total(parts[0].clone()),
                    cluster.largest(&parts[0].iter().map(|&n| (n >> 64) as i64).collect::<Vec<_>>()),
                )
            });
            for (rank, (own, total, largest)) in all.into_iter().enumerate() {
                assert_eq!(own, (0..10 + rank).map(|k| sum(rank, k)).collect::<Vec<_>>());
                assert_eq!(total, (0..10).map(|k| sum(0, k)).collect::<Vec<_>>());
                let most = |k: usize| (0..size).map(|rank| of_rank(rank, 0)[k] >> 64).max().unwrap();
                assert!((0..10).all(|k| i128::from(largest[k]) == most(k)));
            }
        }
    }
}
