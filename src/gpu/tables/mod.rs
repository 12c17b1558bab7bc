//! The pass over the points that fills moment tables, on a device.

mod points;
mod stage;

pub use stage::{
    CountParams, LONGEST_WALK, MOST_BINS, MomentsParams, PassShader, PlacesParams, SHARES, SortParams,
    StartsParams,
};

use super::{Adapter, DeviceError, Gpu, Pass, Readback, WORKGROUP};
use crate::candidates::AxisBins;
use crate::error::SolveError;
use crate::points::Fractions;
use crate::sums::{Block, PASS_BLOCK, PairSums, PairTable, Unit, add_cells, axis_pairs};
use points::PlaceMaker;
use std::sync::Arc;

/// Points of a block, at most: so many that the tables, which go through the caches once a block, do not count.
pub const TABLE_BLOCK: usize = 1 << 20;

/// The tables of all pairs of axes on a device, as whole numbers.
///
/// A few of the host's blocks make one of the device's. It is sorted there along each axis while the host goes on; how full
/// the fullest bins are comes back and tells in how many dispatches the block's moments are added.
pub struct DevicePass {
    gpu: Arc<Gpu>,
    adapter: Adapter,
    axes: Vec<AxisBins>,
    power: usize,
    pipelines: Pipelines,
    points: PlaceMaker,
    block: BlockBuffers,
    /// One per pair of axes.
    tables: Vec<wgpu::Buffer>,
    /// Whether the tables have been taken, and are to be cleared before the next sums.
    are_taken: bool,
    unit: Unit,
    /// The number of the first point of the block that is being filled, and how many it has.
    filled: (usize, usize),
    /// The block that is being sorted.
    sorting: Option<Readback>,
    /// The moments of the one before.
    adding: Option<Readback>,
}

struct Pipelines {
    count: wgpu::ComputePipeline,
    starts: wgpu::ComputePipeline,
    sort: wgpu::ComputePipeline,
    moments: wgpu::ComputePipeline,
}

/// What is known of a block of points.
struct BlockBuffers {
    /// Points of a block, and from an axis to the next.
    stride: usize,
    bins: wgpu::Buffer,
    places: wgpu::Buffer,
    weights: wgpu::Buffer,
    counts: wgpu::Buffer,
    starts: wgpu::Buffer,
    longest: wgpu::Buffer,
    entries: wgpu::Buffer,
}

impl Pipelines {
    fn new(gpu: &Gpu, adapter: Adapter, power: usize) -> Result<Self, DeviceError> {
        let compiled = |shader: PassShader| gpu.compile(shader.entry(), shader.wgsl(adapter));
        Ok(Self {
            count: compiled(PassShader::Count)?,
            starts: compiled(PassShader::Starts)?,
            sort: compiled(PassShader::Sort)?,
            moments: compiled(PassShader::Moments { power })?,
        })
    }
}

impl BlockBuffers {
    fn new(gpu: &Gpu, axes: &[AxisBins]) -> Result<Self, DeviceError> {
        let (d, rows) = (axes.len(), axes.len() - 1);
        // The largest of the buffers are the sorted points.
        let fitting = gpu.largest_binding() / (8 * rows);
        let stride = TABLE_BLOCK.min(1 << fitting.max(1).ilog2());
        let bins = most_bins(axes);
        let counts: Vec<u32> = axes.iter().map(|axis| axis.count as u32).collect();
        Ok(Self {
            stride,
            bins: gpu.upload(bytemuck::cast_slice(&counts))?,
            places: gpu.storage(4 * stride * d)?,
            weights: gpu.storage(4 * stride)?,
            counts: gpu.storage(4 * rows * SHARES * bins)?,
            starts: gpu.storage(4 * rows * (bins + 1))?,
            longest: gpu.storage(4 * rows)?,
            entries: gpu.storage(8 * stride * rows)?,
        })
    }
}

fn most_bins(axes: &[AxisBins]) -> usize {
    axes.iter().map(|axis| axis.count).max().unwrap_or(1)
}

impl DevicePass {
    /// Empty tables of ReLU^`power` on a device, for points that it makes itself if they are given by `fractions`.
    pub fn new(
        gpu: Arc<Gpu>,
        power: usize,
        axes: &[AxisBins],
        fractions: Option<Fractions>,
    ) -> Result<Self, DeviceError> {
        let adapter = Adapter::of(&gpu);
        Self::new_as(gpu, adapter, power, axes, fractions)
    }

