//! `greedy-pde export`: the solution of a run on a grid, for other programs.

use super::output::write_new;
use super::report::{Saved, saved};
use super::table::csv_line;
use super::{ExportArguments, ExportFormat, Failure};
use greedy_pde::sample::{of_exact, values};
use std::fmt::Write;

/// More grid points than anyone can look at.
const MOST_POINTS: usize = 100_000_000;

/// Values on a grid over a box, the first coordinate running slowest.
struct Sampled {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// Points in each coordinate.
    count: usize,
    coordinates: Vec<Vec<f64>>,
    /// Names and values: u, and exact where it is known.
    columns: Vec<(&'static str, Vec<f64>)>,
}

pub(super) fn execute(arguments: &ExportArguments) -> Result<(), Failure> {
    let saved = saved(&arguments.directory)?;
    let d = saved.network.dimension;
    let points = arguments
        .grid
        .checked_pow(d as u32)
        .filter(|points| *points <= MOST_POINTS);
    if points.is_none() {
        return Err(Failure::Input(format!(
            "--grid {} in {d} dimensions gives {:.0e} points; at most {MOST_POINTS:.0e} are written",
            arguments.grid,
            (arguments.grid as f64).powi(d as i32)
        )));
    }
    if arguments.format == ExportFormat::Vtk && !(2..=3).contains(&d) {
        return Err(Failure::Input(format!(
            "vtk is for 2 and 3 dimensions; this network has {d}: use csv or npy"
        )));
    }
    let sampled = sample(&saved, arguments.grid);
    let bytes = match arguments.format {
        ExportFormat::Csv => sampled.csv().into_bytes(),
        ExportFormat::Npy => sampled.npy(),
        ExportFormat::Vtk => sampled.vtk(&saved.problem.name).into_bytes(),
    };
    let path = arguments.output.clone().unwrap_or_else(|| {
        let extension = match arguments.format {
            ExportFormat::Csv => "csv",
            ExportFormat::Npy => "npy",
            ExportFormat::Vtk => "vtk",
        };
        arguments.directory.join(format!("solution.{extension}"))
    });
    write_new(&path, &bytes, arguments.force)
}

fn sample(saved: &Saved, count: usize) -> Sampled {
    let d = saved.network.dimension;
    let ends: Vec<(f64, f64)> = (0..d).map(|axis| saved.problem.domain.side(axis)).collect();
    let total = count.pow(d as u32);
    let coordinates: Vec<Vec<f64>> = (0..d)
        .map(|axis| {
            let (low, high) = ends[axis];
            let stride = count.pow((d - 1 - axis) as u32);
            let step = (high - low) / (count - 1).max(1) as f64;
            (0..total)
                .map(|index| low + step * (index / stride % count) as f64)
                .collect()
        })
        .collect();
    let mut columns = vec![("u", values(&saved.network, &coordinates))];
    if let Some(exact) = of_exact(&saved.problem, &coordinates) {
        columns.push(("exact", exact));
    }
    for index in 0..total {
        let point = coordinates.iter().map(|x| x[index]);
        if !saved.problem.domain.contains(point) {
            columns
                .iter_mut()
                .for_each(|(_, values)| values[index] = f64::NAN);
        }
    }
    Sampled {
        lower: ends.iter().map(|end| end.0).collect(),
        upper: ends.iter().map(|end| end.1).collect(),
        count,
        coordinates,
        columns,
    }
}

impl Sampled {
    /// A line per point inside the domain.
    fn csv(&self) -> String {
        let mut names: Vec<String> = (1..=self.lower.len()).map(|i| format!("x{i}")).collect();
        names.extend(self.columns.iter().map(|(name, _)| name.to_string()));
        let mut text = names.join(",") + "\n";
        for index in 0..self.columns[0].1.len() {
            if self.columns[0].1[index].is_nan() {
                continue;
            }
            let columns = self
                .coordinates
                .iter()
                .chain(self.columns.iter().map(|(_, values)| values));
            text += &csv_line(columns, index);
            text.push('\n');
        }
        text
    }

    /// u as an array of NumPy's, u[i₁, i₂, …]; NaN outside the domain.
    fn npy(&self) -> Vec<u8> {
        let shape: String = self.lower.iter().map(|_| format!("{}, ", self.count)).collect();
        let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
        // Magic, version and length take ten bytes; the data start at a multiple of 64.
        let length = (header.len() + 11).next_multiple_of(64) - 10;
        header += &" ".repeat(length - 1 - header.len());
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((length as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(self.columns[0].1.iter().flat_map(|value| value.to_le_bytes()));
        file
    }

    /// The legacy format of VTK, which ParaView and VisIt read.
    fn vtk(&self, name: &str) -> String {
        let d = self.lower.len();
        let step = |axis: usize| (self.upper[axis] - self.lower[axis]) / (self.count - 1).max(1) as f64;
        let triple = |of: &dyn Fn(usize) -> String, rest: &str| -> String {
            let parts: Vec<String> = (0..3)
                .map(|axis| if axis < d { of(axis) } else { rest.to_string() })
                .collect();
            parts.join(" ")
        };
        let mut text = format!(
            "# vtk DataFile Version 3.0\n{}\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS {}\nORIGIN {}\nSPACING {}\nPOINT_DATA {}\n",
            name.replace('\n', " "),
            triple(&|_| self.count.to_string(), "1"),
            triple(&|axis| self.lower[axis].to_string(), "0"),
            triple(&|axis| step(axis).to_string(), "1"),
            self.columns[0].1.len()
        );
        for (name, values) in &self.columns {
            let _ = writeln!(text, "SCALARS {name} double 1\nLOOKUP_TABLE default");
            // There the first coordinate runs fastest.
            for place in 0..values.len() {
                let (mut rest, mut index) = (place, 0);
                for axis in 0..d {
                    index += rest % self.count * self.count.pow((d - 1 - axis) as u32);
                    rest /= self.count;
                }
                let _ = writeln!(text, "{}", values[index]);
            }
        }
        text
    }
}
