//! The sums over the points on a GPU.
//!
//! Points and coefficients live on the device (or stream through it, tile by tile); per call only the
//! network and the candidates go up and sums over blocks of points come down, to be added in double
//! precision here. Coefficient formulas are evaluated on the host: WGSL promises no more than three
//! digits of sin and cos, and has none in double precision.

use super::device_term::{DeviceTerm, Source, TermOptions};
use super::rows::RowPlan;
use super::{Backend, BackendReport, CpuBackend, CpuOptions, LocalScore};
use crate::activation::Activation;
use crate::candidates::{Candidates, Grid};
use crate::domain::Domain;
use crate::error::SolveError;
use crate::gpu::{DeviceError, Gpu, Precision};
use crate::loss::Loss;
use crate::network::{Network, Neuron};
use crate::search::BestFirst;
use std::sync::Arc;

/// Points per tile on the device to begin with; halved when memory runs out.
const FIRST_TILE: usize = 1 << 18;
/// A smaller tile is not worth a device.
const SMALLEST_TILE: usize = 1 << 13;
/// Offsets per row: they share ω·x.
const ROW: usize = 32;
/// Candidates whose f32 scores are compared with f64 to measure the noise.
const PROBES: usize = 64;
/// A best score below this many times the noise means nothing.
const NOISE_MARGIN: f64 = 16.0;
/// More candidates than this within the noise of the best: f64 for all is cheaper.
const LARGEST_BAND: usize = 4096;

/// In which precision the device scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrecisionChoice {
    /// f32 until the scores come near their noise, then f64.
    #[default]
    Auto,
    /// Always f32.
    F32,
    /// Always f64.
    F64,
}

/// Settings of the GPU path.
#[derive(Debug, Clone, Copy)]
pub struct GpuOptions {
    /// In which precision the device scores.
    pub precision: PrecisionChoice,
    /// Points are kept on the device if they take at most this many bytes; else they stream.
    pub resident_bytes: usize,
    /// The same for what the CPU must do.
    pub cpu: CpuOptions,
}

/// [`Backend`] on a GPU.
pub struct GpuBackend {
    gpu: Arc<Gpu>,
    loss: Loss,
    domain: Domain,
    activation: Activation,
    options: GpuOptions,
    /// How the grid is scored now.
    scoring: Precision,
    /// Whether the host computes the channels of f32 scores: in f64, which lowers their noise.
    host_channels: bool,
    tile: usize,
    narrow: Option<Vec<DeviceTerm>>,
    wide: Option<Vec<DeviceTerm>>,
    /// Where the device cannot: made when it is first needed.
    cpu: Option<CpuBackend>,
    given_up: bool,
    notes: Vec<String>,
}

impl GpuBackend {
    /// The sums of `loss` on a device.
    pub fn new(
        gpu: Arc<Gpu>,
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        options: GpuOptions,
    ) -> Result<Self, SolveError> {
        let mut backend = Self {
            gpu,
            loss,
            domain: domain.clone(),
            activation,
            options,
            scoring: Precision::F32,
            host_channels: false,
            tile: FIRST_TILE,
            narrow: None,
            wide: None,
            cpu: None,
            given_up: false,
            notes: Vec::new(),
        };
        if options.precision == PrecisionChoice::F64 {
            backend.scoring = Precision::F64;
            if !backend.has_f64() {
                backend.notes.push(format!(
                    "{} cannot compute {} in f64: the CPU does it",
                    backend.gpu.report().name,
                    activation
                ));
            }
        }
        Ok(backend)
    }

    /// Whether the device can do everything in f64: it has no exp in that precision, neither for the
    /// activation nor for a potential.
    fn has_f64(&self) -> bool {
        self.gpu.report().f64 && self.activation.relu_power().is_some() && self.loss.is_quadratic()
    }

    fn cpu(&mut self) -> Result<&mut CpuBackend, SolveError> {
        if self.cpu.is_none() {
            self.cpu = Some(CpuBackend::new(
                self.loss.clone(),
                self.activation,
                self.options.cpu,
            )?);
        }
        match &mut self.cpu {
            Some(cpu) => Ok(cpu),
            None => unreachable!("it was made just now"),
        }
    }

    /// Runs on the device; when memory runs out with smaller tiles; when the device is lost not at all:
    /// then `None`, and the CPU takes over for good.
    fn on_device<T>(
        &mut self,
        precision: Precision,
        action: impl Fn(&mut Vec<DeviceTerm>) -> Result<T, GpuFailure>,
    ) -> Result<Option<T>, SolveError> {
        while !self.given_up {
            let result = match self.terms(precision) {
                Ok(terms) => action(terms),
                Err(failure) => Err(failure),
            };
            match result {
                Ok(value) => return Ok(Some(value)),
                Err(GpuFailure::Solve(error)) => return Err(error),
                Err(GpuFailure::Device(DeviceError::OutOfMemory(_))) if self.tile > SMALLEST_TILE => {
                    self.tile /= 2;
                    self.narrow = None;
                    self.wide = None;
                    self.notes.push(format!(
                        "out of device memory: going on with tiles of {} points",
                        self.tile
                    ));
                }
                Err(GpuFailure::Device(error)) => {
                    self.given_up = true;
                    self.narrow = None;
                    self.wide = None;
                    self.notes.push(format!("{error}; the CPU goes on"));
                }
            }
        }
        Ok(None)
    }

