//! Neurons one by one: for few of them, and for activations that have no sweep.

use crate::activation::{Activation, falling_factorial};
use crate::vector::{add_polynomial, dot, exponentials, sigmoid};
use multiversion::multiversion;
use std::borrow::Cow;

/// Sums run in this many independent lanes, which lets the compiler use vector instructions.
const LANES: usize = 8;

/// Adds a (±1)^m σ^(m)(±t + b) to `out[m]` for each m asked for by a non-empty column.
pub fn add_derivatives(
    activation: Activation,
    (a, sign, bias): (f64, f64, f64),
    t: &[f64],
    out: &mut [Vec<f64>],
) {
    let smooth = smooth_values(activation, sign, bias, t);
    let polynomials = activation.derivative_polynomials();
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
            _ => add_polynomial(factor, polynomials[m], &smooth, column),
        }
    }
}

/// Adds Σᵢ Σ_m q_m(i) (±1)^m σ^(m)(±tᵢ + b), the score, of each neuron (sign, bias) along a direction.
pub fn add_scores(
    activation: Activation,
    members: impl Iterator<Item = (f64, f64)>,
    t: &[f64],
    channels: &[Vec<f64>],
    sums: &mut [f64],
) {
    let low_order = channels.iter().skip(3).all(Vec::is_empty);
    if activation.has_sweep() || !low_order {
        for (sum, member) in sums.iter_mut().zip(members) {
            *sum += score(activation, member, t, channels);
        }
        return;
    }
    // tanh z = 2 s(2z) − 1, with the sigmoid s.
    let stretch: f64 = if activation == Activation::Tanh { 2.0 } else { 1.0 };
    // e^-(±t + b) = e^∓t · e^-b: one exponential per point serves all neurons.
    let mut powers = [stretch, -stretch].map(|factor| t.iter().map(|t| factor * t).collect::<Vec<f64>>());
    powers.iter_mut().for_each(|values| exponentials(values));
    let channel = |m: usize| match channels.get(m) {
        Some(q) if !q.is_empty() => Cow::Borrowed(q),
        _ => Cow::Owned(vec![0.0; t.len()]),
    };
    let mut channels = [0, 1, 2].map(channel);
    let mut offset = 0.0;
    if activation == Activation::Tanh {
        offset = channels[0].iter().sum();
        for (channel, factor) in channels.iter_mut().zip([2.0, 4.0, 8.0]) {
            channel.to_mut().iter_mut().for_each(|q| *q *= factor);
        }
    }
    let channels = channels.each_ref().map(|q| q.as_slice());
    for (sum, (sign, bias)) in sums.iter_mut().zip(members) {
        let powers = if sign > 0.0 { &powers[1] } else { &powers[0] };
        *sum += sigmoid_score((-stretch * bias).exp(), sign, powers, channels) - offset;
    }
}

/// Σ q₀ s + sign · q₁ s' + q₂ s″ for the sigmoid s = 1/(1 + factor · power).
#[multiversion(targets("x86_64+avx2+fma"))]
fn sigmoid_score(factor: f64, sign: f64, powers: &[f64], [q0, q1, q2]: [&[f64]; 3]) -> f64 {
    let term = |power: f64, q0: f64, q1: f64, q2: f64| {
        let s = 1.0 / (1.0 + factor * power);
        let rest = 1.0 - s;
        s * (q0 + rest * (sign * q1 + q2 * (rest - s)))
    };
    let mut lanes = [0.0; LANES];
    let whole = powers.len() / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let (p, a) = (&powers[start..start + LANES], &q0[start..start + LANES]);
        let (b, c) = (&q1[start..start + LANES], &q2[start..start + LANES]);
        for lane in 0..LANES {
            lanes[lane] += term(p[lane], a[lane], b[lane], c[lane]);
        }
    }
    let rest: f64 = (whole..powers.len())
        .map(|i| term(powers[i], q0[i], q1[i], q2[i]))
        .sum();
    lanes.iter().sum::<f64>() + rest
}

/// Σᵢ Σ_m q_m(i) (±1)^m σ^(m)(±tᵢ + b): the score of one neuron.
pub fn score(activation: Activation, (sign, bias): (f64, f64), t: &[f64], channels: &[Vec<f64>]) -> f64 {
    let smooth = smooth_values(activation, sign, bias, t);
    let polynomials = activation.derivative_polynomials();
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
                _ => {
                    let mut values = vec![0.0; t.len()];
                    add_polynomial(1.0, polynomials[m], &smooth, &mut values);
                    dot(&values, q)
                }
            };
    }
    sum
}

/// σ(±t + b) of a smooth activation; nothing for ReLU^k.
fn smooth_values(activation: Activation, sign: f64, bias: f64, t: &[f64]) -> Vec<f64> {
    let arguments = |scale: f64| t.iter().map(|&t| scale * (sign * t + bias)).collect::<Vec<f64>>();
    match activation {
        Activation::Relu(_) => Vec::new(),
        Activation::Sigmoid => {
            let mut values = arguments(1.0);
            sigmoid(&mut values);
            values
        }
        Activation::Tanh => {
            let mut values = arguments(2.0);
            sigmoid(&mut values);
            values.iter_mut().for_each(|value| *value = 2.0 * *value - 1.0);
            values
        }
    }
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
        4 => with!(|z| square(square(relu(z)))),
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
        4 => with!(|z| square(square(relu(z)))),
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
