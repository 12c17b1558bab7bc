//! The activation σ of a neuron and its derivatives.

use std::fmt;

/// σ in g(x) = σ(ω·x + b).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// ReLU^k: max(0, t)^k with k ≥ 1.
    Relu(u32),
    /// 1 / (1 + e⁻ᵗ).
    Sigmoid,
    /// tanh t.
    Tanh,
}

/// The largest k in ReLU^k.
pub const MAX_RELU_POWER: u32 = 8;

/// The highest derivative of an activation that is ever needed: order 4 and two more for Newton.
pub const MAX_DERIVATIVE: usize = 6;

impl Activation {
    /// Reads `relu`, `relu^2`, `sigmoid`, `tanh`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim() {
            "relu" => Some(Activation::Relu(1)),
            "sigmoid" => Some(Activation::Sigmoid),
            "tanh" => Some(Activation::Tanh),
            other => {
                let power: u32 = other.strip_prefix("relu^")?.trim().parse().ok()?;
                (1..=MAX_RELU_POWER)
                    .contains(&power)
                    .then_some(Activation::Relu(power))
            }
        }
    }

    /// The power k if this is ReLU^k.
    pub fn relu_power(self) -> Option<usize> {
        match self {
            Activation::Relu(power) => Some(power as usize),
            _ => None,
        }
    }

    /// Whether the scores of all offsets along a direction follow from one pass over the points.
    pub fn has_sweep(self) -> bool {
        self.relu_power().is_some()
    }

    /// The highest derivative that is a function (for ReLU^k the k-th is the Heaviside step).
    pub fn smoothness(self) -> usize {
        self.relu_power().unwrap_or(usize::MAX)
    }

    /// For sigmoid and tanh: each derivative as a polynomial in the function's value, lowest power first.
    pub fn derivative_polynomials(self) -> Vec<&'static [f64]> {
        match self {
            Activation::Relu(_) => Vec::new(),
            Activation::Sigmoid => sigmoid_polynomials().to_vec(),
            Activation::Tanh => tanh_polynomials().to_vec(),
        }
    }

    /// σ^(order)(t). Above [`smoothness`](Self::smoothness) it is zero wherever it is defined.
    #[inline]
    pub fn derivative(self, order: usize, t: f64) -> f64 {
        match self {
            Activation::Relu(power) => {
                let power = power as usize;
                if t <= 0.0 || order > power {
                    0.0
                } else {
                    falling_factorial(power, order) * t.powi((power - order) as i32)
                }
            }
            // With s = σ(t): s' = s − s², so each derivative is a polynomial in s.
            Activation::Sigmoid => {
                let s = 1.0 / (1.0 + (-t).exp());
                horner(sigmoid_polynomials()[order], s)
            }
            Activation::Tanh => horner(tanh_polynomials()[order], t.tanh()),
        }
    }
}

impl serde::Serialize for Activation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Activation::Relu(power) => write!(formatter, "relu^{power}"),
            Activation::Sigmoid => write!(formatter, "sigmoid"),
            Activation::Tanh => write!(formatter, "tanh"),
        }
    }
}

/// k!/(k−m)! = k (k−1) … (k−m+1).
pub fn falling_factorial(k: usize, m: usize) -> f64 {
    (0..m).map(|i| (k - i) as f64).product()
}

fn horner(polynomial: &[f64], x: f64) -> f64 {
    polynomial.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

/// The derivatives of the sigmoid as polynomials in its value, lowest power first.
fn sigmoid_polynomials() -> [&'static [f64]; MAX_DERIVATIVE + 1] {
    [
        &[0.0, 1.0],
        &[0.0, 1.0, -1.0],
        &[0.0, 1.0, -3.0, 2.0],
        &[0.0, 1.0, -7.0, 12.0, -6.0],
        &[0.0, 1.0, -15.0, 50.0, -60.0, 24.0],
        &[0.0, 1.0, -31.0, 180.0, -390.0, 360.0, -120.0],
        &[0.0, 1.0, -63.0, 602.0, -2100.0, 3360.0, -2520.0, 720.0],
    ]
}

/// The derivatives of tanh as polynomials in its value, lowest power first.
fn tanh_polynomials() -> [&'static [f64]; MAX_DERIVATIVE + 1] {
    [
        &[0.0, 1.0],
        &[1.0, 0.0, -1.0],
        &[0.0, -2.0, 0.0, 2.0],
        &[-2.0, 0.0, 8.0, 0.0, -6.0],
        &[0.0, 16.0, 0.0, -40.0, 0.0, 24.0],
        &[16.0, 0.0, -136.0, 0.0, 240.0, 0.0, -120.0],
        &[0.0, -272.0, 0.0, 1232.0, 0.0, -1680.0, 0.0, 720.0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_derivative_is_the_slope_of_the_one_before() {
        for activation in [Activation::Relu(5), Activation::Sigmoid, Activation::Tanh] {
            for order in 0..MAX_DERIVATIVE {
                for t in [-1.3, -0.2, 0.4, 1.7] {
                    let h = 1e-5;
                    let slope = (activation.derivative(order, t + h) - activation.derivative(order, t - h))
                        / (2.0 * h);
                    let exact = activation.derivative(order + 1, t);
                    assert!(
                        (slope - exact).abs() < 1e-6 * (1.0 + exact.abs()),
                        "{activation} order {order} at {t}: {slope} against {exact}"
                    );
                }
            }
        }
    }
}
