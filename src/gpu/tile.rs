//! Points and coefficients on a device.

use super::{Gpu, GpuFailure, Precision, SCORE_BLOCK};
use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{Term, TermTile};
use crate::points::{TILE, in_parallel};
use std::ops::Range;

/// A tile's points and coefficients, padded with zeros to whole blocks.
pub(super) struct TileBuffers {
    /// Which points.
    pub(super) range: Range<usize>,
    /// The length of a column, padded.
    pub(super) stride: usize,
    pub(super) points: wgpu::Buffer,
    pub(super) columns: wgpu::Buffer,
}

impl TileBuffers {
    /// Makes a tile's points and coefficients and sends them up.
    pub(super) fn load(
        gpu: &Gpu,
        term: &Term,
        precision: Precision,
        range: Range<usize>,
    ) -> Result<Self, GpuFailure> {
        let stride = range.len().next_multiple_of(SCORE_BLOCK);
        let (dimension, columns) = (term.points.dimension(), term.layout().columns());
        let starts: Vec<usize> = range.clone().step_by(TILE).collect();
        let parts: Vec<TermTile> = in_parallel(starts, |workspace: &mut Workspace, start| {
            let mut tile = TermTile::default();
            term.fill(start..(start + TILE).min(range.end), workspace, &mut tile)?;
            Ok::<_, SolveError>(tile)
        })?;
        let mut points = vec![0.0; dimension * stride];
        let mut data = vec![0.0; columns * stride];
        let mut place = 0;
        for part in parts {
            let count = part.tile.len();
            for (index, column) in part.tile.coordinates.iter().enumerate() {
                points[index * stride + place..][..count].copy_from_slice(column);
            }
            for (index, column) in term.weighted_columns(&part).iter().enumerate() {
                data[index * stride + place..][..count].copy_from_slice(column);
            }
            place += count;
        }
        Ok(Self {
            range,
            stride,
            points: gpu.upload(&precision.bytes(&points))?,
            columns: gpu.upload(&precision.bytes(&data))?,
        })
    }

    /// How many blocks there are.
    pub(super) fn blocks(&self) -> usize {
        self.stride / SCORE_BLOCK
    }
}
