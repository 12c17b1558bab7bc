//! One term of the loss in whole numbers on a device.

use super::shader::{
    Adapter, NeuronsParams, Outcome, RunsParams, RunsShape, WholeFieldParams, WholeRiskParams, WholeShader,
};
use super::written::{Packs, neurons_at_once, points_at_once, shift_quads};
use crate::gpu::{DeviceError, Gpu, Pass, WORKGROUP};
use crate::loss::DensityLayout;
use crate::sums::whole::{BLOCK, ChannelShifts, WholeNetwork, WholeTerm};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Neurons, and directions that several share, per dispatch of the jets: the search for a piece takes up to some twelve
/// steps for each point, and software adapters end an invocation's loops after 65,535.
pub const FIELD_BATCH: usize = 256;

/// More workgroups than this for the points are dispatched in several rows: no dimension has more than 65,535.
const GROUPS_IN_A_ROW: usize = 1024;

/// A dispatch that owns what it binds.
pub(super) struct Work {
    pipeline: Arc<wgpu::ComputePipeline>,
    buffers: Vec<wgpu::Buffer>,
    groups: [u32; 3],
}

impl Work {
    /// Runs some work as one submission and reads buffers back.
    pub(super) fn run(
        gpu: &Gpu,
        work: &[Work],
        read: &[(&wgpu::Buffer, usize)],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let buffers: Vec<Vec<&wgpu::Buffer>> = work.iter().map(|w| w.buffers.iter().collect()).collect();
        let passes: Vec<Pass> = work
            .iter()
            .zip(&buffers)
            .map(|(work, buffers)| Pass {
                pipeline: &work.pipeline,
                buffers,
                groups: work.groups,
            })
            .collect();
        gpu.run(&passes, read)
    }
}

/// A term's numbers and pipelines on a device.
pub(super) struct DeviceTerm {
    gpu: Arc<Gpu>,
    terms: Arc<Vec<WholeTerm>>,
    index: usize,
    coordinates: wgpu::Buffer,
    columns: wgpu::Buffer,
    /// Values of u, or of its residual.
    values: wgpu::Buffer,
    pipelines: Mutex<HashMap<WholeShader, Arc<wgpu::ComputePipeline>>>,
}

