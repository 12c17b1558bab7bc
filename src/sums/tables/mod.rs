//! Neurons along the axes: after one pass over the points, none is ever needed again.
//!
//! With ω = ±eᵢ and knots on the edges of bins, a neuron is a polynomial in xᵢ on every bin. Products of
//! two neurons are then fixed by the moments Σ w a δᵢᵖ δⱼ^q of each pair of bins: every score, load and
//! Gram entry follows exactly from [tables](MomentTables), at a cost that does not depend on the number
//! of points. Boundary terms, if there are any, are added the usual way.

mod block;
mod file;
mod pass;
mod stack;
#[allow(clippy::module_inception)]
mod tables;
mod whole_pass;

pub use file::TableStore;
pub use tables::{MomentTables, PairSums, PassOptions};
pub use whole_pass::WholePass;
#[cfg(feature = "gpu")]
pub(crate) use whole_pass::{Unit, add_cells};
#[cfg(feature = "gpu")]
pub(crate) use {
    block::Block,
    tables::{PASS_BLOCK, PairTable, axis_pairs},
};

use super::{
    Accuracy, CpuSums, CurvatureRoot, Field, PointValues, Remainders, Rho, Scores, Slopes, Sums, SumsReport,
};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use stack::{EdgeSums, Stack, curvature_stack, load_stack, square_of};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// [`Sums`] by moment tables.
pub struct TableSums {
    tables: MomentTables,
    /// What is not in the tables.
    rest: Option<CpuSums>,
    points: usize,
    load: Stack,
    notes: Vec<String>,
    /// ∇²L v of the neurons met so far.
    known: Mutex<HashMap<(usize, bool, u64), Arc<Stack>>>,
}

/// A neuron along an axis: σ(x − τ), or σ(τ − x) if mirrored.
#[derive(Debug, Clone, Copy)]
struct AxisNeuron {
    axis: usize,
    mirrored: bool,
    knot: f64,
}

impl AxisNeuron {
    fn new(neuron: &Neuron) -> Result<Self, SolveError> {
        let mut found = neuron.omega.iter().enumerate().filter(|(_, o)| **o != 0.0);
        match (found.next(), found.next()) {
            (Some((axis, &o)), None) if o.abs() == 1.0 => Ok(Self {
                axis,
                mirrored: o < 0.0,
                knot: -o * neuron.bias,
            }),
            _ => Err(SolveError::Unsupported(
                "directions other than the axes in moment tables",
            )),
        }
    }

    fn key(self) -> (usize, bool, u64) {
        (self.axis, self.mirrored, self.knot.to_bits())
    }
}

impl TableSums {
    /// Sums from tables of one term and the other terms.
    pub fn new(tables: MomentTables, points: usize, rest: Option<CpuSums>) -> Self {
        let load = load_stack(&tables);
        Self {
            tables,
            points: points + rest.as_ref().map_or(0, Sums::points),
            rest,
            load,
            notes: Vec::new(),
            known: Mutex::new(HashMap::new()),
        }
    }

    /// With something that the user should know.
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The curvature stack of a neuron, as it is known or from the tables.
    fn stack(&self, neuron: &Neuron) -> Result<Arc<Stack>, SolveError> {
        let neuron = AxisNeuron::new(neuron)?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = known().get(&neuron.key()) {
            return Ok(Arc::clone(stack));
        }
        let stack = Arc::new(curvature_stack(&self.tables, neuron)?);
        known().insert(neuron.key(), Arc::clone(&stack));
        Ok(stack)
    }

    /// The gradient's stack at u: Σ a (∇²L g) − l.
    fn gradient_stack(&self, u: &Network) -> Result<Stack, SolveError> {
        self.added(self.load.scaled(-1.0), u)
    }

    /// Σ a (∇²L g) for the neurons of v.
    fn curvature_stack(&self, v: &Network) -> Result<Stack, SolveError> {
        self.added(self.load.scaled(0.0), v)
    }

    fn added(&self, mut sum: Stack, v: &Network) -> Result<Stack, SolveError> {
        for (neuron, &a) in v.neurons.iter().zip(&v.coefficients) {
            let stack = self.stack(neuron)?;
            sum.add(a, &stack);
        }
        Ok(sum)
    }

