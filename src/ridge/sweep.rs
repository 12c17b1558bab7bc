//! The scores of all offsets of a direction in one pass over the points.

use super::knots::{Ladder, Rungs};
use super::taylor_shift;
use crate::activation::falling_factorial;
use multiversion::multiversion;

/// Points are taken in blocks of at most this many, whose numbers stay in the innermost cache.
const SWEEP_BLOCK: usize = 256;
/// Neighbouring points often share a bin and would wait for each other: so many stretches of a block
/// are added in turn. No power of two, so that on a mesh the stretches start at different places.
const STRETCHES: usize = 3;
/// What stands for a channel that is not there.
const NOTHING: [f64; SWEEP_BLOCK] = [0.0; SWEEP_BLOCK];

/// Sums over the points, bin by bin, from which the score of ReLU^k at every knot follows exactly.
///
/// A point at t with channels q_m adds P(t − τ) = Σ_m q_m k!/(k−m)! (t − τ)^(k−m) to the score of each
/// knot τ below it. Every bin keeps the sums of the Taylor coefficients of P at the bin's origin; a
/// recursion from the top adds up the bins above each knot (one from the bottom serves the mirrored
/// neurons). The cost is O(points) + O(knots), whatever the number of knots.
#[derive(Debug, Clone)]
pub struct Sweep {
    power: usize,
    /// Per bin `stride` numbers, of which the first k + 1 are used.
    moments: Vec<f64>,
}

/// Memory reused from block to block.
#[derive(Debug, Clone, Default)]
pub struct SweepScratch {
    bins: Vec<u32>,
    deltas: Vec<f64>,
    terms: Vec<[f64; 4]>,
}

impl SweepScratch {
    /// Finds the bins of a block of points; returns that of the last one.
    fn place(&mut self, ladder: &Ladder, t: &[f64], near: usize) -> usize {
        self.bins.resize(t.len(), 0);
        self.deltas.resize(t.len(), 0.0);
        self.terms.resize(t.len(), [0.0; 4]);
        ladder.places(t, near, &mut self.bins, &mut self.deltas)
    }
}

/// Numbers per bin: k + 1, or four where that lets one vector instruction add them.
fn stride(power: usize) -> usize {
    (power + 1).max(4)
}

impl Sweep {
    /// Empty sums for ReLU^`power` over the bins of a ladder with `knots` knots.
    pub fn new(power: usize, knots: usize) -> Self {
        Self {
            power,
            moments: vec![0.0; (knots + 1) * stride(power)],
        }
    }

    /// The memory that such sums take.
    pub fn bytes(power: usize, knots: usize) -> usize {
        8 * (knots + 1) * stride(power)
    }

    /// Adds points: their t and, per order m, their channel q_m (empty where there is none).
    pub fn add(&mut self, ladder: &Ladder, t: &[f64], channels: &[Vec<f64>], scratch: &mut SweepScratch) {
        let mut near = 0;
        for start in (0..t.len()).step_by(SWEEP_BLOCK) {
            let t = &t[start..(start + SWEEP_BLOCK).min(t.len())];
            let channel = |m: usize| match channels.get(m) {
                Some(q) if !q.is_empty() => &q[start..start + t.len()],
                _ => &NOTHING[..t.len()],
            };
            near = scratch.place(ladder, t, near);
            match self.power {
                1 => add_block_1([0, 1].map(channel), scratch, &mut self.moments),
                2 => add_block_2([0, 1, 2].map(channel), scratch, &mut self.moments),
                3 => add_block_3([0, 1, 2, 3].map(channel), scratch, &mut self.moments),
                power => {
                    let channels: Vec<&[f64]> = (0..=power).map(channel).collect();
                    add_block(power, &channels, scratch, &mut self.moments);
                }
            }
        }
    }

    /// Adds the sums of another part of the points.
    pub fn merge(&mut self, other: &Sweep) {
        for (sum, term) in self.moments.iter_mut().zip(&other.moments) {
            *sum += term;
        }
    }

    /// All numbers that are added up.
    pub(super) fn moments(&self) -> &[f64] {
        &self.moments
    }

    /// The same, to be changed.
    pub(super) fn moments_mut(&mut self) -> &mut [f64] {
        &mut self.moments
    }

