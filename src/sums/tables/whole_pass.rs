//! The pass over the points in whole numbers on the CPU: the twin of `moments.wgsl` and its companions.

use super::block::{Block, PLACES, row_width};
use super::tables::{PairSums, PairTable, axis_pairs};
use crate::candidates::AxisBins;
use crate::error::SolveError;
use crate::points::TILE;
use rayon::prelude::*;

/// The largest weight is this fraction of 2³² at first, so that larger ones may follow.
const HEADROOM: f64 = 0.5;
/// Sums of so many points fit 64 bits: each adds less than 2³² to a moment, as a weight is below 2³² and a product of
/// fractions, rounded, is no larger than either.
const MOST_POINTS: u64 = 1 << 32;

/// What the whole numbers of a pass stand for.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The weight that 2³² stands for, once it is known.
    unit: Option<f64>,
    /// Points added since.
    points: u64,
}

impl Unit {
    /// Whether the sums must be taken away before points with such weights are added to them.
    pub(crate) fn is_outgrown(&self, weights: &[f64]) -> bool {
        self.unit.is_none_or(|unit| largest(weights) >= unit)
            || self.points + weights.len() as u64 > MOST_POINTS
    }

    /// The weights of more points as fractions of 32 bits.
    pub(crate) fn add(&mut self, weights: &[f64]) -> Vec<u32> {
        let unit = *self.unit.get_or_insert_with(|| match largest(weights) {
            0.0 => 1.0,
            largest => largest / HEADROOM,
        });
        self.points += weights.len() as u64;
        let fraction = |&weight: &f64| (weight * (PLACES / unit)).round() as u32;
        weights.par_iter().with_min_len(TILE).map(fraction).collect()
    }

    /// What 2³² stood for, if anything was added. The next points begin anew.
    pub(crate) fn take(&mut self) -> Option<f64> {
        std::mem::take(self).unit
    }
}

fn largest(weights: &[f64]) -> f64 {
    weights.iter().copied().fold(0.0, f64::max)
}

/// The product of two fractions of 32 bits, rounded.
#[inline(always)]
fn times(a: u32, b: u32) -> u32 {
    let wide = u64::from(a) * u64::from(b);
    (wide >> 32) as u32 + (wide as u32 >> 31)
}

/// Adds whole numbers of 64 bits, (k + 1)² per cell, to the sums of a pair of axes.
pub(crate) fn add_cells(
    numbers: &[u8],
    unit: f64,
    size: usize,
    (first, second): (&AxisBins, &AxisBins),
    sums: &mut [f64],
) {
    let width = row_width(size - 1);
    let cells = numbers.par_chunks_exact(8 * size * size).with_min_len(TILE);
    let add = |(cell, sums): (&[u8], &mut [f64])| {
        let mut rows = unit / PLACES;
        for (row, sums) in cell.chunks_exact(8 * size).zip(sums.chunks_exact_mut(width)) {
            let mut scale = rows;
            for (number, sum) in row.as_chunks::<8>().0.iter().zip(sums) {
                *sum += u64::from_ne_bytes(*number) as f64 * scale;
                scale *= second.step;
            }
            rows *= first.step;
        }
    };
    cells.zip(sums.par_chunks_exact_mut(size * width)).for_each(add);
}

/// The tables of all pairs of axes as whole numbers, on the CPU: the same as those of a device, to the bit.
pub struct WholePass {
    size: usize,
    axes: Vec<AxisBins>,
    /// One per pair of axes.
    tables: Vec<Vec<u64>>,
    unit: Unit,
}

impl WholePass {
    /// Empty tables of ReLU^`power`.
    pub fn new(power: usize, axes: &[AxisBins]) -> Self {
        let size = power + 1;
        let numbers = |(i, j): (usize, usize)| axes[i].count * axes[j].count * size * size;
        Self {
            size,
            axes: axes.to_vec(),
            tables: axis_pairs(axes.len())
                .map(|pair| vec![0; numbers(pair)])
                .collect(),
            unit: Unit::default(),
        }
    }
}

/// Adds a block of points, sorted along axis i, to the table of a pair.
fn add_pair(
    table: &mut [u64],
    size: usize,
    (i, j): (usize, usize),
    axes: &[AxisBins],
    block: &Block,
    weights: &[u32],
) {
    let sorted = &block.sorted[i];
    for (row, run) in sorted.starts.windows(2).enumerate() {
        for &(distance, point, _) in &sorted.points[run[0] as usize..run[1] as usize] {
            let (column, across) = axes[j].bin(block.places[j][point as usize]);
            let place = (row * axes[j].count + column) * size * size;
            let mut weight = weights[point as usize];
            for cells in table[place..place + size * size].chunks_mut(size) {
                let mut term = weight;
                for cell in cells {
                    *cell += u64::from(term);
                    term = times(term, across);
                }
                weight = times(weight, distance);
            }
        }
    }
}

impl PairSums for WholePass {
    fn block_length(&self) -> usize {
        usize::MAX
    }

    fn add(&mut self, block: &mut Block, weights: usize, sums: &mut [PairTable]) -> Result<(), SolveError> {
        if self.unit.is_outgrown(&block.columns[weights]) {
            self.drain(sums)?;
        }
        block.sort(&self.axes, weights);
        let (size, axes, block) = (self.size, &self.axes, &*block);
        let weights = self.unit.add(&block.columns[weights]);
        let pairs: Vec<(usize, usize)> = axis_pairs(axes.len()).collect();
        let tables = self.tables.par_iter_mut().zip(pairs);
        tables.for_each(|(table, pair)| add_pair(table, size, pair, axes, block, &weights));
        Ok(())
    }

    fn drain(&mut self, sums: &mut [PairTable]) -> Result<(), SolveError> {
        let Some(unit) = self.unit.take() else {
            return Ok(());
        };
        let pairs = axis_pairs(self.axes.len()).zip(self.tables.iter_mut().zip(sums));
        for ((i, j), (table, sums)) in pairs {
            if let PairTable::Double(sums) = sums {
                add_cells(
                    bytemuck::cast_slice(table),
                    unit,
                    self.size,
                    (&self.axes[i], &self.axes[j]),
                    sums,
                );
            }
            table.fill(0);
        }
        Ok(())
    }

    fn adapter(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_taken_away_before_they_can_overflow() {
        let mut unit = Unit::default();
        assert!(unit.is_outgrown(&[1.0]));
        assert_eq!(unit.add(&[1.0, 0.25]), [1 << 31, 1 << 29]);
        assert!(!unit.is_outgrown(&[1.999]));
        assert!(unit.is_outgrown(&[2.0]));
        // The largest weight that is left in, rounded up: still a fraction.
        assert_eq!(unit.add(&[2.0 - 1e-12]), [u32::MAX]);
        unit.points = MOST_POINTS - 1;
        assert!(!unit.is_outgrown(&[1.0]));
        assert!(unit.is_outgrown(&[1.0, 1.0]));
        assert!(u128::from(MOST_POINTS) * u128::from(u32::MAX) <= u128::from(u64::MAX));
        assert!(u128::from(MOST_POINTS + 2) * u128::from(u32::MAX) > u128::from(u64::MAX));
        assert_eq!(unit.take(), Some(2.0));
        assert_eq!(unit.take(), None);
        // No weight at all.
        assert_eq!(unit.add(&[0.0]), [0]);
    }

    #[test]
    fn a_product_of_fractions_is_no_larger_than_either() {
        let ends = [0, 1, 2, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        for a in ends {
            for b in ends {
                assert!(times(a, b) <= a.min(b), "{a} {b}");
            }
        }
    }
}
