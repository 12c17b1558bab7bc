//! Sorted runs on a device: those that fit stay there, the others stream through it.

use super::RunsShape;
use crate::gpu::{DeviceError, Gpu};
use crate::sums::whole::{LineRuns, LineValues, Runs, Task, WholeTerm};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes of a group of lines, unless a single line has more.
const GROUP_BYTES: usize = 64 << 20;
/// With tasks of this many points on average several invocations share one, and read entries side by side.
const SHARED_FROM: usize = 256;
/// With tasks of fewer points than this on average an invocation has several, one after the other.
const CRUMBS: usize = 8;
/// Where tasks are not shared long ones are cut into parts of so many points: loops stay short, and no invocation has to
/// be waited for.
const LONGEST_ALONE: usize = 256;

/// The runs of some lines of a term in one buffer.
pub(super) struct Group {
    pub(super) term: usize,
    lines: Range<usize>,
    pub(super) entries: wgpu::Buffer,
    pub(super) tasks: wgpu::Buffer,
    /// How invocations and tasks are matched.
    pub(super) shape: RunsShape,
    /// The table of all lines: the values of a grid are the same in every scan.
    of_all: OnceLock<Arc<LineTable>>,
    /// Per line: its first task, and its tasks.
    of_lines: Vec<(usize, Vec<Task>)>,
}

/// The lines of a group that are asked for, and by what channels are multiplied along them, on the device.
pub(super) struct LineTable {
    /// Per line: its first task, their number, its place in the values, doublings.
    pub(super) lines: wgpu::Buffer,
    pub(super) mantissas: wgpu::Buffer,
    pub(super) powers: wgpu::Buffer,
    /// The most tasks of a line.
    pub(super) widest: usize,
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
        let (points, tasks_of_all) = sorted.iter().fold((0, 0), |(points, tasks), line| {
            (points + line.entries.len(), tasks + line.tasks.len())
        });
        let shared = points / tasks_of_all.max(1) >= SHARED_FROM;
        let (mut entries, mut tasks, mut of_lines) = (Vec::with_capacity(points), Vec::new(), Vec::new());
        for line in sorted {
            let start = entries.len() as u32;
            let parts: Vec<Task> = match shared {
                true => line.tasks,
                false => line
                    .tasks
                    .iter()
                    .flat_map(|task| task.cut(LONGEST_ALONE))
                    .collect(),
            };
            let first = tasks.len();
            tasks.extend(parts.iter().map(|task| [start + task.start, start + task.end]));
            of_lines.push((first, parts));
            entries.extend(line.entries);
        }
        let widest = of_lines.iter().map(|(_, tasks)| tasks.len()).max().unwrap_or(0);
        let shape = match (shared, points / tasks_of_all.max(1) < CRUMBS) {
            (true, _) => RunsShape::SHARED,
            (false, true) => RunsShape::CRUMBS,
            (false, false) => RunsShape::ALONE,
        };
        let is_too_wide = widest.div_ceil(shape.tasks_of_workgroup()) > gpu.largest_dispatch();
        let shape = if is_too_wide { RunsShape::CRUMBS } else { shape };
        Ok(Self {
            term,
            lines,
            entries: gpu.upload(bytemuck::cast_slice(&entries))?,
            tasks: gpu.upload(bytemuck::cast_slice(&tasks))?,
            shape,
            of_all: OnceLock::new(),
            of_lines,
        })
    }

    /// The table of the lines that are asked for, as places among the values and lines.
    pub(super) fn table(
        &self,
        gpu: &Gpu,
        asked: &[(usize, usize)],
        values: &LineValues,
    ) -> Result<Arc<LineTable>, DeviceError> {
        let is_whole =
            asked.len() == self.lines.len() && asked.len() * values.symbols() == values.powers.len();
        if let (true, Some(table)) = (is_whole, self.of_all.get()) {
            return Ok(Arc::clone(table));
        }
        let symbols = values.symbols();
        let (mut lines, mut mantissas, mut powers) = (Vec::new(), Vec::<i64>::new(), Vec::<i32>::new());
        let mut widest = 0;
        for (row, &(place, line)) in asked.iter().enumerate() {
            let Some((first, tasks)) = self.line(line) else {
                continue;
            };
            widest = widest.max(tasks.len());
            lines.push([
                first as u32,
                tasks.len() as u32,
                row as u32,
                values.doublings[place],
            ]);
            mantissas.extend(&values.mantissas[place * symbols..][..symbols]);
            powers.extend(&values.powers[place * symbols..][..symbols]);
        }
        let table = Arc::new(LineTable {
            lines: gpu.upload(bytemuck::cast_slice(&lines))?,
            mantissas: gpu.upload(bytemuck::cast_slice(&mantissas))?,
            powers: gpu.upload(bytemuck::cast_slice(&powers))?,
            widest,
        });
        if is_whole {
            return Ok(Arc::clone(self.of_all.get_or_init(|| table)));
        }
        Ok(table)
    }

    /// How many of these lines are in the group.
    pub(super) fn asked(&self, which: &[usize]) -> usize {
        which.iter().filter(|line| self.lines.contains(line)).count()
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
        for (index, term) in terms.iter().enumerate().filter(|(_, term)| term.count > 0) {
            let of_line = 8 * term.count;
            if of_line > gpu.largest_binding() {
                return Err(DeviceError::OutOfMemory(format!(
                    "{} points are more than a shader sees at once",
                    term.count
                )));
            }
            let lines = (largest / of_line.max(1)).clamp(1, gpu.largest_dispatch());
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