impl DeviceTerm {
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        terms: &Arc<Vec<WholeTerm>>,
        index: usize,
    ) -> Result<Self, DeviceError> {
        let term = &terms[index];
        let widest = term
            .dimension()
            .max(term.term.layout().columns())
            .max(Packs::new(term.term.symbols.len()).numbers());
        if 8 * widest * term.stride > gpu.largest_binding() {
            return Err(DeviceError::OutOfMemory(format!(
                "{} points are more than a shader sees at once",
                term.count
            )));
        }
        Ok(Self {
            gpu: Arc::clone(gpu),
            terms: Arc::clone(terms),
            index,
            coordinates: gpu.upload(bytemuck::cast_slice(&term.coordinates))?,
            columns: gpu.upload(bytemuck::cast_slice(&term.columns))?,
            values: gpu.storage(8 * term.stride * term.term.symbols.len())?,
            pipelines: Mutex::new(HashMap::new()),
        })
    }

    pub(super) fn whole(&self) -> &WholeTerm {
        &self.terms[self.index]
    }

    fn symbols(&self) -> usize {
        self.whole().term.symbols.len()
    }

    fn adapter(&self) -> Adapter {
        Adapter::of(&self.gpu)
    }

    /// How channels lie in memory.
    pub(super) fn packs(&self) -> Packs {
        Packs::new(self.symbols())
    }

    fn stride(&self) -> u32 {
        self.whole().stride as u32
    }

    pub(super) fn blocks(&self) -> usize {
        self.whole().stride / BLOCK
    }

    fn pipeline(&self, shader: WholeShader) -> Result<Arc<wgpu::ComputePipeline>, DeviceError> {
        let mut known = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = known.get(&shader) {
            return Ok(Arc::clone(pipeline));
        }
        let text = shader.wgsl(self.whole(), self.adapter());
        let pipeline = Arc::new(self.gpu.compile(shader.entry(), text)?);
        known.insert(shader, Arc::clone(&pipeline));
        Ok(pipeline)
    }

    fn work(
        &self,
        shader: WholeShader,
        params: &impl bytemuck::NoUninit,
        buffers: &[&wgpu::Buffer],
        groups: [usize; 3],
    ) -> Result<Work, DeviceError> {
        let mut all = vec![self.gpu.uniform(params)?];
        all.extend(buffers.iter().map(|&buffer| buffer.clone()));
        Ok(Work {
            pipeline: self.pipeline(shader)?,
            buffers: all,
            groups: groups.map(|count| count as u32),
        })
    }

    /// Room for the channels of a functional.
    pub(super) fn empty_channels(&self) -> Result<wgpu::Buffer, DeviceError> {
        self.gpu.storage(8 * self.whole().stride * self.packs().numbers())
    }

    /// Work that evaluates a network and makes of it what `outcome` says, in `out`; `scales` takes how large it is.
    pub(super) fn field(
        &self,
        u: &WholeNetwork,
        shifts: Option<&ChannelShifts>,
        outcome: Outcome,
        (out, scales): (&wgpu::Buffer, &wgpu::Buffer),
    ) -> Result<Vec<Work>, DeviceError> {
        // Others may have all the points of a term.
        if self.whole().count == 0 {
            return Ok(Vec::new());
        }
        let packed = PackedNetwork::new(self.whole(), u, shifts);
        let network = self.gpu.upload(bytemuck::cast_slice(&packed.numbers))?;
        let count = packed.singles.max(packed.lines).max(1);
        // Batches hand their jets on.
        let jets = match count > FIELD_BATCH {
            true => Some(self.empty_channels()?),
            false => None,
        };
        let batch = |first: usize| {
            let last = first + FIELD_BATCH;
            let outcome = if last < count { Outcome::Jets } else { outcome };
            let params = WholeFieldParams {
                stride: self.stride(),
                count: self.whole().count as u32,
                first_single: first.min(packed.singles) as u32,
                last_single: last.min(packed.singles) as u32,
                first_line: first.min(packed.lines) as u32,
                last_line: last.min(packed.lines) as u32,
                lines_at: packed.lines_at as u32,
                pieces_at: packed.pieces_at as u32,
            };
            let mut buffers = vec![&self.coordinates, &network, &network];
            buffers.extend(&jets);
            if outcome.has_columns() {
                buffers.push(&self.columns);
            }
            if outcome != Outcome::Jets {
                buffers.extend([out, scales]);
            }
            let continued = first > 0;
            let of_group = WORKGROUP * points_at_once(self.whole(), self.adapter());
            let groups = self.whole().count.div_ceil(of_group);
            let shader = WholeShader::Field { continued, outcome };
            let row = groups.min(GROUPS_IN_A_ROW);
            self.work(shader, &params, &buffers, [row, groups.div_ceil(row), 1])
        };
        (0..count).step_by(FIELD_BATCH).map(batch).collect()
    }

    /// Where the values of u go.
    pub(super) fn values(&self) -> &wgpu::Buffer {
        &self.values
    }

    /// Sums over the tasks of some lines; where they go.
    pub(super) fn runs(
        &self,
        shape: RunsShape,
        tasks: usize,
        buffers: [&wgpu::Buffer; 7],
        lines: usize,
    ) -> Result<(Work, wgpu::Buffer), DeviceError> {
        let sums = self.gpu.scratch(8 * lines * tasks * (self.whole().power + 1))?;
        let params = RunsParams {
            stride: self.stride(),
            tasks: tasks as u32,
        };
        let buffers: Vec<&wgpu::Buffer> = buffers.into_iter().chain([&sums]).collect();
        let groups = [tasks.div_ceil(shape.tasks_of_workgroup()), lines, 1];
        let work = self.work(WholeShader::Runs(shape), &params, &buffers, groups)?;
        Ok((work, sums))
    }

    /// Sums for neurons one by one; where they go.
    pub(super) fn neurons(
        &self,
        (channels, scales): (&wgpu::Buffer, &wgpu::Buffer),
        arguments: &[i64],
        slopes: bool,
    ) -> Result<(Vec<Work>, wgpu::Buffer, usize), DeviceError> {
        let width = self.whole().dimension() + 2;
        // Neurons that are nowhere active fill up the last workgroup.
        let at_once = neurons_at_once(self.symbols(), slopes);
        let count = (arguments.len() / width).next_multiple_of(at_once);
        let mut arguments = arguments.to_vec();
        arguments.resize(count * width, 0);
        let per_symbol = if slopes { 2 + self.whole().dimension() } else { 1 };
        let bytes = 8 * count * self.symbols() * per_symbol * self.blocks();
        let sums = self.gpu.storage(bytes)?;
        let arguments = self.gpu.upload(bytemuck::cast_slice(&arguments))?;
        let params = NeuronsParams {
            stride: self.stride(),
            count: self.whole().count as u32,
            blocks: self.blocks() as u32,
        };
        let buffers = [&self.coordinates, channels, scales, &arguments, &sums];
        let shaders = WholeShader::neurons(self.whole(), slopes);
        let work =
            shaders.map(|shader| self.work(shader, &params, &buffers, [self.blocks(), count / at_once, 1]));
        let work: Result<Vec<Work>, DeviceError> = work.collect();
        Ok((work?, sums, bytes))
    }

    /// The parts of Σ w φ, from the values at hand and how large they are; where they go.
    pub(super) fn risk(&self, scales: &wgpu::Buffer) -> Result<(Work, wgpu::Buffer, usize), DeviceError> {
        let bytes = 8 * self.risk_parts() * self.blocks();
        let sums = self.gpu.storage(bytes)?;
        let params = WholeRiskParams {
            stride: self.stride(),
            count: self.whole().count as u32,
            blocks: self.blocks() as u32,
        };
        let buffers = [&self.columns, &self.values, scales, &sums];
        let work = self.work(WholeShader::Risk, &params, &buffers, [self.blocks(), 1, 1])?;
        Ok((work, sums, bytes))
    }

    fn risk_parts(&self) -> usize {
        match self.whole().term.layout() {
            DensityLayout::Residual { .. } => 1,
            DensityLayout::Energy { .. } => 2 * self.symbols(),
        }
    }
}

