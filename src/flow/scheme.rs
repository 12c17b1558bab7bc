//! Formulas for u_t by differences.

use serde::{Deserialize, Serialize};

/// By which formula the derivative in time is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// (u − u₁)/τ, of order 1.
    ImplicitEuler,
    /// (3u − 4u₁ + u₂)/2τ, of order 2; its first step is one of a Runge–Kutta method of order 2.
    #[default]
    Bdf2,
}

impl Scheme {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::ImplicitEuler => "implicit_euler",
            Scheme::Bdf2 => "bdf2",
        }
    }

    /// c in (c u − h)/τ.
    pub fn leading(self) -> f64 {
        match self {
            Scheme::ImplicitEuler => 1.0,
            Scheme::Bdf2 => 1.5,
        }
    }

    /// The weights of the earlier u in h, the newest first.
    pub(super) fn earlier(self) -> &'static [f64] {
        match self {
            Scheme::ImplicitEuler => &[1.0],
            Scheme::Bdf2 => &[2.0, -0.5],
        }
    }

    /// The weights of the earlier u in what is taken explicitly, the newest first.
    pub(super) fn extrapolation(self) -> &'static [f64] {
        match self {
            Scheme::ImplicitEuler => &[1.0],
            Scheme::Bdf2 => &[2.0, -1.0],
        }
    }

    /// The order of its error in τ.
    pub fn order(self) -> usize {
        self.earlier().len()
    }

    /// A difference of u, of order p + 1, that is about so many times the error of a step.
    pub(super) fn error_part(self) -> f64 {
        match self {
            Scheme::ImplicitEuler => 0.5,
            Scheme::Bdf2 => 2.0 / 9.0,
        }
    }
}

/// γ of the L-stable Runge–Kutta method with two stages on one diagonal (SDIRK2).
pub(super) const GAMMA: f64 = 1.0 - std::f64::consts::FRAC_1_SQRT_2;

/// Binomial coefficients with signs: the difference of u of order `order`, the newest first.
pub(super) fn difference(order: usize) -> Vec<f64> {
    let mut weights = vec![1.0];
    for k in 1..=order {
        let last = weights[k - 1];
        weights.push(-last * (order + 1 - k) as f64 / k as f64);
    }
    weights
}
