//! Values of functions at the points.

use super::CpuSums;
use super::field::AtPoints;
use super::rho::{CpuRho, Recipe};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::ridge::Evaluator;
use crate::sums::{CurvatureRoot, PointValues, Rho};
use std::sync::Arc;

/// A square root of ∇²L(u).
pub(super) struct CpuRoot<'a> {
    pub(super) sums: &'a CpuSums,
    /// u, where the curvature depends on it.
    pub(super) at: Option<Arc<AtPoints>>,
}

impl CurvatureRoot for CpuRoot<'_> {
    fn length(&self) -> usize {
        self.sums.values_length()
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.sums.values_of(v, self.at.as_deref())
    }
}

impl CurvatureRoot for CpuSums {
    fn length(&self) -> usize {
        self.values_length()
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.values_of(v, None)
    }
}

impl PointValues for CpuSums {
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(self.rho_from_values(values_of_u, true)?))
    }

    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(self.rho_from_values(values_of_v, false)?))
    }
}

impl CpuSums {
    fn values_length(&self) -> usize {
        self.tiles.last().map_or(0, |spec| spec.values.end)
    }

    /// The values of v, weighted by the curvature at u.
    fn values_of(&self, v: &Neuron, u: Option<&AtPoints>) -> Result<Vec<f64>, SolveError> {
        let prepared = Evaluator::new(&Network::single(self.activation, v));
        self.reduce(
            Vec::new,
            |rows: &mut Vec<f64>, term, tile, scratch| {
                let u = u.map(|u| u.values_at(term, tile, scratch));
                let jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
                rows.extend(term.embed_at(tile, u.as_deref(), &jets, &mut scratch.workspace)?);
                Ok(())
            },
            |total, rows| {
                // As long as it will be: the projection keeps it.
                total.reserve_exact(self.values_length() - total.len());
                total.extend(rows);
            },
        )
    }

    /// ∇L(u), from E(u), or without the load ∇²L u.
    pub(crate) fn rho_from_values(&self, values: &[f64], with_load: bool) -> Result<CpuRho<'_>, SolveError> {
        let values = values.to_vec();
        CpuRho::new(self, Recipe::Values { values, with_load })
    }
}
