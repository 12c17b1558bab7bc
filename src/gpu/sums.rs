//! The sums over the points on a GPU, with the CPU where the device cannot.
//!
//! Points, coefficients and channels live on the device (or stream through it, tile by tile); per call only
//! networks and candidates go up and sums over blocks of points come down, to be added in double precision
//! here. Coefficient formulas are evaluated on the host: WGSL promises no more than three digits of sin and
//! cos, and has none in double precision. So are activations and potentials that need such functions.

use super::loss::{DeviceLoss, DeviceRho, Origin};
use super::{Gpu, GpuFailure, Precision};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::domain::Domain;
use crate::error::SolveError;
use crate::loss::Loss;
use crate::network::{Network, Neuron};
use crate::ridge::LocalScore;
use crate::sums::{
    Accuracy, CpuField, CpuOptions, CpuRho, CpuSums, CurvatureRoot, Field, PointValues, PrecisionChoice,
    Remainders, Rho, Scores, Slopes, Sums, SumsReport,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Candidates whose f32 scores are compared with f64 to measure the error.
const PROBES: usize = 64;
/// The largest difference met at the probes, times this, bounds the error of all.
const ERROR_MARGIN: f64 = 4.0;

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

/// [`Sums`] on a GPU. When the device is lost the CPU takes over for good.
pub struct GpuSums {
    device: DeviceLoss,
    activation: Activation,
    options: GpuOptions,
    /// Made when it is first needed.
    cpu: OnceLock<CpuSums>,
    given_up: AtomicBool,
    /// Whether grids were scored in f32, and in f64.
    scored: [AtomicBool; 2],
    notes: Mutex<Vec<String>>,
}

impl GpuSums {
    /// The sums of `loss` on a device.
    pub fn new(
        gpu: Arc<Gpu>,
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        options: GpuOptions,
    ) -> Self {
        let device = DeviceLoss::new(gpu, loss, domain, activation, options.resident_bytes);
        let sums = Self {
            device,
            activation,
            options,
            cpu: OnceLock::new(),
            given_up: AtomicBool::new(false),
            scored: Default::default(),
            notes: Mutex::new(Vec::new()),
        };
        if !sums.device.makes_channels() {
            sums.note(format!(
                "u is evaluated on the CPU: {} has no double precision for {}",
                sums.device.gpu().report().name,
                match sums.device.has_f64() {
                    true => "a potential".to_string(),
                    false => activation.to_string(),
                }
            ));
        }
        sums
    }

    fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note);
    }

    fn cpu(&self) -> Result<&CpuSums, SolveError> {
        if self.cpu.get().is_none() {
            let loss = self.device.loss().clone();
            let made = CpuSums::new(loss, self.activation, self.options.cpu)?;
            self.cpu.get_or_init(|| made);
        }
        match self.cpu.get() {
            Some(cpu) => Ok(cpu),
            None => unreachable!("it was made just now"),
        }
    }

    fn is_lost(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// What the device says, or nothing once it is lost.
    fn on_device<T>(
        &self,
        action: impl FnOnce(&DeviceLoss) -> Result<T, GpuFailure>,
    ) -> Result<Option<T>, SolveError> {
        if self.is_lost() {
            return Ok(None);
        }
        match action(&self.device) {
            Ok(value) => Ok(Some(value)),
            Err(GpuFailure::Solve(error)) => Err(error),
            Err(GpuFailure::Device(error)) => {
                self.given_up.store(true, Ordering::Relaxed);
                self.note(format!("{error}; the CPU goes on"));
                Ok(None)
            }
        }
    }

    /// Whether the device turns networks into channels.
    fn device_makes_channels(&self) -> bool {
        self.device.makes_channels() && !self.is_lost()
    }

    /// A functional that the host computed. Where the points stream it stays on the host.
    fn uploaded<'a>(&'a self, host: CpuRho<'a>) -> Result<Box<dyn Rho + 'a>, SolveError> {
        if self.is_lost() {
            return Ok(Box::new(host));
        }
        Ok(match host.columns()? {
            None => Box::new(host),
            Some(columns) => Box::new(GpuRho {
                sums: self,
                device: DeviceRho::new(Origin::Columns(columns)),
                recipe: HostRecipe::Done,
                host: OnceLock::from(host),
            }),
        })
    }

    /// Scores of ∇L(u) as the device computes them in a precision, without a second look: what `bench` times
    /// and tests compare.
    pub fn raw_scores(
        &self,
        u: &Network,
        along: Candidates,
        precision: Precision,
    ) -> Result<Vec<f64>, SolveError> {
        let rho = DeviceRho::new(Origin::Gradient(u.clone()));
        match self.on_device(|device| device.scores(&rho, precision, along))? {
            Some(scores) => Ok(scores),
            None => Ok(self.cpu()?.gradient(u)?.scores(along, Accuracy::Full)?.values),
        }
    }
}

