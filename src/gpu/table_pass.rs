//! The pass over the points that fills moment tables, on a device.

use super::{DeviceError, Gpu, MomentsParams, Pass, Readback, moments_column_tile, moments_wgsl};
use crate::candidates::AxisBins;
use crate::error::SolveError;
use crate::sums::{
    Block, PairSums, PairTable, Sorted, add_cells, axis_pairs, block_length, whole_unit, whole_weight,
};
use std::sync::Arc;

/// The tables of all pairs of axes on a device, as whole numbers.
pub struct DevicePass {
    gpu: Arc<Gpu>,
    pipeline: wgpu::ComputePipeline,
    size: usize,
    axes: Vec<AxisBins>,
    /// One per pair of axes.
    tables: Vec<wgpu::Buffer>,
    /// The weight that 2³² stands for, once it is known.
    unit: Option<f64>,
    /// The block before, which may still be at work.
    under_way: Option<Readback>,
}

impl DevicePass {
    /// Empty tables of ReLU^`power` on a device.
    pub fn new(gpu: Arc<Gpu>, power: usize, axes: &[AxisBins]) -> Result<Self, DeviceError> {
        let pipeline = gpu.compile("moments_main", moments_wgsl(power))?;
        let mut pass = Self {
            gpu,
            pipeline,
            size: power + 1,
            axes: axes.to_vec(),
            tables: Vec::new(),
            unit: None,
            under_way: None,
        };
        pass.tables = pass.empty_tables()?;
        Ok(pass)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        axis_pairs(self.axes.len())
    }

    fn numbers(&self, (i, j): (usize, usize)) -> usize {
        self.axes[i].count * self.axes[j].count * self.size * self.size
    }

    fn empty_tables(&self) -> Result<Vec<wgpu::Buffer>, DeviceError> {
        // Buffers come zeroed.
        self.pairs()
            .map(|pair| self.gpu.storage(8 * self.numbers(pair)))
            .collect()
    }

    /// Adds what the device has summed up to `sums`, and starts from zero.
    fn drain_sums(&mut self, sums: &mut [PairTable]) -> Result<(), DeviceError> {
        let Some(unit) = self.unit.take() else {
            return Ok(());
        };
        if let Some(before) = self.under_way.take() {
            self.gpu.finish(before)?;
        }
        for ((i, j), (table, sums)) in self.pairs().zip(self.tables.iter().zip(sums)) {
            let PairTable::Double(sums) = sums else {
                continue;
            };
            let bytes = 8 * self.numbers((i, j));
            let Some(readback) = self.gpu.submit(&[], Some((table, bytes)))? else {
                continue;
            };
            let numbers: Vec<u64> = bytemuck::pod_collect_to_vec(&self.gpu.finish(readback)?[..bytes]);
            add_cells(&numbers, unit, self.size, (&self.axes[i], &self.axes[j]), sums);
        }
        self.tables = self.empty_tables()?;
        Ok(())
    }
}

impl PairSums for DevicePass {
    fn block_length(&self) -> usize {
        block_length(&self.axes)
    }

    fn add(&mut self, block: &Block, weights: &[f64], sums: &mut [PairTable]) -> Result<(), SolveError> {
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Ok(());
        }
        if self.unit.is_none_or(|unit| largest >= unit) {
            self.drain_sums(sums)?;
            self.unit = Some(whole_unit(largest));
        }
        let unit = self.unit.unwrap_or(1.0);
        let places: Vec<wgpu::Buffer> = block
            .places
            .iter()
            .map(|places| self.gpu.upload(bytemuck::cast_slice(places)))
            .collect::<Result<_, _>>()?;
        let mut rows = Vec::new();
        for sorted in &block.sorted {
            rows.push((
                self.gpu.upload(bytemuck::cast_slice(&fractions(sorted, unit)))?,
                self.gpu.upload(bytemuck::cast_slice(&sorted.starts))?,
            ));
        }
        let params: Vec<wgpu::Buffer> = self
            .axes
            .iter()
            .map(|axis| {
                self.gpu.uniform(&MomentsParams {
                    columns: axis.count as u32,
                })
            })
            .collect::<Result<_, _>>()?;
        let pairs: Vec<(usize, usize)> = self.pairs().collect();
        let buffers: Vec<[&wgpu::Buffer; 5]> = pairs
            .iter()
            .zip(&self.tables)
            .map(|(&(i, j), table)| [&params[j], &rows[i].0, &rows[i].1, &places[j], table])
            .collect();
        let tile = moments_column_tile(self.size - 1);
        let passes: Vec<Pass> = pairs
            .iter()
            .zip(&buffers)
            .map(|(&(i, j), buffers)| Pass {
                pipeline: &self.pipeline,
                buffers,
                groups: [
                    self.axes[i].count as u32,
                    self.axes[j].count.div_ceil(tile) as u32,
                    1,
                ],
            })
            .collect();
        // A few bytes come back to say that the block is done; one more may be under way.
        let now = self.gpu.submit(&passes, Some((&self.tables[0], 16)))?;
        if let Some(before) = std::mem::replace(&mut self.under_way, now) {
            self.gpu.finish(before)?;
        }
        Ok(())
    }

    fn drain(&mut self, sums: &mut [PairTable]) -> Result<(), SolveError> {
        Ok(self.drain_sums(sums)?)
    }

    fn adapter(&self) -> Option<String> {
        Some(self.gpu.report().name.clone())
    }
}

/// Distance, point and weight of the sorted points, the weight as a fraction of its unit.
fn fractions(sorted: &Sorted, unit: f64) -> Vec<[u32; 4]> {
    sorted
        .points
        .iter()
        .map(|&(distance, point, weight)| [distance, point, whole_weight(weight, unit), 0])
        .collect()
}
