//! Sums of whole numbers on a device: the twin of [`Reference`](crate::sums::whole::Reference), stage by stage.
//!
//! Points, coefficients, channels and sorted runs stay on the device. A functional costs one submission that makes its
//! channels and brings their largest magnitudes down, and one for each set of sums over them.

mod resident;
mod shader;
mod term;

pub use shader::{
    NeuronsParams, PeaksParams, RunsParams, WholeChannelsParams, WholeJetsParams, WholeRiskParams,
    WholeShader,
};

use super::{DeviceError, Gpu, WORKGROUP};
use crate::error::SolveError;
use crate::loss::{DensityLayout, Loss, Term};
use crate::network::Network;
use crate::sums::whole::fixed::lead;
use crate::sums::whole::{
    BLOCK, Engine, EngineReport, Functional, LARGEST_COUNT, LineFactors, LineSums, NeuronList, Runs, Source,
    WholeTerm, whole_columns, with_leads,
};
use resident::{Group, ResidentRuns};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use term::{DeviceTerm, Work};

/// So many functionals are kept.
const KEPT: usize = 4;
/// Neurons per dispatch: their blocks of sums come down.
const NEURON_BATCH: usize = 1024;

/// [`Engine`] on a device.
pub struct WholeEngine {
    gpu: Arc<Gpu>,
    terms: Arc<Vec<WholeTerm>>,
    /// Made when first needed.
    device: OnceLock<Vec<DeviceTerm>>,
    kept: Mutex<Vec<(u64, Arc<Vec<Channels>>)>>,
    runs: Mutex<Option<ResidentRuns>>,
}

/// The channels of a term on the device.
struct Channels {
    columns: wgpu::Buffer,
    /// By how many bits each is moved up when it is used.
    leads: wgpu::Buffer,
    exponents: Vec<i32>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wide(bytes: &[u8]) -> Vec<i64> {
    bytemuck::pod_collect_to_vec(bytes)
}

impl WholeEngine {
    /// The sums of these terms on a device.
    pub fn new(gpu: Arc<Gpu>, terms: Arc<Vec<WholeTerm>>) -> Self {
        Self {
            gpu,
            terms,
            device: OnceLock::new(),
            kept: Mutex::default(),
            runs: Mutex::default(),
        }
    }

    /// Whether a device holds a loss in whole numbers.
    pub fn fits(gpu: &Gpu, loss: &Loss) -> bool {
        let fits = |term: &Term| {
            let columns = term.points.dimension().max(term.layout().columns());
            let bytes = term
                .points
                .len()
                .saturating_mul(8 * columns.max(term.symbols.len()));
            term.points.len() < LARGEST_COUNT
                && bytes + 8 * BLOCK * columns.max(term.symbols.len()) <= gpu.largest_binding()
        };
        loss.terms.iter().all(fits)
    }

    fn device(&self) -> Result<&[DeviceTerm], DeviceError> {
        if let Some(terms) = self.device.get() {
            return Ok(terms);
        }
        let made: Result<Vec<DeviceTerm>, DeviceError> = (0..self.terms.len())
            .map(|index| DeviceTerm::new(&self.gpu, &self.terms, index))
            .collect();
        let made = made?;
        Ok(self.device.get_or_init(|| made))
    }

    fn channels(&self, rho: &Functional) -> Result<Arc<Vec<Channels>>, DeviceError> {
        let mut kept = locked(&self.kept);
        if let Some((_, channels)) = kept.iter().find(|(id, _)| *id == rho.id) {
            return Ok(Arc::clone(channels));
        }
        // The buffers of the functional that has to go serve the new one.
        let old = (kept.len() == KEPT).then(|| kept.remove(0).1);
        let old = old.and_then(|channels| Arc::try_unwrap(channels).ok());
        let room: Vec<wgpu::Buffer> = match old {
            Some(channels) => channels.into_iter().map(|channels| channels.columns).collect(),
            None => self
                .device()?
                .iter()
                .map(DeviceTerm::empty_channels)
                .collect::<Result<_, _>>()?,
        };
        let made = Arc::new(match &rho.source {
            Source::Columns(columns) => self.upload_channels(columns, room)?,
            Source::Network { network, with_load } => self.make_channels(network, *with_load, room)?,
        });
        kept.push((rho.id, Arc::clone(&made)));
        Ok(made)
    }

    fn upload_channels(
        &self,
        columns: &[Vec<Vec<f64>>],
        room: Vec<wgpu::Buffer>,
    ) -> Result<Vec<Channels>, DeviceError> {
        let terms = self.terms.iter().zip(columns).zip(room);
        terms
            .map(|((term, columns), room)| {
                let (numbers, exponents) = whole_columns(term, columns);
                self.gpu.write(&room, bytemuck::cast_slice(&numbers));
                let leads = vec![0u32; exponents.len()];
                Ok(Channels {
                    columns: room,
                    leads: self.gpu.upload(bytemuck::cast_slice(&leads))?,
                    exponents,
                })
            })
            .collect()
    }

