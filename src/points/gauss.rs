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
    /// Along each axis: how many cells, and how many of them a patch has: neighbouring points have neighbouring
    /// numbers.
    axes: Vec<(usize, usize)>,
    /// Place inside a cell of width 1, and weight.
    nodes: Vec<(f64, f64)>,
}

impl CompositeGauss {
    /// So many equal cells along each axis, with `order` points per cell and direction.
    pub fn new(cells: &[usize], order: usize) -> Self {
        let rule = GaussLegendre::new(NonZeroUsize::new(order).unwrap_or(NonZeroUsize::MIN));
        let mut nodes: Vec<(f64, f64)> = rule.iter().map(|(x, w)| (0.5 * (1.0 + x), 0.5 * w)).collect();
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let patch = |cells: usize| {
            let mut sizes = (1..=LARGEST_PATCH).rev();
            sizes.find(|size| cells.is_multiple_of(*size)).unwrap_or(1)
        };
        Self {
            axes: cells.iter().map(|&cells| (cells, patch(cells))).collect(),
            nodes,
        }
    }

    /// The digits of i, lowest first: the node inside a patch along each axis, the first axis fastest,
    /// then the patch along each axis.
    pub fn fill(&self, range: Range<usize>, columns: &mut [Vec<f64>], weights: &mut [f64]) {
        let order = self.nodes.len();
        let per_patch: usize = self.axes.iter().map(|(_, patch)| patch * order).product();
        for (place, index) in range.enumerate() {
            let (mut node, mut patch) = (index % per_patch, index / per_patch);
            let mut weight = 1.0;
            for (column, &(cells, size)) in columns.iter_mut().zip(&self.axes) {
                let (in_patch, patches) = (size * order, cells / size);
                let width = 1.0 / cells as f64;
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
