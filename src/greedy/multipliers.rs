//! Multipliers follow the network as it grows.

use super::Selection;
use super::orthogonal::Run;
use crate::candidates::Grid;
use crate::error::SolveError;
use crate::sums::Multipliers;

/// Multipliers are updated so often while the number of neurons doubles.
const PER_DOUBLING: f64 = 6.0;

/// How often in a row they then are, from nothing: what an earlier, poorer network did to them is forgotten.
const ROUNDS: usize = 5;

/// Whether multipliers are updated with the n-th neuron: it depends on n alone, so that a longer run begins like a
/// shorter one.
fn is_due(n: usize) -> bool {
    let stage = |n: usize| (PER_DOUBLING * (n as f64).log2()).floor();
    n == 1 || stage(n) > stage(n - 1)
}

impl Run<'_> {
    /// λ ← λ + s (Bu − g), a few times from λ = 0, and each time the projection for the new load, by the same factor; the guard's loss and what is known of the
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
        let on_other_points = self.guard.validation().and_then(|sums| sums.multipliers());
        let all: Vec<&dyn Multipliers> = [multipliers].into_iter().chain(on_other_points).collect();
        all.iter().for_each(|multipliers| multipliers.reset());
        self.follow_load()?;
        for _ in 0..ROUNDS {
            all.iter()
                .for_each(|multipliers| multipliers.update(&self.network));
            self.follow_load()?;
        }
        self.measure_anew()?;
        if let Some(board) = &mut self.board
            && self.params.quadratic
        {
            board.refresh(&*self.projection.gradient(&self.network)?, grid)?;
        }
        Ok(())
    }

    /// The projection for a load that has changed.
    fn follow_load(&mut self) -> Result<(), SolveError> {
        let gradient = self.projection.gradient(&self.network)?;
        self.projection
            .follow_load(&gradient.list_scores(&self.network.neurons)?);
        self.network.coefficients = self.projection.coefficients(&self.network.neurons)?;
        Ok(())
    }
}