    fn make_channels(
        &self,
        u: &Network,
        with_load: bool,
        room: Vec<wgpu::Buffer>,
    ) -> Result<Vec<Channels>, DeviceError> {
        let (mut work, mut peaks, mut shifts) = (Vec::new(), Vec::new(), Vec::new());
        for (term, room) in self.device()?.iter().zip(&room) {
            let network = term.whole().network(u);
            let of_term = term.whole().channel_shifts(&network.exponents, with_load);
            work.extend(term.jets(&network)?);
            work.push(term.channels(&of_term, (with_load, false), room)?);
            let (of_peaks, buffer) = term.peaks(of_term.exponents.len(), Some(room))?;
            work.push(of_peaks);
            peaks.push((buffer, 4 * of_term.exponents.len() * term.blocks()));
            shifts.push(of_term);
        }
        let read: Vec<(&wgpu::Buffer, usize)> =
            peaks.iter().map(|(buffer, bytes)| (buffer, *bytes)).collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        let terms = self.device()?.iter().zip(room).zip(shifts.iter().zip(&read));
        terms
            .map(|((term, columns), (shifts, bytes))| {
                let (leads, exponents) = with_leads(shifts, &term.largest(bytes));
                Ok(Channels {
                    columns,
                    leads: self.gpu.upload(bytemuck::cast_slice(&leads))?,
                    exponents,
                })
            })
            .collect()
    }

    /// The sums of the lines of one group that are asked for, as (place among those asked for, sums).
    fn group_work(
        &self,
        group: &Group,
        channels: &Channels,
        which: &[usize],
        factors: &LineFactors,
    ) -> Result<Option<GroupWork>, DeviceError> {
        let term = &self.device()?[group.term];
        let symbols = term.whole().term.symbols.len();
        let mut asked = Vec::new();
        let (mut table, mut numbers) = (Vec::new(), Vec::<i64>::new());
        for (place, line) in which.iter().enumerate() {
            let Some((first, tasks)) = group.line(*line) else {
                continue;
            };
            table.push([
                first as u32,
                tasks.len() as u32,
                asked.len() as u32,
                factors.doublings[place],
            ]);
            numbers.extend(&factors.factors[place * symbols..][..symbols]);
            asked.push((place, *line));
        }
        let Some(widest) = table.iter().map(|row| row[1] as usize).max() else {
            return Ok(None);
        };
        let table = self.gpu.upload(bytemuck::cast_slice(&table))?;
        let numbers = self.gpu.upload(bytemuck::cast_slice(&numbers))?;
        let buffers = [
            &group.entries,
            &group.tasks,
            &table,
            &numbers,
            &channels.columns,
            &channels.leads,
        ];
        let (work, sums) = term.runs(group.lanes, widest, buffers, asked.len())?;
        Ok(Some(GroupWork {
            work,
            sums,
            asked,
            widest,
        }))
    }
}

/// Work on some lines of a group, and where its sums go.
struct GroupWork {
    work: Work,
    sums: wgpu::Buffer,
    asked: Vec<(usize, usize)>,
    /// Places per line in the sums.
    widest: usize,
}

impl Engine for WholeEngine {
    fn exponents(&self, rho: &Functional) -> Result<Vec<Vec<i32>>, SolveError> {
        let channels = self.channels(rho)?;
        Ok(channels.iter().map(|term| term.exponents.clone()).collect())
    }

    fn line_sums(
        &self,
        rho: &Functional,
        runs: &Runs,
        which: &[usize],
        factors: &[LineFactors],
    ) -> Result<Vec<Vec<LineSums>>, SolveError> {
        let channels = self.channels(rho)?;
        let mut kept = locked(&self.runs);
        if kept.as_ref().is_none_or(|resident| resident.id() != runs.id) {
            *kept = None;
            *kept = Some(ResidentRuns::new(&self.gpu, &self.terms, runs)?);
        }
        let mut all: Vec<Vec<Option<LineSums>>> = vec![vec![None; which.len()]; self.terms.len()];
        if let Some(resident) = &*kept {
            resident.visit(&self.gpu, runs, which, &mut |groups: &[&Group]| {
                let (mut work, mut rest) = (Vec::new(), Vec::new());
                for &group in groups {
                    let of_term = (&channels[group.term], &factors[group.term]);
                    if let Some(made) = self.group_work(group, of_term.0, which, of_term.1)? {
                        work.push(made.work);
                        rest.push((group, made.sums, made.asked, made.widest));
                    }
                }
                let size = |group: &Group| self.terms[group.term].power + 1;
                let read: Vec<(&wgpu::Buffer, usize)> = rest
                    .iter()
                    .map(|(group, sums, asked, widest)| (sums, 8 * asked.len() * widest * size(group)))
                    .collect();
                let read = Work::run(&self.gpu, &work, &read)?;
                for ((group, _, asked, widest), bytes) in rest.iter().zip(&read) {
                    let (numbers, size) = (wide(bytes), size(group));
                    for ((place, line), sums) in asked.iter().zip(numbers.chunks(widest * size)) {
                        let Some((_, tasks)) = group.line(*line) else {
                            continue;
                        };
                        let sums = LineSums::new(tasks, sums, size, &factors[group.term], *place);
                        all[group.term][*place] = Some(sums);
                    }
                }
                Ok(())
            })?;
        }
        let missing = || DeviceError::Refused("a line has no runs".to_string());
        let of_term = |lines: Vec<Option<LineSums>>| {
            let lines: Option<Vec<LineSums>> = lines.into_iter().collect();
            Ok(lines.ok_or_else(missing)?)
        };
        all.into_iter().map(of_term).collect()
    }

