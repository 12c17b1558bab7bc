//! Points of a box as whole numbers: each coordinate a fraction of its side in 32 bits, a function of the index in
//! arithmetic that every device has. Adding words is adding modulo one.

use super::radical_inverse;

/// 2³².
const ONE: f64 = (1_u64 << 32) as f64;

/// A number in [0, 1) as a fraction of 32 bits, rounded down.
fn fraction(x: f64) -> u32 {
    // A conversion saturates.
    (x * ONE) as u32
}

/// What makes the fractions of a sequence.
#[derive(Debug, Clone)]
pub enum Fractions {
    /// Digits mirrored at the point.
    ///
    /// The low and the high digits (with the shift) are both rounded down, so that a fraction is less than two units below
    /// the coordinate. Without a shift none falls below zero; with one, it is 2⁻³¹ that a point lies so near to an end that
    /// its fraction is at the other.
    Halton(Vec<HaltonAxis>),
    /// Multiples of a number, folded: exactly the coordinates.
    Lattice(Vec<LatticeAxis>),
}

/// One coordinate of Halton points.
#[derive(Debug, Clone)]
pub struct HaltonAxis {
    /// The fractions of the low digits.
    pub low: Vec<u32>,
    base: usize,
    shift: f64,
}

/// One coordinate of lattice points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatticeAxis {
    /// From a point to the next, before folding.
    pub step: u32,
    shift: u32,
}

impl HaltonAxis {
    pub(super) fn new(base: usize, low: &[f64], shift: f64) -> Self {
        Self {
            low: low.iter().copied().map(fraction).collect(),
            base,
            shift,
        }
    }

    /// Where a point's digits are: which of the low ones, and the number of the high ones.
    pub fn digits(&self, point: usize) -> (usize, usize) {
        // The sequence begins with index 1.
        ((point + 1) % self.low.len(), (point + 1) / self.low.len())
    }

    /// The fraction of the high digits, with the shift.
    pub fn high(&self, number: usize) -> u32 {
        let inverse = radical_inverse(number, self.base) / self.low.len() as f64;
        fraction((inverse + self.shift).fract())
    }

    fn fill(&self, first: usize, mut places: &mut [u32]) {
        let (mut low, mut high) = self.digits(first);
        while !places.is_empty() {
            let (now, later) = places.split_at_mut(places.len().min(self.low.len() - low));
            let offset = self.high(high);
            for (place, &low) in now.iter_mut().zip(&self.low[low..]) {
                *place = low.wrapping_add(offset);
            }
            places = later;
            (low, high) = (0, high + 1);
        }
    }
}

impl LatticeAxis {
    /// `points` = 2^m, and a shift that is half a unit above a fraction of 32 bits.
    pub(super) fn new(generator: u64, points: usize, shift: f64) -> Self {
        Self {
            step: (generator as u32).wrapping_mul(((1_u64 << 32) / points as u64) as u32),
            shift: fraction(shift),
        }
    }

    /// A point before folding.
    pub fn unfolded(self, point: usize) -> u32 {
        // Below 2^27: the largest lattice.
        self.step.wrapping_mul(point as u32).wrapping_add(self.shift)
    }

    /// 1 − |2x − 1| for x half a unit above the fraction: a whole number again.
    fn folded(x: u32) -> u32 {
        match x >> 31 {
            0 => (x << 1) | 1,
            _ => !(x << 1),
        }
    }

    fn fill(self, first: usize, places: &mut [u32]) {
        let mut x = self.unfolded(first);
        for place in places {
            *place = Self::folded(x);
            x = x.wrapping_add(self.step);
        }
    }
}

impl Fractions {
    /// Writes the coordinates of the points from `first` on along an axis.
    pub fn fill(&self, axis: usize, first: usize, places: &mut [u32]) {
        match self {
            Fractions::Halton(axes) => axes[axis].fill(first, places),
            Fractions::Lattice(axes) => axes[axis].fill(first, places),
        }
    }
}
