//! One open device: pipelines, buffers, submissions, readback.

use super::shader::{Shader, ShaderSpec};
use super::spare::SpareBuffers;
use super::{AdapterReport, DeviceError};
use futures::channel::oneshot;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A submission that takes longer than this is given up as hung.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What a software adapter may hold where the host does not tell how much it has.
const HOST_ROOM: usize = 1 << 30;

/// An open GPU.
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    report: AdapterReport,
    /// The first error that no scope caught, and a lost device.
    fault: Arc<Mutex<Option<DeviceError>>>,
    /// Seconds that the device says it has worked, over all submissions that were read back.
    busy: Mutex<f64>,
    counts: Mutex<DeviceCounts>,
    /// Clocks that are not at work.
    clocks: Mutex<Vec<Clock>>,
    spare: SpareBuffers,
    /// Constants of dispatches, which come again.
    constants: Mutex<HashMap<Vec<u8>, wgpu::Buffer>>,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Gpu")
            .field("adapter", &self.report.name)
            .finish_non_exhaustive()
    }
}

/// So many constants are kept.
const KEPT_CONSTANTS: usize = 256;

/// What a device was asked for and what went over the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Bytes sent up.
    pub bytes_up: u64,
    /// Bytes that came down.
    pub bytes_down: u64,
    /// How often work was handed over.
    pub submissions: u64,
    /// Points along directions whose sums were made in scans.
    pub point_directions: u64,
}

/// One dispatch: pipeline, buffers in the order of their bindings, workgroups.
pub struct Pass<'a> {
    /// What runs.
    pub pipeline: &'a wgpu::ComputePipeline,
    /// Binding 0, 1, …
    pub buffers: &'a [&'a wgpu::Buffer],
    /// Workgroups in x, y, z.
    pub groups: [u32; 3],
}

/// Numbers on their way back from the device.
pub struct Readback {
    staging: wgpu::Buffer,
    mapped: oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>,
    submission: wgpu::SubmissionIndex,
    /// The bytes of each buffer that was asked for, one after the other.
    parts: Vec<usize>,
    /// When the first pass began and the last ended, in ticks.
    clock: Option<Clock>,
}

/// Two timestamps on the device and their way back.
struct Clock {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
}

impl Gpu {
    /// Opens an adapter with all the limits it has.
    pub fn open(adapter: &wgpu::Adapter) -> Result<Self, DeviceError> {
        Self::open_as(adapter, true, adapter.limits())
    }