    fn terms(&mut self, precision: Precision) -> Result<&mut Vec<DeviceTerm>, GpuFailure> {
        let slot = match precision {
            Precision::F32 => &mut self.narrow,
            Precision::F64 => &mut self.wide,
        };
        if slot.is_none() {
            let bytes: usize = self
                .loss
                .terms
                .iter()
                .map(|term| DeviceTerm::bytes(term, precision))
                .fold(0, usize::saturating_add);
            let options = TermOptions {
                precision,
                tile: self.tile,
                row: ROW,
                resident: bytes <= self.options.resident_bytes,
            };
            let terms: Result<Vec<DeviceTerm>, GpuFailure> = self
                .loss
                .terms
                .iter()
                .map(|term| DeviceTerm::new(Arc::clone(&self.gpu), term, self.activation, options))
                .collect();
            *slot = Some(terms?);
        }
        match slot {
            Some(terms) => Ok(terms),
            None => unreachable!("it was made just now"),
        }
    }

    /// Scores in one precision on the device.
    fn device_scores(
        &mut self,
        precision: Precision,
        source: Source,
        along: Candidates,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        self.sum_scores(precision, &vec![source; self.loss.terms.len()], along)
    }

    /// The same with a source for each term.
    fn sum_scores(
        &mut self,
        precision: Precision,
        sources: &[Source],
        along: Candidates,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        let plan = RowPlan::new(self.activation, &self.domain, along, ROW);
        self.on_device(precision, |terms| {
            let mut scores = vec![0.0; plan.count];
            for (term, &source) in terms.iter_mut().zip(sources) {
                term.add_scores(source, &plan, &mut scores)?;
            }
            plan.complete(&mut scores);
            Ok(scores)
        })
    }

    /// ⟨∇L(u), g⟩ on the device. A potential is evaluated on the host, which then sends the channels up;
    /// likewise where u in f32 would be too noisy.
    fn device_gradient(
        &mut self,
        precision: Precision,
        u: &Network,
        along: Candidates,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        let by_host = self.host_channels && precision == Precision::F32;
        if self.loss.is_quadratic() && !by_host {
            return self.device_scores(precision, Source::gradient(u), along);
        }
        let Some(columns) = self.cpu()?.gradient_columns(u)? else {
            return Ok(None);
        };
        let sources: Vec<Source> = columns.iter().map(|columns| Source::Columns(columns)).collect();
        self.sum_scores(precision, &sources, along)
    }

