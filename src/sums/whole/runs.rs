//! Points sorted along directions, so that the sums of a bin are the sums over a run.

use super::fixed::{ONE_BITS, power_of_two};
use super::term::WholeTerm;
use crate::candidates::{Grid, Line};
use crate::network::Neuron;
use crate::ridge::taylor_shift;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run is cut into tasks of at most so many points: their sums fit 64 bits, and no loop of a device is long.
pub const TASK_BITS: u32 = 12;
/// The longest task.
pub const TASK: usize = 1 << TASK_BITS;

/// Bits of a point's number in an entry …
pub const POINT_BITS: u32 = 26;
/// … and of its place inside a bin, which has the rest of 64 bits but one: the halves of a product are signed.
pub const PLACE_BITS: u32 = 63 - POINT_BITS;
/// The bits of the place that stand beside the point's number.
const LOW_BITS: u32 = u32::BITS - POINT_BITS;
/// More points than this have no number in an entry.
pub const LARGEST_COUNT: usize = 1 << POINT_BITS;

/// As often as the width of a bin may be doubled without a place in it losing a bit.
pub const LARGEST_DOUBLINGS: u32 = ONE_BITS - PLACE_BITS;

/// A point and its place inside a bin, a fraction of one.
#[inline(always)]
fn packed(point: usize, place: i64) -> [u32; 2] {
    let low = (place & ((1 << LOW_BITS) - 1)) as u32;
    [point as u32 | low << POINT_BITS, (place >> LOW_BITS) as u32]
}

/// The point and the place, as a part of one.
#[inline(always)]
pub(super) fn unpacked([first, second]: [u32; 2]) -> (usize, i64) {
    let place = i64::from(second) << LOW_BITS | i64::from(first >> POINT_BITS);
    (
        (first as usize) & (LARGEST_COUNT - 1),
        place << (ONE_BITS - PLACE_BITS),
    )
}

/// The directions of a grid, along which every term's points can be sorted.
///
/// Bin j along a direction lies between knots j and j + 1; there are as many below the first knot and above the last
/// as the points need.
pub struct Runs {
    /// Whoever keeps something made from these runs knows it by this number.
    pub id: u64,
    /// The directions with their knots.
    pub lines: Vec<Line>,
    terms: Arc<Vec<WholeTerm>>,
    by_direction: HashMap<Vec<u64>, usize>,
}

/// A term's points along one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRuns {
    /// The point in 26 bits and its place in the bin as a fraction of 37, bin by bin.
    pub entries: Vec<[u32; 2]>,
    /// Parts of bins.
    pub tasks: Vec<Task>,
}

/// A part of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The first entry.
    pub start: u32,
    /// The one after the last.
    pub end: u32,
    /// The bin.
    pub bin: i64,
}

impl Task {
    /// Parts of at most so many points.
    pub fn cut(self, longest: usize) -> impl Iterator<Item = Task> {
        let starts = (self.start..self.end).step_by(longest);
        starts.map(move |start| Task {
            start,
            end: (start + longest as u32).min(self.end),
            bin: self.bin,
        })
    }
}

/// The sums of the bins of a line: per bin the coefficients of a polynomial in the distance.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSums {
    /// The width of a bin, in the length in which distances are measured.
    pub step: f64,
    /// The bins that have points, ascending.
    pub bins: Vec<i64>,
    /// k + 1 sums for each; none as long as others are to be added to them.
    pub sums: Vec<f64>,
    /// These sums in whole numbers, as long as others are to be added to them.
    pub(super) whole: Vec<i128>,
    /// What one stands for in whole numbers.
    pub(super) unit: f64,
    /// k + 1.
    pub(super) size: usize,
}

/// A number that nothing else has.
pub(super) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn key(omega: &[f64], sign: f64) -> Vec<u64> {
    omega.iter().map(|o| (sign * o + 0.0).to_bits()).collect()
}

impl Runs {
    /// The directions of a grid.
    pub fn new(terms: Arc<Vec<WholeTerm>>, grid: &Grid) -> Self {
        let lines = grid.lines.iter().enumerate();
        Self {
            id: unique(),
            by_direction: lines
                .map(|(index, line)| (key(&line.omega, 1.0), index))
                .collect(),
            lines: grid.lines.clone(),
            terms,
        }
    }

    /// Whether these are the directions and knots of a grid.
    pub fn serve(&self, grid: &Grid) -> bool {
        self.lines == grid.lines
    }

    /// Line, knot and sign of a neuron that lies on one of the knots.
    pub fn place_of(&self, neuron: &Neuron) -> Option<(usize, usize, f64)> {
        let at = |sign: f64| {
            let line = *self.by_direction.get(&key(&neuron.omega, sign))?;
            let (knots, knot) = (&self.lines[line].knots, -sign * neuron.bias);
            let j = ((knot - knots.first) / knots.step).round();
            let inside = j >= 0.0 && j < knots.count as f64;
            (inside && knots.at(j as usize) == knot).then_some((line, j as usize, sign))
        };
        at(1.0).or_else(|| at(-1.0))
    }

