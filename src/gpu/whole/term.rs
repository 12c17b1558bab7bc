//! One term of the loss in whole numbers on a device.

use super::shader::{
    NeuronsParams, PeaksParams, RunsParams, WholeChannelsParams, WholeJetsParams, WholeRiskParams,
    WholeShader,
};
use crate::gpu::{DeviceError, Gpu, Pass, WORKGROUP};
use crate::loss::DensityLayout;
use crate::sums::whole::{BLOCK, ChannelShifts, WholeNetwork, WholeTerm};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Directions per dispatch of the jets: keeps every invocation's loops short.
const LINE_BATCH: usize = 256;

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
    jets: wgpu::Buffer,
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
            .max(term.term.symbols.len());
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
            jets: gpu.storage(8 * term.stride * term.term.symbols.len())?,
            pipelines: Mutex::new(HashMap::new()),
        })
    }

    pub(super) fn whole(&self) -> &WholeTerm {
        &self.terms[self.index]
    }

    fn symbols(&self) -> usize {
        self.whole().term.symbols.len()
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
        let text = shader.wgsl(self.whole(), self.gpu.report().i64);
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
        self.gpu.storage(8 * self.whole().stride * self.symbols())
    }

    /// The jets of a network.
    pub(super) fn jets(&self, u: &WholeNetwork) -> Result<Vec<Work>, DeviceError> {
        let numbers = [
            self.gpu.upload(bytemuck::cast_slice(&u.lines))?,
            self.gpu.upload(bytemuck::cast_slice(&u.starts))?,
            self.gpu.upload(bytemuck::cast_slice(&u.origins))?,
            self.gpu.upload(bytemuck::cast_slice(&u.coefficients))?,
        ];
        let [lines, starts, origins, coefficients] = &numbers;
        let count = u.starts.len() - 1;
        let batch = |first: usize| {
            let params = WholeJetsParams {
                stride: self.stride(),
                first: first as u32,
                last: (first + LINE_BATCH).min(count) as u32,
                clear: u32::from(first == 0),
            };
            let buffers = [
                &self.coordinates,
                lines,
                starts,
                origins,
                coefficients,
                &self.jets,
            ];
            let groups = [self.whole().stride / WORKGROUP, 1, 1];
            self.work(WholeShader::Jets, &params, &buffers, groups)
        };
        (0..count.max(1)).step_by(LINE_BATCH).map(batch).collect()
    }

    /// The channels, or the residual alone, from the jets at hand.
    pub(super) fn channels(
        &self,
        shifts: &ChannelShifts,
        (with_load, only_residual): (bool, bool),
        channels: &wgpu::Buffer,
    ) -> Result<Work, DeviceError> {
        let numbers: Vec<u32> = shifts.products.iter().chain(&shifts.loads).copied().collect();
        let shifts = self.gpu.upload(bytemuck::cast_slice(&numbers))?;
        let params = WholeChannelsParams {
            stride: self.stride(),
            with_load: u32::from(with_load),
            only_residual: u32::from(only_residual),
        };
        let buffers = [&self.columns, &self.jets, &shifts, channels];
        let groups = [self.whole().stride / WORKGROUP, 1, 1];
        self.work(WholeShader::Channels, &params, &buffers, groups)
    }

    /// The largest magnitudes of the first columns of a buffer, of the jets if none is given; where they go.
    pub(super) fn peaks(
        &self,
        columns: usize,
        of: Option<&wgpu::Buffer>,
    ) -> Result<(Work, wgpu::Buffer), DeviceError> {
        let blocks = self.blocks();
        let peaks = self.gpu.storage(4 * columns * blocks)?;
        let params = PeaksParams {
            stride: self.stride(),
            blocks: blocks as u32,
        };
        let buffers = [of.unwrap_or(&self.jets), &peaks];
        let work = self.work(WholeShader::Peaks, &params, &buffers, [blocks, columns, 1])?;
        Ok((work, peaks))
    }

    /// The largest magnitude of each column, from what comes back.
    pub(super) fn largest(&self, bytes: &[u8]) -> Vec<u32> {
        let numbers: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
        let columns = numbers.chunks(self.blocks());
        columns
            .map(|column| column.iter().copied().max().unwrap_or(0))
            .collect()
    }

    /// Sums over the tasks of some lines; where they go.
    pub(super) fn runs(
        &self,
        lanes: usize,
        tasks: usize,
        buffers: [&wgpu::Buffer; 6],
        lines: usize,
    ) -> Result<(Work, wgpu::Buffer), DeviceError> {
        let sums = self.gpu.storage(8 * lines * tasks * (self.whole().power + 1))?;
        let params = RunsParams {
            stride: self.stride(),
            tasks: tasks as u32,
        };
        let buffers: Vec<&wgpu::Buffer> = buffers.into_iter().chain([&sums]).collect();
        let groups = [tasks.div_ceil(WORKGROUP / lanes), lines, 1];
        let work = self.work(WholeShader::Runs { lanes }, &params, &buffers, groups)?;
        Ok((work, sums))
    }

    /// Sums for neurons one by one; where they go.
    pub(super) fn neurons(
        &self,
        (channels, leads): (&wgpu::Buffer, &wgpu::Buffer),
        arguments: &[i64],
        slopes: bool,
    ) -> Result<(Work, wgpu::Buffer, usize), DeviceError> {
        let count = arguments.len() / (self.whole().dimension() + 2);
        let per_symbol = if slopes { 2 + self.whole().dimension() } else { 1 };
        let bytes = 8 * count * self.symbols() * per_symbol * self.blocks();
        let sums = self.gpu.storage(bytes)?;
        let arguments = self.gpu.upload(bytemuck::cast_slice(arguments))?;
        let params = NeuronsParams {
            stride: self.stride(),
            blocks: self.blocks() as u32,
        };
        let buffers = [&self.coordinates, channels, leads, &arguments, &sums];
        let shader = WholeShader::Neurons { slopes };
        let work = self.work(shader, &params, &buffers, [self.blocks(), count, self.symbols()])?;
        Ok((work, sums, bytes))
    }

    /// The parts of Σ w φ, from the jets or from a residual; where they go.
    pub(super) fn risk(
        &self,
        residual: Option<&wgpu::Buffer>,
        leads: &[u32],
    ) -> Result<(Work, wgpu::Buffer, usize), DeviceError> {
        let parts = self.risk_parts();
        let bytes = 8 * parts * self.blocks();
        let sums = self.gpu.storage(bytes)?;
        let leads = self.gpu.upload(bytemuck::cast_slice(leads))?;
        let params = WholeRiskParams {
            stride: self.stride(),
            blocks: self.blocks() as u32,
        };
        let buffers = [&self.columns, residual.unwrap_or(&self.jets), &leads, &sums];
        let work = self.work(WholeShader::Risk, &params, &buffers, [self.blocks(), parts, 1])?;
        Ok((work, sums, bytes))
    }

    fn risk_parts(&self) -> usize {
        match self.whole().term.layout() {
            DensityLayout::Residual { .. } => 1,
            DensityLayout::Energy { .. } => 2 * self.symbols(),
        }
    }
}
