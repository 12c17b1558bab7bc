//! What is known of the neurons of a flow: their inner products, grown by a row with each.

use super::FlowLosses;
use super::gram::Gram;
use super::hold::Holding;
use super::loads::KnownLoads;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::{Addition, Cholesky};
use crate::sums::Sums;

/// The neurons with M, A = (c/τ) M + K, its factor, and their loads.
pub(super) struct System<'l, 'a> {
    pub(super) losses: &'l FlowLosses<'a>,
    pub(super) zero: Network,
    pub(super) neurons: Vec<Neuron>,
    pub(super) mass: Gram,
    pub(super) curvature: Gram,
    pub(super) factor: Cholesky,
    pub(super) loads: KnownLoads<'l, 'a>,
    pub(super) holding: Option<Holding<'l, 'a>>,
    /// The step's functional at the present time, where a coefficient depends on it.
    at_time: Option<Box<dyn Sums>>,
}

impl<'l, 'a> System<'l, 'a> {
    pub(super) fn new(losses: &'l FlowLosses<'a>, zero: Network) -> Self {
        Self {
            losses,
            neurons: Vec::new(),
            mass: Gram::default(),
            curvature: Gram::default(),
            factor: Cholesky::default(),
            loads: KnownLoads::new(losses.loads, zero.clone()),
            holding: Holding::new(losses, &zero),
            at_time: None,
            zero,
        }
    }

    /// (c/2τ)‖u‖² + E(u) without a load, at the present time.
    pub(super) fn step(&self) -> &dyn Sums {
        self.at_time.as_deref().unwrap_or(self.losses.step)
    }

    /// Goes to a time: where a coefficient depends on it, A and its factor are made anew.
    pub(super) fn go_to(&mut self, time: f64) -> Result<(), SolveError> {
        let Some(varying) = self.losses.varying else {
            return Ok(());
        };
        self.at_time = Some(varying(time)?);
        (self.curvature, self.factor) = (Gram::default(), Cholesky::default());
        for n in 0..self.neurons.len() {
            let column = self.step().gram_column(&self.neurons[n], &self.neurons[..=n])?;
            if self.factor.try_add(&column, 0.0) != Addition::Added {
                return Err(SolveError::Breakdown { neurons: n });
            }
            self.curvature.push(column);
        }
        Ok(())
    }

    /// Whether what acts, or what is held, is something else at the second time than at the first.
    pub(super) fn changes(&self, from: f64, to: f64) -> bool {
        let held = self.holding.as_ref();
        self.loads.change(from, to) || held.is_some_and(|holding| holding.change(from, to))
    }

    /// The network with these coefficients of the first neurons.
    pub(super) fn network(&self, coefficients: &[f64]) -> Network {
        Network {
            neurons: self.neurons[..coefficients.len()].to_vec(),
            coefficients: coefficients.to_vec(),
            ..self.zero.clone()
        }
    }

    /// The products of a neuron with all of them and, last, with itself under A.
    pub(super) fn column(&self, neuron: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.step().gram_column(neuron, &self.with(neuron))
    }

    fn with(&self, neuron: &Neuron) -> Vec<Neuron> {
        let mut list = self.neurons.clone();
        list.push(neuron.clone());
        list
    }

    /// Adds a neuron with its column under A, all but its loads; `false` if the others span it.
    pub(super) fn try_add(
        &mut self,
        neuron: &Neuron,
        column: Vec<f64>,
        score: f64,
    ) -> Result<bool, SolveError> {
        let row = self.losses.mass.gram_column(neuron, &self.with(neuron))?;
        if self.factor.try_add(&column, score) != Addition::Added {
            return Ok(false);
        }
        self.curvature.push(column);
        self.mass.push(row);
        self.neurons.push(neuron.clone());
        if let Some(holding) = &mut self.holding {
            holding.push(neuron, &self.neurons)?;
        }
        Ok(true)
    }

    /// Takes the last neuron back.
    pub(super) fn pop(&mut self) {
        self.neurons.pop();
        self.curvature.pop();
        self.mass.pop();
        self.factor.pop();
        self.loads.pop();
        if let Some(holding) = &mut self.holding {
            holding.pop();
        }
    }

    /// The functional ∇²(step) q of the normalised part q that the last neuron added, and the component along it.
    pub(super) fn newest(&self) -> Result<Option<crate::projection::Newest<'a>>, SolveError> {
        let Some((coefficients, component)) = self.factor.newest() else {
            return Ok(None);
        };
        let q = self.network(&coefficients);
        let rho = self.losses.step.at(&self.zero)?.curvature(&q)?;
        Ok(Some(crate::projection::Newest { rho, component }))
    }
}
