//! Loops over columns of numbers, compiled for the vector instructions of the machine at hand.

use multiversion::multiversion;

/// out = factor · terms.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn set_scaled(factor: f64, terms: &[f64], out: &mut [f64]) {
    for (out, term) in out.iter_mut().zip(terms) {
        *out = factor * term;
    }
}

/// sums += factor · terms.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn add_scaled(factor: f64, terms: &[f64], sums: &mut [f64]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += factor * term;
    }
}

/// values ·= factors, number by number.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn multiply(values: &mut [f64], factors: &[f64]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        *value *= factor;
    }
}

/// Scalar product in independent lanes, which lets the compiler use vector instructions.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_chunks
        .remainder()
        .iter()
        .zip(b_chunks.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}
