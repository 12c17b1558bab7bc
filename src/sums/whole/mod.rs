//! Sums over the points in whole numbers, for ReLU^k: the same on every machine, to the bit.
//!
//! Points, coefficients and channels are whole numbers of 61 bits under exponents (`fixed`), the sums over them are
//! exact. An [`Engine`] does what touches every point, on the CPU or on a device; what is done with the sums is
//! done here, once, in double precision. So networks do not depend on where the sums were made.

mod engine;
mod fallback;
pub(crate) mod fixed;
mod reference;
mod rho;
mod runs;
mod shared;
mod term;

pub use engine::{
    Engine, EngineReport, Functional, LineValues, NeuronList, NeuronSums, Peaks, SUM_BITS, Source,
};
#[cfg(feature = "gpu")]
pub(crate) use engine::{whole_columns, with_leads};
pub use fallback::Fallback;
pub use reference::Reference;
pub use runs::{LARGEST_COUNT, LineRuns, LineSums, Runs, TASK, Task};
pub use term::{BLOCK, ChannelShifts, WholeNetwork, WholeTerm};

use super::{
    CpuField, CpuOptions, CpuSums, CurvatureRoot, Field, PointValues, Remainders, Rho, Sums, SumsReport,
};
use crate::activation::Activation;
use crate::candidates::{Candidates, Grid};
use crate::cluster::{Cluster, Share};
use crate::domain::Domain;
use crate::error::SolveError;
use crate::loss::Loss;
use crate::network::{Network, Neuron};
use rho::WholeRho;
use shared::Others;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// [`Sums`] in whole numbers.
pub struct WholeSums {
    engine: Box<dyn Engine>,
    terms: Arc<Vec<WholeTerm>>,
    /// The processes that share the points.
    others: Others,
    loss: Loss,
    activation: Activation,
    power: usize,
    cpu_options: CpuOptions,
    /// In double precision, for what is asked for once; made when it is first needed.
    cpu: OnceLock<CpuSums>,
    /// The directions of the grid at hand.
    runs: Mutex<Option<Arc<Runs>>>,
}

impl WholeSums {
    /// Whether this activation has such sums.
    pub fn serves(activation: Activation) -> bool {
        activation.has_sweep()
    }

    /// The bytes of a loss in whole numbers.
    pub fn bytes(loss: &Loss) -> usize {
        let terms = loss.terms.iter().map(WholeTerm::bytes);
        terms.fold(0, usize::saturating_add)
    }

    /// The sums of `loss` by the engine that `make` makes of its terms.
    pub fn new(
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        cpu_options: CpuOptions,
        make: impl FnOnce(Arc<Vec<WholeTerm>>) -> Box<dyn Engine>,
    ) -> Result<Self, SolveError> {
        Self::shared(loss, domain, activation, (cpu_options, Cluster::alone()), make)
    }

    /// The same, shared with other processes, whose engines may be others.
    pub fn shared(
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        (cpu_options, cluster): (CpuOptions, Cluster),
        make: impl FnOnce(Arc<Vec<WholeTerm>>) -> Box<dyn Engine>,
    ) -> Result<Self, SolveError> {
        let power = activation.relu_power().ok_or(SolveError::Unsupported(
            "whole numbers for an activation without a sweep",
        ))?;
        let terms = loss.terms.iter().zip(CpuSums::own_points(&loss, &cluster));
        let terms: Result<Vec<WholeTerm>, SolveError> = terms
            .map(|(term, own)| WholeTerm::shared(term, domain, power, own, &cluster))
            .collect();
        let terms = Arc::new(terms?);
        Ok(Self {
            engine: make(Arc::clone(&terms)),
            terms,
            others: Others::new(cluster),
            loss,
            activation,
            power,
            cpu_options,
            cpu: OnceLock::new(),
            runs: Mutex::new(None),
        })
    }

    /// The reference: on the CPU.
    pub fn on_the_cpu(
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        cpu_options: CpuOptions,
    ) -> Result<Self, SolveError> {
        Self::new(loss, domain, activation, cpu_options, |terms| {
            Box::new(Reference::new(terms))
        })
    }

    fn cpu(&self) -> Result<&CpuSums, SolveError> {
        if self.cpu.get().is_none() {
            let (loss, cluster) = (self.loss.clone(), self.others.cluster.clone());
            let made = CpuSums::shared(loss, self.activation, self.cpu_options, cluster)?;
            self.cpu.get_or_init(|| made);
        }
        match self.cpu.get() {
            Some(cpu) => Ok(cpu),
            None => unreachable!("it was made just now"),
        }
    }

