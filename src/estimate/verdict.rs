//! What a user must be told before using a result.

use super::Estimate;
use crate::greedy::Stopped;
use crate::problem::{Formulation, Problem};

/// An error of this part of the solution, or a residual of this part of the data, and a result carries nothing.
const USELESS_ERROR: f64 = 0.5;
const USELESS_RESIDUAL: f64 = 0.3;
/// A measured error of this part of the solution is told when it contradicts the estimate by this factor.
const NOTABLE_ERROR: f64 = 0.02;
const CONTRADICTION: f64 = 4.0;
/// The loss on independent points may be so many times that on the training points.
const GAP: f64 = 10.0;
/// A penalty limits the error when it makes so much of it.
const LIMITING: f64 = 0.9;

/// Whether a result can be used, and what limits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether the result says anything about the solution.
    pub usable: bool,
    /// In plain words.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// Judges a run by its estimate, its last losses, on the training points and on independent ones, and the error
    /// against a known solution.
    pub fn of(
        problem: &Problem,
        estimate: &Estimate,
        (neurons, stopped): (usize, Stopped),
        losses: Option<(f64, f64)>,
        measured_l2: Option<f64>,
    ) -> Self {
        let useless = not_finite(estimate)
            .or_else(|| measured(estimate, measured_l2, USELESS_ERROR))
            .map(|reason| format!("this result should not be used: {reason}"))
            .or_else(|| useless(estimate));
        let limits = [
            ended_early(problem, neurons, stopped),
            gap(problem, losses),
            penalty(problem, estimate),
            measured(estimate, measured_l2, NOTABLE_ERROR).filter(|_| useless.is_none()),
        ];
        Self {
            usable: useless.is_none(),
            warnings: useless.into_iter().chain(limits.into_iter().flatten()).collect(),
        }
    }
}

fn useless(estimate: &Estimate) -> Option<String> {
    let percent = |part: f64| (100.0 * part).round();
    if let Some(residual) = estimate.residual.filter(|part| *part > USELESS_RESIDUAL) {
        let stalled = match estimate.stalled {
            true => " and the loss no longer falls: these neurons do not find what is missing",
            false => "",
        };
        return Some(format!(
            "this result should not be used: the residual is still {} % of the data{stalled}. Try more neurons, \
             another activation, finer points, or an energy",
            percent(residual)
        ));
    }
    let error = estimate.relative_energy.unwrap_or(estimate.relative_h1);
    let error = error.max(estimate.relative_l2);
    (error > USELESS_ERROR).then(|| {
        format!(
            "this result should not be used: its error is estimated at {} % of the solution. Try more neurons or \
             another dictionary",
            percent(error)
        )
    })
}

fn not_finite(estimate: &Estimate) -> Option<String> {
    let finite = [estimate.l2, estimate.h1, estimate.norm_l2]
        .iter()
        .all(|figure| figure.is_finite());
    (!finite).then(|| "its numbers have left the range of double precision".to_string())
}

/// An error against `exact` that is at least this part of the solution and far above the estimate: what the
/// dictionary or the data lack shows in no comparison of networks.
fn measured(estimate: &Estimate, l2: Option<f64>, part: f64) -> Option<String> {
    let l2 = l2.filter(|l2| *l2 > CONTRADICTION * estimate.l2)?;
    let relative = l2 / l2.hypot(estimate.norm_l2);
    (relative > part).then(|| {
        format!(
            "the error measured against `exact`, {l2:.1e} in L2, is far above the estimate, {:.1e}: either the \
             dictionary cannot make the solution, or `exact` does not solve the equation as given",
            estimate.l2
        )
    })
}

fn ended_early(problem: &Problem, neurons: usize, stopped: Stopped) -> Option<String> {
    (stopped == Stopped::NoCandidate).then(|| {
        format!(
            "stopped at {neurons} of {} neurons: no candidate was left that adds anything but rounding",
            problem.settings.neurons
        )
    })
}

fn gap(problem: &Problem, losses: Option<(f64, f64)>) -> Option<String> {
    let (training, validation) = losses.filter(|_| problem.formulation != Formulation::Energy)?;
    let times = validation / training;
    (times > GAP).then(|| {
        format!(
            "the loss on independent points is {times:.0} times that on the training points: the network fits the \
             points, not the equation; use more cells or points"
        )
    })
}

/// A penalty that does not fall with n limits what more neurons can reach.
fn penalty(problem: &Problem, estimate: &Estimate) -> Option<String> {
    let part = estimate.penalty_l2? / estimate.l2;
    (part > LIMITING && !problem.depends_on_neurons()).then(|| {
        "the penalty limits the error: the boundary data are missed by more than the network's error, and more \
         neurons will not lower it; make `penalty` smaller, or let it fall with n (\"0.1 * n^-2\")"
            .to_string()
    })
}
