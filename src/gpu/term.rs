//! One term of the loss on a device.

use super::rows::{RowPlan, ScoreRow};
use super::tile::TileBuffers;
use super::{
    ChannelsParams, DeviceError, Gpu, GpuFailure, JetsParams, NarrowParams, Pass, Precision, Readback,
    RefineParams, RiskParams, SCORE_BLOCK, ScoreParams, Shader, ShaderSpec, WORKGROUP, narrow_wgsl,
};
use crate::activation::Activation;
use crate::loss::Term;
use crate::network::{Network, Neuron};
use crate::ridge::{LocalScore, sums_per_symbol};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Neurons per dispatch of the jets: keeps every invocation's loops short.
const NEURON_BATCH: usize = 256;
/// Offsets per row where a direction has only a few.
const SHORT_ROW: usize = 4;
/// Evaluations per submission: a desktop driver kills what takes seconds.
const SUBMISSION_WORK: usize = 1 << 31;
/// Bytes of sums that come down per submission.
const SUM_BYTES: usize = 1 << 24;
/// Submissions under way at once: one computes while the sums of another come down.
const IN_FLIGHT: usize = 2;

/// How a term is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct TermOptions {
    pub(super) precision: Precision,
    /// Points per tile.
    pub(super) tile: usize,
    /// Offsets per row.
    pub(super) row: usize,
    /// Whether all points stay on the device.
    pub(super) resident: bool,
}

