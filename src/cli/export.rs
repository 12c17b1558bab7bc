//! `greedy-pde export`: the solution of a run on a grid, for other programs.
//!
//! Points are made, evaluated and written chunk by chunk: memory does not grow with the grid.

use super::new_file::NewFile;
use super::table::csv_line;
use super::{ExportArguments, ExportFormat, Failure};
use greedy_pde::domain::{Domain, Mesh};
use greedy_pde::results::SavedRun;
use greedy_pde::sample::{of_exact, values};
use std::io::{self, Write};
use std::ops::Range;

/// More grid points than anyone can look at.
const MOST_POINTS: usize = 100_000_000;
/// Grid points in each coordinate unless others are asked for …
const USUAL_SIDE: usize = 101;
/// … as long as there are no more than this in all.
const USUAL_POINTS: usize = 1_100_000;
/// Points that are evaluated together.
const CHUNK: usize = 1 << 16;

pub(super) fn execute(arguments: &ExportArguments) -> Result<(), Failure> {
    let run = SavedRun::load(&arguments.directory)?;
    let d = run.network.dimension;
    if arguments.format == ExportFormat::Vtk && !(2..=3).contains(&d) {
        return Err(Failure::Input(format!(
            "vtk is for 2 and 3 dimensions; this network has {d}: use csv or npy"
        )));
    }
    let side = arguments
        .grid
        .unwrap_or_else(|| largest_side(d, USUAL_POINTS).min(USUAL_SIDE));
    if !fits(side, d, MOST_POINTS) {
        return Err(Failure::Input(format!(
            "--grid {side} in {d} dimensions gives {} points, and at most {MOST_POINTS} are written: --grid {} is the largest",
            shown_power(side, d),
            largest_side(d, MOST_POINTS)
        )));
    }
    let path = arguments.output.clone().unwrap_or_else(|| {
        let extension = match arguments.format {
            ExportFormat::Csv => "csv",
            ExportFormat::Npy => "npy",
            ExportFormat::Vtk => "vtk",
        };
        arguments.directory.join(format!("solution.{extension}"))
    });
    let file = NewFile::at(&path, arguments.force)?;
    let grid = Grid::over(&run, side);
    file.stream(|file| match arguments.format {
        ExportFormat::Csv => write_csv(&run, &grid, file),
        ExportFormat::Npy => write_npy(&run, &grid, file),
        ExportFormat::Vtk => match &run.problem.domain {
            Domain::Mesh(mesh) if arguments.grid.is_none() => write_vtk_mesh(&run, mesh, file),
            _ => write_vtk(&run, &grid, file),
        },
    })
}

/// Whether a grid has at most so many points.
fn fits(side: usize, dimension: usize, most: usize) -> bool {
    side.checked_pow(dimension as u32)
        .is_some_and(|points| points <= most)
}

fn largest_side(dimension: usize, most: usize) -> usize {
    (1..=most)
        .take_while(|side| fits(*side, dimension, most))
        .last()
        .unwrap_or(1)
}

fn shown_power(side: usize, dimension: usize) -> String {
    match side.checked_pow(dimension as u32) {
        Some(points) => points.to_string(),
        None => format!("{:.1e}", (side as f64).powi(dimension as i32)),
    }
}

/// A grid over the box around the domain.
struct Grid {
    /// Smallest and largest value of each coordinate.
    ends: Vec<(f64, f64)>,
    /// Points in each coordinate.
    side: usize,
}

/// Which coordinate runs fastest from one point to the next.
#[derive(Clone, Copy, PartialEq)]
enum Fastest {
    First,
    Last,
}

impl Grid {
    fn over(run: &SavedRun, side: usize) -> Self {
        let axes = 0..run.network.dimension;
        Self {
            ends: axes.map(|axis| run.problem.domain.side(axis)).collect(),
            side,
        }
    }

    fn len(&self) -> usize {
        self.side.pow(self.ends.len() as u32)
    }

    fn step(&self, axis: usize) -> f64 {
        let (low, high) = self.ends[axis];
        (high - low) / (self.side - 1).max(1) as f64
    }

    /// The coordinates of some points, column by column.
    fn points(&self, range: Range<usize>, fastest: Fastest) -> Vec<Vec<f64>> {
        let d = self.ends.len();
        (0..d)
            .map(|axis| {
                let faster = match fastest {
                    Fastest::First => axis,
                    Fastest::Last => d - 1 - axis,
                };
                let (low, step) = (self.ends[axis].0, self.step(axis));
                let stride = self.side.pow(faster as u32);
                range
                    .clone()
                    .map(|index| low + step * (index / stride % self.side) as f64)
                    .collect()
            })
            .collect()
    }

    /// Hands out the points chunk by chunk.
    fn in_chunks(
        &self,
        fastest: Fastest,
        mut visit: impl FnMut(Vec<Vec<f64>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let total = self.len();
        (0..total)
            .step_by(CHUNK)
            .try_for_each(|start| visit(self.points(start..(start + CHUNK).min(total), fastest)))
    }
}

/// What is exported of each point.
#[derive(Clone, Copy)]
enum Column {
    Solution,
    Exact,
}

impl Column {
    /// The solution, and the exact one where it is known.
    fn of(run: &SavedRun) -> Vec<(&'static str, Column)> {
        let exact = run.problem.exact.map(|_| ("exact", Column::Exact));
        [("u", Column::Solution)].into_iter().chain(exact).collect()
    }

