//! Buffers that are not at work.

use std::sync::Mutex;

/// So many are kept for later.
const KEPT: usize = 16;
/// A buffer may be so many times larger than what is asked for.
const TOO_LARGE: u64 = 4;

/// Buffers for what is written whole before it is read, and for the way down: new ones would be cleared first.
#[derive(Default)]
pub(super) struct SpareBuffers(Mutex<Vec<wgpu::Buffer>>);

impl SpareBuffers {
    /// A buffer of at least so many bytes, for the same use, if there is one.
    pub(super) fn take(&self, size: u64, usage: wgpu::BufferUsages) -> Option<wgpu::Buffer> {
        let mut kept = self.0.lock().ok()?;
        let sizes = size..=TOO_LARGE * size;
        let fits = |buffer: &wgpu::Buffer| buffer.usage() == usage && sizes.contains(&buffer.size());
        let place = kept.iter().position(fits)?;
        Some(kept.remove(place))
    }

    /// Keeps a buffer, in place of the one that was not asked for longest.
    pub(super) fn give_back(&self, buffer: wgpu::Buffer) {
        if let Ok(mut kept) = self.0.lock() {
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push(buffer);
        }
    }
}
