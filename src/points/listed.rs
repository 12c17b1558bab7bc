//! Points that are kept: where no rule gives them by their index.

use super::{PointsError, Rule, Tile, UnitRule};
use crate::domain::Inside;
use crate::expression::Workspace;
use std::ops::Range;

/// Points with weights and with what else is known at them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// `coordinates[i]` holds the i-th coordinate of every point.
    pub coordinates: Vec<Vec<f64>>,
    /// Columns of other numbers: a normal, a measured value.
    pub attributes: Vec<Vec<f64>>,
    /// The weights.
    pub weights: Vec<f64>,
}

impl Listed {
    pub(super) fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let copy = |from: &[Vec<f64>], to: &mut [Vec<f64>]| {
            for (from, to) in from.iter().zip(to) {
                to.copy_from_slice(&from[range.clone()]);
            }
        };
        copy(&self.coordinates, &mut tile.coordinates);
        copy(&self.attributes, &mut tile.attributes);
        tile.weights.copy_from_slice(&self.weights[range.clone()]);
    }

    /// Points on the boundary of a domain {f < 0}, by lines along the axes: ∫ g dS = Σᵢ ∫ g nᵢ² dS, and ∫ g nᵢ² dS is the integral
    /// over all lines along the axis i of Σ g |nᵢ| at the places where a line crosses the boundary.
    pub(super) fn on_boundary(inside: &Inside, rule: Rule, stream: u32) -> Result<Self, PointsError> {
        let d = inside.dimension();
        let mut listed = Self {
            coordinates: vec![Vec::new(); d],
            attributes: vec![Vec::new(); d],
            weights: Vec::new(),
        };
        for axis in 0..d {
            let (unit, lines) = match d {
                1 => (None, 1),
                _ => {
                    let (unit, lines) = UnitRule::new(rule.divided(d), d - 1, stream)?;
                    (Some(unit), lines)
                }
            };
            let mut parameters = vec![vec![0.0; lines]; d - 1];
            let mut weights = vec![1.0; lines];
            if let Some(unit) = unit {
                unit.fill(0..lines, &mut parameters, &mut weights);
            }
            for line in 0..lines {
                let mut used = parameters.iter();
                let through: Vec<f64> = (0..d)
                    .map(|i| {
                        let (low, high) = inside.side(i);
                        match i == axis {
                            true => low,
                            false => low + (high - low) * used.next().map_or(0.5, |column| column[line]),
                        }
                    })
                    .collect();
                for crossing in inside.crossings(axis, &through)? {
                    let weight = weights[line] * inside.cross_section(axis) * crossing.normal[axis].abs();
                    listed.weights.push(weight);
                    (0..d).for_each(|i| {
                        listed.coordinates[i].push(crossing.point[i]);
                        listed.attributes[i].push(crossing.normal[i]);
                    });
                }
            }
        }
        Ok(listed)
    }
}

/// How many points of a sequence are looked at together.
const BLOCK: usize = 4096;

/// The points of a sequence in the box around a domain {f < 0} that are inside.
#[derive(Debug, Clone)]
pub(super) struct Sieve {
    inside: std::sync::Arc<Inside>,
    rule: UnitRule,
    looked_at: usize,
    /// How many points of all blocks up to each are inside.
    ends: std::sync::Arc<[usize]>,
}

impl Sieve {
    pub(super) fn new(inside: &std::sync::Arc<Inside>, rule: Rule, stream: u32) -> Result<Self, PointsError> {
        let (rule, looked_at) = UnitRule::new(rule, inside.dimension(), stream)?;
        let mut sieve = Self {
            inside: std::sync::Arc::clone(inside),
            rule,
            looked_at,
            ends: std::sync::Arc::new([]),
        };
        let blocks: Vec<usize> = (0..looked_at.div_ceil(BLOCK)).collect();
        let counts = super::in_parallel(blocks, |workspace: &mut Workspace, block| {
            let columns = sieve.block(block);
            let accepted = sieve.inside.accepts(&columns, workspace)?;
            Ok::<_, PointsError>(accepted.iter().filter(|accepted| **accepted).count())
        })?;
        let mut sum = 0;
        let ends = counts.into_iter().map(|count| {
            sum += count;
            sum
        });
        sieve.ends = ends.collect();
        match sieve.len() {
            0 => Err(PointsError::NoneInside(looked_at)),
            _ => Ok(sieve),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The points of a block of the box.
    fn block(&self, block: usize) -> Vec<Vec<f64>> {
        let range = block * BLOCK..((block + 1) * BLOCK).min(self.looked_at);
        let mut columns = vec![vec![0.0; range.len()]; self.inside.dimension()];
        let mut weights = vec![0.0; range.len()];
        self.rule.fill(range, &mut columns, &mut weights);
        for (axis, column) in columns.iter_mut().enumerate() {
            let (low, high) = self.inside.side(axis);
            column.iter_mut().for_each(|x| *x = low + (high - low) * *x);
        }
        columns
    }

    pub(super) fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        tile.weights.fill(self.inside.measure() / self.len() as f64);
        let mut workspace = Workspace::default();
        let mut block = self.ends.partition_point(|&end| end <= range.start);
        let mut place = 0;
        while place < range.len() {
            let columns = self.block(block);
            // Every block had a value at each of its points when they were counted.
            let accepted = self.inside.accepts(&columns, &mut workspace).unwrap_or_default();
            let before = if block == 0 { 0 } else { self.ends[block - 1] };
            let skipped = (range.start + place).saturating_sub(before);
            let chosen = accepted.iter().enumerate().filter(|(_, accepted)| **accepted);
            for (index, _) in chosen.skip(skipped).take(range.len() - place) {
                for (column, from) in tile.coordinates.iter_mut().zip(&columns) {
                    column[place] = from[index];
                }
                place += 1;
            }
            block += 1;
            if block == self.ends.len() {
                return;
            }
        }
    }
}
