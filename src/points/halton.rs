//! The Halton sequence.

use super::fractions::HaltonAxis;
use super::philox::uniforms;
use std::ops::Range;

const PRIMES: [usize; MAX_HALTON_DIMENSION] = [
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103,
    107, 109, 113, 127, 131,
];

/// The largest dimension for which Halton points are offered; far beyond, they are no better than random ones.
pub const MAX_HALTON_DIMENSION: usize = 32;

/// Low digits come from a table of at most this many entries.
const TABLE_SIZE: usize = 8192;

/// The first N points of the Halton sequence (from index 1), optionally moved by a fixed vector modulo 1.
#[derive(Debug, Clone)]
pub struct Halton {
    points: usize,
    axes: Vec<Axis>,
}

#[derive(Debug, Clone)]
struct Axis {
    base: usize,
    /// Radical inverses of 0 … baseᵏ − 1.
    table: Vec<f64>,
    shift: f64,
}

/// The digits of `index` in `base`, mirrored at the point: Σ dₖ base^−(k+1).
pub fn radical_inverse(mut index: usize, base: usize) -> f64 {
    let (mut inverse, mut scale) = (0.0, 1.0);
    while index > 0 {
        scale /= base as f64;
        inverse += scale * (index % base) as f64;
        index /= base;
    }
    inverse
}

impl Halton {
    /// N points in `dimension` coordinates; `shift` is the seed and stream of the move.
    pub fn new(points: usize, dimension: usize, shift: Option<(u64, u32)>) -> Self {
        let shifts = match shift {
            Some((seed, stream)) => uniforms(seed, stream, u64::MAX, dimension),
            None => vec![0.0; dimension],
        };
        let axes = PRIMES[..dimension]
            .iter()
            .zip(shifts)
            .map(|(&base, shift)| {
                let mut size = base;
                while size * base <= TABLE_SIZE {
                    size *= base;
                }
                Axis {
                    base,
                    table: (0..size).map(|index| radical_inverse(index, base)).collect(),
                    shift,
                }
            })
            .collect();
        Self { points, axes }
    }

    /// The axes in whole numbers.
    pub(super) fn fraction_axes(&self) -> Vec<HaltonAxis> {
        let axes = self.axes.iter();
        axes.map(|axis| HaltonAxis::new(axis.base, &axis.table, axis.shift))
            .collect()
    }

    /// Writes the points with these indices.
    pub fn fill(&self, range: Range<usize>, columns: &mut [Vec<f64>], weights: &mut [f64]) {
        weights.fill(1.0 / self.points as f64);
        for (axis, column) in self.axes.iter().zip(columns) {
            axis.fill(range.start + 1, column);
        }
    }
}

impl Axis {
    fn fill(&self, first: usize, column: &mut [f64]) {
        let size = self.table.len();
        let (mut high, mut low) = (first / size, first % size);
        let mut rest = column;
        while !rest.is_empty() {
            let length = rest.len().min(size - low);
            let (now, later) = rest.split_at_mut(length);
            // Digits above the table: constant until the low digits wrap.
            let offset = radical_inverse(high, self.base) / size as f64 + self.shift;
            for (value, &inverse) in now.iter_mut().zip(&self.table[low..]) {
                let sum = inverse + offset;
                *value = if sum >= 1.0 { sum - 1.0 } else { sum };
            }
            rest = later;
            high += 1;
            low = 0;
        }
    }
}
