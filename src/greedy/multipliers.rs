//! Multipliers follow the network as it grows.

use super::Selection;
use super::orthogonal::Run;
use crate::candidates::Grid;
use crate::error::SolveError;

/// Multipliers are updated so often while the number of neurons doubles.
const PER_DOUBLING: f64 = 6.0;

/// Whether multipliers are updated with the n-th neuron: it depends on n alone, so that a longer run begins like a
/// shorter one.
fn is_due(n: usize) -> bool {
    let stage = |n: usize| (PER_DOUBLING * (n as f64).log2()).floor();
    n == 1 || stage(n) > stage(n - 1)
}

impl Run<'_> {
    /// λ ← λ + s (Bu − g) and the projection for the new load, by the same factor; the guard's loss and what is known of the
    /// candidates follow.
    pub(super) fn update_multipliers(&mut self, grid: &Grid) -> Result<(), SolveError> {
        let Some(multipliers) = self.training.multipliers() else {
            return Ok(());
        };
        if !is_due(self.network.len()) {
            return Ok(());
        }
        if self.params.selection == Selection::Decrease {
            self.account(grid)?;
        }
        multipliers.update(&self.network);
        if let Some(multipliers) = self.guard.validation().and_then(|sums| sums.multipliers()) {
            multipliers.update(&self.network);
        }
        let scores = self
            .projection
            .gradient(&self.network)?
            .list_scores(&self.network.neurons)?;
        self.projection.follow_load(&scores);
        self.network.coefficients = self.projection.coefficients(&self.network.neurons)?;
        self.measure_anew()?;
        if let Some(board) = &mut self.board
            && self.params.quadratic
        {
            board.refresh(&*self.projection.gradient(&self.network)?, grid)?;
        }
        Ok(())
    }
}
