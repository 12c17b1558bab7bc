//! Which neurons the points see.

use super::{Grid, Line};
use crate::network::Neuron;
use crate::points::{PointSet, Tile};
use rayon::prelude::*;

/// More points than this are not looked at: a part of them, spread evenly, stands for all.
const MOST_POINTS: usize = 1 << 18;

/// Points that count how many of them are in the support of a ReLU neuron.
///
/// A sum over a handful of points tells nothing of a neuron's norm, and where many candidates are compared some of these
/// sums are small by chance on two sets of points alike.
pub struct Seen {
    columns: Vec<Vec<f64>>,
    /// So many must be in the support.
    least: usize,
}

impl Seen {
    /// Of these points at least `least` must be in the support.
    pub fn new(points: &PointSet, least: usize) -> Self {
        let (all, looked_at) = (points.len(), points.len().min(MOST_POINTS));
        let mut tile = Tile::default();
        let mut columns = vec![Vec::with_capacity(looked_at); points.dimension()];
        for k in 0..looked_at {
            // Not every so manieth: the digits of a sequence's numbers are its points.
            let (low, high) = (bound(all, k, looked_at), bound(all, k + 1, looked_at));
            let index = low + scrambled(k) % (high - low).max(1);
            points.fill(index..index + 1, &mut tile);
            for (column, x) in columns.iter_mut().zip(&tile.coordinates) {
                column.push(x[0]);
            }
        }
        let least = (least as u128 * looked_at as u128 / all.max(1) as u128) as usize;
        Self {
            columns,
            least: least.max(1),
        }
    }

    /// Whether enough points are in a neuron's support.
    pub fn sees(&self, neuron: &Neuron) -> bool {
        let active = self.along(&neuron.omega).into_iter();
        active.filter(|t| t + neuron.bias > 0.0).count() >= self.least
    }

    /// The same for each neuron of a grid.
    pub fn of_grid(&self, grid: &Grid) -> Vec<bool> {
        let lines: Vec<Vec<bool>> = grid.lines.par_iter().map(|line| self.of_line(line)).collect();
        let sides = if grid.mirrored { 2 } else { 1 };
        let per_line = lines.iter().zip(&grid.lines);
        per_line
            .flat_map(|(seen, line)| seen[..sides * line.knots.count].iter().copied())
            .collect()
    }

    /// Those of ω, then those of −ω.
    fn of_line(&self, line: &Line) -> Vec<bool> {
        let knots = &line.knots;
        // How many points lie between one knot and the next, before the first and behind the last.
        let mut between = vec![0usize; knots.count + 1];
        for t in self.along(&line.omega) {
            let passed = ((t - knots.first) / knots.step).floor() + 1.0;
            between[passed.clamp(0.0, knots.count as f64) as usize] += 1;
        }
        let total: usize = between.iter().sum();
        let below = between.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let below: Vec<usize> = below.take(knots.count).collect();
        let above = below.iter().map(|below| total - below);
        above
            .chain(below.iter().copied())
            .map(|count| count >= self.least)
            .collect()
    }

    /// ω·x.
    fn along(&self, omega: &[f64]) -> Vec<f64> {
        let mut t = vec![0.0; self.columns.first().map_or(0, Vec::len)];
        for (o, column) in omega.iter().zip(&self.columns) {
            t.iter_mut().zip(column).for_each(|(t, x)| *t += o * x);
        }
        t
    }
}

fn bound(all: usize, k: usize, parts: usize) -> usize {
    (all as u128 * k as u128 / parts.max(1) as u128) as usize
}

/// A number without a pattern.
fn scrambled(k: usize) -> usize {
    ((k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::Knots;
    use crate::domain::{Domain, Region};
    use crate::points::Rule;

    #[test]
    fn a_grid_is_seen_like_its_neurons() {
        let domain = Domain::Box {
            lower: vec![0.0; 3],
            upper: vec![1.0; 3],
        };
        let rule = Rule::Lattice {
            points: 512,
            shift: 1,
        };
        let points = PointSet::new(&domain, Region::Interior, rule, 0).unwrap();
        let seen = Seen::new(&points, 40);
        let knots = Knots {
            first: -0.21,
            step: 0.13,
            count: 16,
        };
        let omega = vec![0.6, -0.48, 0.64];
        let grid = Grid::new(vec![Line { omega, knots }], true);
        let found = seen.of_grid(&grid);
        assert_eq!(found.len(), grid.len());
        for (index, found) in found.iter().enumerate() {
            assert_eq!(*found, seen.sees(&grid.neuron(index)), "{index}");
        }
        assert!(found.contains(&true) && found.contains(&false));
    }
}
