//! A loss on a device: its terms in the precisions that are needed, in tiles that fit.

use super::rows::RowPlan;
use super::term::{ChannelSource, DeviceTerm, TermOptions};
use super::{DeviceError, Gpu, GpuFailure, Precision};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::domain::Domain;
use crate::loss::Loss;
use crate::network::{Network, Neuron};
use crate::ridge::LocalScore;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Points per tile on the device to begin with; halved when memory runs out.
const FIRST_TILE: usize = 1 << 18;
/// A smaller tile is not worth a device.
const SMALLEST_TILE: usize = 1 << 13;
/// Offsets per row: they share ω·x.
const ROW: usize = 32;

/// The terms of a loss on a device.
pub(super) struct DeviceLoss {
    gpu: Arc<Gpu>,
    loss: Loss,
    domain: Domain,
    activation: Activation,
    /// Points and channels stay on the device if they take at most this many bytes; else they stream.
    resident_bytes: usize,
    state: Mutex<State>,
}

struct State {
    tile: usize,
    narrow: Option<Arc<Vec<DeviceTerm>>>,
    wide: Option<Arc<Vec<DeviceTerm>>>,
    notes: Vec<String>,
}

/// Buffers of channels, per term and tile.
type Buffers = Arc<Vec<Vec<wgpu::Buffer>>>;

/// A functional on the device, or how to make it there.
pub(super) struct DeviceRho {
    origin: Origin,
    /// Whether its channels are worth keeping: they are asked for more than once.
    keep: bool,
    /// The channels, with the length of the tiles they were made for.
    wide: Mutex<Option<(usize, Buffers)>>,
    narrow: Mutex<Option<(usize, Buffers)>>,
}

/// Where channels come from.
pub(super) enum Origin {
    /// ∇L(u), computed on the device.
    Gradient(Network),
    /// ∇²L v, computed on the device.
    Curvature(Network),
    /// Computed on the host: per term one column per symbol.
    Columns(Vec<Vec<Vec<f64>>>),
}

impl Origin {
    fn of_term(&self, term: usize) -> ChannelSource<'_> {
        match self {
            Origin::Gradient(network) => ChannelSource::Network {
                network,
                with_load: true,
            },
            Origin::Curvature(network) => ChannelSource::Network {
                network,
                with_load: false,
            },
            Origin::Columns(columns) => ChannelSource::Columns(&columns[term]),
        }
    }
}

