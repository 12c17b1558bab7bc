//! Where the points of a block lie: made on the device from their index, or sent.

use super::stage::{PassShader, PlacesParams};
use crate::gpu::{Adapter, DeviceError, Gpu};
use crate::points::{Fractions, HaltonAxis, LatticeAxis};

/// What makes the places of points.
pub(super) enum PlaceMaker {
    Halton {
        pipeline: wgpu::ComputePipeline,
        axes: Vec<HaltonAxis>,
        /// The low digits of all axes.
        lows: wgpu::Buffer,
    },
    Lattice {
        pipeline: wgpu::ComputePipeline,
        axes: Vec<LatticeAxis>,
    },
    /// The host does, and sends them.
    Host,
}

/// A dispatch that makes the places of a block: what runs, and its buffers.
pub(super) type Making<'a> = (&'a wgpu::ComputePipeline, Vec<wgpu::Buffer>);

impl PlaceMaker {
    pub(super) fn new(
        gpu: &Gpu,
        adapter: Adapter,
        fractions: Option<Fractions>,
    ) -> Result<Self, DeviceError> {
        let compiled = |shader: PassShader| gpu.compile(shader.entry(), shader.wgsl(adapter));
        Ok(match fractions {
            Some(Fractions::Halton(axes)) => {
                let lows: Vec<u32> = axes.iter().flat_map(|axis| axis.low.iter().copied()).collect();
                PlaceMaker::Halton {
                    pipeline: compiled(PassShader::HaltonPlaces)?,
                    lows: gpu.upload(bytemuck::cast_slice(&lows))?,
                    axes,
                }
            }
            Some(Fractions::Lattice(axes)) => PlaceMaker::Lattice {
                pipeline: compiled(PassShader::LatticePlaces)?,
                axes,
            },
            None => PlaceMaker::Host,
        })
    }

    /// Sends the places of some points, from the block's `start` on, if the device cannot make them.
    pub(super) fn send(
        &self,
        gpu: &Gpu,
        of: &[Vec<u32>],
        places: &wgpu::Buffer,
        stride: usize,
        start: usize,
    ) {
        if let PlaceMaker::Host = self {
            for (axis, of_axis) in of.iter().enumerate() {
                gpu.write_at(places, 4 * (axis * stride + start), bytemuck::cast_slice(of_axis));
            }
        }
    }

    /// What the device needs to write the places of points from `first` on, if it makes them.
    pub(super) fn prepare(
        &self,
        gpu: &Gpu,
        first: usize,
        params: &PlacesParams,
        places: &wgpu::Buffer,
    ) -> Result<Option<Making<'_>>, DeviceError> {
        Ok(match self {
            PlaceMaker::Halton { pipeline, axes, lows } => {
                let (recipe, highs) = halton_recipe(axes, first, params.count as usize);
                let recipe = gpu.upload(bytemuck::cast_slice(&recipe))?;
                let highs = gpu.upload(bytemuck::cast_slice(&highs))?;
                let buffers = vec![gpu.uniform(params)?, places.clone(), recipe, highs, lows.clone()];
                Some((pipeline, buffers))
            }
            PlaceMaker::Lattice { pipeline, axes } => {
                let of_axis = |axis: &LatticeAxis| [axis.unfolded(first), axis.step];
                let recipe: Vec<[u32; 2]> = axes.iter().map(of_axis).collect();
                let recipe = gpu.upload(bytemuck::cast_slice(&recipe))?;
                Some((pipeline, vec![gpu.uniform(params)?, places.clone(), recipe]))
            }
            PlaceMaker::Host => None,
        })
    }
}

/// Per axis: which low digits the first point has, how many low digits there are, where they begin, where the high ones
/// do; and the fractions of the high digits that occur.
fn halton_recipe(axes: &[HaltonAxis], first: usize, count: usize) -> (Vec<[u32; 4]>, Vec<u32>) {
    let (mut recipe, mut highs, mut lows_at) = (Vec::new(), Vec::new(), 0);
    for axis in axes {
        let (low, high) = axis.digits(first);
        recipe.push([
            low as u32,
            axis.low.len() as u32,
            lows_at as u32,
            highs.len() as u32,
        ]);
        highs.extend((high..=high + (low + count) / axis.low.len()).map(|number| axis.high(number)));
        lows_at += axis.low.len();
    }
    (recipe, highs)
}