    /// Scores as the device computes them in the precision in force, without a second look in f64:
    /// what `bench` times and tests compare.
    pub fn raw_scores(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError> {
        match self.device_gradient(self.scoring, u, along)? {
            Some(scores) => Ok(scores),
            None => self.cpu()?.gradient(u, along),
        }
    }

    /// Scores in f64: on the device if it can, else on the CPU.
    fn exact_gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError> {
        if self.has_f64()
            && let Some(scores) = self.device_scores(Precision::F64, Source::gradient(u), along)?
        {
            return Ok(scores);
        }
        self.cpu()?.gradient(u, along)
    }

    /// f32 scores with everything that could be the best scored again in f64.
    ///
    /// The noise is measured: a few candidates are scored both ways. Most of it comes from u in f32;
    /// where the best score is not far above it the host evaluates u, and where that does not help
    /// either the precision changes to f64 for good, so that noise is never picked as a neuron.
    fn scan(&mut self, u: &Network, grid: &Grid) -> Result<Vec<f64>, SolveError> {
        let along = Candidates::Grid(grid);
        let Some(mut scores) = self.device_gradient(Precision::F32, u, along)? else {
            return self.cpu()?.gradient(u, along);
        };
        let probes = probes(&scores);
        let noise = 4.0 * self.rescore(u, grid, &probes, &mut scores)?;
        let best = probes.iter().map(|&i| scores[i].abs()).fold(0.0, f64::max);
        let band: Vec<usize> = (0..scores.len())
            .filter(|i| scores[*i].abs() >= best - 2.0 * noise && !probes.contains(i))
            .collect();
        let lost = best < NOISE_MARGIN * noise || band.len() > LARGEST_BAND;
        if lost && self.options.precision == PrecisionChoice::Auto {
            if self.loss.is_quadratic() && !self.host_channels && self.cpu()?.keeps_points() {
                self.host_channels = true;
                self.notes.push(format!(
                    "from {} neurons on u is evaluated on the CPU in f64 and scored on the device in f32: the best score, {best:.1e}, came near the noise of f32, {noise:.1e}",
                    u.len(),
                ));
                return self.scan(u, grid);
            }
            self.scoring = Precision::F64;
            self.notes.push(format!(
                "from {} neurons on scores are computed in f64{}: the best, {best:.1e}, came near the noise of f32, {noise:.1e}",
                u.len(),
                if self.has_f64() { "" } else { " on the CPU" },
            ));
            return self.exact_gradient(u, along);
        }
        if band.len() <= LARGEST_BAND {
            self.rescore(u, grid, &band, &mut scores)?;
        }
        Ok(scores)
    }

    /// Replaces some scores by f64 ones; returns the largest change.
    fn rescore(
        &mut self,
        u: &Network,
        grid: &Grid,
        which: &[usize],
        scores: &mut [f64],
    ) -> Result<f64, SolveError> {
        if which.is_empty() {
            return Ok(0.0);
        }
        let list: Vec<Neuron> = which.iter().map(|&index| grid.neuron(index)).collect();
        let exact = self.exact_gradient(u, Candidates::List(&list))?;
        let mut largest: f64 = 0.0;
        for (&index, exact) in which.iter().zip(exact) {
            largest = largest.max((scores[index] - exact).abs());
            scores[index] = exact;
        }
        Ok(largest)
    }
}

/// The best few and some spread evenly.
fn probes(scores: &[f64]) -> Vec<usize> {
    let mut chosen: Vec<usize> = BestFirst::new(scores, 0.0, &|_| 0.0).take(PROBES / 4).collect();
    let step = scores.len().div_ceil(PROBES).max(1);
    chosen.extend((0..scores.len()).step_by(step));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

impl Backend for GpuBackend {
    fn activation(&self) -> Activation {
        self.activation
    }

    fn points(&self) -> usize {
        self.loss.points()
    }

    fn gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError> {
        match along {
            Candidates::Grid(grid) if self.scoring == Precision::F32 => self.scan(u, grid),
            _ => self.exact_gradient(u, along),
        }
    }

    fn curvature(&mut self, u: &Network, v: &Neuron, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let single = Network::single(self.activation, v);
        if self.has_f64()
            && let Some(column) = self.device_scores(Precision::F64, Source::curvature(&single), along)?
        {
            return Ok(column);
        }
        self.cpu()?.curvature(u, v, along)
    }

    fn risk(&mut self, u: &Network) -> Result<f64, SolveError> {
        if self.has_f64() {
            let risk = self.on_device(Precision::F64, |terms| {
                let mut sum = 0.0;
                for term in terms.iter_mut() {
                    sum += term.risk(u)?;
                }
                Ok(sum)
            })?;
            if let Some(risk) = risk {
                return Ok(risk);
            }
        }
        self.cpu()?.risk(u)
    }

    fn local_scores(&mut self, u: &Network, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        if self.has_f64() {
            let scores = self.on_device(Precision::F64, |terms| {
                let mut scores = vec![LocalScore::zero(u.dimension); neurons.len()];
                for term in terms.iter_mut() {
                    term.add_local(u, neurons, &mut scores)?;
                }
                Ok(scores)
            })?;
            if let Some(scores) = scores {
                return Ok(scores);
            }
        }
        self.cpu()?.local_scores(u, neurons)
    }

    fn embedding(&mut self, v: &Neuron) -> Result<Option<Vec<f64>>, SolveError> {
        self.cpu()?.embedding(v)
    }

    fn embedding_adjoint(&mut self, values: &[f64], along: Candidates) -> Result<Vec<f64>, SolveError> {
        self.cpu()?.embedding_adjoint(values, along)
    }

    fn embedding_length(&self) -> Option<usize> {
        self.loss.is_quadratic().then(|| {
            let widths = self
                .loss
                .terms
                .iter()
                .map(|term| term.points.len() * term.embedding_width());
            widths.sum()
        })
    }

    fn report(&self) -> BackendReport {
        BackendReport {
            backend: if self.given_up { "cpu" } else { "gpu" },
            adapter: Some(self.gpu.report().name.clone()),
            precision: match (self.options.precision, self.scoring) {
                (PrecisionChoice::Auto, Precision::F64) => "auto: f32, then f64",
                (_, Precision::F32) => "f32",
                (_, Precision::F64) => "f64",
            },
            notes: self.notes.clone(),
        }
    }
}

/// What can go wrong in a term on the device.
#[derive(Debug)]
pub(super) enum GpuFailure {
    Device(DeviceError),
    Solve(SolveError),
}

impl From<DeviceError> for GpuFailure {
    fn from(error: DeviceError) -> Self {
        GpuFailure::Device(error)
    }
}

impl From<SolveError> for GpuFailure {
    fn from(error: SolveError) -> Self {
        GpuFailure::Solve(error)
    }
}