impl DeviceRho {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            keep: !matches!(origin, Origin::Curvature(_)),
            origin,
            wide: Mutex::new(None),
            narrow: Mutex::new(None),
        }
    }

    fn place(&self, precision: Precision) -> &Mutex<Option<(usize, Buffers)>> {
        match precision {
            Precision::F32 => &self.narrow,
            Precision::F64 => &self.wide,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DeviceLoss {
    pub(super) fn new(
        gpu: Arc<Gpu>,
        loss: Loss,
        domain: &Domain,
        activation: Activation,
        resident_bytes: usize,
    ) -> Self {
        Self {
            gpu,
            loss,
            domain: domain.clone(),
            activation,
            resident_bytes,
            state: Mutex::new(State {
                tile: FIRST_TILE,
                narrow: None,
                wide: None,
                notes: Vec::new(),
            }),
        }
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(super) fn loss(&self) -> &Loss {
        &self.loss
    }

    /// What happened on the way that the user should know.
    pub(super) fn notes(&self) -> Vec<String> {
        locked(&self.state).notes.clone()
    }

    /// Whether the device adds up in double precision: shaders have no exp there.
    pub(super) fn has_f64(&self) -> bool {
        self.gpu.report().f64 && self.activation.has_sweep()
    }

    /// Whether the device makes channels in double precision by itself: potentials are evaluated on the host.
    pub(super) fn makes_channels(&self) -> bool {
        self.has_f64() && self.loss.is_quadratic()
    }

    /// Repeats an action with smaller tiles while memory runs out.
    fn with_memory<T>(&self, action: impl Fn() -> Result<T, GpuFailure>) -> Result<T, GpuFailure> {
        loop {
            match action() {
                Err(GpuFailure::Device(DeviceError::OutOfMemory(reason))) => {
                    let mut state = locked(&self.state);
                    if state.tile <= SMALLEST_TILE {
                        return Err(DeviceError::OutOfMemory(reason).into());
                    }
                    state.tile /= 2;
                    (state.narrow, state.wide) = (None, None);
                    let note = format!(
                        "out of device memory: going on with tiles of {} points",
                        state.tile
                    );
                    state.notes.push(note);
                }
                result => return result,
            }
        }
    }

    fn terms(&self, precision: Precision) -> Result<(usize, Arc<Vec<DeviceTerm>>), GpuFailure> {
        let mut state = locked(&self.state);
        let known = match precision {
            Precision::F32 => &state.narrow,
            Precision::F64 => &state.wide,
        };
        if let Some(terms) = known {
            return Ok((state.tile, Arc::clone(terms)));
        }
        // In both precisions, with the channels of one functional.
        let bytes = self.loss.terms.iter().map(DeviceTerm::resident_bytes);
        let options = TermOptions {
            precision,
            tile: state.tile,
            row: ROW,
            resident: bytes.fold(0, usize::saturating_add) <= self.resident_bytes,
        };
        let terms = self.loss.terms.iter();
        let terms: Result<Vec<DeviceTerm>, GpuFailure> = terms
            .map(|term| DeviceTerm::new(Arc::clone(&self.gpu), term, self.activation, options))
            .collect();
        let terms = Arc::new(terms?);
        match precision {
            Precision::F32 => state.narrow = Some(Arc::clone(&terms)),
            Precision::F64 => state.wide = Some(Arc::clone(&terms)),
        }
        Ok((state.tile, terms))
    }

    /// The channels on the device, if they are to stay there.
    fn resident(&self, rho: &DeviceRho, precision: Precision) -> Result<Option<Buffers>, GpuFailure> {
        let (tile, terms) = self.terms(precision)?;
        if !rho.keep || !terms.iter().all(DeviceTerm::is_resident) {
            return Ok(None);
        }
        if let Some((made_for, buffers)) = &*locked(rho.place(precision))
            && *made_for == tile
        {
            return Ok(Some(Arc::clone(buffers)));
        }
        // u in double precision, wherever it is computed: only the sums may be in single precision.
        let wide = match (precision, &rho.origin) {
            (Precision::F32, Origin::Gradient(_) | Origin::Curvature(_)) if self.has_f64() => {
                self.resident(rho, Precision::F64)?
            }
            _ => None,
        };
        let terms = terms.iter().enumerate();
        let buffers: Result<Vec<_>, GpuFailure> = match wide {
            Some(wide) => terms.map(|(index, term)| term.narrowed(&wide[index])).collect(),
            None => terms
                .map(|(index, term)| term.channels(rho.origin.of_term(index)))
                .collect(),
        };
        let buffers = Arc::new(buffers?);
        *locked(rho.place(precision)) = Some((tile, Arc::clone(&buffers)));
        Ok(Some(buffers))
    }

    /// Does something with every term and its channels.
    fn for_each_term(
        &self,
        rho: &DeviceRho,
        precision: Precision,
        mut visit: impl FnMut(&DeviceTerm, ChannelSource) -> Result<(), GpuFailure>,
    ) -> Result<(), GpuFailure> {
        let buffers = self.resident(rho, precision)?;
        let (_, terms) = self.terms(precision)?;
        for (index, term) in terms.iter().enumerate() {
            let source = match &buffers {
                Some(buffers) => ChannelSource::Resident(&buffers[index]),
                None => rho.origin.of_term(index),
            };
            visit(term, source)?;
        }
        Ok(())
    }

    /// ⟨ρ, g⟩ for each candidate, summed in this precision.
    pub(super) fn scores(
        &self,
        rho: &DeviceRho,
        precision: Precision,
        along: Candidates,
    ) -> Result<Vec<f64>, GpuFailure> {
        let plan = RowPlan::new(self.activation, &self.domain, along, ROW);
        self.with_memory(|| {
            let mut scores = vec![0.0; plan.count];
            self.for_each_term(rho, precision, |term, source| {
                term.add_scores(source, &plan, &mut scores)
            })?;
            plan.complete(&mut scores);
            Ok(scores)
        })
    }

    /// Scores with their slopes, in double precision.
    pub(super) fn slopes(&self, rho: &DeviceRho, neurons: &[Neuron]) -> Result<Vec<LocalScore>, GpuFailure> {
        let d = self.domain.dimension();
        self.with_memory(|| {
            let mut scores = vec![LocalScore::zero(d); neurons.len()];
            self.for_each_term(rho, Precision::F64, |term, source| {
                term.add_slopes(source, neurons, &mut scores)
            })?;
            Ok(scores)
        })
    }

    /// L(u), in double precision.
    pub(super) fn risk(&self, u: &Network) -> Result<f64, GpuFailure> {
        self.with_memory(|| {
            let (_, terms) = self.terms(Precision::F64)?;
            terms.iter().try_fold(0.0, |sum, term| Ok(sum + term.risk(u)?))
        })
    }
}
