//! The points of an export.

use super::View;
use std::io;
use std::ops::Range;

/// Points that are evaluated together.
const CHUNK: usize = 1 << 16;

/// Whether a grid has at most so many points.
pub(super) fn fits(side: usize, dimension: usize, most: usize) -> bool {
    side.checked_pow(dimension as u32)
        .is_some_and(|points| points <= most)
}

pub(super) fn largest_side(dimension: usize, most: usize) -> usize {
    (1..=most)
        .take_while(|side| fits(*side, dimension, most))
        .last()
        .unwrap_or(1)
}

pub(super) fn shown_power(side: usize, dimension: usize) -> String {
    match side.checked_pow(dimension as u32) {
        Some(points) => points.to_string(),
        None => format!("{:.1e}", (side as f64).powi(dimension as i32)),
    }
}

/// A grid over the box around the domain.
pub(super) struct Grid {
    /// Smallest and largest value of each coordinate.
    pub(super) ends: Vec<(f64, f64)>,
    /// Points in each coordinate.
    pub(super) side: usize,
}

/// Which coordinate runs fastest from one point to the next.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fastest {
    First,
    Last,
}

impl Grid {
    pub(super) fn over(view: &View, side: usize) -> Self {
        let axes = 0..view.network.dimension;
        Self {
            ends: axes.map(|axis| view.problem.domain.side(axis)).collect(),
            side,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.side.pow(self.ends.len() as u32)
    }

    pub(super) fn step(&self, axis: usize) -> f64 {
        let (low, high) = self.ends[axis];
        (high - low) / (self.side - 1).max(1) as f64
    }

    /// The coordinates of some points, column by column.
    fn points(&self, range: Range<usize>, fastest: Fastest) -> Vec<Vec<f64>> {
        let d = self.ends.len();
        (0..d)
            .map(|axis| {
                let faster = match fastest {
                    Fastest::First => axis,
                    Fastest::Last => d - 1 - axis,
                };
                let (low, step) = (self.ends[axis].0, self.step(axis));
                let stride = self.side.pow(faster as u32);
                range
                    .clone()
                    .map(|index| low + step * (index / stride % self.side) as f64)
                    .collect()
            })
            .collect()
    }

    /// Hands out the points chunk by chunk.
    pub(super) fn in_chunks(
        &self,
        fastest: Fastest,
        mut visit: impl FnMut(Vec<Vec<f64>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let total = self.len();
        (0..total)
            .step_by(CHUNK)
            .try_for_each(|start| visit(self.points(start..(start + CHUNK).min(total), fastest)))
    }
}
