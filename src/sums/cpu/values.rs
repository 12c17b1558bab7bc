//! Values of functions at the points.

use super::CpuSums;
use super::rho::{CpuRho, Recipe};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::ridge::Evaluator;
use crate::sums::{PointValues, Rho};

impl PointValues for CpuSums {
    fn length(&self) -> usize {
        self.tiles.last().map_or(0, |spec| spec.values.end)
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        let prepared = Evaluator::new(&Network::single(self.activation, v));
        self.reduce(
            Vec::new,
            |rows: &mut Vec<f64>, term, tile, scratch| {
                let jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
                rows.extend(term.embed(tile, &jets));
                Ok(())
            },
            |total, rows| total.extend(rows),
        )
    }

    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(self.gradient_from_values(values_of_u)?))
    }
}

impl CpuSums {
    /// ∇L(u), from E(u).
    pub(crate) fn gradient_from_values(&self, values_of_u: &[f64]) -> Result<CpuRho<'_>, SolveError> {
        CpuRho::new(self, Recipe::Values(values_of_u.to_vec()))
    }
}
