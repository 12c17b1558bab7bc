//! What a user must be told before using a result.

use super::Estimate;
use crate::greedy::Stopped;
use crate::problem::{Formulation, Problem};

/// An error of this part of the solution, or a residual of this part of the data, and a result carries nothing.
const USELESS_ERROR: f64 = 0.5;
const USELESS_RESIDUAL: f64 = 0.3;
/// The same for an error that was measured: a run on the way to more neurons may be half wrong, not all.
const WRONG_ERROR: f64 = 0.7;
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

/// Errors against a known solution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// ‖u − u_n‖ in L².
    pub l2: f64,
    /// ‖u − u_n‖ in the full H¹ norm.
    pub h1: f64,
    /// ‖u − u_n‖ in the energy norm, where the energy has one.
    pub energy: Option<f64>,
}

impl Verdict {
    /// Judges a run by its estimate, its last losses, on the training points and on independent ones, and the errors
    /// against a known solution.
    pub fn of(
        problem: &Problem,
        estimate: &Estimate,
        (neurons, stopped): (usize, Stopped),
        losses: Option<(f64, f64)>,
        errors: Option<Measured>,
    ) -> Self {
        let measured = |part| contradiction(estimate, errors?, part);
        let useless = not_finite(estimate)
            .or_else(|| measured(USELESS_ERROR))
            .or_else(|| wrong(estimate, errors?))
            .map(|reason| format!("this result should not be used: {reason}"))
            .or_else(|| useless(estimate));
        let limits = [
            ended_early(problem, neurons, stopped),
            gap(problem, losses),
            penalty(problem, estimate),
            measured(NOTABLE_ERROR).filter(|_| useless.is_none()),
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

/// An error against `exact` as large as the solution, whatever the estimate says.
fn wrong(estimate: &Estimate, errors: Measured) -> Option<String> {
    let relative = |error: f64, size: f64| error / error.hypot(size).max(f64::MIN_POSITIVE);
    let in_l2 = relative(errors.l2, estimate.norm_l2);
    let in_energy = match errors.energy {
        Some(energy) => relative(energy, estimate.norm_energy),
        None => relative(errors.h1, estimate.norm_h1),
    };
    let part = in_l2.max(in_energy);
    (part > WRONG_ERROR).then(|| {
        let percent = (100.0 * part).round();
        format!("its error against `exact` is {percent} % of the solution. Try more neurons or finer points")
    })
}

/// An error against `exact`, in some norm, that is at least this part of the solution and far above the estimate: what the
/// dictionary or the data lack shows in no comparison of networks.
fn contradiction(estimate: &Estimate, errors: Measured, part: f64) -> Option<String> {
    let norms = [
        ("L2", Some(errors.l2), Some(estimate.l2), estimate.norm_l2),
        ("H1", Some(errors.h1), Some(estimate.h1), estimate.norm_h1),
        (
            "the energy norm",
            errors.energy,
            estimate.energy,
            estimate.norm_energy,
        ),
    ];
    norms.into_iter().find_map(|(norm, measured, estimated, size)| {
        let (measured, estimated) = (measured?, estimated?);
        let relative = measured / measured.hypot(size);
        (measured > CONTRADICTION * estimated && relative > part).then(|| {
            format!(
                "the error measured against `exact`, {measured:.1e} in {norm}, is far above the estimate, {estimated:.1e}: \
                 either the dictionary or the points are not fine enough for the solution, or `exact` does not solve the \
                 equation as given"
            )
        })
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

/// A penalty that does not fall with n limits what more neurons can reach; multipliers have no such limit.
fn penalty(problem: &Problem, estimate: &Estimate) -> Option<String> {
    if !problem.has_penalty() {
        return None;
    }
    let part = estimate.penalty_l2? / estimate.l2;
    (part > LIMITING && !problem.depends_on_neurons()).then(|| {
        "the penalty limits the error: the boundary data are missed by more than the network's error, and more \
         neurons will not lower it; make `penalty` smaller, or let it fall with n (\"0.1 * n^-2\")"
            .to_string()
    })
}