    fn scores(&self, stack: &Stack, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let sums: Vec<EdgeSums> = stack
            .axes
            .iter()
            .zip(&self.tables.axes)
            .map(|(moments, bins)| EdgeSums::new(self.tables.power, *bins, moments))
            .collect();
        let score = |neuron: &Neuron| {
            let neuron = AxisNeuron::new(neuron)?;
            sums[neuron.axis].score(neuron)
        };
        match along {
            Candidates::Grid(grid) => (0..grid.len()).map(|index| score(&grid.neuron(index))).collect(),
            Candidates::List(list) => list.iter().map(score).collect(),
        }
    }
}

/// [`Field`] by moment tables.
struct TableField<'a> {
    sums: &'a TableSums,
    u: Network,
    rest: Option<Box<dyn Field<'a> + 'a>>,
}

/// [`Rho`] by moment tables.
struct TableRho<'a> {
    sums: &'a TableSums,
    stack: Stack,
    rest: Option<Box<dyn Rho + 'a>>,
}

impl Sums for TableSums {
    fn activation(&self) -> Activation {
        Activation::Relu(self.tables.power as u32)
    }

    fn points(&self) -> usize {
        self.points
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        let rest = self.rest.as_ref().map(|rest| rest.at(u)).transpose()?;
        Ok(Box::new(TableField {
            sums: self,
            u: u.clone(),
            rest,
        }))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        None
    }

    fn remainders(&self) -> Option<&dyn Remainders> {
        None
    }

    fn report(&self) -> SumsReport {
        let cpu = SumsReport::cpu();
        let report = SumsReport {
            backend: if self.tables.adapter.is_some() {
                "gpu"
            } else {
                cpu.backend
            },
            adapter: self.tables.adapter.clone(),
            precision: if self.tables.whole {
                "integer"
            } else {
                cpu.precision
            },
            ..cpu
        };
        SumsReport {
            notes: self.notes.clone(),
            ..report
        }
    }
}

impl<'a> Field<'a> for TableField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(TableRho {
            sums: self.sums,
            stack: self.sums.gradient_stack(&self.u)?,
            rest: self.rest.as_ref().map(|rest| rest.gradient()).transpose()?,
        }))
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(TableRho {
            sums: self.sums,
            stack: self.sums.curvature_stack(v)?,
            rest: self.rest.as_ref().map(|rest| rest.curvature(v)).transpose()?,
        }))
    }

    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let square = |neuron: &Neuron| square_of(&self.sums.tables, AxisNeuron::new(neuron)?);
        let mut squares: Vec<f64> = match along {
            Candidates::Grid(grid) => (0..grid.len())
                .map(|index| square(&grid.neuron(index)))
                .collect::<Result<_, _>>()?,
            Candidates::List(list) => list.iter().map(square).collect::<Result<_, _>>()?,
        };
        if let Some(rest) = &self.rest {
            let more = rest.squares(along)?;
            squares.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        Ok(squares)
    }

    fn risk(&self) -> Result<f64, SolveError> {
        // ½⟨Au, u⟩ − l(u) = ½(⟨∇L(u), u⟩ − l(u)).
        let (sums, u) = (self.sums, &self.u);
        let list = Candidates::List(&u.neurons);
        let gradient = sums.scores(&sums.gradient_stack(u)?, list)?;
        let load = sums.scores(&sums.load, list)?;
        let terms = u.coefficients.iter().zip(gradient.iter().zip(&load));
        let inside: f64 = terms.map(|(a, (g, l))| 0.5 * a * (g - l)).sum();
        match &self.rest {
            Some(rest) => Ok(inside + rest.risk()?),
            None => Ok(inside),
        }
    }

    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        None
    }

    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        self.u = self.u.advanced(factor, g, coefficient);
        match &mut self.rest {
            Some(rest) => rest.advance(factor, g, coefficient),
            None => Ok(()),
        }
    }
}

impl Rho for TableRho<'_> {
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError> {
        let mut scores = self.sums.scores(&self.stack, along)?;
        if let Some(rest) = &self.rest {
            let more = rest.scores(along, accuracy)?.values;
            scores
                .iter_mut()
                .zip(more)
                .for_each(|(score, more)| *score += more);
        }
        Ok(Scores::exact(scores))
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        None
    }
}
