//! Which cell of a mesh a point is in.

use super::element::{Element, Place, cross, difference, dot};

/// A point may be outside a cell by this part of its size: rounding.
const SLACK: f64 = 1e-9;
/// Boxes that cells reach into, on the average, at most.
const MOST_ENTRIES: usize = 64;

/// A grid of boxes, each with the cells that reach into it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Locator {
    ends: Vec<(f64, f64)>,
    counts: Vec<usize>,
    buckets: Vec<Vec<u32>>,
}

impl Locator {
    pub(super) fn new(ends: &[(f64, f64)], nodes: &[Place], cells: &[Element]) -> Self {
        let d = ends.len();
        let mut side = (cells.len() as f64).powf(1.0 / d as f64).ceil().clamp(1.0, 512.0) as usize;
        let mut locator = Self {
            ends: ends.to_vec(),
            counts: vec![side; d],
            buckets: Vec::new(),
        };
        // Long cells reach into many boxes: then fewer, larger ones.
        while side > 1 && locator.entries(nodes, cells) > MOST_ENTRIES.saturating_mul(cells.len()) {
            side = side.div_ceil(2);
            locator.counts = vec![side; d];
        }
        locator.buckets = vec![Vec::new(); locator.counts.iter().product()];
        for (index, cell) in cells.iter().enumerate() {
            for bucket in locator.reached(nodes, cell) {
                locator.buckets[bucket].push(index as u32);
            }
        }
        locator
    }

    /// How many entries all boxes would have.
    fn entries(&self, nodes: &[Place], cells: &[Element]) -> usize {
        let boxes = |cell: &Element| -> usize {
            let range = self.range(nodes, cell);
            range.iter().map(|(first, last)| last - first + 1).product()
        };
        cells.iter().map(boxes).fold(0, usize::saturating_add)
    }

    /// The boxes that a cell reaches into: the first and the last along each axis.
    fn range(&self, nodes: &[Place], cell: &Element) -> Vec<(usize, usize)> {
        let corners = || cell.nodes().iter().map(|&node| nodes[node as usize]);
        (0..self.ends.len())
            .map(|axis| {
                let low = corners().map(|c| c[axis]).fold(f64::INFINITY, f64::min);
                let high = corners().map(|c| c[axis]).fold(f64::NEG_INFINITY, f64::max);
                let slack = SLACK * (self.ends[axis].1 - self.ends[axis].0);
                (self.place(axis, low - slack), self.place(axis, high + slack))
            })
            .collect()
    }

    /// The numbers of these boxes.
    fn reached(&self, nodes: &[Place], cell: &Element) -> Vec<usize> {
        let range = self.range(nodes, cell);
        let mut place: Vec<usize> = range.iter().map(|(first, _)| *first).collect();
        let mut reached = vec![self.index(&place)];
        while let Some(axis) = (0..place.len()).find(|&axis| place[axis] < range[axis].1) {
            place[axis] += 1;
            (0..axis).for_each(|before| place[before] = range[before].0);
            reached.push(self.index(&place));
        }
        reached
    }

    /// The cells that reach into the same boxes as a cell, itself included, in ascending order.
    pub(super) fn near(&self, nodes: &[Place], cell: &Element) -> Vec<u32> {
        let reached = self.reached(nodes, cell).into_iter();
        let mut near: Vec<u32> = reached
            .flat_map(|bucket| self.buckets[bucket].iter().copied())
            .collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    fn place(&self, axis: usize, x: f64) -> usize {
        let (low, high) = self.ends[axis];
        let part = (x - low) / (high - low) * self.counts[axis] as f64;
        // Saturates: NaN and what is far away end up at an end.
        (part as usize).min(self.counts[axis] - 1)
    }

    fn index(&self, place: &[usize]) -> usize {
        let digits = place.iter().zip(&self.counts).rev();
        digits.fold(0, |index, (place, count)| index * count + place)
    }

    /// Whether a point is in one of the cells, to rounding.
    pub(super) fn finds(&self, nodes: &[Place], cells: &[Element], point: &[f64]) -> bool {
        self.finds_within(nodes, cells, point, -SLACK)
    }

    /// The same at least so far, as a part of a cell, from the cell's surface.
    pub(super) fn finds_within(&self, nodes: &[Place], cells: &[Element], point: &[f64], away: f64) -> bool {
        let outside = self.ends.iter().zip(point).any(|(&(low, high), &x)| {
            let slack = SLACK * (high - low);
            !(low - slack..=high + slack).contains(&x)
        });
        if outside {
            return false;
        }
        let place: Vec<usize> = (0..self.ends.len())
            .map(|axis| self.place(axis, point[axis]))
            .collect();
        let mut at = [0.0; 3];
        at[..point.len()].copy_from_slice(point);
        self.buckets[self.index(&place)].iter().any(|&cell| {
            let simplices = cells[cell as usize].simplices();
            simplices.iter().any(|simplex| is_in(simplex, nodes, &at, away))
        })
    }
}

/// Whether a point is in a simplex: all of its barycentric coordinates are at least `away`.
fn is_in(simplex: &Element, nodes: &[Place], point: &Place, away: f64) -> bool {
    let local = simplex.at(nodes, &[0.0; 3]);
    let [a, b, c] = local.tangents;
    let r = difference(point, &local.point);
    let coordinates: Vec<f64> = match simplex.dimension() {
        2 => {
            let det = a[0] * b[1] - a[1] * b[0];
            vec![
                (r[0] * b[1] - r[1] * b[0]) / det,
                (a[0] * r[1] - a[1] * r[0]) / det,
            ]
        }
        _ => {
            let det = dot(&cross(&a, &b), &c);
            vec![
                dot(&cross(&b, &c), &r) / det,
                dot(&cross(&c, &a), &r) / det,
                dot(&cross(&a, &b), &r) / det,
            ]
        }
    };
    coordinates.iter().all(|&x| x >= away) && coordinates.iter().sum::<f64>() <= 1.0 - away
}
