//! Neurons one by one: for few of them, and for activations that have no sweep.

use crate::activation::{Activation, falling_factorial};
use multiversion::multiversion;

/// Sums run in this many independent lanes, which lets the compiler use vector instructions.
const LANES: usize = 8;

/// Adds a (±1)^m σ^(m)(±t + b) to `out[m]` for each m asked for by a non-empty column.
pub fn add_derivatives(
    activation: Activation,
    (a, sign, bias): (f64, f64, f64),
    t: &[f64],
    out: &mut [Vec<f64>],
) {
    for (m, column) in out.iter_mut().enumerate() {
        if column.is_empty() || m > activation.smoothness() {
            continue;
        }
        let factor = a * sign.powi(m as i32);
        match activation {
            Activation::Relu(power) => add_relu(
                factor * falling_factorial(power as usize, m),
                power as usize - m,
                sign,
                bias,
                t,
                column,
            ),
            _ => {
                for (sum, &t) in column.iter_mut().zip(t) {
                    *sum += factor * activation.derivative(m, sign * t + bias);
                }
            }
        }
    }
}

/// Σᵢ Σ_m q_m(i) (±1)^m σ^(m)(±tᵢ + b): the score of one neuron.
pub fn score(activation: Activation, (sign, bias): (f64, f64), t: &[f64], channels: &[Vec<f64>]) -> f64 {
    let mut sum = 0.0;
    for (m, q) in channels.iter().enumerate() {
        if q.is_empty() || m > activation.smoothness() {
            continue;
        }
        let factor = sign.powi(m as i32);
        sum += factor
            * match activation {
                Activation::Relu(power) => {
                    falling_factorial(power as usize, m) * relu_dot(power as usize - m, sign, bias, t, q)
                }
                _ => t
                    .iter()
                    .zip(q)
                    .map(|(&t, q)| q * activation.derivative(m, sign * t + bias))
                    .sum(),
            };
    }
    sum
}

/// out += factor · max(0, ±t + b)^power, the step function for power 0.
#[multiversion(targets("x86_64+avx2+fma"))]
fn add_relu(factor: f64, power: usize, sign: f64, bias: f64, t: &[f64], out: &mut [f64]) {
    macro_rules! with {
        ($function:expr) => {
            for (sum, &t) in out.iter_mut().zip(t) {
                *sum += factor * $function(sign * t + bias);
            }
        };
    }
    match power {
        0 => with!(step),
        1 => with!(relu),
        2 => with!(|z| square(relu(z))),
        3 => with!(|z| relu(z) * square(relu(z))),
        _ => with!(|z| relu(z).powi(power as i32)),
    }
}

/// Σ q · max(0, ±t + b)^power.
#[multiversion(targets("x86_64+avx2+fma"))]
fn relu_dot(power: usize, sign: f64, bias: f64, t: &[f64], q: &[f64]) -> f64 {
    macro_rules! with {
        ($function:expr) => {{
            let mut lanes = [0.0; LANES];
            let (t_chunks, q_chunks) = (t.chunks_exact(LANES), q.chunks_exact(LANES));
            let rest: f64 = t_chunks
                .remainder()
                .iter()
                .zip(q_chunks.remainder())
                .map(|(&t, q)| q * $function(sign * t + bias))
                .sum();
            for (t, q) in t_chunks.zip(q_chunks) {
                for lane in 0..LANES {
                    lanes[lane] += q[lane] * $function(sign * t[lane] + bias);
                }
            }
            lanes.iter().sum::<f64>() + rest
        }};
    }
    match power {
        0 => with!(step),
        1 => with!(relu),
        2 => with!(|z| square(relu(z))),
        3 => with!(|z| relu(z) * square(relu(z))),
        _ => with!(|z| relu(z).powi(power as i32)),
    }
}

#[inline(always)]
fn relu(z: f64) -> f64 {
    if z > 0.0 { z } else { 0.0 }
}

#[inline(always)]
fn step(z: f64) -> f64 {
    if z > 0.0 { 1.0 } else { 0.0 }
}

#[inline(always)]
fn square(z: f64) -> f64 {
    z * z
}
