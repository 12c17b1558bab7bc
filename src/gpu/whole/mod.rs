//! Sums of whole numbers on a device: the twin of [`Reference`](crate::sums::whole::Reference), stage by stage.
//!
//! Points, coefficients, channels and sorted runs stay on the device. The first sums of a functional and its channels are
//! one submission; how large the channels are comes down with the sums.

mod pace;
mod resident;
mod shader;
mod term;
mod written;

pub use shader::{
    Adapter, NeuronsParams, Outcome, RunsParams, RunsShape, WholeFieldParams, WholeRiskParams, WholeShader,
};
pub use term::FIELD_BATCH;

use super::{DeviceError, Gpu, WORKGROUP};
use crate::error::SolveError;
use crate::loss::{DensityLayout, Loss, Term};
use crate::network::Network;
use crate::sums::whole::fixed::lead;
use crate::sums::whole::{
    BLOCK, ChannelShifts, Engine, EngineReport, Functional, LARGEST_COUNT, LineSums, LineValues, NeuronList,
    NeuronSums, Peaks, Runs, Source, WholeTerm, whole_columns, with_leads,
};
use pace::Pace;
use resident::{Group, ResidentRuns};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use term::{DeviceTerm, Work};
use written::Packs;

/// So many functionals are kept.
const KEPT: usize = 4;
/// So many points to a workgroup always fit a dispatch: the tasks that a workgroup can have have at least one each.
const LEAST_POINTS: usize = RunsShape::CRUMBS.tasks * WORKGROUP;
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
    pace: Pace,
}

/// The channels of a term on the device.
struct Channels {
    columns: wgpu::Buffer,
    /// Per channel the largest magnitude, from which follows by how many bits it is moved up when it is used, and then the
    /// exponent of each without that.
    scales: wgpu::Buffer,
    shifts: ChannelShifts,
}

impl Channels {
    fn bytes_of_peaks(&self) -> usize {
        4 * self.shifts.exponents.len()
    }

    /// Their largest magnitudes as they came down.
    fn peaks(&self, bytes: &[u8]) -> Vec<u32> {
        bytemuck::pod_collect_to_vec(&bytes[..self.bytes_of_peaks()])
    }

    /// The exponents of the channels as they are used, from their largest magnitudes.
    fn exponents(&self, peaks: &[u32]) -> Vec<i32> {
        with_leads(&self.shifts, peaks).1
    }
}

/// What came down from the device.
struct BroughtDown {
    /// Of channels, per term.
    exponents: Vec<Vec<i32>>,
    /// The bytes of each buffer.
    sums: Vec<Vec<u8>>,
}

/// A functional's channels, and the work that makes them if it has not been done yet.
type MadeChannels = (Arc<Vec<Channels>>, Vec<Work>);

