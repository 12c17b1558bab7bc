//! Loops over columns of numbers, compiled for the vector instructions of the machine at hand.

use multiversion::multiversion;

/// The whole number nearest to x, for 0 ≤ x < 2³²; in loops this becomes vector instructions, as a cast
/// does not.
#[inline(always)]
pub fn rounded(x: f64) -> u32 {
    /// Added to a number below it, it leaves the nearest whole number in the lowest bits.
    const TO_BITS: f64 = (1_u64 << 52) as f64;
    (x + TO_BITS).to_bits() as u32
}

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

/// How many numbers a [`CarriedDot`] is.
pub const DOT_STATE: usize = 9;

/// A scalar product [`dot`] in the making, where parts of its numbers are in different places: carried from one to the
/// next it gives the same number.
#[derive(Debug, Clone, Copy)]
pub struct CarriedDot {
    lanes: [f64; 8],
    rest: f64,
}

impl Default for CarriedDot {
    fn default() -> Self {
        Self {
            lanes: [0.0; 8],
            rest: std::iter::empty::<f64>().sum(),
        }
    }
}

impl CarriedDot {
    /// Adds the products of some numbers of `total`, of which these begin at `first`.
    pub fn add(&mut self, a: &[f64], b: &[f64], first: usize, total: usize) {
        const LANES: usize = 8;
        let whole = total - total % LANES;
        let end = first + a.len();
        // Up to where the lanes begin anew, then by lanes, then one by one again.
        let head = first.next_multiple_of(LANES).min(end) - first;
        let body = (end.min(whole).max(first + head) - first - head) / LANES * LANES;
        let one_by_one = |range: std::ops::Range<usize>, carried: &mut Self| {
            for k in range {
                let product = a[k] * b[k];
                match first + k < whole {
                    true => carried.lanes[(first + k) % LANES] += product,
                    false => carried.rest += product,
                }
            }
        };
        one_by_one(0..head, self);
        add_to_lanes(&a[head..head + body], &b[head..head + body], &mut self.lanes);
        one_by_one(head + body..a.len(), self);
    }

    /// The scalar product.
    pub fn sum(&self) -> f64 {
        self.lanes.iter().sum::<f64>() + self.rest
    }

    /// What it is made of.
    pub fn numbers(&self) -> [f64; DOT_STATE] {
        std::array::from_fn(|k| self.lanes.get(k).copied().unwrap_or(self.rest))
    }

    /// From what it is made of.
    pub fn from_numbers(numbers: impl Iterator<Item = f64>) -> Self {
        let mut carried = Self::default();
        for (k, number) in numbers.enumerate() {
            match carried.lanes.get_mut(k) {
                Some(lane) => *lane = number,
                None => carried.rest = number,
            }
        }
        carried
    }
}

/// The part of [`dot`] in lanes.
#[multiversion(targets("x86_64+avx2+fma"))]
fn add_to_lanes(a: &[f64], b: &[f64], sums: &mut [f64; 8]) {
    let mut lanes = *sums;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    *sums = lanes;
}

/// 1 / (1 + e⁻ᶻ) of every number, to about one unit in the last place.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn sigmoid(values: &mut [f64]) {
    for value in values {
        *value = 1.0 / (1.0 + exp(-*value));
    }
}

/// eˣ of every number, up to |x| = 350, beyond which it stays the same: products of two are finite.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn exponentials(values: &mut [f64]) {
    for value in values {
        *value = exp(value.clamp(-350.0, 350.0));
    }
}

/// eˣ for |x| ≤ 700; beyond, as at the end of that range.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// Added to a small number it leaves the nearest whole number in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = x.clamp(-700.0, 700.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    // Taylor's series; the first term left out is below 2e-17.
    let mut sum = 1.0 / 6_227_020_800.0;
    for factorial in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0,
    ] {
        sum = sum * r + 1.0 / factorial;
    }
    let power = ((shifted.to_bits() as i64).wrapping_add(1023) << 52) as u64;
    sum * f64::from_bits(power)
}

/// Adds factor · p(x) of every number, p given by its coefficients, lowest power first.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn add_polynomial(factor: f64, polynomial: &[f64], xs: &[f64], sums: &mut [f64]) {
    for (sum, x) in sums.iter_mut().zip(xs) {
        *sum += factor * polynomial.iter().rev().fold(0.0, |value, c| value * x + c);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sigmoid_is_the_librarys() {
        let xs: Vec<f64> = (-8000..8000).map(|k| 0.1 * f64::from(k) + 0.013).collect();
        let mut values = xs.clone();
        super::sigmoid(&mut values);
        for (x, value) in xs.iter().zip(values) {
            let exact = 1.0 / (1.0 + (-x.clamp(-700.0, 700.0)).exp());
            assert!((value - exact).abs() <= 4e-16 * exact, "{x}: {value} {exact}");
        }
    }
}