    /// Opens it without 64-bit integers if they are not wanted, and with limits that may be lower than its own.
    pub fn open_as(
        adapter: &wgpu::Adapter,
        native_integers: bool,
        limits: wgpu::Limits,
    ) -> Result<Self, DeviceError> {
        let mut report = super::report(adapter);
        report.i64 &= native_integers;
        let wanted =
            wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64 | wgpu::Features::TIMESTAMP_QUERY;
        let features = adapter.features() & wanted;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("greedy-pde"),
            required_features: features,
            required_limits: limits,
            ..wgpu::DeviceDescriptor::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| DeviceError::NoDevice {
            adapter: report.name.clone(),
            reason: error.to_string(),
        })?;
        let fault = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&fault);
        device.on_uncaptured_error(Arc::new(move |error| note(&noted, translate(&error))));
        let noted = Arc::clone(&fault);
        device.set_device_lost_callback(move |_, reason| note(&noted, DeviceError::Lost(reason)));
        Ok(Self {
            device,
            queue,
            report,
            fault,
            busy: Mutex::new(0.0),
            counts: Mutex::default(),
            clocks: Mutex::default(),
            spare: SpareBuffers::default(),
            constants: Mutex::default(),
        })
    }

    /// Seconds that the device worked on submissions read back so far, by its own clock, if it has one.
    pub fn busy_seconds(&self) -> Option<f64> {
        self.report
            .timestamps
            .then(|| self.busy.lock().map_or(0.0, |busy| *busy))
    }

    /// What went over the link so far.
    pub fn counts(&self) -> DeviceCounts {
        self.counts
            .lock()
            .map_or_else(|_| DeviceCounts::default(), |counts| *counts)
    }

    /// Counts points along directions.
    pub fn count_point_directions(&self, count: usize) {
        self.count(|counts| counts.point_directions += count as u64);
    }

    fn count(&self, change: impl FnOnce(&mut DeviceCounts)) {
        if let Ok(mut counts) = self.counts.lock() {
            change(&mut counts);
        }
    }

    /// Gives the device back. Whoever still uses it finds it lost.
    pub fn destroy(&self) {
        self.device.destroy();
        note(&self.fault, DeviceError::Lost("it was given back".to_string()));
    }

    /// What this device is.
    pub fn report(&self) -> &AdapterReport {
        &self.report
    }

    /// The largest buffer a shader can see at once, in bytes.
    pub fn largest_binding(&self) -> usize {
        let limits = self.device.limits();
        limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .min(1 << 31)
            .saturating_sub(1) as usize
    }

    /// Bytes that may stay on the device besides points and channels: of a software adapter, whose memory is the
    /// host's, half of what is free there; of any other, as much as it gives.
    pub fn room(&self) -> usize {
        match self.report.kind.as_str() {
            "cpu" => free_memory().map_or(HOST_ROOM, |free| free / 2),
            _ => usize::MAX,
        }
    }

    /// The most workgroups in one dimension of a dispatch.
    pub fn largest_dispatch(&self) -> usize {
        self.device.limits().max_compute_workgroups_per_dimension as usize
    }

    /// Compiles a stage.
    pub fn pipeline(&self, shader: Shader, spec: &ShaderSpec) -> Result<wgpu::ComputePipeline, DeviceError> {
        self.compile(shader.entry(), shader.wgsl(spec))
    }

    /// Compiles an entry point of a WGSL text.
    pub fn compile(&self, entry: &str, wgsl: String) -> Result<wgpu::ComputePipeline, DeviceError> {
        self.checked(|device| {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(entry),
                source: wgpu::ShaderSource::Wgsl(wgsl.into()),
            });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(entry),
                layout: None,
                module: &module,
                entry_point: Some(entry),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            })
        })
    }

    /// A buffer for shaders, of this many bytes.
    pub fn storage(&self, bytes: usize) -> Result<wgpu::Buffer, DeviceError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.buffer(bytes, usage)
    }

    /// A storage buffer with any contents, used before or new.
    pub fn scratch(&self, bytes: usize) -> Result<wgpu::Buffer, DeviceError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.spare_or_new(bytes, usage)
    }

    /// Takes a buffer back that nobody needs any more.
    pub fn give_back(&self, buffer: wgpu::Buffer) {
        self.spare.give_back(buffer);
    }

    fn spare_or_new(&self, bytes: usize, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, DeviceError> {
        match self.spare.take(padded(bytes) as u64, usage) {
            Some(buffer) => Ok(buffer),
            None => self.buffer(bytes, usage),
        }
    }

    /// A storage buffer with contents.
    pub fn upload(&self, bytes: &[u8]) -> Result<wgpu::Buffer, DeviceError> {
        let buffer = self.storage(bytes.len())?;
        self.write(&buffer, bytes);
        Ok(buffer)
    }

    /// Replaces the beginning of a buffer's contents.
    pub fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        self.write_at(buffer, 0, bytes);
    }

    /// Replaces a part of a buffer's contents.
    pub fn write_at(&self, buffer: &wgpu::Buffer, start: usize, bytes: &[u8]) {
        self.count(|counts| counts.bytes_up += bytes.len() as u64);
        self.queue.write_buffer(buffer, start as u64, bytes);
    }

    /// Fills buffers with zeros.
    pub fn clear(&self, buffers: &[wgpu::Buffer]) -> Result<(), DeviceError> {
        self.checked(|device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for buffer in buffers {
                encoder.clear_buffer(buffer, 0, None);
            }
            self.queue.submit([encoder.finish()]);
        })
    }

    /// Constants of a dispatch.
    pub fn uniform(&self, params: &impl bytemuck::NoUninit) -> Result<wgpu::Buffer, DeviceError> {
        let bytes = bytemuck::bytes_of(params);
        let known = self.constants.lock().ok();
        if let Some(buffer) = known.and_then(|known| known.get(bytes).cloned()) {
            return Ok(buffer);
        }
        let buffer = self.buffer(
            bytes.len(),
            wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        )?;
        self.write(&buffer, bytes);
        if let Ok(mut known) = self.constants.lock() {
            if known.len() == KEPT_CONSTANTS {
                known.clear();
            }
            known.insert(bytes.to_vec(), buffer.clone());
        }
        Ok(buffer)
    }

    fn buffer(&self, bytes: usize, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, DeviceError> {
        self.checked(|device| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: padded(bytes) as u64,
                usage,
                mapped_at_creation: false,
            })
        })
    }

    /// Runs dispatches as one submission and waits for the first bytes of some buffers.
    pub fn run(&self, passes: &[Pass], read: &[(&wgpu::Buffer, usize)]) -> Result<Vec<Vec<u8>>, DeviceError> {
        match self.submit_reading(passes, read)? {
            Some(readback) => self.finish_parts(readback),
            None => Ok(Vec::new()),
        }
    }

    /// Runs dispatches in order and starts to read a buffer's first bytes back, if one is named.
    pub fn submit(
        &self,
        passes: &[Pass],
        read: Option<(&wgpu::Buffer, usize)>,
    ) -> Result<Option<Readback>, DeviceError> {
        self.submit_reading(passes, read.as_slice())
    }

    fn submit_reading(
        &self,
        passes: &[Pass],
        read: &[(&wgpu::Buffer, usize)],
    ) -> Result<Option<Readback>, DeviceError> {
        let total: usize = read.iter().map(|(_, bytes)| padded(*bytes)).sum();
        let staging = match read.is_empty() {
            false => {
                Some(self.spare_or_new(total, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)?)
            }
            true => None,
        };
        let clock = match read.is_empty() {
            false if self.report.timestamps && !passes.is_empty() => Some(self.clock()?),
            _ => None,
        };
        self.count(|counts| {
            counts.submissions += 1;
            counts.bytes_down += total as u64;
        });
        let submission = self.checked(|device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (index, pass) in passes.iter().enumerate() {
                let entries: Vec<wgpu::BindGroupEntry> = pass
                    .buffers
                    .iter()
                    .enumerate()
                    .map(|(binding, buffer)| wgpu::BindGroupEntry {
                        binding: binding as u32,
                        resource: buffer.as_entire_binding(),
                    })
                    .collect();
                let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &pass.pipeline.get_bind_group_layout(0),
                    entries: &entries,
                });
                let (first, last) = (index == 0, index + 1 == passes.len());
                let timed = clock.as_ref().filter(|_| first || last);
                let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: None,
                    timestamp_writes: timed.map(|clock| wgpu::ComputePassTimestampWrites {
                        query_set: &clock.queries,
                        beginning_of_pass_write_index: first.then_some(0),
                        end_of_pass_write_index: last.then_some(1),
                    }),
                });
                compute.set_pipeline(pass.pipeline);
                compute.set_bind_group(0, &group, &[]);
                let [x, y, z] = pass.groups;
                compute.dispatch_workgroups(x, y, z);
            }
            if let Some(clock) = &clock {
                encoder.resolve_query_set(&clock.queries, 0..2, &clock.resolved, 0);
                encoder.copy_buffer_to_buffer(&clock.resolved, 0, &clock.staging, 0, 16);
            }
            if let Some(staging) = &staging {
                let mut start = 0;
                for &(source, bytes) in read {
                    let bytes = padded(bytes) as u64;
                    encoder.copy_buffer_to_buffer(source, 0, staging, start, bytes);
                    start += bytes;
                }
            }
            self.queue.submit([encoder.finish()])
        })?;
        if let Some(clock) = &clock {
            clock.staging.map_async(wgpu::MapMode::Read, .., |_| {});
        }
        Ok(staging.map(|staging| {
            let (sender, mapped) = oneshot::channel();
            staging.map_async(wgpu::MapMode::Read, .., move |result| {
                // Nobody waits any more if the readback was dropped.
                let _ = sender.send(result);
            });
            Readback {
                staging,
                mapped,
                submission,
                parts: read.iter().map(|(_, bytes)| *bytes).collect(),
                clock,
            }
        }))
    }

    fn clock(&self) -> Result<Clock, DeviceError> {
        if let Some(clock) = self.clocks.lock().ok().and_then(|mut clocks| clocks.pop()) {
            return Ok(clock);
        }
        let queries = self.checked(|device| {
            device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            })
        })?;
        Ok(Clock {
            queries,
            resolved: self.buffer(
                16,
                wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            )?,
            staging: self.buffer(16, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)?,
        })
    }

    /// Adds what the device's clock says of a submission.
    fn note_time(&self, clock: Clock) {
        let Ok(view) = clock.staging.get_mapped_range(..) else {
            return;
        };
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&view[..16]);
        let seconds =
            ticks[1].saturating_sub(ticks[0]) as f64 * f64::from(self.queue.get_timestamp_period()) * 1e-9;
        if let Ok(mut busy) = self.busy.lock() {
            *busy += seconds;
        }
        drop(view);
        clock.staging.unmap();
        if let Ok(mut clocks) = self.clocks.lock() {
            clocks.push(clock);
        }
    }

    /// Waits for the bytes of one buffer.
    pub fn finish(&self, readback: Readback) -> Result<Vec<u8>, DeviceError> {
        Ok(self
            .finish_parts(readback)?
            .into_iter()
            .next()
            .unwrap_or_default())
    }

    /// Waits for a readback: the bytes of each buffer that was asked for.
    fn finish_parts(&self, readback: Readback) -> Result<Vec<Vec<u8>>, DeviceError> {
        let parts = readback.parts.clone();
        self.finish_with(readback, |bytes| {
            let mut start = 0;
            let part = |length: usize| {
                let part = bytes[start..start + length].to_vec();
                start += padded(length);
                part
            };
            parts.into_iter().map(part).collect()
        })
    }

    /// Waits for a readback and looks at its bytes where they are.
    pub fn finish_with<T>(
        &self,
        mut readback: Readback,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, DeviceError> {
        let waited = self.device.poll(wgpu::PollType::Wait {
            submission_index: Some(readback.submission.clone()),
            timeout: Some(TIMEOUT),
        });
        self.fault()?;
        waited.map_err(|error| DeviceError::Lost(error.to_string()))?;
        match readback.mapped.try_recv() {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(error))) => return Err(DeviceError::Lost(error.to_string())),
            _ => return Err(DeviceError::Lost("a readback never arrived".to_string())),
        }
        if let Some(clock) = readback.clock.take() {
            self.note_time(clock);
        }
        let view = readback.staging.get_mapped_range(..);
        let view = view.map_err(|error| DeviceError::Refused(error.to_string()))?;
        let seen = look(&view);
        drop(view);
        readback.staging.unmap();
        self.give_back(readback.staging);
        Ok(seen)
    }

    /// Does something with the device; errors become values instead of panics.
    fn checked<T>(&self, action: impl FnOnce(&wgpu::Device) -> T) -> Result<T, DeviceError> {
        self.fault()?;
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let result = action(&self.device);
        let refused = pollster::block_on(validation.pop());
        let full = pollster::block_on(memory.pop());
        match full.or(refused) {
            Some(error) => Err(translate(&error)),
            None => Ok(result),
        }
    }

    fn fault(&self) -> Result<(), DeviceError> {
        match self.fault.lock() {
            Ok(fault) => fault.clone().map_or(Ok(()), Err),
            Err(_) => Err(DeviceError::Lost("a callback panicked".to_string())),
        }
    }
}

/// Bytes of memory that are free on this machine, where it tells.
fn free_memory() -> Option<usize> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The size of a buffer for so many bytes.
fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(16).max(16)
}

fn note(place: &Mutex<Option<DeviceError>>, error: DeviceError) {
    if let Ok(mut fault) = place.lock() {
        fault.get_or_insert(error);
    }
}

fn translate(error: &wgpu::Error) -> DeviceError {
    match error {
        wgpu::Error::OutOfMemory { .. } => DeviceError::OutOfMemory(error.to_string()),
        _ => DeviceError::Refused(error.to_string()),
    }
}