/// The numbers of a network as `whole_field.wgsl` reads them.
struct PackedNetwork {
    numbers: Vec<i64>,
    singles: usize,
    lines: usize,
    lines_at: usize,
    pieces_at: usize,
}

impl PackedNetwork {
    fn new(term: &WholeTerm, u: &WholeNetwork, shifts: Option<&ChannelShifts>) -> Self {
        let (dimension, symbols) = (term.dimension(), term.term.symbols.len());
        let mut numbers = vec![0; 4 * shift_quads(term)];
        if let Some(shifts) = shifts {
            let all = shifts.products.iter().chain(&shifts.loads);
            let pairs = numbers.iter_mut().zip(all);
            pairs.for_each(|(number, &shift)| *number = i64::from(shift));
        }
        for single in u.singles.chunks(dimension + 2 + symbols) {
            numbers.extend(single);
            numbers.resize(numbers.len().next_multiple_of(4), 0);
        }
        let lines_at = numbers.len();
        for (row, ends) in u.lines.chunks(dimension + 1).zip(u.starts.windows(2)) {
            numbers.extend(row);
            numbers.extend(ends.iter().map(|&end| i64::from(end)));
        }
        let pieces_at = numbers.len();
        let per_piece = term.sizes().iter().sum::<usize>();
        for (piece, origin) in u.origins.iter().enumerate() {
            numbers.extend(origin);
            numbers.extend(&u.coefficients[piece * per_piece..][..per_piece]);
        }
        Self {
            numbers,
            singles: u.singles.len() / (dimension + 2 + symbols),
            lines: u.lines.len() / (dimension + 1),
            lines_at,
            pieces_at,
        }
    }
}
