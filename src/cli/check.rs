//! `greedy-pde check`.

use super::{CheckArguments, Failure};
use greedy_pde::backend::MomentTables;
use greedy_pde::domain::Domain;
use greedy_pde::problem::{Algorithm, DirectionKind, Formulation, Problem, Purpose};
use greedy_pde::run::table_axes;
use greedy_pde::search;

pub(super) fn execute(arguments: &CheckArguments) -> Result<(), Failure> {
    let problem = Problem::from_path(&arguments.problem.problem, &arguments.problem.overrides())?;
    for (what, value) in describe(&problem)? {
        println!("{what:<12} {value}");
    }
    for warning in &problem.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

fn describe(problem: &Problem) -> Result<Vec<(&'static str, String)>, Failure> {
    let settings = &problem.settings;
    let dictionary = &problem.dictionary;
    let loss = problem.loss(settings.neurons, Purpose::Training)?;
    let grid = search::grid(
        dictionary,
        &problem.domain,
        &problem.quadrature.rule,
        settings.seed,
        0,
    );
    let bytes = loss.bytes();
    let points = loss.points();
    let factor = settings.neurons * settings.neurons * 4;
    Ok(vec![
        ("problem", problem.name.clone()),
        ("domain", domain(&problem.domain)),
        ("equation", equation(problem)),
        (
            "exact",
            match problem.exact {
                Some(_) => "known: errors are measured".to_string(),
                None => "not known: only losses are reported".to_string(),
            },
        ),
        (
            "points",
            format!(
                "{points} in {} of the loss ({:?})",
                if loss.terms.len() == 1 {
                    "1 term".to_string()
                } else {
                    format!("{} terms", loss.terms.len())
                },
                problem.quadrature.rule
            ),
        ),
        (
            "dictionary",
            format!(
                "{} with {} directions × offsets = {} candidates per step",
                dictionary.activation,
                match dictionary.directions {
                    DirectionKind::Axes => "axis",
                    DirectionKind::Sphere => "unit",
                    DirectionKind::Box => "box",
                },
                grid.len()
            ),
        ),
        (
            "algorithm",
            format!(
                "{}, {} neurons, seed {}{}",
                match settings.algorithm {
                    Algorithm::Oga => "orthogonal greedy",
                    Algorithm::Rga => "relaxed greedy",
                },
                settings.neurons,
                settings.seed,
                if settings.guard {
                    ", guarded by independent points"
                } else {
                    ""
                }
            ),
        ),
        (
            "memory",
            if let Some((power, axes)) = table_axes(problem, &loss) {
                format!(
                    "{} for tables of moments, after one pass over the points; {} for the projection",
                    size(MomentTables::bytes(power, &axes)),
                    size(factor)
                )
            } else if bytes <= problem.quadrature.cache_bytes {
                format!(
                    "{} for the points, {} for the projection",
                    size(bytes),
                    size(factor)
                )
            } else {
                format!(
                    "the points ({}) are generated anew in every pass; {} for the projection",
                    size(bytes),
                    size(factor)
                )
            },
        ),
        (
            "work",
            format!(
                "{:.1e} point-directions in all",
                points as f64 * grid.lines.len() as f64 * settings.neurons as f64
            ),
        ),
    ])
}

fn domain(domain: &Domain) -> String {
    match domain {
        Domain::Box { lower, upper } => match (
            lower.iter().all(|l| *l == lower[0]),
            upper.iter().all(|u| *u == upper[0]),
        ) {
            (true, true) if lower.len() == 1 => format!("({}, {})", lower[0], upper[0]),
            (true, true) => format!("({}, {})^{}", lower[0], upper[0], lower.len()),
            _ => format!("box from {lower:?} to {upper:?}"),
        },
        Domain::Ball { center, radius } => format!("ball of radius {radius} around {center:?}"),
    }
}

fn equation(problem: &Problem) -> String {
    match problem.formulation {
        Formulation::Energy => format!("energy of order {}", problem.order),
        Formulation::Residual => format!("residual of order {}", problem.order),
        Formulation::Fit => "fit of a given function".to_string(),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=1_048_575 => format!("{:.0} KiB", bytes as f64 / 1024.0),
        1_048_576..=1_073_741_823 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
