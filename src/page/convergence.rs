//! Errors and losses against n.

use super::{Named, RunData};
use crate::candidates::DirectionKind;
use crate::plot::{Chart, Mark, Scale, Series};
use crate::problem::{Algorithm, Formulation, Problem};
use crate::report::{Column, Row};

/// The errors, and the losses.
pub(super) fn pictures(run: &RunData) -> Vec<Named> {
    let mut pictures = Vec::new();
    let errors = errors(run);
    if !errors.is_empty() {
        pictures.push(Named::chart(
            "errors",
            chart("Errors against the exact solution", errors).draw(),
        ));
    }
    pictures.push(Named::chart(
        "losses",
        chart("Losses and scores", losses(run.history)).draw(),
    ));
    pictures
}

fn chart(title: &str, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_string(),
        x_label: "n, the number of neurons".to_string(),
        x: Scale::Log(2),
        y: Scale::Log(10),
        series,
        small: false,
        reach: None,
    }
}

/// Each error with the line it should follow.
fn errors(run: &RunData) -> Vec<Series> {
    let problem = run.problem;
    let by_excess = problem.measures_excess();
    let energy = match by_excess {
        true => "relative excess",
        false => "energy norm",
    };
    let mut columns: Vec<(Column, Option<f64>)> = vec![
        (("L²", |row| row.l2), order(problem, 0)),
        (("H¹", |row| row.h1), order(problem, 1)),
        (
            (energy, |row| row.energy),
            // The excess is a square of a norm.
            order(problem, problem.order / 2).map(|order| if by_excess { 2.0 * order } else { order }),
        ),
    ];
    if run.report.rows.iter().all(is_h1) {
        columns.truncate(2);
        columns[1].0.0 = "H¹, which is the energy norm";
    }
    let mut series = Vec::new();
    for (color, ((name, value), order)) in columns.into_iter().enumerate() {
        let points = points(&run.report.rows, value);
        let Some(&(last, at_last)) = points.last() else {
            continue;
        };
        series.push(Series {
            name: name.to_string(),
            mark: Mark::LineWithDots,
            color,
            points,
        });
        if let (Some(order), true) = (order, last > 8.0) {
            let first = (last / 16.0).max(1.0);
            series.push(Series {
                name: format!("order {order:.2}"),
                mark: Mark::Slope,
                color,
                points: [first, last]
                    .map(|n| (n, 1.6 * at_last * (last / n).powf(order)))
                    .to_vec(),
            });
        }
    }
    series
}

/// Whether the energy norm of the error is its H¹ norm.
fn is_h1(row: &Row) -> bool {
    matches!((row.h1, row.energy), (Some(h1), Some(energy)) if (h1 - energy).abs() <= 1e-6 * h1)
}

/// The order of convergence that theory promises in the norm of H^m: ½ + (2(k − m) + 1)/(2d) for ReLU^k by
/// the orthogonal algorithm, ½ by the relaxed one and for other activations. Along axes neurons are
/// functions of one variable.
fn order(problem: &Problem, m: usize) -> Option<f64> {
    if problem.formulation == Formulation::Residual {
        return None;
    }
    let power = problem.dictionary.activation.relu_power();
    let (Some(k), Algorithm::Oga) = (power, problem.settings.algorithm) else {
        return Some(0.5);
    };
    let d = match problem.dictionary.directions {
        DirectionKind::Axes => 1,
        DirectionKind::Pairs => problem.dimension().min(2),
        _ => problem.dimension(),
    };
    (m <= k).then(|| 0.5 + (2 * (k - m) + 1) as f64 / (2 * d) as f64)
}

fn losses(history: &[Row]) -> Vec<Series> {
    let series = |name: &str, color: usize, points: Vec<(f64, f64)>| Series {
        name: name.to_string(),
        mark: Mark::Line,
        color,
        points,
    };
    let loss = points(history, |row| Some(row.loss));
    let validation = points(history, |row| row.validation_loss);
    let mut all = Vec::new();
    if loss.iter().all(|(_, loss)| *loss > 0.0) {
        all.push(series("loss", 0, loss));
        if !validation.is_empty() {
            all.push(series("loss on independent points", 1, validation));
        }
    } else if let Some(&(_, last)) = loss.last() {
        // An energy is negative; what can be shown is how much of it there was still to lose.
        let limit = extrapolated_loss(history);
        let above = loss.iter().map(|(n, loss)| (*n, loss - limit.unwrap_or(last)));
        let name = match limit {
            Some(_) => "loss above its limit, extrapolated",
            None => "loss above the last",
        };
        // Measured from the last, the last ones say nothing but how near the end they are.
        let shown = |n: f64| limit.is_some() || 2.0 * n <= loss[loss.len() - 1].0;
        let above: Vec<(f64, f64)> = above.filter(|(n, _)| shown(*n)).collect();
        all.push(series(name, 0, above));
    }
    all.push(series(
        "score of the neuron chosen",
        2,
        points(history, |row| Some(row.score)),
    ));
    all
}

/// The loss that a run would end with if it went on for ever: what n, n/2 and n/4 neurons leave to lose
/// shrinks by a constant factor, as it does when the error is a power of n. Where it does not, there is
/// no telling.
pub fn extrapolated_loss(history: &[Row]) -> Option<f64> {
    /// Slower than this, the differences say little about their sum.
    const SLOWEST: f64 = 0.9;
    let n = history.last()?.n;
    let at = |n: usize| history.iter().find(|row| row.n == n).map(|row| row.loss);
    let (last, half, quarter) = (at(n)?, at(n / 2)?, at(n / 4)?);
    let factor = (half - last) / (quarter - half);
    let limit = last - (half - last) * factor / (1.0 - factor);
    (factor > 0.0 && factor < SLOWEST && limit < last).then_some(limit)
}

fn points(rows: &[Row], value: fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    let known = rows.iter().filter_map(|row| Some((row.n as f64, value(row)?)));
    known.filter(|(_, value)| value.is_finite()).collect()
}