impl Sums for GpuSums {
    fn activation(&self) -> Activation {
        self.activation
    }

    fn points(&self) -> usize {
        self.device.loss().points()
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        let host = match self.device_makes_channels() {
            true => None,
            false => Some(self.cpu()?.field(u)),
        };
        Ok(Box::new(GpuField {
            sums: self,
            u: u.clone(),
            host,
        }))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        let quadratic = self.device.loss().is_quadratic();
        quadratic.then_some(self as &dyn PointValues)
    }

    fn remainders(&self) -> Option<&dyn Remainders> {
        self.cpu().ok()?.remainders()
    }

    fn report(&self) -> SumsReport {
        let [narrow, wide] = [0, 1].map(|i| self.scored[i].load(Ordering::Relaxed));
        let mut notes = self.device.notes();
        notes.extend(self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone());
        SumsReport {
            backend: if self.is_lost() { "cpu" } else { "gpu" },
            adapter: Some(self.device.gpu().report().name.clone()),
            precision: match (narrow, wide) {
                (true, true) => "auto: f32, then f64",
                (true, false) => "f32",
                (false, _) => "f64",
            },
            notes,
        }
    }
}

/// Values at the points are the host's: there are no more of them than a machine's memory holds. The
/// functional that is made from them is scored on the device.
impl CurvatureRoot for GpuSums {
    fn length(&self) -> usize {
        let terms = self.device.loss().terms.iter();
        terms.map(|term| term.points.len() * term.embedding_width()).sum()
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        CurvatureRoot::of(self.cpu()?, v)
    }
}

impl PointValues for GpuSums {
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.uploaded(self.cpu()?.rho_from_values(values_of_u, true)?)
    }

    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.uploaded(self.cpu()?.rho_from_values(values_of_v, false)?)
    }
}

/// [`Field`] on a GPU.
struct GpuField<'a> {
    sums: &'a GpuSums,
    u: Network,
    /// On the host, where the device cannot turn it into channels.
    host: Option<CpuField<'a>>,
}

impl<'a> GpuField<'a> {
    fn rho(&self, origin: Origin, recipe: HostRecipe) -> Box<dyn Rho + 'a> {
        Box::new(GpuRho {
            sums: self.sums,
            device: DeviceRho::new(origin),
            recipe,
            host: OnceLock::new(),
        })
    }
}

