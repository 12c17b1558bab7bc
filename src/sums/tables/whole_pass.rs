//! The pass over the points in whole numbers on the CPU: the twin of `moments.wgsl`.

use super::block::{Block, PLACES, row_width};
use super::tables::{PairSums, PairTable, axis_pairs};
use crate::candidates::AxisBins;
use crate::error::SolveError;
use rayon::prelude::*;

/// The largest weight is this fraction of 2³² at first, so that larger ones may follow.
const HEADROOM: f64 = 0.5;
/// Points of a block per row of a table.
const ROW_POINTS: usize = 16_384;

/// How many points make a block in whole numbers.
pub(crate) fn block_length(axes: &[AxisBins]) -> usize {
    axes.iter().map(|axis| axis.count).min().unwrap_or(1) * ROW_POINTS
}

/// The weight that 2³² stands for, when the largest so far is this.
pub(crate) fn whole_unit(largest: f64) -> f64 {
    largest / HEADROOM
}

/// A weight as a fraction of 32 bits.
#[inline(always)]
pub(crate) fn whole_weight(weight: f64, unit: f64) -> u32 {
    (weight * (PLACES / unit)).round() as u32
}

/// The product of two fractions of 32 bits, rounded.
#[inline(always)]
fn times(a: u32, b: u32) -> u32 {
    let wide = u64::from(a) * u64::from(b);
    (wide >> 32) as u32 + (wide as u32 >> 31)
}

/// Adds whole numbers, (k + 1)² per cell, to the sums of a pair of axes.
pub(crate) fn add_cells(
    numbers: &[u64],
    unit: f64,
    size: usize,
    (first, second): (&AxisBins, &AxisBins),
    sums: &mut [f64],
) {
    let width = row_width(size - 1);
    let cells = numbers.chunks_exact(size * size);
    for (cell, sums) in cells.zip(sums.chunks_exact_mut(size * width)) {
        let mut rows = unit / PLACES;
        for (row, sums) in cell.chunks_exact(size).zip(sums.chunks_exact_mut(width)) {
            let mut scale = rows;
            for (&number, sum) in row.iter().zip(sums) {
                *sum += number as f64 * scale;
                scale *= second.step;
            }
            rows *= first.step;
        }
    }
}

/// The tables of all pairs of axes as whole numbers, on the CPU: the same as those of a device, to the bit.
pub struct WholePass {
    size: usize,
    axes: Vec<AxisBins>,
    /// One per pair of axes.
    tables: Vec<Vec<u64>>,
    /// The weight that 2³² stands for, once it is known.
    unit: Option<f64>,
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
            unit: None,
        }
    }
}

impl PairSums for WholePass {
    fn block_length(&self) -> usize {
        block_length(&self.axes)
    }

    fn add(&mut self, block: &Block, weights: &[f64], sums: &mut [PairTable]) -> Result<(), SolveError> {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Ok(());
        }
        if self.unit.is_none_or(|unit| largest >= unit) {
            self.drain(sums)?;
            self.unit = Some(whole_unit(largest));
        }
        let (unit, size, axes) = (self.unit.unwrap_or(1.0), self.size, &self.axes);
        let pairs: Vec<(usize, usize)> = axis_pairs(axes.len()).collect();
        let tables = self.tables.par_iter_mut().zip(pairs);
        tables.for_each(|(table, (i, j))| {
            let rows = block.sorted[i].starts.windows(2).enumerate();
            for (row, run) in rows {
                for &(distance, point, weight) in &block.sorted[i].points[run[0] as usize..run[1] as usize] {
                    let (column, across) = axes[j].bin(block.places[j][point as usize]);
                    let place = (row * axes[j].count + column) * size * size;
                    let mut weight = whole_weight(weight, unit);
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
        });
        Ok(())
    }

    fn drain(&mut self, sums: &mut [PairTable]) -> Result<(), SolveError> {
        let Some(unit) = self.unit.take() else {
            return Ok(());
        };
        let pairs = axis_pairs(self.axes.len()).zip(self.tables.iter_mut().zip(sums));
        for ((i, j), (table, sums)) in pairs {
            if let PairTable::Double(sums) = sums {
                add_cells(table, unit, self.size, (&self.axes[i], &self.axes[j]), sums);
            }
            table.fill(0);
        }
        Ok(())
    }

    fn adapter(&self) -> Option<String> {
        None
    }
}
