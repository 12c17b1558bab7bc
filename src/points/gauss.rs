//! Composite Gauss-Legendre on the unit cube.

use gauss_quad::legendre::GaussLegendre;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Patches have at most this many cells per direction: along any line ω·x the points of a patch lie
/// close together, and what is kept per place on the line stays in the cache.
const LARGEST_PATCH: usize = 16;

/// A tensor product of composite Gauss-Legendre rules on [0, 1].
#[derive(Debug, Clone)]
pub struct CompositeGauss {
    dimension: usize,
    cells: usize,
    /// Cells per direction of a patch: neighbouring points have neighbouring numbers.
    patch: usize,
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
            patch: (1..=LARGEST_PATCH)
                .rev()
                .find(|size| cells.is_multiple_of(*size))
                .unwrap_or(1),
            nodes,
        }
    }

    /// The digits of i, lowest first: the node inside a patch along each axis, the first axis fastest,
    /// then the patch along each axis.
    pub fn fill(&self, range: Range<usize>, columns: &mut [Vec<f64>], weights: &mut [f64]) {
        let order = self.nodes.len();
        let (in_patch, patches) = (self.patch * order, self.cells / self.patch);
        let per_patch = in_patch.pow(self.dimension as u32);
        let width = 1.0 / self.cells as f64;
        for (place, index) in range.enumerate() {
            let (mut node, mut patch) = (index % per_patch, index / per_patch);
            let mut weight = 1.0;
            for column in columns[..self.dimension].iter_mut() {
                let digit = (patch % patches) * in_patch + node % in_patch;
                node /= in_patch;
                patch /= patches;
                let (x, w) = self.nodes[digit % order];
                column[place] = ((digit / order) as f64 + x) * width;
                weight *= w * width;
            }
            weights[place] = weight;
        }
    }
}
