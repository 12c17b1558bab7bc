//! Functions of one variable t = ω·x, the heart of the method: all neurons along one direction at once.
//!
//! For ReLU^k the sum Σ aⱼ σ(±t + bⱼ) is a [spline](Spline): evaluating it costs the same for two
//! knots and for two thousand. Its adjoint is the [sweep](Sweep): the scores of all offsets in one
//! pass over the points. For other activations, and for few neurons, both are done [directly](direct).

//!
//! Direction by direction this gives the dictionary as a linear map and its adjoint, side by side: the
//! [evaluator](Evaluator) turns the coefficients of a network into its jets at the points, a [plan](Plan)
//! turns channels at the points into scores.

pub mod direct;
mod evaluator;
mod knots;
mod lines;
mod plan;
mod slopes;
mod spline;
mod sweep;

pub use evaluator::{EvaluationScratch, Evaluator, POINT_BLOCK, blocks, combine, project};
pub use knots::{Ladder, Rungs};
#[cfg(feature = "gpu")]
pub(crate) use lines::{Members, candidate_lines};
pub use plan::{LineSum, Plan};
pub use slopes::{LocalScore, add_local_sums, local_width, sums_per_symbol};
pub use spline::Spline;
pub use sweep::{Sweep, SweepScratch};

/// From this many ReLU^k neurons on a direction, a spline or sweep beats going one by one.
pub const SPLINE_FROM: usize = 12;

/// Moves a polynomial Σ cᵣ (t − a)ʳ to the centre a + h, in place.
#[inline]
pub(crate) fn taylor_shift(coefficients: &mut [f64], h: f64) {
    // Repeated synthetic division.
    let degree = coefficients.len() - 1;
    for low in 0..degree {
        for r in (low..degree).rev() {
            coefficients[r] += h * coefficients[r + 1];
        }
    }
}
