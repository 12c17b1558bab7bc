//! Composite Gauss-Legendre on the unit cube.

use gauss_quad::legendre::GaussLegendre;
use std::num::NonZeroUsize;
use std::ops::Range;

/// A tensor product of composite Gauss-Legendre rules on [0, 1].
#[derive(Debug, Clone)]
pub struct CompositeGauss {
    dimension: usize,
    cells: usize,
    /// Place inside a cell of width 1, and weight.
    nodes: Vec<(f64, f64)>,
}

impl CompositeGauss {
    /// `cells` equal cells per direction with `order` points each.
    pub fn new(cells: usize, order: usize, dimension: usize) -> Self {
        let rule = GaussLegendre::new(NonZeroUsize::new(order).unwrap_or(NonZeroUsize::MIN));
        let mut nodes: Vec<(f64, f64)> = rule.iter().map(|(x, w)| (0.5 * (1.0 + x), 0.5 * w)).collect();
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            dimension,
            cells,
            nodes,
        }
    }

    /// Point i has the digits of i in base cells × order, the first coordinate fastest.
    pub fn fill(&self, range: Range<usize>, columns: &mut [Vec<f64>], weights: &mut [f64]) {
        let order = self.nodes.len();
        let per_axis = self.cells * order;
        let width = 1.0 / self.cells as f64;
        for (place, index) in range.enumerate() {
            let mut rest = index;
            let mut weight = 1.0;
            for column in columns[..self.dimension].iter_mut() {
                let digit = rest % per_axis;
                rest /= per_axis;
                let (x, w) = self.nodes[digit % order];
                column[place] = ((digit / order) as f64 + x) * width;
                weight *= w * width;
            }
            weights[place] = weight;
        }
    }
}