    /// The directions of a grid, as they are kept or new.
    fn runs_of(&self, grid: &Grid) -> Arc<Runs> {
        let mut kept = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(runs) if runs.serve(grid) => Arc::clone(runs),
            _ => {
                let runs = Arc::new(Runs::new(Arc::clone(&self.terms), grid));
                *kept = Some(Arc::clone(&runs));
                runs
            }
        }
    }

    /// The directions of the grid at hand.
    fn kept_runs(&self) -> Option<Arc<Runs>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn rho(&self, functional: Functional) -> Box<dyn Rho + '_> {
        Box::new(WholeRho {
            sums: self,
            functional,
        })
    }

    /// A functional that the host computed; where its columns are not to be had, as the host has it.
    fn taken_from_host<'a>(&'a self, host: super::CpuRho<'a>) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(match host.columns()? {
            Some(columns) => self.rho(Functional::of_columns(columns, &self.others.cluster)),
            None => Box::new(host),
        })
    }
}

impl Sums for WholeSums {
    fn activation(&self) -> Activation {
        self.activation
    }

    fn points(&self) -> usize {
        self.loss.points()
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        let host = match self.loss.is_quadratic() {
            true => None,
            false => Some(self.cpu()?.field(u)),
        };
        Ok(Box::new(WholeField {
            sums: self,
            u: u.clone(),
            host,
        }))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        self.loss.is_quadratic().then_some(self as &dyn PointValues)
    }

    /// The host's, in double precision: they are asked for at many neurons in turn, one small sum after another.
    fn remainders(&self) -> Option<&dyn Remainders> {
        self.cpu().ok()?.remainders()
    }

    fn report(&self) -> SumsReport {
        let report = self.engine.report();
        SumsReport {
            backend: if report.adapter.is_some() && !report.lost {
                "gpu"
            } else {
                "cpu"
            },
            adapter: report.adapter,
            precision: "integer",
            notes: report.notes,
        }
    }
}

/// Values at the points are the host's, in double precision.
impl CurvatureRoot for WholeSums {
    fn length(&self) -> usize {
        let terms = self.loss.terms.iter();
        terms.map(|term| term.points.len() * term.embedding_width()).sum()
    }

    fn cluster(&self) -> &Cluster {
        &self.others.cluster
    }

    fn shares(&self) -> Vec<Share> {
        // Whoever asks for the numbers themselves is told why there are none.
        self.cpu().map_or_else(|_| Vec::new(), CurvatureRoot::shares)
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        CurvatureRoot::of(self.cpu()?, v)
    }
}

impl PointValues for WholeSums {
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.taken_from_host(self.cpu()?.rho_from_values(values_of_u, true)?)
    }

    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.taken_from_host(self.cpu()?.rho_from_values(values_of_v, false)?)
    }
}

/// [`Field`] in whole numbers.
struct WholeField<'a> {
    sums: &'a WholeSums,
    u: Network,
    /// On the host, where a potential asks for functions that whole numbers do not have.
    host: Option<CpuField<'a>>,
}

impl<'a> Field<'a> for WholeField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        match &self.host {
            Some(host) => self.sums.taken_from_host(host.gradient_rho()?),
            None => Ok(self.sums.rho(Functional::of_network(self.u.clone(), true))),
        }
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        match &self.host {
            Some(host) => self.sums.taken_from_host(host.curvature_rho(v)?),
            None => Ok(self.sums.rho(Functional::of_network(v.clone(), false))),
        }
    }

    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        // Asked for once in a run.
        match &self.host {
            Some(host) => host.squares(along),
            None => self.sums.cpu()?.field(&self.u).squares(along),
        }
    }

    fn risk(&self) -> Result<f64, SolveError> {
        match &self.host {
            Some(host) => host.risk(),
            None => {
                let parts = self.sums.others.risk(&self.u, &*self.sums.engine)?;
                Ok(parts.into_iter().map(|(unit, sum)| unit * sum as f64).sum())
            }
        }
    }

    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        match (&self.host, self.sums.cpu()) {
            (Some(host), _) => host.root(),
            (None, Ok(cpu)) => cpu.field(&self.u).root(),
            // Whoever asks for its numbers is told why there are none.
            (None, Err(_)) => None,
        }
    }

    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        self.u = self.u.advanced(factor, g, coefficient);
        match &mut self.host {
            Some(host) => host.advance(factor, g, coefficient),
            None => Ok(()),
        }
    }
}
