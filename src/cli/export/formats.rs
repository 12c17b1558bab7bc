//! What is written for each point of an export.

use super::View;
use super::grid::{Fastest, Grid};
use crate::cli::table::csv_line;
use greedy_pde::domain::Mesh;
use greedy_pde::sample::{of_exact, values};
use std::io::{self, Write};

/// What is exported of each point.
#[derive(Clone, Copy)]
enum Column {
    Solution,
    Exact,
}

impl Column {
    /// The solution, and the exact one where it is known.
    fn of(view: &View) -> Vec<(&'static str, Column)> {
        let exact = view.problem.exact.map(|_| ("exact", Column::Exact));
        [("u", Column::Solution)].into_iter().chain(exact).collect()
    }

    /// Its values; NaN outside the domain.
    fn values(self, view: &View, points: &[Vec<f64>]) -> Vec<f64> {
        let mut values = match self {
            Column::Solution => values(&view.network, points),
            Column::Exact => of_exact(&view.problem, points).unwrap_or_default(),
        };
        for (index, value) in values.iter_mut().enumerate() {
            if !view.problem.domain.contains(points.iter().map(|x| x[index])) {
                *value = f64::NAN;
            }
        }
        values
    }
}

/// A line per point inside the domain; of several moments, the time comes first.
pub(super) fn write_csv(views: &[View], grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let Some(first) = views.first() else {
        return Ok(());
    };
    let time = (views.len() > 1).then(|| "t".to_string());
    let places = (1..=grid.ends.len()).map(|i| format!("x{i}"));
    let columns = Column::of(first).into_iter().map(|(name, _)| name.to_string());
    let names: Vec<String> = time.into_iter().chain(places).chain(columns).collect();
    writeln!(file, "{}", names.join(","))?;
    views
        .iter()
        .try_for_each(|view| write_csv_lines(view, views.len() > 1, grid, file))
}

fn write_csv_lines(view: &View, with_time: bool, grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let columns = Column::of(view);
    let time = match view.time.filter(|_| with_time) {
        Some(time) => format!("{time},"),
        None => String::new(),
    };
    grid.in_chunks(Fastest::Last, |points| {
        let values: Vec<Vec<f64>> = columns
            .iter()
            .map(|(_, column)| column.values(view, &points))
            .collect();
        (0..values[0].len())
            .filter(|index| !values[0][*index].is_nan())
            .try_for_each(|index| writeln!(file, "{time}{}", csv_line(points.iter().chain(&values), index)))
    })
}

/// u as an array of NumPy's, u[i₁, i₂, …], of several moments u[moment, i₁, …]; NaN outside the domain.
pub(super) fn write_npy(views: &[View], grid: &Grid, file: &mut impl Write) -> io::Result<()> {
    let moments = (views.len() > 1).then_some(views.len());
    let sides = grid.ends.iter().map(|_| grid.side);
    npy_header(moments.into_iter().chain(sides), file)?;
    views.iter().try_for_each(|view| {
        grid.in_chunks(Fastest::Last, |points| {
            let values = Column::Solution.values(view, &points);
            values
                .iter()
                .try_for_each(|value| file.write_all(&value.to_le_bytes()))
        })
    })
}

/// The times of several moments, as an array of NumPy's.
pub(super) fn write_npy_times(views: &[View], file: &mut impl Write) -> io::Result<()> {
    npy_header([views.len()].into_iter(), file)?;
    let times = views.iter().filter_map(|view| view.time);
    times
        .into_iter()
        .try_for_each(|time| file.write_all(&time.to_le_bytes()))
}

fn npy_header(shape: impl Iterator<Item = usize>, file: &mut impl Write) -> io::Result<()> {
    let shape: String = shape.map(|side| format!("{side}, ")).collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length take ten bytes; the data start at a multiple of 64.
    let length = (header.len() + 11).next_multiple_of(64) - 10;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    writeln!(file, "{header:<0$}", length - 1)
}

/// The legacy format of VTK, which ParaView and VisIt read.
pub(super) fn write_vtk(view: &View, grid: &Grid, file: &mut impl Write) -> io::Result<()> {
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
        view.problem.name.replace('\n', " "),
        triple(&|_| grid.side.to_string(), "1"),
        triple(&|axis| grid.ends[axis].0.to_string(), "0"),
        triple(&|axis| grid.step(axis).to_string(), "1"),
        grid.len()
    )?;
    for (name, column) in Column::of(view) {
        writeln!(file, "SCALARS {name} double 1\nLOOKUP_TABLE default")?;
        grid.in_chunks(Fastest::First, |points| {
            let values = column.values(view, &points);
            values.iter().try_for_each(|value| writeln!(file, "{value}"))
        })?;
    }
    Ok(())
}

/// The same on the cells of a mesh, with values at its nodes.
pub(super) fn write_vtk_mesh(view: &View, mesh: &Mesh, file: &mut impl Write) -> io::Result<()> {
    writeln!(
        file,
        "# vtk DataFile Version 3.0\n{}\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {} double",
        view.problem.name.replace('\n', " "),
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
    for (name, column) in Column::of(view) {
        let values = match column {
            Column::Solution => values(&view.network, &coordinates),
            Column::Exact => of_exact(&view.problem, &coordinates).unwrap_or_default(),
        };
        writeln!(file, "SCALARS {name} double 1\nLOOKUP_TABLE default")?;
        values.iter().try_for_each(|value| writeln!(file, "{value}"))?;
    }
    Ok(())
}
