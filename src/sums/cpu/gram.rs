//! The Gram matrix of many neurons at once: each is evaluated once at every point, and the rest are products of matrices.

use super::CpuSums;
use super::remainders::{Layout, Place, Values};
use crate::error::SolveError;
use crate::loss::{Term, TermTile};
use crate::network::Neuron;
use crate::ridge::blocks;
use crate::vector::{dot, multiply};
use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut, Dyn};
use std::ops::Range;

/// Columns of the matrix that are made in one visit of the points: as many numbers as neurons for each are added up for every run
/// of points.
const PANEL: usize = 128;

impl CpuSums {
    /// ⟨∇²L g_j, g_i⟩ for i ≤ j, row by row of j; for a quadratic loss.
    pub(super) fn gram_by_blocks(&self, neurons: &[Neuron]) -> Result<Vec<Vec<f64>>, SolveError> {
        let mut rows = Vec::with_capacity(neurons.len());
        for first in (0..neurons.len()).step_by(PANEL) {
            let panel = first..(first + PANEL).min(neurons.len());
            rows.extend(self.panel(&neurons[..panel.end], panel)?);
        }
        Ok(rows)
    }

    /// The rows of a panel: products of its neurons, the last ones, with all.
    fn panel(&self, neurons: &[Neuron], panel: Range<usize>) -> Result<Vec<Vec<f64>>, SolveError> {
        let layout = Layout::new(self, neurons, &[]);
        let size = neurons.len() * panel.len();
        let products = self.sums(layout.profiles.len() * size, |sums, term, tile, scratch| {
            let places = layout.at(scratch.term);
            let first = layout.of_term[scratch.term].start * size;
            let sums = &mut sums[first..][..places.len() * size];
            self.add_panel((term, tile), places, (neurons, panel.start), sums);
            Ok(())
        })?;
        let entry = |i: usize, j: usize| -> f64 {
            let places = layout.profiles.iter().zip(products.chunks(size));
            let parts = places.map(|(place, products)| {
                let factor = dot(&place.chosen[i], &place.chosen[j]);
                factor * products[(j - panel.start) * neurons.len() + i]
            });
            parts.sum()
        };
        let row = |j: usize| (0..=j).map(|i| entry(i, j)).collect();
        Ok(panel.clone().map(row).collect())
    }

    /// Adds Σ w π_i π_j of each profile, column by column of the panel's neurons j.
    fn add_panel(
        &self,
        (term, tile): (&Term, &TermTile),
        places: &[Place],
        (neurons, first): (&[Neuron], usize),
        sums: &mut [f64],
    ) {
        let (n, width) = (neurons.len(), neurons.len() - first);
        let weights: Vec<Vec<f64>> = places
            .iter()
            .map(|place| term.profile_weights(&place.profile, tile))
            .collect();
        let mut values = Values::default();
        for block in blocks(tile.tile.len()) {
            let mut columns = vec![DMatrix::zeros(block.len(), n); places.len()];
            for (i, neuron) in neurons.iter().enumerate() {
                values.evaluate(self, neuron, term, tile, block.clone());
                for (place, columns) in places.iter().zip(&mut columns) {
                    let of = (term, &place.profile);
                    let mut column = columns.column_mut(i);
                    values.add(of, (tile, block.clone()), 1.0, column.as_mut_slice());
                }
            }
            let parts = columns.iter().zip(&weights).zip(sums.chunks_mut(n * width));
            for ((columns, weights), sums) in parts {
                let mut weighted = columns.columns(first, width).into_owned();
                let each = weighted.as_mut_slice().chunks_mut(block.len());
                each.for_each(|column| multiply(column, &weights[block.clone()]));
                let (rows, long) = (Dyn(n), Dyn(block.len()));
                let transposed = DMatrixView::from_slice_with_strides_generic(
                    columns.as_slice(),
                    rows,
                    long,
                    long,
                    Dyn(1),
                );
                DMatrixViewMut::from_slice(sums, n, width).gemm(1.0, &transposed, &weighted, 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::network::Neuron;
    use crate::points::philox_uniforms as uniforms;
    use crate::problem::{Overrides, Problem, Purpose};
    use crate::sums::{CpuOptions, CpuSums, Sums, gram_by_columns};

    /// More neurons than a panel has, of an energy and of a residual.
    #[test]
    fn all_at_once_is_one_by_one() {
        for (name, text) in [
            ("energy", include_str!("../../../configs/ex3_energy.toml")),
            ("residual", include_str!("../../../configs/ex3_pinn.toml")),
        ] {
            let small = Overrides {
                cells: (name == "energy").then_some(9),
                points: (name == "residual").then_some(700),
                ..Overrides::default()
            };
            let problem = Problem::from_toml(text, name, &small).unwrap();
            let loss = problem.loss(1, Purpose::Training).unwrap();
            let sums = CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap();
            let neuron = |k: u64| {
                let [angle, bias] = uniforms(7, 0, k, 2)[..] else {
                    unreachable!()
                };
                Neuron {
                    omega: vec![(9.0 * angle).cos(), (9.0 * angle).sin()],
                    bias: bias - 0.5,
                }
            };
            let neurons: Vec<Neuron> = (0..150).map(neuron).collect();
            let by_columns = gram_by_columns(&sums, &neurons).unwrap();
            let at_once = sums.gram(&neurons).unwrap();
            assert_eq!(at_once.len(), neurons.len());
            for (j, (row, column)) in at_once.iter().zip(&by_columns).enumerate() {
                assert_eq!(row.len(), j + 1);
                for (i, (a, b)) in row.iter().zip(column).enumerate() {
                    let size = (by_columns[i][i] * by_columns[j][j]).sqrt();
                    assert!((a - b).abs() <= 1e-12 * size, "{name} {i} {j}: {a} {b}");
                }
            }
        }
    }
}
