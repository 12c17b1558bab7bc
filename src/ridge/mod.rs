//! Functions of one variable t = ω·x, the heart of the method: all neurons along one direction at once.
//!
//! For ReLU^k the sum Σ aⱼ σ(±t + bⱼ) is a [spline](Spline): evaluating it costs the same for two
//! knots and for two thousand. Its adjoint is the [sweep](Sweep): the scores of all offsets in one
//! pass over the points. For other activations, and for few neurons, both are done [directly](direct).

pub mod direct;
mod knots;
mod spline;
mod sweep;

pub use knots::{Ladder, Rungs};
pub use spline::Spline;
pub use sweep::{Sweep, SweepScratch};

/// From this many ReLU^k neurons on a direction, a spline or sweep beats going one by one.
pub const SPLINE_FROM: usize = 12;

/// Moves a polynomial Σ cᵣ (t − a)ʳ to the centre a + h, in place.
pub(crate) fn taylor_shift(coefficients: &mut [f64], h: f64) {
    // Repeated synthetic division.
    let degree = coefficients.len() - 1;
    for low in 0..degree {
        for r in (low..degree).rev() {
            coefficients[r] += h * coefficients[r + 1];
        }
    }
}
