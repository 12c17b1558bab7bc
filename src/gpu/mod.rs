//! GPUs: which there are, which to take, how to talk to the one taken, and the [sums](GpuSums) it does.
//! All that knows wgpu is in this room.

mod device;
mod loss;
mod rows;
mod shader;
mod spare;
mod sums;
mod tables;
mod term;
mod tile;
mod whole;

pub use crate::error::DeviceError;
pub use device::{DeviceCounts, Gpu, Pass, Readback};
pub use shader::{
    ChannelsParams, JetsParams, NarrowParams, Precision, RefineParams, RiskParams, SCORE_BLOCK, ScoreParams,
    Shader, ShaderSpec, WORKGROUP, narrow_wgsl,
};
pub use sums::{GpuOptions, GpuSums};
pub use tables::{
    CountParams, DevicePass, LONGEST_WALK, MOST_BINS, MomentsParams, PassShader, PlacesParams, SHARES,
    SortParams, StartsParams, TABLE_BLOCK,
};
pub use whole::{
    Adapter, FIELD_BATCH, NeuronsParams, Outcome, RunsParams, RunsShape, WholeEngine, WholeFieldParams,
    WholeRiskParams, WholeShader,
};

use crate::error::SolveError;
use serde::Serialize;

/// What can go wrong on a device: the device, or the problem that is sent there.
#[derive(Debug)]
enum GpuFailure {
    Device(DeviceError),
    Solve(SolveError),
}

impl From<DeviceError> for GpuFailure {
    fn from(error: DeviceError) -> Self {
        GpuFailure::Device(error)
    }
}

impl From<SolveError> for GpuFailure {
    fn from(error: SolveError) -> Self {
        GpuFailure::Solve(error)
    }
}

/// An adapter as `greedy-pde devices` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdapterReport {
    /// Its name.
    pub name: String,
    /// Vulkan, Metal or Dx12.
    pub backend: String,
    /// Discrete, integrated, virtual, or cpu for a software adapter.
    pub kind: String,
    /// The driver.
    pub driver: String,
    /// Whether shaders may use 64-bit floats.
    pub f64: bool,
    /// Whether shaders may use 64-bit integers.
    pub i64: bool,
    /// Whether it can time its own work.
    pub timestamps: bool,
    /// The largest piece of memory a shader can see at once, in bytes.
    pub largest_binding: u64,
    /// Memory shared by a workgroup, in bytes.
    pub workgroup_memory: u32,
}

/// Which adapter to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdapterChoice {
    /// A part of its name.
    pub name: Option<String>,
    /// Whether one that runs on the CPU will do.
    pub software: bool,
    /// Where several are as good: the one with this number, counted round.
    pub turn: usize,
}

fn instance() -> wgpu::Instance {
    let backends = wgpu::Backends::from_env().unwrap_or(wgpu::Backends::PRIMARY);
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

/// All adapters, the best first: real GPUs before software.
fn adapters() -> Vec<wgpu::Adapter> {
    let instance = instance();
    let mut found = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    found.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    found
}

/// The adapters there are, the best first.
pub fn list() -> Vec<AdapterReport> {
    adapters().iter().map(report).collect()
}

/// Whether adapters are to look as if they had no f64, as an Apple GPU does.
fn without_f64() -> bool {
    is_set("GREEDY_PDE_NO_F64")
}

/// Whether adapters are to look as if they had no 64-bit integers.
fn without_i64() -> bool {
    is_set("GREEDY_PDE_NO_INT64")
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value != "0")
}

fn report(adapter: &wgpu::Adapter) -> AdapterReport {
    let info = adapter.get_info();
    let limits = adapter.limits();
    AdapterReport {
        name: info.name,
        backend: info.backend.to_string(),
        kind: format!("{:?}", info.device_type).to_lowercase(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        f64: adapter.features().contains(wgpu::Features::SHADER_F64) && !without_f64(),
        i64: adapter.features().contains(wgpu::Features::SHADER_INT64) && !without_i64(),
        timestamps: adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY),
        largest_binding: limits.max_storage_buffer_binding_size,
        workgroup_memory: limits.max_compute_workgroup_storage_size,
    }
}

/// The best adapter that fits the choice, of several the one whose turn it is. `WGPU_ADAPTER_NAME` is honoured where no name is given.
pub fn choose(choice: &AdapterChoice) -> Result<wgpu::Adapter, DeviceError> {
    let wanted = choice
        .name
        .clone()
        .or_else(|| std::env::var("WGPU_ADAPTER_NAME").ok());
    let all = adapters();
    let available: Vec<String> = all.iter().map(|adapter| adapter.get_info().name).collect();
    let fits = |adapter: &wgpu::Adapter| {
        let info = adapter.get_info();
        let named = wanted
            .as_ref()
            .is_none_or(|wanted| info.name.to_lowercase().contains(&wanted.to_lowercase()));
        named && (choice.software || info.device_type != wgpu::DeviceType::Cpu)
    };
    let mut fitting: Vec<wgpu::Adapter> = all.into_iter().filter(fits).collect();
    let kind = |adapter: &wgpu::Adapter| adapter.get_info().device_type;
    let best = fitting.first().map(kind);
    fitting.retain(|adapter| Some(kind(adapter)) == best);
    match fitting.len() {
        0 => Err(DeviceError::NoAdapter { wanted, available }),
        count => Ok(fitting.swap_remove(choice.turn % count)),
    }
}