    /// Sorts a term's points along a line.
    pub fn of_line(&self, term: usize, line: usize) -> LineRuns {
        let (term, line) = (&self.terms[term], &self.lines[line]);
        let mut t = vec![0.0; term.count];
        for (axis, omega) in line.omega.iter().enumerate().filter(|(_, o)| **o != 0.0) {
            for (point, t) in t.iter_mut().enumerate() {
                *t += omega * term.position(axis, point);
            }
        }
        let scale = (1u64 << PLACE_BITS) as f64 / line.knots.step;
        let places: Vec<i64> = t
            .iter()
            .map(|t| ((t - line.knots.first) * scale).round() as i64)
            .collect();
        sorted(&places)
    }
}

/// Sorts points by the bins of their places, bin and fraction in one number.
fn sorted(places: &[i64]) -> LineRuns {
    let bin = |place: i64| place >> PLACE_BITS;
    let entry = |point: usize| packed(point, places[point] & ((1 << PLACE_BITS) - 1));
    let lowest = places.iter().copied().map(bin).min().unwrap_or(0);
    let highest = places.iter().copied().map(bin).max().unwrap_or(0);
    let bins = highest.saturating_sub(lowest).saturating_add(1) as usize;
    let mut runs: Vec<(i64, usize)> = Vec::new();
    let entries = if bins <= 4 * places.len() {
        // By counting.
        let mut next = vec![0usize; bins + 1];
        places
            .iter()
            .for_each(|&p| next[(bin(p) - lowest) as usize + 1] += 1);
        for b in 0..bins {
            if next[b + 1] > 0 {
                runs.push((lowest + b as i64, next[b + 1]));
            }
            next[b + 1] += next[b];
        }
        let mut entries = vec![[0; 2]; places.len()];
        for (point, &place) in places.iter().enumerate() {
            let next = &mut next[(bin(place) - lowest) as usize];
            entries[*next] = entry(point);
            *next += 1;
        }
        entries
    } else {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&point| bin(places[point]));
        for same in order.chunk_by(|&a, &b| bin(places[a]) == bin(places[b])) {
            runs.push((bin(places[same[0]]), same.len()));
        }
        order.into_iter().map(entry).collect()
    };
    let mut tasks = Vec::with_capacity(runs.len());
    let mut start = 0;
    for (bin, length) in runs {
        let end = start + length;
        let run = Task {
            start: start as u32,
            end: end as u32,
            bin,
        };
        tasks.extend(run.cut(TASK));
        start = end;
    }
    LineRuns { entries, tasks }
}

/// Calls something with k + 1 zeros, written out for the usual k: loops over them are then unrolled.
macro_rules! of_known_size {
    ($size:expr, |$running:ident| $call:expr) => {
        match $size {
            2 => {
                let $running = &mut [0.0; 2];
                $call
            }
            3 => {
                let $running = &mut [0.0; 3];
                $call
            }
            4 => {
                let $running = &mut [0.0; 4];
                $call
            }
            size => {
                let $running = &mut vec![0.0; size];
                $call
            }
        }
    };
}

impl LineSums {
    /// The sums of bins from those of tasks, with what one stands for in them and by how many doublings the length of
    /// distances is more than a bin. A bin of many tasks is added up in 128 bits.
    pub fn new(tasks: &[Task], sums: &[i64], size: usize, unit: f64, doublings: u32) -> Self {
        let mut all = Self {
            step: power_of_two(-(doublings as i32)),
            bins: Vec::with_capacity(tasks.len()),
            sums: Vec::with_capacity(tasks.len() * size),
            whole: Vec::new(),
            unit,
            size,
        };
        let mut total = vec![0i128; size];
        let mut parts = 0;
        for (index, (task, sums)) in tasks.iter().zip(sums.chunks(size)).enumerate() {
            let is_last = tasks.get(index + 1).is_none_or(|next| next.bin != task.bin);
            if is_last {
                all.bins.push(task.bin);
            }
            // Most bins are one task, whose sums need no 128 bits.
            if is_last && parts == 0 {
                all.sums.extend(sums.iter().map(|&sum| sum as f64 * unit));
                continue;
            }
            total
                .iter_mut()
                .zip(sums)
                .for_each(|(total, &sum)| *total += i128::from(sum));
            parts += 1;
            if is_last {
                all.sums.extend(total.iter().map(|&sum| sum as f64 * unit));
                total.fill(0);
                parts = 0;
            }
        }
        all
    }

