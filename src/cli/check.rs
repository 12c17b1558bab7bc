//! `greedy-pde check`.

use super::{CheckArguments, Failure, cluster};
use crate::cli::streams::{put, tell};
use greedy_pde::candidates::DirectionKind;
use greedy_pde::points::Rule;
use greedy_pde::problem::{Algorithm, Problem, Purpose};
use greedy_pde::run::{Memory, candidates, estimated_seconds, require_memory};

pub(super) fn execute(arguments: &CheckArguments) -> Result<(), Failure> {
    let problem = Problem::from_path(&arguments.problem.problem, &arguments.problem.overrides())?;
    require_memory(&problem, cluster().size())?;
    for (what, value) in describe(&problem)? {
        put!("{what:<12} {value}");
    }
    put!("{:<12} {}", "time", time(&problem)?);
    for warning in &problem.warnings {
        tell!("warning: {warning}");
    }
    Ok(())
}

/// The problem told back, line by line.
pub(super) fn describe(problem: &Problem) -> Result<Vec<(&'static str, String)>, Failure> {
    let words = &problem.words;
    let mut lines = vec![
        ("problem", problem.name.clone()),
        ("domain", problem.domain.in_words()),
        ("equation", words.equation.clone()),
    ];
    lines.extend(words.letters.iter().map(|letter| ("", format!("with {letter}"))));
    lines.extend(
        problem
            .evolution
            .iter()
            .map(|evolution| ("in time", evolution.in_words())),
    );
    lines.extend(words.boundary.iter().map(|line| ("boundary", line.clone())));
    lines.extend(problem.data.iter().map(|data| ("data", data.in_words())));
    let exact = match problem.exact {
        Some(_) => "known: errors are measured on points of their own",
        None => "not known: only losses are reported",
    };
    lines.extend([
        ("solution", exact.to_string()),
        ("points", points(problem)?),
        ("dictionary", dictionary(problem)),
        ("algorithm", algorithm(problem)),
        ("memory", memory(problem)?),
    ]);
    Ok(lines)
}

fn points(problem: &Problem) -> Result<String, Failure> {
    let loss = problem.loss(problem.settings.neurons, Purpose::Training)?;
    let rule = match problem.quadrature.rule {
        Rule::Gauss { cells, order } => {
            format!("Gauss rule with {cells} cells and {order} points a cell in each direction")
        }
        Rule::Halton { .. } => "Halton sequence".to_string(),
        Rule::Lattice { .. } => "rank-1 lattice, shifted at random and folded".to_string(),
        Rule::MonteCarlo { .. } => "independent random points".to_string(),
    };
    let terms = match loss.terms.len() {
        1 => "1 term".to_string(),
        terms => format!("{terms} terms"),
    };
    let mut words = format!("{} in {terms} of the loss: {rule}", loss.points());
    if problem.quadrature.curvature.is_some() {
        let inner = problem.loss(problem.settings.neurons, Purpose::Curvature)?;
        words += &format!("; inner products of neurons on {}", inner.points());
    }
    Ok(words)
}

fn dictionary(problem: &Problem) -> String {
    let dictionary = &problem.dictionary;
    let directions = match dictionary.directions {
        DirectionKind::Axes => "ω along the axes".to_string(),
        DirectionKind::Pairs => "|ω| = 1 in the planes of two coordinates".to_string(),
        DirectionKind::Sphere => "|ω| = 1".to_string(),
        DirectionKind::Box => {
            let [low, high] = dictionary.weights.map(short);
            format!("ω in [{low}, {high}]^d")
        }
    };
    format!(
        "{}(ω·x + b) with {directions}, b in [{}, {}]: {} candidates per step{}",
        dictionary.activation,
        short(dictionary.bias[0]),
        short(dictionary.bias[1]),
        candidates(problem),
        if dictionary.refine {
            ", the best refined"
        } else {
            ""
        }
    )
}

fn algorithm(problem: &Problem) -> String {
    let settings = &problem.settings;
    let moved = settings.polish.map(|steps| {
        format!(", all moved together by up to {steps} steps when there are 32, 64, … of them and at the end")
    });
    format!(
        "{}, {} neurons, seed {}{}{}",
        match settings.algorithm {
            Algorithm::Oga if problem.has_potential() => "orthogonal greedy with Newton's method",
            Algorithm::Oga => "orthogonal greedy",
            Algorithm::Rga => "relaxed greedy",
        },
        settings.neurons,
        settings.seed,
        if settings.guard {
            ", guarded by independent points"
        } else {
            ""
        },
        moved.unwrap_or_default()
    )
}

fn memory(problem: &Problem) -> Result<String, Failure> {
    let memory = Memory::of(problem)?;
    let points = match (memory.tables, memory.streamed) {
        (true, _) => "tables of moments, after one pass over the points",
        (_, true) => "points, which are generated anew in every pass",
        _ => "points",
    };
    let parts = [
        (memory.points, points),
        (memory.channels, "u and the gradient there"),
        (memory.candidates, "sums and scores of candidates"),
        (memory.projection, "the projection"),
        (memory.process, "the program"),
    ];
    let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    let parts: Vec<String> = parts
        .map(|(bytes, what)| format!("{} for {what}", size(bytes)))
        .collect();
    Ok(format!("about {}: {}", size(memory.total()), parts.join("; ")))
}

fn time(problem: &Problem) -> Result<String, Failure> {
    let seconds = estimated_seconds(problem)?;
    let about = match seconds {
        _ if seconds < 1.0 => "less than a second".to_string(),
        _ if seconds < 1.5 => "about a second".to_string(),
        _ if seconds < 100.0 => format!("about {seconds:.0} seconds"),
        _ if seconds < 6000.0 => format!("about {:.0} minutes", seconds / 60.0),
        _ => format!("about {:.0} hours", seconds / 3600.0),
    };
    let moved = match problem.settings.polish {
        Some(_) => ", without what `polish` takes",
        None => "",
    };
    Ok(format!(
        "{about} on this machine's CPU, judging by a small trial{moved}"
    ))
}

/// A number with four digits: enough to see what it is.
fn short(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=1_048_575 => format!("{:.0} KiB", bytes as f64 / 1024.0),
        1_048_576..=1_073_741_823 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