    /// The same with the shaders of a certain kind of adapter.
    pub fn new_as(
        gpu: Arc<Gpu>,
        adapter: Adapter,
        power: usize,
        axes: &[AxisBins],
        fractions: Option<Fractions>,
    ) -> Result<Self, DeviceError> {
        if most_bins(axes) > MOST_BINS {
            return Err(DeviceError::Refused(format!(
                "more than {MOST_BINS} bins along an axis"
            )));
        }
        let mut pass = Self {
            pipelines: Pipelines::new(&gpu, adapter, power)?,
            points: PlaceMaker::new(&gpu, adapter, fractions)?,
            block: BlockBuffers::new(&gpu, axes)?,
            gpu,
            adapter,
            power,
            axes: axes.to_vec(),
            tables: Vec::new(),
            are_taken: false,
            unit: Unit::default(),
            filled: (0, 0),
            sorting: None,
            adding: None,
        };
        pass.tables = pass.empty_tables()?;
        Ok(pass)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        axis_pairs(self.axes.len())
    }

    fn numbers(&self, (i, j): (usize, usize)) -> usize {
        self.axes[i].count * self.axes[j].count * (self.power + 1) * (self.power + 1)
    }

    fn empty_tables(&self) -> Result<Vec<wgpu::Buffer>, DeviceError> {
        // Buffers come zeroed.
        self.pairs()
            .map(|pair| self.gpu.storage(8 * self.numbers(pair)))
            .collect()
    }

    /// Takes more points into the block that is being filled.
    fn fill(&mut self, block: &Block, weights: &[u32]) -> Result<(), DeviceError> {
        // What was sorted is still needed where it is.
        self.add_sorted()?;
        if self.filled.1 == 0 {
            self.filled.0 = block.first;
        }
        let own = &self.block;
        self.gpu
            .write_at(&own.weights, 4 * self.filled.1, bytemuck::cast_slice(weights));
        self.points
            .send(&self.gpu, &block.places, &own.places, own.stride, self.filled.1);
        self.filled.1 += weights.len();
        if self.filled.1 + self.block_length() > own.stride {
            self.start_sorting()?;
        }
        Ok(())
    }

    /// Makes the points of the block that was filled, and sorts them.
    fn start_sorting(&mut self) -> Result<(), DeviceError> {
        let (first, count) = std::mem::take(&mut self.filled);
        if count == 0 {
            return Ok(());
        }
        let (gpu, own, pipelines) = (&self.gpu, &self.block, &self.pipelines);
        gpu.count_point_directions(count * self.axes.len());
        let params = PlacesParams {
            count: count as u32,
            stride: own.stride as u32,
            axes: self.axes.len() as u32,
        };
        let making = self.points.prepare(gpu, first, &params, &own.places)?;
        let recipe: Vec<&wgpu::Buffer> = making.iter().flat_map(|(_, buffers)| buffers).collect();
        let (count, stride, bins) = (params.count, params.stride, most_bins(&self.axes) as u32);
        let counting = gpu.uniform(&CountParams { count, stride, bins })?;
        let starting = gpu.uniform(&StartsParams { bins })?;
        let sorting = gpu.uniform(&SortParams { count, stride, bins })?;
        let shares = [(SHARES / WORKGROUP) as u32, self.axes.len() as u32 - 1, 1];
        let made = making.as_ref().map(|(pipeline, _)| Pass {
            pipeline,
            buffers: &recipe,
            groups: [count.div_ceil(WORKGROUP as u32), 1, 1],
        });
        let counted = Pass {
            pipeline: &pipelines.count,
            buffers: &[&counting, &own.bins, &own.places, &own.counts],
            groups: shares,
        };
        let started = Pass {
            pipeline: &pipelines.starts,
            buffers: &[&starting, &own.counts, &own.starts, &own.longest],
            groups: [shares[1], 1, 1],
        };
        let sorted = Pass {
            pipeline: &pipelines.sort,
            buffers: &[
                &sorting,
                &own.bins,
                &own.places,
                &own.starts,
                &own.counts,
                &own.entries,
            ],
            groups: shares,
        };
        let passes: Vec<Pass> = made.into_iter().chain([counted, started, sorted]).collect();
        let longest = 4 * (self.axes.len() - 1);
        self.sorting = gpu.submit(&passes, Some((&own.longest, longest)))?;
        Ok(())
    }