    /// The same sums, to which those of other processes are to be added.
    pub fn among_others(tasks: &[Task], sums: &[i64], size: usize, unit: f64, doublings: u32) -> Self {
        let mut all = Self {
            step: power_of_two(-(doublings as i32)),
            bins: Vec::with_capacity(tasks.len()),
            sums: Vec::new(),
            whole: Vec::with_capacity(tasks.len() * size),
            unit,
            size,
        };
        for (task, sums) in tasks.iter().zip(sums.chunks(size)) {
            if all.bins.last() != Some(&task.bin) {
                all.bins.push(task.bin);
                all.whole.resize(all.whole.len() + size, 0);
            }
            let start = all.whole.len() - size;
            let places = all.whole[start..].iter_mut().zip(sums);
            places.for_each(|(total, &sum)| *total += i128::from(sum));
        }
        all
    }

    /// The sums of all processes, from those in whole numbers.
    pub(super) fn of_all(&self, bins: &[i64], whole: &[i128]) -> Self {
        Self {
            bins: bins.to_vec(),
            sums: whole.iter().map(|&sum| sum as f64 * self.unit).collect(),
            whole: Vec::new(),
            ..*self
        }
    }

    /// Adds the scores of σ(t − τ) at each of `count` knots.
    pub fn add_scores(&self, size: usize, count: usize, out: &mut [f64]) {
        of_known_size!(size, |running| self.add_rising(running, count, out));
    }

    /// Adds the scores of σ(τ − t) at each of `count` knots.
    pub fn add_mirrored_scores(&self, size: usize, count: usize, out: &mut [f64]) {
        of_known_size!(size, |running| self.add_falling(running, count, out));
    }

    #[inline(always)]
    fn add_rising(&self, running: &mut [f64], count: usize, out: &mut [f64]) {
        let (mut origin, mut left) = (0, self.bins.len());
        for j in (0..count as i64).rev() {
            while left > 0 && self.bins[left - 1] >= j {
                left -= 1;
                self.carry(left, running, &mut origin);
            }
            self.move_to(j, running, &mut origin);
            out[j as usize] += running[0];
        }
    }

    #[inline(always)]
    fn add_falling(&self, running: &mut [f64], count: usize, out: &mut [f64]) {
        // (τ − t)^k = (−1)^k (t − τ)^k, and so for the derivatives.
        let flip = if running.len() % 2 == 1 { 1.0 } else { -1.0 };
        let (mut origin, mut next) = (0, 0);
        for j in 0..count as i64 {
            while next < self.bins.len() && self.bins[next] < j {
                self.carry(next, running, &mut origin);
                next += 1;
            }
            self.move_to(j, running, &mut origin);
            out[j as usize] += flip * running[0];
        }
    }

    /// Adds a bin to the sums of those passed before.
    #[inline(always)]
    fn carry(&self, index: usize, running: &mut [f64], origin: &mut i64) {
        self.move_to(self.bins[index], running, origin);
        let sums = &self.sums[index * running.len()..][..running.len()];
        running.iter_mut().zip(sums).for_each(|(sum, term)| *sum += term);
    }

    /// Sees a polynomial in the distance from another knot.
    #[inline(always)]
    fn move_to(&self, knot: i64, running: &mut [f64], origin: &mut i64) {
        if *origin != knot && running.iter().any(|&sum| sum != 0.0) {
            taylor_shift(running, (*origin - knot) as f64 * self.step);
        }
        *origin = knot;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixed::ONE;
    use super::*;

    #[test]
    fn counting_and_sorting_give_the_same_runs_and_long_ones_are_cut() {
        let one = 1i64 << PLACE_BITS;
        let near: Vec<i64> = (0..10_000).map(|i| (i % 3 - 1) * one + i).collect();
        let runs = sorted(&near);
        assert_eq!(runs.entries.len(), near.len());
        let lengths: Vec<u32> = runs.tasks.iter().map(|task| task.end - task.start).collect();
        assert!(lengths.iter().all(|&length| length as usize <= TASK));
        assert_eq!(lengths.iter().sum::<u32>(), 10_000);
        assert_eq!(runs.tasks.iter().map(|task| task.bin).min(), Some(-1));
        // One point very far away: too many bins to count.
        let mut far = near.clone();
        far.push(one << 20);
        let sparse = sorted(&far);
        assert_eq!(sparse.entries[..10_000], runs.entries[..]);
        assert_eq!(sparse.tasks.len(), runs.tasks.len() + 1);
    }

    #[test]
    fn entries_hold_the_last_point_and_the_last_place() {
        let last = (1 << PLACE_BITS) - 1;
        for (point, place) in [
            (0, 0),
            (LARGEST_COUNT - 1, last),
            (5, 1),
            (LARGEST_COUNT - 1, 0),
            (0, last),
        ] {
            let (point_again, part) = unpacked(packed(point, place));
            assert_eq!((point_again, part), (point, place << (ONE_BITS - PLACE_BITS)));
            assert!(part < ONE);
        }
    }
}