    /// The scores of σ(t − τ) at every knot τ.
    pub fn scores(&self, rungs: &impl Rungs, out: &mut [f64]) {
        let (size, stride) = (self.power + 1, stride(self.power));
        let mut running = vec![0.0; size];
        for j in (0..rungs.count()).rev() {
            if j + 1 < rungs.count() {
                // Seen from a knot further down every point is further away.
                taylor_shift(&mut running, rungs.at(j + 1) - rungs.at(j));
            }
            for (sum, term) in running.iter_mut().zip(&self.moments[(j + 1) * stride..][..size]) {
                *sum += term;
            }
            out[j] = running[0];
        }
    }

    /// The scores of σ(τ − t) at every knot τ.
    pub fn mirrored_scores(&self, rungs: &impl Rungs, out: &mut [f64]) {
        let (size, stride) = (self.power + 1, stride(self.power));
        // Σ_m (−1)^m q_m k!/(k−m)! (τ − t)^(k−m) = (−1)^k P(t − τ).
        let flip = if self.power.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut running = vec![0.0; size];
        for (j, score) in out.iter_mut().enumerate().take(rungs.count()) {
            for (sum, term) in running.iter_mut().zip(&self.moments[j * stride..][..size]) {
                *sum += term;
            }
            if j > 0 {
                taylor_shift(&mut running, rungs.at(j - 1) - rungs.at(j));
            }
            *score = flip * running[0];
        }
    }
}

macro_rules! small_powers {
    ($($name:ident, $size:literal;)*) => {$(
        #[multiversion(targets("x86_64+avx2+fma"))]
        fn $name(channels: [&[f64]; $size], scratch: &mut SweepScratch, moments: &mut [f64]) {
            add_block_of(channels, scratch, moments);
        }
    )*};
}
small_powers! { add_block_1, 2; add_block_2, 3; add_block_3, 4; }

/// A block of points for k + 1 = SIZE ≤ 4: first the Taylor coefficients of all points, side by side,
/// then their sums.
#[inline(always)]
fn add_block_of<const SIZE: usize>(
    channels: [&[f64]; SIZE],
    scratch: &mut SweepScratch,
    moments: &mut [f64],
) {
    let SweepScratch { bins, deltas, terms } = scratch;
    let factors: [f64; SIZE] = std::array::from_fn(|m| falling_factorial(SIZE - 1, m));
    let count = deltas.len();
    let channels = channels.map(|q| &q[..count]);
    for (i, (term, &delta)) in terms.iter_mut().zip(&*deltas).enumerate() {
        let mut polynomial: [f64; SIZE] =
            std::array::from_fn(|r| factors[SIZE - 1 - r] * channels[SIZE - 1 - r][i]);
        for low in 0..SIZE - 1 {
            for r in (low..SIZE - 1).rev() {
                polynomial[r] += delta * polynomial[r + 1];
            }
        }
        *term = std::array::from_fn(|r| if r < SIZE { polynomial[r] } else { 0.0 });
    }
    let (moments, _) = moments.as_chunks_mut::<4>();
    let mut add = |i: usize| {
        let sums = &mut moments[bins[i] as usize];
        for lane in 0..4 {
            sums[lane] += terms[i][lane];
        }
    };
    let stretch = count / STRETCHES;
    for i in 0..stretch {
        for part in 0..STRETCHES {
            add(part * stretch + i);
        }
    }
    (STRETCHES * stretch..count).for_each(add);
}

/// A block of points for any k.
fn add_block(power: usize, channels: &[&[f64]], scratch: &SweepScratch, moments: &mut [f64]) {
    let factors: Vec<f64> = (0..=power).map(|m| falling_factorial(power, m)).collect();
    let mut polynomial = vec![0.0; power + 1];
    for (i, (&bin, &delta)) in scratch.bins.iter().zip(&scratch.deltas).enumerate() {
        for (m, q) in channels.iter().enumerate() {
            polynomial[power - m] = factors[m] * q[i];
        }
        taylor_shift(&mut polynomial, delta);
        let sums = &mut moments[bin as usize * stride(power)..][..power + 1];
        sums.iter_mut().zip(&polynomial).for_each(|(sum, c)| *sum += c);
    }
}
