//! What others have published, ours beside it: `reproduce randomized-oga` and `reproduce kfac`.

use crate::cli::progress::run_shown;
use crate::cli::streams::{put, tell};
use crate::cli::{Failure, ReproduceArguments, table};
use greedy_pde::network::Network;
use greedy_pde::norms::ErrorMeter;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Row;
use greedy_pde::run::RunOptions;

/// What a family of published results has figures of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figures {
    /// L2 and H1 seminorm by n, the best and the worst of some trials.
    ByNeurons,
    /// The relative L2 error, and the seconds until it fell below 1e-4.
    BySeconds,
}

/// Results from one paper.
pub(super) struct Family {
    name: &'static str,
    title: &'static str,
    figures: Figures,
    published: &'static str,
    problems: &'static [FieldProblem],
}

/// One problem of theirs.
pub(super) struct FieldProblem {
    name: &'static str,
    config: &'static str,
}

macro_rules! problems {
    ($($name:literal),*) => {
        &[$(FieldProblem {
            name: $name,
            config: include_str!(concat!("../../../configs/field/", $name, ".toml")),
        }),*]
    };
}

const FAMILIES: &[Family] = &[
    Family {
        name: "randomized-oga",
        title: "random dictionaries, arXiv 2407.17763 (best and worst trial, on their training points)",
        figures: Figures::ByNeurons,
        published: include_str!("../../../configs/field/randomized_oga.csv"),
        problems: problems!["cos3", "gauss4", "gauss10", "biharmonic3"],
    },
    Family {
        name: "kfac",
        title: "KFAC, ENGD and Adam for PINNs, arXiv 2405.15603 (seconds on an RTX 6000)",
        figures: Figures::BySeconds,
        published: include_str!("../../../configs/field/kfac_pinns.csv"),
        problems: problems!["poisson2", "poisson5", "poisson10", "heat5"],
    },
];

/// The error whose time is told.
const FAR_ENOUGH: f64 = 1e-4;
/// Errors are measured every so many neurons where their time is told.
const MEASURED_EVERY: usize = 8;

/// The names that [`find`] knows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let of = |family: &'static Family| {
        let problems = family.problems.iter().map(|problem| problem.name);
        std::iter::once(family.name).chain(problems)
    };
    FAMILIES.iter().flat_map(of)
}

/// The family that `name` names, or whose problem it names.
pub(super) fn find(name: &str) -> Option<&'static Family> {
    FAMILIES
        .iter()
        .find(|family| family.name == name || family.problems.iter().any(|problem| problem.name == name))
}

/// Runs the problems of a family that were asked for.
pub(super) fn execute(family: &Family, arguments: &ReproduceArguments) -> Result<(), Failure> {
    let wanted = arguments.table.as_str();
    put!("{}: {}", family.name, family.title);
    for problem in family.problems {
        if wanted != family.name && wanted != problem.name {
            continue;
        }
        match family.figures {
            Figures::ByNeurons => by_neurons(family, problem, arguments)?,
            Figures::BySeconds => by_seconds(family, problem, arguments)?,
        }
    }
    Ok(())
}

/// The lines of a published file that belong to a problem, without its name.
fn published(family: &Family, problem: &FieldProblem) -> Vec<Vec<&'static str>> {
    let lines = family.published.lines().skip(1).map(|line| line.split(','));
    let of_problem =
        lines.filter_map(|mut fields| (fields.next() == Some(problem.name)).then(|| fields.collect()));
    of_problem.collect()
}

fn load(problem: &FieldProblem, neurons: Option<usize>) -> Result<Problem, Failure> {
    let overrides = Overrides {
        neurons,
        ..Overrides::default()
    };
    Ok(Problem::from_toml(problem.config, problem.name, &overrides)?)
}

/// A run with errors measured at these n, and its CPU seconds.
fn solve(
    problem: &Problem,
    rows_at: Vec<usize>,
    arguments: &ReproduceArguments,
) -> Result<(Vec<Row>, f64), Failure> {
    let options = RunOptions {
        rows_at,
        ..arguments.backend.run_options()
    };
    let before = cpu_seconds();
    let (report, _) = run_shown(problem, &options, arguments.quiet)?;
    for warning in &report.warnings {
        tell!("warning: {warning}");
    }
    Ok((report.rows, cpu_seconds() - before))
}