/// Work that evaluates what the risk is made of; per term the exponents of that, and where its magnitudes go.
type RiskValues = (Vec<Work>, Vec<(Vec<i32>, wgpu::Buffer)>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes as numbers, without a copy where they lie as numbers do.
fn wide(bytes: &[u8]) -> Cow<'_, [i64]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(numbers) => Cow::Borrowed(numbers),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

impl WholeEngine {
    /// The sums of these terms on a device.
    pub fn new(gpu: Arc<Gpu>, terms: Arc<Vec<WholeTerm>>) -> Self {
        Self {
            pace: Pace::new(Adapter::of(&gpu)),
            gpu,
            terms,
            device: OnceLock::new(),
            kept: Mutex::default(),
            runs: Mutex::default(),
        }
    }

    /// Whether a device holds a loss in whole numbers, with so many points of each term.
    pub fn fits(gpu: &Gpu, loss: &Loss, counts: impl Iterator<Item = usize>) -> bool {
        let fits = |(term, count): (&Term, usize)| {
            let channels = Packs::new(term.symbols.len()).numbers();
            let columns = term.points.dimension().max(term.layout().columns());
            let of_point = 8 * columns.max(channels);
            let bytes = count.saturating_mul(of_point);
            count < LARGEST_COUNT.min(LEAST_POINTS * gpu.largest_dispatch())
                && bytes.saturating_add(BLOCK * of_point) <= gpu.largest_binding()
        };
        loss.terms.iter().zip(counts).all(fits)
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

    fn channels(&self, rho: &Functional) -> Result<MadeChannels, DeviceError> {
        let mut kept = locked(&self.kept);
        if let Some((_, channels)) = kept.iter().find(|(id, _)| *id == rho.id) {
            // Other processes may have larger ones.
            for (channels, peaks) in channels.iter().zip(rho.peaks.get().into_iter().flatten()) {
                self.gpu.write(&channels.scales, bytemuck::cast_slice(peaks));
            }
            return Ok((Arc::clone(channels), Vec::new()));
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
        let (made, work) = match &rho.source {
            Source::Columns { columns, exponents } => {
                (self.upload_channels((columns, exponents), room)?, Vec::new())
            }
            Source::Network { network, with_load } => {
                self.make_channels(network, *with_load, rho.peaks.get(), room)?
            }
        };
        let made = Arc::new(made);
        kept.push((rho.id, Arc::clone(&made)));
        Ok((made, work))
    }

    /// Magnitudes and exponents of channels, where the shaders expect them.
    fn scales(&self, peaks: &[u32], exponents: &[i32]) -> Result<wgpu::Buffer, DeviceError> {
        let exponents = exponents.iter().map(|&e| e.cast_unsigned());
        let numbers: Vec<u32> = peaks.iter().copied().chain(exponents).collect();
        self.gpu.upload(bytemuck::cast_slice(&numbers))
    }

    /// The same before anything is known of magnitudes, but for those of all processes where there are others: what
    /// the device finds here is not larger.
    fn scales_of(
        &self,
        index: usize,
        peaks: Option<&Peaks>,
        exponents: &[i32],
    ) -> Result<wgpu::Buffer, DeviceError> {
        match peaks {
            Some(of_all) => self.scales(&of_all[index], exponents),
            None => self.scales(&vec![0; exponents.len()], exponents),
        }
    }

    fn upload_channels(
        &self,
        (columns, exponents): (&[Vec<Vec<f64>>], &[Vec<i32>]),
        room: Vec<wgpu::Buffer>,
    ) -> Result<Vec<Channels>, DeviceError> {
        let terms = self.device()?.iter().zip(columns.iter().zip(exponents)).zip(room);
        terms
            .map(|((term, (columns, exponents)), room)| {
                let numbers = whole_columns(term.whole(), columns, exponents);
                // Point by point.
                let packed = term.packs().numbers();
                let mut points = vec![0i64; term.whole().stride * packed];
                for (c, column) in numbers.chunks(term.whole().stride).enumerate() {
                    let places = points.iter_mut().skip(c).step_by(packed);
                    places.zip(column).for_each(|(place, &number)| *place = number);
                }
                self.gpu.write(&room, bytemuck::cast_slice(&points));
                Ok(Channels {
                    columns: room,
                    // As large as they may be: not to be moved.
                    scales: self.scales(&vec![u32::MAX; exponents.len()], exponents)?,
                    shifts: ChannelShifts::unmoved(exponents.clone()),
                })
            })
            .collect()
    }

    fn make_channels(
        &self,
        u: &Network,
        with_load: bool,
        peaks: Option<&Peaks>,
        room: Vec<wgpu::Buffer>,
    ) -> Result<(Vec<Channels>, Vec<Work>), DeviceError> {
        let (mut made, mut work) = (Vec::new(), Vec::new());
        for (index, (term, columns)) in self.device()?.iter().zip(room).enumerate() {
            let network = term.whole().network(u);
            let shifts = term.whole().channel_shifts(&network.exponents, with_load);
            let scales = self.scales_of(index, peaks, &shifts.exponents)?;
            let outcome = Outcome::Channels { with_load };
            work.extend(term.field(&network, Some(&shifts), outcome, (&columns, &scales))?);
            made.push(Channels {
                columns,
                scales,
                shifts,
            });
        }
        Ok((made, work))
    }

    /// The sums of the lines of one group that are asked for, as (place among those asked for, sums).
    fn group_work(
        &self,
        group: &Group,
        channels: &Channels,
        which: &[usize],
        values: &LineValues,
    ) -> Result<Option<GroupWork>, DeviceError> {
        let term = &self.device()?[group.term];
        let asked: Vec<(usize, usize)> = which
            .iter()
            .enumerate()
            .filter(|(_, line)| group.line(**line).is_some())
            .map(|(place, line)| (place, *line))
            .collect();
        if asked.is_empty() {
            return Ok(None);
        }
        self.gpu.count_point_directions(asked.len() * term.whole().count);
        let table = group.table(&self.gpu, &asked, values)?;
        let widest = table.widest;
        let buffers = [
            &group.entries,
            &group.tasks,
            &table.lines,
            &table.mantissas,
            &table.powers,
            &channels.columns,
            &channels.scales,
        ];
        let (work, sums) = term.runs(group.shape, widest, buffers, asked.len())?;
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

impl WholeEngine {
    /// Does some work and brings down sums, and how large channels are; the exponents of these, per term, and the sums.
    fn sums_with_exponents(
        &self,
        work: &[Work],
        channels: &[Channels],
        sums: &[(&wgpu::Buffer, usize)],
    ) -> Result<BroughtDown, DeviceError> {
        let mut read = sums.to_vec();
        read.extend(channels.iter().map(|term| (&term.scales, term.bytes_of_peaks())));
        let mut read = Work::run(&self.gpu, work, &read)?;
        let peaks = read.split_off(sums.len());
        let exponents = channels
            .iter()
            .zip(&peaks)
            .map(|(term, bytes)| term.exponents(&term.peaks(bytes)));
        Ok(BroughtDown {
            exponents: exponents.collect(),
            sums: read,
        })
    }

    /// The sums of lines whose groups are on the device.
    fn sums_of_groups(
        &self,
        groups: &[&Group],
        (channels, mut work): MadeChannels,
        which: &[usize],
        values: &[LineValues],
        all: &mut [Vec<Option<LineSums>>],
    ) -> Result<(), DeviceError> {
        let mut rest = Vec::new();
        for &group in groups {
            if let Some(made) = self.group_work(group, &channels[group.term], which, &values[group.term])? {
                work.push(made.work);
                rest.push((group, made.sums, made.asked, made.widest));
            }
        }
        let size = |group: &Group| self.terms[group.term].power + 1;
        let sums: Vec<(&wgpu::Buffer, usize)> = rest
            .iter()
            .map(|(group, sums, asked, widest)| (sums, 8 * asked.len() * widest * size(group)))
            .collect();
        let BroughtDown { exponents, sums } = self.sums_with_exponents(&work, &channels, &sums)?;
        drop(work);
        for ((group, buffer, asked, widest), numbers) in rest.into_iter().zip(&sums) {
            self.gpu.give_back(buffer);
            let (size, index) = (size(group), group.term);
            for ((place, line), sums) in asked.iter().zip(wide(numbers).chunks(widest * size)) {
                let Some((_, tasks)) = group.line(*line) else {
                    continue;
                };
                let of_term = (&self.terms[index], &exponents[index]);
                let line = values[index].line(of_term.0, *place, of_term.1, (tasks, sums));
                all[index][*place] = Some(line);
            }
        }
        Ok(())
    }
}

impl WholeEngine {
    /// The lines of terms whose points others have.
    fn put_lines_without_points(
        &self,
        rho: &Functional,
        channels: &[Channels],
        values: &[LineValues],
        all: &mut [Vec<Option<LineSums>>],
    ) {
        for (index, term) in self.terms.iter().enumerate().filter(|(_, term)| term.count == 0) {
            let exponents = match rho.peaks.get() {
                Some(peaks) => channels[index].exponents(&peaks[index]),
                None => channels[index].shifts.exponents.clone(),
            };
            for (place, line) in all[index].iter_mut().enumerate() {
                *line = Some(values[index].line(term, place, &exponents, (&[], &[])));
            }
        }
    }

    fn risk_values(&self, u: &Network, peaks: Option<&Peaks>) -> Result<RiskValues, DeviceError> {
        let (mut work, mut scales_of_terms) = (Vec::new(), Vec::new());
        for (index, term) in self.device()?.iter().enumerate() {
            let network = term.whole().network(u);
            let shifts = term.whole().channel_shifts(&network.exponents, true);
            let (outcome, exponents) = match term.whole().term.layout() {
                DensityLayout::Energy { .. } => (Outcome::Values, network.exponents.clone()),
                DensityLayout::Residual { .. } => (Outcome::Residual, vec![shifts.residual]),
            };
            let scales = self.scales_of(index, peaks, &exponents)?;
            work.extend(term.field(&network, Some(&shifts), outcome, (term.values(), &scales))?);
            scales_of_terms.push((exponents, scales));
        }
        Ok((work, scales_of_terms))
    }
}

impl Engine for WholeEngine {
    fn peaks(&self, rho: &Functional) -> Result<Peaks, SolveError> {
        let (channels, work) = self.channels(rho)?;
        let scales: Vec<(&wgpu::Buffer, usize)> = channels
            .iter()
            .map(|term| (&term.scales, term.bytes_of_peaks()))
            .collect();
        let read = Work::run(&self.gpu, &work, &scales)?;
        let peaks = channels.iter().zip(&read).map(|(term, bytes)| term.peaks(bytes));
        Ok(peaks.collect())
    }

    fn line_sums(
        &self,
        rho: &Functional,
        runs: &Runs,
        which: &[usize],
        values: &[LineValues],
    ) -> Result<Vec<Vec<LineSums>>, SolveError> {
        let (channels, work) = self.channels(rho)?;
        let mut work = Some(work);
        let mut kept = locked(&self.runs);
        if kept.as_ref().is_none_or(|resident| resident.id() != runs.id) {
            *kept = None;
            *kept = Some(ResidentRuns::new(&self.gpu, &self.terms, runs)?);
        }
        let mut all: Vec<Vec<Option<LineSums>>> = vec![vec![None; which.len()]; self.terms.len()];
        self.put_lines_without_points(rho, &channels, values, &mut all);
        if let Some(resident) = &*kept {
            resident.visit(&self.gpu, runs, which, &mut |groups: &[&Group]| {
                let size = |group: &&Group| (group.asked(which) * self.terms[group.term].count) as f64;
                for groups in pace::parts(groups, size, self.pace.allowance()) {
                    let made = (Arc::clone(&channels), work.take().unwrap_or_default());
                    let total = groups.iter().map(size).sum();
                    self.pace.time(total, || {
                        self.sums_of_groups(groups, made, which, values, &mut all)
                    })?;
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

    fn neuron_sums(&self, rho: &Functional, lists: &[NeuronList]) -> Result<Vec<NeuronSums>, SolveError> {
        let (channels, mut work) = self.channels(rho)?;
        let mut rest = Vec::new();
        for (index, (term, list)) in self.device()?.iter().zip(lists).enumerate() {
            let of_term = (&channels[index].columns, &channels[index].scales);
            for some in list
                .arguments
                .chunks(NEURON_BATCH * (term.whole().dimension() + 2))
            {
                let (made, sums, bytes) = term.neurons(of_term, some, list.slopes)?;
                work.extend(made);
                let neurons = some.len() / (term.whole().dimension() + 2);
                rest.push((index, neurons, sums, bytes));
            }
        }
        let sums: Vec<(&wgpu::Buffer, usize)> =
            rest.iter().map(|(_, _, sums, bytes)| (sums, *bytes)).collect();
        let BroughtDown { exponents, sums } = self.sums_with_exponents(&work, &channels, &sums)?;
        let mut all: Vec<NeuronSums> = exponents.into_iter().map(|e| (e, Vec::new())).collect();
        for ((index, neurons, ..), numbers) in rest.iter().zip(&sums) {
            let term = &self.device()?[*index];
            let per_neuron = term.whole().term.symbols.len() * lists[*index].sums(term.whole().dimension());
            let numbers = wide(numbers);
            let sums = numbers.chunks(term.blocks()).take(neurons * per_neuron);
            all[*index].1.extend(sums.map(total));
        }
        Ok(all)
    }

    fn risk_peaks(&self, u: &Network) -> Result<Peaks, SolveError> {
        let (work, scales) = self.risk_values(u, None)?;
        let read: Vec<(&wgpu::Buffer, usize)> = scales
            .iter()
            .map(|(exponents, scales)| (scales, 4 * exponents.len()))
            .collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        Ok(read
            .iter()
            .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
            .collect())
    }

    fn risk_sums(&self, u: &Network, peaks: Option<&Peaks>) -> Result<Vec<(f64, i128)>, SolveError> {
        let (mut work, scales) = self.risk_values(u, peaks)?;
        let mut rest = Vec::new();
        for (term, (exponents, scales)) in self.device()?.iter().zip(scales) {
            let (made, sums, bytes) = term.risk(&scales)?;
            work.push(made);
            rest.push((term, exponents, scales, sums, bytes));
        }
        let read: Vec<(&wgpu::Buffer, usize)> = rest
            .iter()
            .flat_map(|(_, exponents, scales, sums, bytes)| [(scales, 4 * exponents.len()), (sums, *bytes)])
            .collect();
        let read = Work::run(&self.gpu, &work, &read)?;
        let mut all = Vec::new();
        for ((term, exponents, ..), bytes) in rest.iter().zip(read.chunks(2)) {
            let peaks: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes[0]);
            let moved = exponents
                .iter()
                .zip(&peaks)
                .map(|(e, &peak)| e - lead(peak) as i32);
            let units = term.whole().risk_units(&moved.collect::<Vec<_>>());
            let totals = wide(&bytes[1]);
            all.extend(units.into_iter().zip(totals.chunks(term.blocks()).map(total)));
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
