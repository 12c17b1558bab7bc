//! A device, and the CPU when it is lost.

use super::engine::{Engine, EngineReport, Functional, LineValues, NeuronList, NeuronSums, Peaks};
use super::reference::Reference;
use super::runs::{LineSums, Runs};
use super::term::WholeTerm;
use crate::error::SolveError;
use crate::network::Network;
use std::sync::{Arc, OnceLock};

/// A device as long as it works; from the first failure on the [`Reference`], which gives the same numbers.
pub struct Fallback {
    device: Box<dyn Engine>,
    terms: Arc<Vec<WholeTerm>>,
    /// The reference and why it was needed.
    reference: OnceLock<(Reference, String)>,
}

impl Fallback {
    /// The sums of a device.
    pub fn new(device: Box<dyn Engine>, terms: Arc<Vec<WholeTerm>>) -> Self {
        Self {
            device,
            terms,
            reference: OnceLock::new(),
        }
    }

    fn ask<T>(&self, question: impl Fn(&dyn Engine) -> Result<T, SolveError>) -> Result<T, SolveError> {
        if let Some((reference, _)) = self.reference.get() {
            return question(reference);
        }
        match question(&*self.device) {
            Err(SolveError::Device(error)) => {
                let reference = || {
                    let note = format!("{error}; the CPU goes on");
                    (Reference::new(Arc::clone(&self.terms)), note)
                };
                question(&self.reference.get_or_init(reference).0)
            }
            answer => answer,
        }
    }
}

impl Engine for Fallback {
    fn peaks(&self, rho: &Functional) -> Result<Peaks, SolveError> {
        self.ask(|engine| engine.peaks(rho))
    }

    fn line_sums(
        &self,
        rho: &Functional,
        runs: &Runs,
        which: &[usize],
        values: &[LineValues],
    ) -> Result<Vec<Vec<LineSums>>, SolveError> {
        self.ask(|engine| engine.line_sums(rho, runs, which, values))
    }

    fn neuron_sums(&self, rho: &Functional, lists: &[NeuronList]) -> Result<Vec<NeuronSums>, SolveError> {
        self.ask(|engine| engine.neuron_sums(rho, lists))
    }

    fn risk_peaks(&self, u: &Network) -> Result<Peaks, SolveError> {
        self.ask(|engine| engine.risk_peaks(u))
    }

    fn risk_sums(&self, u: &Network, peaks: Option<&Peaks>) -> Result<Vec<(f64, i128)>, SolveError> {
        self.ask(|engine| engine.risk_sums(u, peaks))
    }

    fn report(&self) -> EngineReport {
        let mut report = self.device.report();
        if let Some((_, why)) = self.reference.get() {
            report.notes.push(why.clone());
            report.lost = true;
        }
        report
    }
}