/// The processor time that this program has taken; zero where the system does not tell.
fn cpu_seconds() -> f64 {
    let mut system = sysinfo::System::new();
    let Ok(id) = sysinfo::get_current_pid() else {
        return 0.0;
    };
    system.refresh_processes(sysinfo::ProcessesToUpdate::Some(&[id]), true);
    let process = system.process(id);
    process.map_or(0.0, |process| process.accumulated_cpu_time() as f64 / 1e3)
}

/// The seminorm that goes with the highest derivatives: of H1, or of the energy for the fourth order.
fn seminorm(problem: &Problem, row: &Row) -> Option<f64> {
    let full = match problem.order {
        4 => row.energy?,
        _ => row.h1?,
    };
    Some((full.powi(2) - row.l2?.powi(2)).max(0.0).sqrt())
}

fn by_neurons(family: &Family, field: &FieldProblem, arguments: &ReproduceArguments) -> Result<(), Failure> {
    let theirs = published(family, field);
    let limit = arguments.max_neurons.unwrap_or(usize::MAX);
    let ns: Vec<usize> = theirs
        .iter()
        .filter_map(|fields| fields[0].parse().ok())
        .collect();
    let Some(last) = ns.iter().copied().filter(|&n| n <= limit).max() else {
        return Ok(());
    };
    let problem = load(field, Some(last))?;
    let (rows, seconds) = solve(&problem, ns, arguments)?;
    let highest = if problem.order == 4 { "H2" } else { "H1" };
    let header = [
        "n",
        "L2",
        "published",
        highest,
        "published",
        "ratio to the best",
        "seconds",
    ];
    let mut lines = Vec::new();
    for fields in &theirs {
        let [n, l2_best, l2_worst, best, worst] = fields.as_slice() else {
            continue;
        };
        let row = rows.iter().find(|row| row.n.to_string() == *n);
        let of = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2e}"));
        let ours = row.and_then(|row| seminorm(&problem, row));
        let ratio = ours
            .zip(best.parse::<f64>().ok())
            .map(|(ours, best)| format!("{:.2}", ours / best));
        if row.is_some() || n.parse().is_ok_and(|n: usize| n <= last) {
            lines.push(vec![
                n.to_string(),
                of(row.and_then(|row| row.l2)),
                format!("{l2_best} … {l2_worst}"),
                of(ours),
                format!("{best} … {worst}"),
                ratio.unwrap_or("-".into()),
                row.map_or("-".into(), |row| format!("{:.1}", row.seconds)),
            ]);
        }
    }
    put!("\n{}: seminorms; ours on independent points", field.name);
    put!("{}", table::plain(header, lines));
    put!("{seconds:.1} CPU s");
    Ok(())
}

fn by_seconds(family: &Family, field: &FieldProblem, arguments: &ReproduceArguments) -> Result<(), Failure> {
    let problem = load(field, arguments.max_neurons)?;
    let neurons = problem.settings.neurons;
    let Some(meter) = ErrorMeter::new(&problem, neurons)? else {
        return Ok(());
    };
    let zero = Network::zero(problem.dictionary.activation, problem.dimension());
    let size = meter.errors(&zero)?.l2;
    let rows_at = (0..=neurons).step_by(MEASURED_EVERY).skip(1).collect();
    let (rows, seconds) = solve(&problem, rows_at, arguments)?;
    let relative = |row: &Row| row.l2.map(|l2| l2 / size);
    let far_enough = rows
        .iter()
        .find(|row| relative(row).is_some_and(|error| error <= FAR_ENOUGH));
    let mut lines = Vec::new();
    if let Some(last) = rows.last() {
        lines.push(vec![
            format!("here, n = {}", last.n),
            relative(last).map_or("-".into(), |error| format!("{error:.1e}")),
            far_enough.map_or("-".into(), |row| format!("{:.1}", row.seconds)),
            format!("{:.1}", last.seconds),
            format!("{seconds:.1}"),
        ]);
    }
    for fields in published(family, field) {
        let text = |i: usize| {
            fields
                .get(i)
                .filter(|text| !text.is_empty())
                .unwrap_or(&"-")
                .to_string()
        };
        lines.push(vec![text(0), text(1), text(2), "-".into(), "-".into()]);
    }
    put!("\n{}: relative L2 error, ours on independent points", field.name);
    let header = [
        "method",
        "relative L2",
        "seconds to 1e-4",
        "seconds in all",
        "CPU seconds",
    ];
    put!("{}", table::plain(header, lines));
    Ok(())
}