    fn neuron_sums(&self, rho: &Functional, lists: &[NeuronList]) -> Result<Vec<Vec<i128>>, SolveError> {
        let channels = self.channels(rho)?;
        let (mut work, mut rest) = (Vec::new(), Vec::new());
        for (index, (term, list)) in self.device()?.iter().zip(lists).enumerate() {
            let of_term = (&channels[index].columns, &channels[index].leads);
            for some in list
                .arguments
                .chunks(NEURON_BATCH * (term.whole().dimension() + 2))
            {
                let (made, sums, bytes) = term.neurons(of_term, some, list.slopes)?;
                work.push(made);
                rest.push((index, sums, bytes));
            }
        }
        let read: Vec<(&wgpu::Buffer, usize)> = rest.iter().map(|(_, sums, bytes)| (sums, *bytes)).collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        let mut all = vec![Vec::new(); self.terms.len()];
        for ((index, ..), bytes) in rest.iter().zip(&read) {
            let blocks = self.device()?[*index].blocks();
            all[*index].extend(wide(bytes).chunks(blocks).map(total));
        }
        Ok(all)
    }

    fn risk_sums(&self, u: &Network) -> Result<Vec<(f64, i128)>, SolveError> {
        // First the values and how large they are, then their squares.
        let (mut work, mut rest) = (Vec::new(), Vec::new());
        for term in self.device()? {
            let network = term.whole().network(u);
            work.extend(term.jets(&network)?);
            let (residual, exponents) = match term.whole().term.layout() {
                DensityLayout::Energy { .. } => (None, network.exponents),
                DensityLayout::Residual { .. } => {
                    let shifts = term.whole().channel_shifts(&network.exponents, true);
                    let residual = term.empty_channels()?;
                    work.push(term.channels(&shifts, (true, true), &residual)?);
                    (Some(residual), vec![shifts.residual])
                }
            };
            let (of_peaks, peaks) = term.peaks(exponents.len(), residual.as_ref())?;
            work.push(of_peaks);
            rest.push((term, residual, exponents, peaks));
        }
        let read: Vec<(&wgpu::Buffer, usize)> = rest
            .iter()
            .map(|(term, _, exponents, peaks)| (peaks, 4 * exponents.len() * term.blocks()))
            .collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        let (mut work, mut sums, mut units) = (Vec::new(), Vec::new(), Vec::new());
        for ((term, residual, exponents, _), bytes) in rest.iter().zip(&read) {
            let leads: Vec<u32> = term.largest(bytes).into_iter().map(lead).collect();
            let moved = exponents.iter().zip(&leads).map(|(e, &lead)| e - lead as i32);
            units.push(term.whole().risk_units(&moved.collect::<Vec<_>>()));
            let (made, buffer, bytes) = term.risk(residual.as_ref(), &leads)?;
            work.push(made);
            sums.push((buffer, bytes));
        }
        let read: Vec<(&wgpu::Buffer, usize)> = sums.iter().map(|(sums, bytes)| (sums, *bytes)).collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        let mut all = Vec::new();
        for (((term, ..), units), bytes) in rest.iter().zip(units).zip(&read) {
            let totals: Vec<i128> = wide(bytes).chunks(term.blocks()).map(total).collect();
            all.extend(units.into_iter().zip(totals));
        }
        Ok(all)
    }

    fn report(&self) -> EngineReport {
        let notes = match &*locked(&self.runs) {
            Some(resident) => resident.notes(),
            None => Vec::new(),
        };
        EngineReport {
            adapter: Some(self.gpu.report().name.clone()),
            lost: false,
            notes,
        }
    }
}

fn total(blocks: &[i64]) -> i128 {
    blocks.iter().map(|&sum| i128::from(sum)).sum()
}
