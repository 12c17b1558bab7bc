//! Knots along a line and the bins between them.

use crate::candidates::Knots;
use crate::vector::rounded;
use multiversion::multiversion;

/// Ascending knots. Bin 0 lies below the first knot, bin j begins at knot j − 1.
#[derive(Debug, Clone)]
pub enum Ladder {
    /// At even distances.
    Even(Knots),
    /// Anywhere, ascending.
    Sorted(Vec<f64>),
}

/// What the inner loops need to know of a ladder, so that each kind gets its own loop.
pub trait Rungs {
    /// How many knots.
    fn count(&self) -> usize;
    /// The j-th knot.
    fn at(&self, j: usize) -> f64;
    /// The bin of t; `near` is the bin of a point close by.
    fn bin(&self, t: f64, near: usize) -> usize;
    /// The knot from which distances in a bin are measured.
    #[inline]
    fn origin(&self, bin: usize) -> f64 {
        self.at(bin.saturating_sub(1))
    }
}

impl Rungs for Knots {
    #[inline]
    fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn at(&self, j: usize) -> f64 {
        Knots::at(self, j)
    }

    #[inline]
    fn bin(&self, t: f64, _near: usize) -> usize {
        let place = (t - self.first) / self.step + 1.0;
        // The cast rounds towards zero and turns negative numbers into 0.
        (place as usize).min(self.count)
    }
}

impl Rungs for Vec<f64> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn at(&self, j: usize) -> f64 {
        self[j]
    }

    #[inline]
    fn bin(&self, t: f64, near: usize) -> usize {
        let fits = |bin: usize| (bin == 0 || self[bin - 1] <= t) && (bin == self.len() || t < self[bin]);
        if fits(near) {
            near
        } else if near < self.len() && fits(near + 1) {
            near + 1
        } else {
            self.partition_point(|&knot| knot <= t)
        }
    }
}

impl Ladder {
    /// The bin of each t and its distance from the bin's origin. `near` is the bin of a point close to
    /// the first; the bin of the last is returned.
    pub fn places(&self, t: &[f64], mut near: usize, bins: &mut [u32], deltas: &mut [f64]) -> usize {
        match self {
            Ladder::Even(knots) => even_places(knots, t, bins, deltas),
            Ladder::Sorted(knots) => {
                for ((&t, bin), delta) in t.iter().zip(bins).zip(deltas) {
                    near = knots.bin(t, near);
                    *bin = near as u32;
                    *delta = t - knots.origin(near);
                }
            }
        }
        near
    }
}

/// [`Rungs::bin`] and the distance from its origin, in a form that becomes vector instructions.
#[multiversion(targets("x86_64+avx2+fma"))]
fn even_places(knots: &Knots, t: &[f64], bins: &mut [u32], deltas: &mut [f64]) {
    let (per_step, last) = (1.0 / knots.step, knots.count as f64);
    for ((&t, bin), delta) in t.iter().zip(bins).zip(deltas) {
        let place = ((t - knots.first) * per_step + 1.0).clamp(0.0, last).floor();
        *bin = rounded(place);
        *delta = t - (knots.first + (place - 1.0).max(0.0) * knots.step);
    }
}

impl Rungs for Ladder {
    fn count(&self) -> usize {
        match self {
            Ladder::Even(knots) => knots.count,
            Ladder::Sorted(knots) => knots.len(),
        }
    }

    fn at(&self, j: usize) -> f64 {
        match self {
            Ladder::Even(knots) => knots.at(j),
            Ladder::Sorted(knots) => knots[j],
        }
    }

    fn bin(&self, t: f64, near: usize) -> usize {
        match self {
            Ladder::Even(knots) => knots.bin(t, near),
            Ladder::Sorted(knots) => knots.bin(t, near),
        }
    }
}