    /// Adds the moments of the block that was sorted last.
    fn add_sorted(&mut self) -> Result<(), DeviceError> {
        let Some(sorting) = self.sorting.take() else {
            return Ok(());
        };
        let longest: Vec<u32> = bytemuck::pod_collect_to_vec(&self.gpu.finish(sorting)?);
        self.finish_adding()?;
        if std::mem::take(&mut self.are_taken) {
            self.gpu.clear(&self.tables)?;
        }
        let mut steps = Vec::new();
        for (place, pair) in self.pairs().enumerate() {
            for skipped in (0..longest[pair.0] as usize).step_by(self.points_of_a_dispatch()) {
                steps.push((place, pair, self.gpu.uniform(&self.moments_of(pair, skipped))?));
            }
        }
        let own = &self.block;
        let buffers: Vec<[&wgpu::Buffer; 6]> = steps
            .iter()
            .map(|(place, _, params)| {
                [
                    params,
                    &own.entries,
                    &own.starts,
                    &own.places,
                    &own.weights,
                    &self.tables[*place],
                ]
            })
            .collect();
        let passes: Vec<Pass> = steps
            .iter()
            .zip(&buffers)
            .map(|((_, pair, _), buffers)| Pass {
                pipeline: &self.pipelines.moments,
                buffers,
                groups: self.groups(*pair),
            })
            .collect();
        // A few bytes come back to say that the block is done.
        self.adding = self.gpu.submit(&passes, Some((&own.longest, 16)))?;
        Ok(())
    }

    fn finish_adding(&mut self) -> Result<(), DeviceError> {
        if let Some(adding) = self.adding.take() {
            self.gpu.finish(adding)?;
        }
        Ok(())
    }

    fn moments_of(&self, (i, j): (usize, usize), skipped: usize) -> MomentsParams {
        let stride = self.block.stride;
        MomentsParams {
            rows: self.axes[i].count as u32,
            columns: self.axes[j].count as u32,
            entries_at: (i * stride) as u32,
            starts_at: (i * (most_bins(&self.axes) + 1)) as u32,
            places_at: (j * stride) as u32,
            skipped: skipped as u32,
        }
    }

    /// Points of a row that one dispatch adds.
    fn points_of_a_dispatch(&self) -> usize {
        match self.adapter.software {
            true => LONGEST_WALK,
            false => self.block.stride,
        }
    }

    fn groups(&self, (i, j): (usize, usize)) -> [u32; 3] {
        let (rows, columns) = (self.axes[i].count, self.axes[j].count);
        match self.adapter.software {
            true => [rows.div_ceil(WORKGROUP) as u32, 1, 1],
            false => [
                rows as u32,
                columns.div_ceil(stage::column_tile(self.power)) as u32,
                1,
            ],
        }
    }

    /// Adds what the device has summed up to `sums`, and starts from zero.
    fn drain_sums(&mut self, sums: &mut [PairTable]) -> Result<(), DeviceError> {
        self.add_sorted()?;
        self.start_sorting()?;
        self.add_sorted()?;
        self.finish_adding()?;
        let Some(unit) = self.unit.take() else {
            return Ok(());
        };
        for ((i, j), (table, sums)) in self.pairs().zip(self.tables.iter().zip(sums)) {
            let PairTable::Double(sums) = sums else {
                continue;
            };
            let bytes = 8 * self.numbers((i, j));
            let Some(readback) = self.gpu.submit(&[], Some((table, bytes)))? else {
                continue;
            };
            self.gpu.finish_with(readback, |numbers| {
                let axes = (&self.axes[i], &self.axes[j]);
                add_cells(&numbers[..bytes], unit, self.power + 1, axes, sums);
            })?;
        }
        self.are_taken = true;
        Ok(())
    }
}

impl PairSums for DevicePass {
    fn block_length(&self) -> usize {
        PASS_BLOCK.min(self.block.stride)
    }

    fn add(&mut self, block: &mut Block, weights: usize, sums: &mut [PairTable]) -> Result<(), SolveError> {
        let weights = &block.columns[weights];
        if self.unit.is_outgrown(weights) {
            self.drain_sums(sums)?;
        }
        let weights = self.unit.add(weights);
        Ok(self.fill(block, &weights)?)
    }

    fn drain(&mut self, sums: &mut [PairTable]) -> Result<(), SolveError> {
        Ok(self.drain_sums(sums)?)
    }

    fn adapter(&self) -> Option<String> {
        Some(self.gpu.report().name.clone())
    }
}