    /// Its values; NaN outside the domain.
    fn values(self, run: &SavedRun, points: &[Vec<f64>]) -> Vec<f64> {
        let mut values = match self {
            Column::Solution => values(&run.network, points),
            Column::Exact => of_exact(&run.problem, points).unwrap_or_default(),
        };
        for (index, value) in values.iter_mut().enumerate() {
            if !run.problem.domain.contains(points.iter().map(|x| x[index])) {
                *value = f64::NAN;
            }
        }
        values
    }
}

/// A line per point inside the domain.
fn write_csv(run: &SavedRun, grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let columns = Column::of(run);
    let mut names: Vec<String> = (1..=grid.ends.len()).map(|i| format!("x{i}")).collect();
    names.extend(columns.iter().map(|(name, _)| name.to_string()));
    writeln!(file, "{}", names.join(","))?;
    grid.in_chunks(Fastest::Last, |points| {
        let values: Vec<Vec<f64>> = columns
            .iter()
            .map(|(_, column)| column.values(run, &points))
            .collect();
        (0..values[0].len())
            .filter(|index| !values[0][*index].is_nan())
            .try_for_each(|index| writeln!(file, "{}", csv_line(points.iter().chain(&values), index)))
    })
}

/// u as an array of NumPy's, u[i₁, i₂, …]; NaN outside the domain.
fn write_npy(run: &SavedRun, grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let shape: String = grid.ends.iter().map(|_| format!("{}, ", grid.side)).collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length take ten bytes; the data start at a multiple of 64.
    let length = (header.len() + 11).next_multiple_of(64) - 10;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    writeln!(file, "{header:<0$}", length - 1)?;
    grid.in_chunks(Fastest::Last, |points| {
        let values = Column::Solution.values(run, &points);
        values
            .iter()
            .try_for_each(|value| file.write_all(&value.to_le_bytes()))
    })
}

/// The legacy format of VTK, which ParaView and VisIt read.
fn write_vtk(run: &SavedRun, grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let d = grid.ends.len();
    let triple = |of: &dyn Fn(usize) -> String, rest: &str| -> String {
        let parts: Vec<String> = (0..3)
            .map(|axis| if axis < d { of(axis) } else { rest.to_string() })
            .collect();
        parts.join(" ")
    };
    write!(
        file,
        "# vtk DataFile Version 3.0\n{}\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS {}\nORIGIN {}\nSPACING {}\nPOINT_DATA {}\n",
        run.problem.name.replace('\n', " "),
        triple(&|_| grid.side.to_string(), "1"),
        triple(&|axis| grid.ends[axis].0.to_string(), "0"),
        triple(&|axis| grid.step(axis).to_string(), "1"),
        grid.len()
    )?;
    for (name, column) in Column::of(run) {
        writeln!(file, "SCALARS {name} double 1\nLOOKUP_TABLE default")?;
        grid.in_chunks(Fastest::First, |points| {
            let values = column.values(run, &points);
            values.iter().try_for_each(|value| writeln!(file, "{value}"))
        })?;
    }
    Ok(())
}

/// The same on the cells of a mesh, with values at its nodes.
fn write_vtk_mesh(run: &SavedRun, mesh: &Mesh, file: &mut impl Write) -> io::Result<()> {
    writeln!(
        file,
        "# vtk DataFile Version 3.0\n{}\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {} double",
        run.problem.name.replace('\n', " "),
        mesh.nodes().len()
    )?;
    for [x, y, z] in mesh.nodes() {
        writeln!(file, "{x} {y} {z}")?;
    }
    let cells = mesh.cells();
    let numbers: usize = cells.iter().map(|cell| cell.nodes().len() + 1).sum();
    writeln!(file, "CELLS {} {numbers}", cells.len())?;
    for cell in cells {
        let nodes: Vec<String> = cell.nodes().iter().map(u32::to_string).collect();
        writeln!(file, "{} {}", nodes.len(), nodes.join(" "))?;
    }
    writeln!(file, "CELL_TYPES {}", cells.len())?;
    for cell in cells {
        // VTK's triangle, quadrilateral, tetrahedron, hexahedron.
        let kind = match (cell.dimension(), cell.is_simplex()) {
            (2, true) => 5,
            (2, false) => 9,
            (_, true) => 10,
            (_, false) => 12,
        };
        writeln!(file, "{kind}")?;
    }
    let coordinates: Vec<Vec<f64>> = (0..mesh.dimension())
        .map(|axis| mesh.nodes().iter().map(|node| node[axis]).collect())
        .collect();
    writeln!(file, "POINT_DATA {}", mesh.nodes().len())?;
    for (name, column) in Column::of(run) {
        let values = match column {
            Column::Solution => values(&run.network, &coordinates),
            Column::Exact => of_exact(&run.problem, &coordinates).unwrap_or_default(),
        };
        writeln!(file, "SCALARS {name} double 1\nLOOKUP_TABLE default")?;
        values.iter().try_for_each(|value| writeln!(file, "{value}"))?;
    }
    Ok(())
}