impl<'a> Field<'a> for GpuField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        match &self.host {
            Some(host) => self.sums.uploaded(host.gradient_rho()?),
            None => Ok(self.rho(
                Origin::Gradient(self.u.clone()),
                HostRecipe::Gradient(self.u.clone()),
            )),
        }
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        match &self.host {
            // A column of the Gram matrix is looked at once: not worth the way up.
            Some(host) if v.len() == 1 => host.curvature(v),
            Some(host) => self.sums.uploaded(host.curvature_rho(v)?),
            None => Ok(self.rho(Origin::Curvature(v.clone()), HostRecipe::Curvature(v.clone()))),
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
        if let Some(host) = &self.host {
            return host.risk();
        }
        match self.sums.on_device(|device| device.risk(&self.u))? {
            Some(risk) => Ok(risk),
            None => self.sums.cpu()?.risk(&self.u),
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

/// [`Rho`] on a GPU.
struct GpuRho<'a> {
    sums: &'a GpuSums,
    device: DeviceRho,
    recipe: HostRecipe,
    /// The same functional on the host, once it was needed there.
    host: OnceLock<CpuRho<'a>>,
}

/// How the host makes the same functional.
enum HostRecipe {
    Gradient(Network),
    Curvature(Network),
    /// It is made.
    Done,
}

impl<'a> GpuRho<'a> {
    fn host(&self) -> Result<&CpuRho<'a>, SolveError> {
        if self.host.get().is_none() {
            let cpu = self.sums.cpu()?;
            let made = match &self.recipe {
                HostRecipe::Gradient(u) => cpu.field(u).gradient_rho()?,
                HostRecipe::Curvature(v) => {
                    let zero = Network::zero(v.activation, v.dimension);
                    cpu.field(&zero).curvature_rho(v)?
                }
                HostRecipe::Done => unreachable!("it was given"),
            };
            self.host.get_or_init(|| made);
        }
        match self.host.get() {
            Some(host) => Ok(host),
            None => unreachable!("it was made just now"),
        }
    }

    fn on_device(&self, precision: Precision, along: Candidates) -> Result<Option<Vec<f64>>, SolveError> {
        self.sums
            .on_device(|device| device.scores(&self.device, precision, along))
    }

    /// In double precision: on the device if it can, else on the host.
    fn full_scores(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        if self.sums.device.has_f64()
            && let Some(scores) = self.on_device(Precision::F64, along)?
        {
            return Ok(scores);
        }
        Ok(self.host()?.scores(along, Accuracy::Full)?.values)
    }

    /// In single precision, with the error that a few scores taken both ways show.
    fn fast_scores(&self, along: Candidates) -> Result<Option<Scores>, SolveError> {
        let Candidates::Grid(grid) = along else {
            return Ok(None);
        };
        let Some(values) = self.on_device(Precision::F32, along)? else {
            return Ok(None);
        };
        self.sums.scored[0].store(true, Ordering::Relaxed);
        if values.iter().any(|value| !value.is_finite()) {
            return Ok(Some(Scores {
                values,
                error: f64::INFINITY,
            }));
        }
        let probes = probes(&values);
        let list: Vec<Neuron> = probes.iter().map(|&index| grid.neuron(index)).collect();
        let exact = self.full_scores(Candidates::List(&list))?;
        let off = probes
            .iter()
            .zip(exact)
            .map(|(&i, exact)| (values[i] - exact).abs());
        let error = ERROR_MARGIN * off.fold(f64::MIN_POSITIVE, f64::max);
        Ok(Some(Scores { values, error }))
    }
}

/// The best few and some spread evenly.
fn probes(scores: &[f64]) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..scores.len()).collect();
    let best = (PROBES / 4).min(scores.len());
    if best > 0 && best < scores.len() {
        by_size.select_nth_unstable_by(best, |&a, &b| scores[b].abs().total_cmp(&scores[a].abs()));
    }
    let mut chosen = by_size[..best].to_vec();
    let step = scores.len().div_ceil(PROBES).max(1);
    chosen.extend((0..scores.len()).step_by(step));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

impl Rho for GpuRho<'_> {
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError> {
        let narrow = match self.sums.options.precision {
            PrecisionChoice::F32 => true,
            PrecisionChoice::F64 | PrecisionChoice::Integer => false,
            PrecisionChoice::Auto => accuracy == Accuracy::Fast,
        };
        if narrow && let Some(scores) = self.fast_scores(along)? {
            return Ok(scores);
        }
        if let Candidates::Grid(_) = along {
            self.sums.scored[1].store(true, Ordering::Relaxed);
        }
        self.full_scores(along).map(Scores::exact)
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        Some(self)
    }
}

impl Slopes for GpuRho<'_> {
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        if self.sums.device.has_f64() {
            let slopes = self
                .sums
                .on_device(|device| device.slopes(&self.device, neurons))?;
            if let Some(slopes) = slopes {
                return Ok(slopes);
            }
        }
        self.host()?.slopes_at(neurons)
    }
}
