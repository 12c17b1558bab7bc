//! Values of functions at the points.

use super::CpuSums;
use super::field::AtPoints;
use super::rho::{CpuRho, Recipe};
use crate::cluster::{Cluster, Share};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::ridge::Evaluator;
use crate::sums::{CurvatureRoot, PointValues, Rho};
use crate::vector::dot;
use rayon::prelude::*;
use std::sync::Arc;

/// A square root of ∇²L(u).
pub(super) struct CpuRoot<'a> {
    pub(super) sums: &'a CpuSums,
    /// u, where the curvature depends on it.
    pub(super) at: Option<Arc<AtPoints>>,
}

impl CurvatureRoot for CpuRoot<'_> {
    fn length(&self) -> usize {
        self.sums.values.0
    }

    fn cluster(&self) -> &Cluster {
        &self.sums.cluster
    }

    fn shares(&self) -> Vec<Share> {
        self.sums.own_share()
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.sums.values_of(v, self.at.as_deref())
    }
}

impl CurvatureRoot for CpuSums {
    fn length(&self) -> usize {
        self.values.0
    }

    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn shares(&self) -> Vec<Share> {
        self.own_share()
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
    /// How many values of a function are held here.
    fn values_here(&self) -> usize {
        self.tiles.last().map_or(0, |spec| spec.values.end)
    }

    /// Where the values that are held here stand among all.
    fn own_share(&self) -> Vec<Share> {
        vec![Share {
            here: 0..self.values_here(),
            first: self.values.1,
        }]
    }

    /// |E(v)|² of each of some functions by their values.
    pub(super) fn squares_of_values(&self, all: &[Vec<f64>]) -> Vec<f64> {
        match self.cluster.is_alone() {
            true => all.par_iter().map(|values| dot(values, values)).collect(),
            false => all
                .iter()
                .map(|values| CurvatureRoot::square(self, values))
                .collect(),
        }
    }

    /// The values of v, weighted by the curvature at u.
    fn values_of(&self, v: &Neuron, u: Option<&AtPoints>) -> Result<Vec<f64>, SolveError> {
        self.cluster.agree(self.own_values_of(v, u))
    }

    /// The same without a word with other processes.
    pub(super) fn own_values_of(&self, v: &Neuron, u: Option<&AtPoints>) -> Result<Vec<f64>, SolveError> {
        let prepared = Evaluator::new(&Network::single(self.activation, v));
        let runs = self.of_runs(Vec::new, |rows: &mut Vec<f64>, term, tile, scratch| {
            let u = u.map(|u| u.values_at(term, tile, scratch));
            let jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
            rows.extend(term.embed_at(tile, u.as_deref(), &jets, &mut scratch.workspace)?);
            Ok(())
        })?;
        // As long as it will be: the projection keeps it.
        let mut all = Vec::with_capacity(self.values_here());
        runs.into_iter().for_each(|rows| all.extend(rows));
        Ok(all)
    }

    /// ∇L(u), from E(u), or without the load ∇²L u.
    pub(crate) fn rho_from_values(&self, values: &[f64], with_load: bool) -> Result<CpuRho<'_>, SolveError> {
        let values = values.to_vec();
        CpuRho::new(self, Recipe::Values { values, with_load })
    }
}
