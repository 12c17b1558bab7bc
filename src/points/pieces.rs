//! Points on several boxes, one after the other.

use super::{PointSet, PointsError, Rule, Tile};
use crate::domain::{Domain, Face, Part, Region, Union};
use std::ops::Range;
use std::sync::Arc;

/// Sets of points in a row.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    sets: Arc<[PointSet]>,
    /// The number of the first point after each set.
    ends: Arc<[usize]>,
}

impl Pieces {
    pub(super) fn new(
        domain: &Domain,
        union: &Union,
        region: Region,
        rule: Rule,
        stream: u32,
    ) -> Result<Self, PointsError> {
        let (parts, fixed) = match region {
            Region::Boundary(Face::Side { coordinate, upper }) => {
                (union.pieces(coordinate, upper), Some((coordinate, upper)))
            }
            _ => (union.parts(), None),
        };
        let whole: f64 = parts.iter().map(|part| part.measure(fixed.map(|f| f.0))).sum();
        let mut sets = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let share = part.measure(fixed.map(|f| f.0)) / whole;
            let (lower, upper) = (part.lower.clone(), part.upper.clone());
            let part_domain = Domain::Box {
                lower: widened(lower, fixed.map(|f| f.0)),
                upper,
            };
            // A piece of a side is the upper side of a box that ends there.
            let part_region = match fixed {
                None => Region::Interior,
                Some((coordinate, _)) => Region::Boundary(Face::Side {
                    coordinate,
                    upper: true,
                }),
            };
            let stream = stream + ((number as u32) << 16);
            sets.push(match rule {
                Rule::Gauss { cells, order } => {
                    PointSet::gauss(&part_domain, part_region, &cells_of(domain, part, cells), order)?
                }
                rule => PointSet::new(&part_domain, part_region, rule.part(share), stream)?,
            });
        }
        let mut sum = 0;
        let ends = sets.iter().map(|set| {
            sum += set.len();
            sum
        });
        Ok(Self {
            ends: ends.collect(),
            sets: sets.into(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let mut part = Tile::default();
        let mut at = range.start;
        let mut set = self.ends.partition_point(|&end| end <= at);
        while at < range.end {
            let start = if set == 0 { 0 } else { self.ends[set - 1] };
            let end = range.end.min(self.ends[set]);
            self.sets[set].fill(at - start..end - start, &mut part);
            let place = at - range.start..end - range.start;
            tile.weights[place.clone()].copy_from_slice(&part.weights);
            for (column, from) in tile.coordinates.iter_mut().zip(&part.coordinates) {
                column[place.clone()].copy_from_slice(from);
            }
            at = end;
            set += 1;
        }
    }
}

fn widened(mut lower: Vec<f64>, fixed: Option<usize>) -> Vec<f64> {
    if let Some(axis) = fixed {
        lower[axis] -= 1.0;
    }
    lower
}

/// The cells of a part along each axis: as wide as those that would lie across the whole domain.
pub fn cells_of(domain: &Domain, part: &Part, cells: usize) -> Vec<usize> {
    (0..part.lower.len())
        .map(|axis| {
            let width = part.upper[axis] - part.lower[axis];
            let wanted = width / domain.cell_width(axis, cells);
            // Rounding must not cut a part that just fits.
            (wanted * (1.0 - 1e-9)).ceil().max(1.0) as usize
        })
        .collect()
}