/// Where the channels that are summed up come from.
#[derive(Clone, Copy)]
pub(super) enum ChannelSource<'a> {
    /// The device computes them from a network, ∇L(u) with the load and ∇²L u without.
    Network { network: &'a Network, with_load: bool },
    /// The host did, one column per symbol.
    Columns(&'a [Vec<f64>]),
    /// They are on the device, a buffer per tile.
    Resident(&'a [wgpu::Buffer]),
}

/// A [`ChannelSource`] whose network is on the device.
enum Prepared<'a> {
    Network {
        buffer: wgpu::Buffer,
        neurons: usize,
        with_load: bool,
    },
    Columns(&'a [Vec<f64>]),
    Resident(&'a [wgpu::Buffer]),
}

/// A term's points, coefficients and pipelines on a device.
pub(super) struct DeviceTerm {
    gpu: Arc<Gpu>,
    term: Term,
    spec: ShaderSpec,
    options: TermOptions,
    pipelines: Pipelines,
    /// Jets, then channels, of the tile at hand.
    jets: wgpu::Buffer,
    /// All tiles, if they stay on the device.
    resident: Vec<TileBuffers>,
}

struct Pipelines {
    jets: wgpu::ComputePipeline,
    channels: wgpu::ComputePipeline,
    risk: wgpu::ComputePipeline,
    score: wgpu::ComputePipeline,
    /// For rows of few offsets.
    score_short: wgpu::ComputePipeline,
    /// Made when first needed.
    refine: OnceLock<wgpu::ComputePipeline>,
    narrow: OnceLock<wgpu::ComputePipeline>,
}

/// A pipeline, compiled when it is first needed.
fn once(
    place: &OnceLock<wgpu::ComputePipeline>,
    compile: impl FnOnce() -> Result<wgpu::ComputePipeline, DeviceError>,
) -> Result<&wgpu::ComputePipeline, DeviceError> {
    if let Some(pipeline) = place.get() {
        return Ok(pipeline);
    }
    let compiled = compile()?;
    Ok(place.get_or_init(|| compiled))
}

impl DeviceTerm {
    /// Bytes that points, coefficients and the channels of one functional take on a device, in both
    /// precisions.
    pub(super) fn resident_bytes(term: &Term) -> usize {
        let numbers = term.points.dimension() + term.layout().columns() + term.symbols.len();
        let sizes = Precision::F32.size() + Precision::F64.size();
        term.points.len().saturating_mul(numbers * sizes)
    }

    pub(super) fn new(
        gpu: Arc<Gpu>,
        term: &Term,
        activation: Activation,
        mut options: TermOptions,
    ) -> Result<Self, GpuFailure> {
        let spec = ShaderSpec {
            precision: options.precision,
            dimension: term.points.dimension(),
            activation,
            orders: term.symbols.iter().map(|symbol| symbol.order()).collect(),
            layout: term.layout().clone(),
            offsets: options.row,
        };
        let widest = spec.dimension.max(spec.orders.len()).max(spec.layout.columns());
        // The same tiles in both precisions.
        let fits = gpu.largest_binding() / (widest * Precision::F64.size());
        options.tile = options
            .tile
            .min(term.points.len())
            .min(fits)
            .next_multiple_of(SCORE_BLOCK);
        let short = ShaderSpec {
            offsets: SHORT_ROW,
            ..spec.clone()
        };
        let pipelines = Pipelines {
            jets: gpu.pipeline(Shader::Jets, &spec)?,
            channels: gpu.pipeline(Shader::Channels, &spec)?,
            risk: gpu.pipeline(Shader::Risk, &spec)?,
            score: gpu.pipeline(Shader::Score, &spec)?,
            score_short: gpu.pipeline(Shader::Score, &short)?,
            refine: OnceLock::new(),
            narrow: OnceLock::new(),
        };
        let jets = gpu.storage(options.tile * spec.orders.len() * options.precision.size())?;
        let mut device_term = Self {
            gpu,
            term: term.clone(),
            spec,
            options,
            pipelines,
            jets,
            resident: Vec::new(),
        };
        if options.resident {
            for range in device_term.tiles() {
                let tile = device_term.load(range)?;
                device_term.resident.push(tile);
            }
        }
        Ok(device_term)
    }

    fn tiles(&self) -> Vec<Range<usize>> {
        let (count, tile) = (self.term.points.len(), self.options.tile);
        (0..count.div_ceil(tile))
            .map(|index| index * tile..((index + 1) * tile).min(count))
            .collect()
    }

    fn load(&self, range: Range<usize>) -> Result<TileBuffers, GpuFailure> {
        TileBuffers::load(&self.gpu, &self.term, self.options.precision, range)
    }

    /// Visits every tile with its number, resident or loaded for the occasion.
    fn for_each_tile(
        &self,
        mut visit: impl FnMut(usize, &TileBuffers) -> Result<(), GpuFailure>,
    ) -> Result<(), GpuFailure> {
        if self.options.resident {
            let mut tiles = self.resident.iter().enumerate();
            return tiles.try_for_each(|(index, tile)| visit(index, tile));
        }
        let mut tiles = self.tiles().into_iter().enumerate();
        tiles.try_for_each(|(index, range)| visit(index, &self.load(range)?))
    }

    /// Whether all points stay on the device.
    pub(super) fn is_resident(&self) -> bool {
        self.options.resident
    }

    /// The channels at all points, to stay on the device.
    pub(super) fn channels(&self, source: ChannelSource) -> Result<Vec<wgpu::Buffer>, GpuFailure> {
        let prepared = self.prepare(source)?;
        let mut buffers = Vec::new();
        self.for_each_tile(|index, tile| {
            let buffer = self
                .gpu
                .storage(tile.stride * self.spec.orders.len() * self.options.precision.size())?;
            self.make_channels((index, tile), &prepared, &buffer)?;
            buffers.push(buffer);
            Ok(())
        })?;
        Ok(buffers)
    }

    /// The same channels in single precision.
    pub(super) fn narrowed(&self, wide: &[wgpu::Buffer]) -> Result<Vec<wgpu::Buffer>, GpuFailure> {
        let pipeline = once(&self.pipelines.narrow, || {
            self.gpu.compile("narrow_main", narrow_wgsl())
        })?;
        let narrow = |(wide, tile): (&wgpu::Buffer, &TileBuffers)| {
            let count = tile.stride * self.spec.orders.len();
            let buffer = self.gpu.storage(count * Precision::F32.size())?;
            let columns = (count / WORKGROUP).min(self.gpu.largest_dispatch());
            let params = self.gpu.uniform(&NarrowParams {
                count: count as u32,
                width: (columns * WORKGROUP) as u32,
            })?;
            let pass = Pass {
                pipeline,
                buffers: &[&params, wide, &buffer],
                groups: [columns as u32, (count / WORKGROUP).div_ceil(columns) as u32, 1],
            };
            self.gpu.submit(&[pass], None)?;
            Ok(buffer)
        };
        wide.iter().zip(&self.resident).map(narrow).collect()
    }

    /// Adds ⟨channels, g⟩ for every candidate of the plan.
    pub(super) fn add_scores(
        &self,
        source: ChannelSource,
        plan: &RowPlan,
        scores: &mut [f64],
    ) -> Result<(), GpuFailure> {
        let prepared = self.prepare(source)?;
        let (short, long): (Vec<&ScoreRow>, Vec<&ScoreRow>) =
            plan.rows.iter().partition(|row| row.offsets.len() <= SHORT_ROW);
        let mut pending: VecDeque<(Readback, Vec<&ScoreRow>, usize, usize)> = VecDeque::new();
        let precision = self.options.precision;
        self.for_each_tile(|index, tile| {
            let channels = self.channels_of((index, tile), &prepared)?;
            for (rows, length, pipeline) in [
                (&long, self.options.row, &self.pipelines.score),
                (&short, SHORT_ROW, &self.pipelines.score_short),
            ] {
                for batch in rows.chunks(self.rows_per_submission(tile, length)) {
                    let readback = self.submit_scores((tile, channels), batch, (length, pipeline))?;
                    pending.push_back((readback, batch.to_vec(), length, tile.blocks()));
                    while pending.len() > IN_FLIGHT {
                        add_sums(&self.gpu, precision, pending.pop_front(), scores)?;
                    }
                }
            }
            Ok(())
        })?;
        while !pending.is_empty() {
            add_sums(&self.gpu, precision, pending.pop_front(), scores)?;
        }
        Ok(())
    }

    fn rows_per_submission(&self, tile: &TileBuffers, length: usize) -> usize {
        let by_work = SUBMISSION_WORK / (tile.stride * length);
        let by_bytes = SUM_BYTES / (tile.blocks() * length * self.options.precision.size());
        by_work.min(by_bytes).clamp(1, self.gpu.largest_dispatch())
    }

    fn submit_scores(
        &self,
        (tile, channels): (&TileBuffers, &wgpu::Buffer),
        rows: &[&ScoreRow],
        (length, pipeline): (usize, &wgpu::ComputePipeline),
    ) -> Result<Readback, GpuFailure> {
        let mut data =
            Vec::with_capacity(rows.len() * (self.spec.dimension + self.spec.orders.len() + length));
        for row in rows {
            data.extend(&row.omega);
            data.extend(self.factors(&row.omega));
            // Places beyond the end of a short row repeat its last offset; nobody reads them.
            let last = row.offsets.last().map_or(0.0, |&(_, bias)| bias);
            data.extend((0..length).map(|j| row.offsets.get(j).map_or(last, |&(_, bias)| bias)));
        }
        let precision = self.options.precision;
        let bytes = rows.len() * length * tile.blocks() * precision.size();
        let row_buffer = self.gpu.upload(&precision.bytes(&data))?;
        let sums = self.gpu.storage(bytes)?;
        let params = self.gpu.uniform(&ScoreParams {
            stride: tile.stride as u32,
            blocks: tile.blocks() as u32,
        })?;
        let pass = Pass {
            pipeline,
            buffers: &[&params, &tile.points, channels, &row_buffer, &sums],
            groups: [tile.blocks() as u32, rows.len() as u32, 1],
        };
        let readback = self.gpu.submit(&[pass], Some((&sums, bytes)))?;
        readback.ok_or_else(|| DeviceError::Refused("nothing to read".to_string()).into())
    }

    /// p_c(ω) with the activation's factor, for each symbol.
    fn factors(&self, omega: &[f64]) -> Vec<f64> {
        let symbols = self.term.symbols.iter();
        symbols
            .map(|symbol| symbol.at(omega) * self.spec.order_factor(symbol.order()))
            .collect()
    }

    fn upload_network(&self, network: &Network) -> Result<wgpu::Buffer, GpuFailure> {
        let mut data = Vec::new();
        for (neuron, a) in network.neurons.iter().zip(&network.coefficients) {
            data.extend(&neuron.omega);
            data.push(neuron.bias);
            data.extend(self.factors(&neuron.omega).into_iter().map(|factor| a * factor));
        }
        Ok(self.gpu.upload(&self.options.precision.bytes(&data))?)
    }

    /// Sends up what is the same for every tile.
    fn prepare<'a>(&self, source: ChannelSource<'a>) -> Result<Prepared<'a>, GpuFailure> {
        Ok(match source {
            ChannelSource::Network { network, with_load } => Prepared::Network {
                buffer: self.upload_network(network)?,
                neurons: network.len(),
                with_load,
            },
            ChannelSource::Columns(columns) => Prepared::Columns(columns),
            ChannelSource::Resident(buffers) => Prepared::Resident(buffers),
        })
    }

    /// The jets of the network at a tile's points.
    fn make_jets(
        &self,
        tile: &TileBuffers,
        (network, neurons): (&wgpu::Buffer, usize),
        jets: &wgpu::Buffer,
    ) -> Result<(), GpuFailure> {
        let groups = [(tile.stride / WORKGROUP) as u32, 1, 1];
        let batches: Vec<usize> = (0..neurons.max(1)).step_by(NEURON_BATCH).collect();
        for first in batches {
            let last = (first + NEURON_BATCH).min(neurons);
            let params = self.gpu.uniform(&JetsParams {
                stride: tile.stride as u32,
                first: first as u32,
                last: last as u32,
                clear: u32::from(first == 0),
            })?;
            let pass = Pass {
                pipeline: &self.pipelines.jets,
                buffers: &[&params, &tile.points, network, jets],
                groups,
            };
            self.gpu.submit(&[pass], None)?;
        }
        Ok(())
    }

    /// The channels at a tile's points: as they are on the device, or made now.
    fn channels_of<'b>(
        &'b self,
        (index, tile): (usize, &TileBuffers),
        source: &'b Prepared,
    ) -> Result<&'b wgpu::Buffer, GpuFailure> {
        if let Prepared::Resident(buffers) = source {
            return Ok(&buffers[index]);
        }
        self.make_channels((index, tile), source, &self.jets)?;
        Ok(&self.jets)
    }

    /// Puts the channels at a tile's points into a buffer.
    fn make_channels(
        &self,
        (index, tile): (usize, &TileBuffers),
        source: &Prepared,
        channels: &wgpu::Buffer,
    ) -> Result<(), GpuFailure> {
        let (network, neurons, with_load) = match source {
            Prepared::Network {
                buffer,
                neurons,
                with_load,
            } => (buffer, *neurons, *with_load),
            Prepared::Columns(columns) => {
                self.upload_channels(tile, columns, channels);
                return Ok(());
            }
            Prepared::Resident(_) => unreachable!("tile {index} is on the device already"),
        };
        self.make_jets(tile, (network, neurons), channels)?;
        let params = self.gpu.uniform(&ChannelsParams {
            stride: tile.stride as u32,
            with_load: u32::from(with_load),
        })?;
        let pass = Pass {
            pipeline: &self.pipelines.channels,
            buffers: &[&params, &tile.columns, channels],
            groups: [(tile.stride / WORKGROUP) as u32, 1, 1],
        };
        self.gpu.submit(&[pass], None)?;
        Ok(())
    }

    /// Sends channels up that the host computed.
    fn upload_channels(&self, tile: &TileBuffers, columns: &[Vec<f64>], channels: &wgpu::Buffer) {
        let mut data = vec![0.0; columns.len() * tile.stride];
        for (place, column) in data.chunks_mut(tile.stride).zip(columns) {
            place[..tile.range.len()].copy_from_slice(&column[tile.range.clone()]);
        }
        self.gpu.write(channels, &self.options.precision.bytes(&data));
    }

    /// Σ w φ(x, jet of u).
    pub(super) fn risk(&self, u: &Network) -> Result<f64, GpuFailure> {
        let network = self.upload_network(u)?;
        let mut total = 0.0;
        self.for_each_tile(|_, tile| {
            self.make_jets(tile, (&network, u.len()), &self.jets)?;
            let bytes = tile.blocks() * self.options.precision.size();
            let sums = self.gpu.storage(bytes)?;
            let params = self.gpu.uniform(&RiskParams {
                stride: tile.stride as u32,
            })?;
            let pass = Pass {
                pipeline: &self.pipelines.risk,
                buffers: &[&params, &tile.columns, &self.jets, &sums],
                groups: [tile.blocks() as u32, 1, 1],
            };
            if let Some(readback) = self.gpu.submit(&[pass], Some((&sums, bytes)))? {
                let bytes = self.gpu.finish(readback)?;
                total += self.options.precision.numbers(&bytes)[..tile.blocks()]
                    .iter()
                    .sum::<f64>();
            }
            Ok(())
        })?;
        Ok(total)
    }

    /// Adds value and gradient of the scores at some neurons.
    pub(super) fn add_slopes(
        &self,
        source: ChannelSource,
        neurons: &[Neuron],
        scores: &mut [LocalScore],
    ) -> Result<(), GpuFailure> {
        let pipeline = once(&self.pipelines.refine, || {
            self.gpu.pipeline(Shader::Refine, &self.spec)
        })?;
        let prepared = self.prepare(source)?;
        let data: Vec<f64> = neurons
            .iter()
            .flat_map(|neuron| neuron.omega.iter().copied().chain([neuron.bias]))
            .collect();
        let precision = self.options.precision;
        let list = self.gpu.upload(&precision.bytes(&data))?;
        let (symbols, per_symbol) = (self.spec.orders.len(), sums_per_symbol(self.spec.dimension));
        let mut totals = vec![0.0; neurons.len() * symbols * per_symbol];
        self.for_each_tile(|index, tile| {
            let channels = self.channels_of((index, tile), &prepared)?;
            let bytes = totals.len() * tile.blocks() * precision.size();
            let sums = self.gpu.storage(bytes)?;
            let params = self.gpu.uniform(&RefineParams {
                stride: tile.stride as u32,
                blocks: tile.blocks() as u32,
            })?;
            let pass = Pass {
                pipeline,
                buffers: &[&params, &tile.points, channels, &list, &sums],
                groups: [tile.blocks() as u32, neurons.len() as u32, symbols as u32],
            };
            if let Some(readback) = self.gpu.submit(&[pass], Some((&sums, bytes)))? {
                let numbers = precision.numbers(&self.gpu.finish(readback)?);
                for (total, blocks) in totals.iter_mut().zip(numbers.chunks(tile.blocks())) {
                    *total += blocks.iter().sum::<f64>();
                }
            }
            Ok(())
        })?;
        self.scale_slopes(&mut totals);
        for ((score, neuron), sums) in scores
            .iter_mut()
            .zip(neurons)
            .zip(totals.chunks(symbols * per_symbol))
        {
            score.add_by_symbol(&self.term.symbols, neuron, sums);
        }
        Ok(())
    }

    /// Puts in the activation's factors, which the shaders leave out.
    fn scale_slopes(&self, totals: &mut [f64]) {
        for (index, sums) in totals
            .chunks_mut(sums_per_symbol(self.spec.dimension))
            .enumerate()
        {
            let order = self.spec.orders[index % self.spec.orders.len()];
            let (value, slopes) = sums.split_at_mut(1);
            value[0] *= self.spec.order_factor(order);
            slopes
                .iter_mut()
                .for_each(|sum| *sum *= self.spec.order_factor(order + 1));
        }
    }
}

type Pending<'a> = (Readback, Vec<&'a ScoreRow>, usize, usize);

/// Waits for sums over blocks and adds them to the scores in double precision.
fn add_sums(
    gpu: &Gpu,
    precision: Precision,
    pending: Option<Pending>,
    scores: &mut [f64],
) -> Result<(), GpuFailure> {
    let Some((readback, rows, length, blocks)) = pending else {
        return Ok(());
    };
    let numbers = precision.numbers(&gpu.finish(readback)?);
    for (row, sums) in rows.iter().zip(numbers.chunks(length * blocks)) {
        for (&(position, _), blocks) in row.offsets.iter().zip(sums.chunks(blocks)) {
            scores[position] += blocks.iter().sum::<f64>();
        }
    }
    Ok(())
}
