//! `greedy-pde export`: the solution of a run on a grid, for other programs.
//!
//! Points are made, evaluated and written chunk by chunk: memory does not grow with the grid.

mod formats;
mod grid;

use super::new_file::NewFile;
use super::streams::tell;
use super::{ExportArguments, ExportFormat, Failure};
use greedy_pde::domain::Domain;
use greedy_pde::network::Network;
use greedy_pde::problem::Problem;
use greedy_pde::results::SavedRun;
use grid::{Grid, fits, largest_side, shown_power};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// More grid points than anyone can look at.
const MOST_POINTS: usize = 100_000_000;
/// Grid points in each coordinate unless others are asked for …
const USUAL_SIDE: usize = 101;
/// … as long as there are no more than this in all.
const USUAL_POINTS: usize = 1_100_000;

/// A solution, at a moment where it moves in time.
struct View {
    time: Option<f64>,
    problem: Problem,
    network: Network,
}

pub(super) fn execute(arguments: &ExportArguments) -> Result<(), Failure> {
    let run = SavedRun::load(&arguments.directory)?;
    let d = run.network.dimension;
    if arguments.format == ExportFormat::Vtk && !(2..=3).contains(&d) {
        return Err(Failure::Input(format!(
            "vtk is for 2 and 3 dimensions; this network has {d}: use csv or npy"
        )));
    }
    let side = side(arguments, d)?;
    let views = views(run, arguments)?;
    let path = arguments.output.clone().unwrap_or_else(|| {
        let extension = extension(arguments.format);
        arguments.directory.join(format!("solution.{extension}"))
    });
    let grid = Grid::over(&views[0], side);
    match (arguments.format, arguments.frames) {
        (ExportFormat::Vtk, true) => write_vtk_series(&views, &grid, &path, arguments),
        (ExportFormat::Npy, true) => {
            let times = named(&path, "_times", "npy");
            let [file, times] = [&path, &times].map(|path| NewFile::at(path, arguments.force));
            let (file, times) = (file?, times?);
            file.stream(|file| formats::write_npy(&views, &grid, file))?;
            times.stream(|file| formats::write_npy_times(&views, file))
        }
        (format, _) => NewFile::at(&path, arguments.force)?.stream(|file| match format {
            ExportFormat::Csv => formats::write_csv(&views, &grid, file),
            ExportFormat::Npy => formats::write_npy(&views, &grid, file),
            ExportFormat::Vtk => write_vtk(&views[0], &grid, arguments, file),
        }),
    }
}

/// Grid points in each coordinate.
fn side(arguments: &ExportArguments, d: usize) -> Result<usize, Failure> {
    let side = arguments
        .grid
        .unwrap_or_else(|| largest_side(d, USUAL_POINTS).min(USUAL_SIDE));
    match fits(side, d, MOST_POINTS) {
        true => Ok(side),
        false => Err(Failure::Input(format!(
            "--grid {side} in {d} dimensions gives {} points, and at most {MOST_POINTS} are written: --grid {} is the largest",
            shown_power(side, d),
            largest_side(d, MOST_POINTS)
        ))),
    }
}

fn extension(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Csv => "csv",
        ExportFormat::Npy => "npy",
        ExportFormat::Vtk => "vtk",
    }
}

/// The last u, that at the time asked for, or all that were kept.
fn views(run: SavedRun, arguments: &ExportArguments) -> Result<Vec<View>, Failure> {
    if arguments.frames {
        let run = moved(run, None)?;
        if run.frames.is_empty() {
            return Err(Failure::Input(format!(
                "{}: --frames is for problems in time; this one has no [time] table",
                arguments.directory.display()
            )));
        }
        let problem = &run.problem;
        let views = run.frames.iter().map(|(time, network)| View {
            time: Some(*time),
            problem: problem.at_time(*time),
            network: network.clone(),
        });
        return Ok(views.collect());
    }
    let run = moved(run, arguments.time)?;
    Ok(vec![View {
        time: arguments.time,
        problem: run.problem,
        network: run.network,
    }])
}

/// The run at a time, if one is asked for; whoever asks for a time between two frames is told what is taken, and whoever takes
/// a result that says nothing about the solution is told that.
pub(super) fn moved(run: SavedRun, time: Option<f64>) -> Result<SavedRun, Failure> {
    if !run.is_usable() {
        tell!("warning: this run says of itself that its result should not be used; its report says why");
    }
    let Some(time) = time else {
        return Ok(run);
    };
    let (run, between) = run.at_time(time)?;
    if between {
        tell!(
            "warning: u at t = {time} was not kept: it is taken on the line between the frames before and after. `save_every` in [time] \
             keeps more"
        );
    }
    Ok(run)
}

fn write_vtk(view: &View, grid: &Grid, arguments: &ExportArguments, file: &mut impl Write) -> io::Result<()> {
    match &view.problem.domain {
        Domain::Mesh(mesh) if arguments.grid.is_none() => formats::write_vtk_mesh(view, mesh, file),
        _ => formats::write_vtk(view, grid, file),
    }
}

/// A file for each frame, and one that tells ParaView their times.
fn write_vtk_series(
    views: &[View],
    grid: &Grid,
    path: &Path,
    arguments: &ExportArguments,
) -> Result<(), Failure> {
    let digits = views.len().to_string().len();
    let places = (0..views.len()).map(|index| named(path, &format!("_{index:0digits$}"), "vtk"));
    let places: Vec<PathBuf> = places.collect();
    let series = named(path, "", "vtk.series");
    let mut files = Vec::new();
    for place in places.iter().chain([&series]) {
        files.push(NewFile::at(place, arguments.force)?);
    }
    for (view, file) in views.iter().zip(&files) {
        file.stream(|file| write_vtk(view, grid, arguments, file))?;
    }
    let entries = places.iter().zip(views).map(|(place, view)| {
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned());
        serde_json::json!({ "name": name, "time": view.time })
    });
    let index = serde_json::json!({
        "file-series-version": "1.0",
        "files": entries.collect::<Vec<_>>(),
    });
    match files.last() {
        Some(file) => file.write(format!("{index:#}\n").as_bytes()),
        None => Ok(()),
    }
}

/// A file beside another: its name without its ending, some more, and this ending.
fn named(path: &Path, more: &str, ending: &str) -> PathBuf {
    let stem = path
        .file_stem()
        .map_or_else(Default::default, |stem| stem.to_string_lossy());
    path.with_file_name(format!("{stem}{more}.{ending}"))
}
