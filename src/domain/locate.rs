//! Which cell of a mesh a point is in.

use super::element::{Element, Place, difference, dot};

/// A point may be outside a cell by this part of its size: rounding.
const SLACK: f64 = 1e-9;

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
        let side = (cells.len() as f64).powf(1.0 / d as f64).ceil() as usize;
        let counts = vec![side.clamp(1, 512); d];
        let mut locator = Self {
            ends: ends.to_vec(),
            buckets: vec![Vec::new(); counts.iter().product()],
            counts,
        };
        for (index, cell) in cells.iter().enumerate() {
            let corners = || cell.nodes().iter().map(|&node| nodes[node as usize]);
            let range: Vec<(usize, usize)> = (0..d)
                .map(|axis| {
                    let low = corners().map(|c| c[axis]).fold(f64::INFINITY, f64::min);
                    let high = corners().map(|c| c[axis]).fold(f64::NEG_INFINITY, f64::max);
                    let slack = SLACK * (ends[axis].1 - ends[axis].0);
                    (
                        locator.place(axis, low - slack),
                        locator.place(axis, high + slack),
                    )
                })
                .collect();
            locator.for_each_bucket(&range, |bucket| bucket.push(index as u32));
        }
        locator
    }

    fn place(&self, axis: usize, x: f64) -> usize {
        let (low, high) = self.ends[axis];
        let part = (x - low) / (high - low) * self.counts[axis] as f64;
        // Saturates: NaN and what is far away end up at an end.
        (part as usize).min(self.counts[axis] - 1)
    }

    fn for_each_bucket(&mut self, range: &[(usize, usize)], mut visit: impl FnMut(&mut Vec<u32>)) {
        let mut place: Vec<usize> = range.iter().map(|(first, _)| *first).collect();
        loop {
            let index = self.index(&place);
            visit(&mut self.buckets[index]);
            let Some(axis) = (0..place.len()).find(|&axis| place[axis] < range[axis].1) else {
                return;
            };
            place[axis] += 1;
            (0..axis).for_each(|before| place[before] = range[before].0);
        }
    }

    fn index(&self, place: &[usize]) -> usize {
        let digits = place.iter().zip(&self.counts).rev();
        digits.fold(0, |index, (place, count)| index * count + place)
    }

    /// Whether a point is in one of the cells.
    pub(super) fn finds(&self, nodes: &[Place], cells: &[Element], point: &[f64]) -> bool {
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
            simplices.iter().any(|simplex| is_in(simplex, nodes, &at))
        })
    }
}

/// Whether a point is in a simplex, by its barycentric coordinates.
fn is_in(simplex: &Element, nodes: &[Place], point: &Place) -> bool {
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
            let cross = |u: &Place, v: &Place| {
                [
                    u[1] * v[2] - u[2] * v[1],
                    u[2] * v[0] - u[0] * v[2],
                    u[0] * v[1] - u[1] * v[0],
                ]
            };
            let det = dot(&cross(&a, &b), &c);
            vec![
                dot(&cross(&b, &c), &r) / det,
                dot(&cross(&c, &a), &r) / det,
                dot(&cross(&a, &b), &r) / det,
            ]
        }
    };
    coordinates.iter().all(|&x| x >= -SLACK) && coordinates.iter().sum::<f64>() <= 1.0 + SLACK
}
