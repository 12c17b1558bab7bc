//! Sorted runs on a device: those that fit stay there, the others stream through it.

use super::WORKGROUP;
use crate::gpu::{DeviceError, Gpu};
use crate::sums::whole::{LineRuns, Runs, Task, WholeTerm};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of a group of lines, unless a single line has more.
const GROUP_BYTES: usize = 64 << 20;
/// With tasks of this many points on average several invocations share one, and read entries side by side.
const SHARED_FROM: usize = 64;
/// So do they where one has this many: loops stay short.
const LONG_TASK: usize = 512;
/// So many then.
const SHARED_LANES: usize = 16;

/// The runs of some lines of a term in one buffer.
pub(super) struct Group {
    pub(super) term: usize,
    lines: Range<usize>,
    pub(super) entries: wgpu::Buffer,
    pub(super) tasks: wgpu::Buffer,
    /// Invocations per task.
    pub(super) lanes: usize,
    /// Per line: its first task, and its tasks.
    of_lines: Vec<(usize, Vec<Task>)>,
}

/// The runs of a grid.
pub(super) struct ResidentRuns {
    id: u64,
    /// Which lines of which term make up each group.
    plan: Vec<(usize, Range<usize>)>,
    /// The first of these groups, as many as fit.
    resident: Vec<Group>,
}

impl Group {
    fn new(gpu: &Gpu, runs: &Runs, term: usize, lines: Range<usize>) -> Result<Self, DeviceError> {
        let sorted: Vec<LineRuns> = lines
            .clone()
            .into_par_iter()
            .map(|line| runs.of_line(term, line))
            .collect();
        let (mut entries, mut tasks, mut of_lines) = (Vec::new(), Vec::new(), Vec::new());
        for line in sorted {
            let start = entries.len() as u32;
            of_lines.push((tasks.len(), line.tasks.clone()));
            tasks.extend(
                line.tasks
                    .iter()
                    .map(|task| [start + task.start, start + task.end]),
            );
            entries.extend(line.entries);
        }
        let longest = tasks.iter().map(|[start, end]| end - start).max().unwrap_or(0) as usize;
        let shared = entries.len() / tasks.len().max(1) >= SHARED_FROM || longest >= LONG_TASK;
        Ok(Self {
            term,
            lines,
            entries: gpu.upload(bytemuck::cast_slice(&entries))?,
            tasks: gpu.upload(bytemuck::cast_slice(&tasks))?,
            lanes: if shared { SHARED_LANES.min(WORKGROUP) } else { 1 },
            of_lines,
        })
    }

    /// The first task of a line and its tasks, if the line is in the group.
    pub(super) fn line(&self, line: usize) -> Option<(usize, &[Task])> {
        let inside = self.lines.contains(&line);
        let (first, tasks) = &self.of_lines[inside.then(|| line - self.lines.start)?];
        Some((*first, tasks))
    }
}

impl ResidentRuns {
    /// Sends as many runs up as the device holds.
    pub(super) fn new(gpu: &Gpu, terms: &[WholeTerm], runs: &Runs) -> Result<Self, DeviceError> {
        let largest = GROUP_BYTES.min(gpu.largest_binding());
        let mut plan = Vec::new();
        for (index, term) in terms.iter().enumerate() {
            let of_line = 8 * term.count;
            if of_line > gpu.largest_binding() {
                return Err(DeviceError::OutOfMemory(format!(
                    "{} points are more than a shader sees at once",
                    term.count
                )));
            }
            let lines = (largest / of_line.max(1)).max(1);
            let starts = (0..runs.lines.len()).step_by(lines);
            plan.extend(starts.map(|start| (index, start..(start + lines).min(runs.lines.len()))));
        }
        let mut all = Self {
            id: runs.id,
            plan,
            resident: Vec::new(),
        };
        let (room, mut held) = (gpu.room(), 0);
        for (term, lines) in &all.plan {
            held += 8 * terms[*term].count * lines.len();
            if held > room {
                break;
            }
            match Group::new(gpu, runs, *term, lines.clone()) {
                Ok(group) => all.resident.push(group),
                Err(DeviceError::OutOfMemory(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let (all, here) = (self.plan.len(), self.resident.len());
        match here < all {
            true => vec![format!(
                "{here} of {all} groups of directions fit the device; the others are sorted anew in every step"
            )],
            false => Vec::new(),
        }
    }

    /// Visits the groups that have some of these lines: all that are here at once, the others one by one.
    pub(super) fn visit(
        &self,
        gpu: &Gpu,
        runs: &Runs,
        which: &[usize],
        visit: &mut dyn FnMut(&[&Group]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let here: Vec<&Group> = self.resident.iter().collect();
        visit(&here)?;
        for (term, lines) in &self.plan[self.resident.len()..] {
            if which.iter().any(|line| lines.contains(line)) {
                visit(&[&Group::new(gpu, runs, *term, lines.clone())?])?;
            }
        }
        Ok(())
    }
}
