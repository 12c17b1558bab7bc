//! Real numbers as whole numbers: v = ṽ 2^(e − 61), with one exponent e for a whole column.
//!
//! Numbers stay within |ṽ| ≤ 2⁶¹, "one". Whole numbers are the same on every machine and in every order of
//! summation; 61 bits are more than the 53 of a double, and their products and sums are rounded only where this
//! file says so. `shaders/wide_native.wgsl` and `shaders/wide_pairs.wgsl` are the twins of its functions.

/// Bits of "one".
pub const ONE_BITS: u32 = 61;
/// One.
pub const ONE: i64 = 1 << ONE_BITS;
/// The exponent of a column of zeros.
pub const NOTHING: i32 = -2000;
/// The largest distance that a shift may go: nothing but the sign is left.
const LARGEST_SHIFT: u32 = 63;

/// The bits of the lower half of a factor: the upper one is a signed word.
const HALF_BITS: u32 = 31;

/// a b, rounded down, of two numbers up to one: by up to three units, as the product of the lower halves, less than two
/// units, is left out. Each of the other three is one of 32 by 32 bits.
#[inline(always)]
pub fn product(a: i64, b: i64) -> i64 {
    let upper = |v: i64| i64::from((v >> HALF_BITS) as i32);
    let lower = |v: i64| v & ((1 << HALF_BITS) - 1);
    let middle = upper(a) * lower(b) + lower(a) * upper(b);
    ((upper(a) * upper(b)) << (2 * HALF_BITS - ONE_BITS)) + (middle >> (ONE_BITS - HALF_BITS))
}

/// a / 2^bits, rounded to the nearest.
#[inline(always)]
pub fn rounded_down(a: i64, bits: u32) -> i64 {
    (a + (1 << (bits - 1))) >> bits
}

/// The upper half of |a|.
#[inline(always)]
pub fn magnitude(a: i64) -> u32 {
    ((a ^ (a >> 63)) >> 32) as u32
}

/// By how many bits numbers may be moved up when the largest of their [magnitudes](magnitude) is this.
pub fn lead(largest: u32) -> u32 {
    let bits = u32::BITS - largest.leading_zeros();
    (ONE_BITS - 32).saturating_sub(bits)
}

/// The smallest e with |v| ≤ 2^e, for the largest |v|.
pub fn exponent(largest: f64) -> i32 {
    if largest == 0.0 || !largest.is_finite() {
        return NOTHING;
    }
    let mut e = largest.log2().ceil() as i32;
    // The logarithm is rounded.
    while power_of_two(e) < largest {
        e += 1;
    }
    e
}

/// v as a whole number under an exponent.
pub fn fixed(value: f64, exponent: i32) -> i64 {
    if value == 0.0 {
        return 0;
    }
    (value * power_of_two(ONE_BITS as i32 - exponent)).round() as i64
}

/// 2^e, also where that takes two steps.
pub fn power_of_two(e: i32) -> f64 {
    let half = e / 2;
    2f64.powi(half) * 2f64.powi(e - half)
}

/// The distance of a shift from one exponent to a larger one.
pub fn distance(from: i32, to: i32) -> u32 {
    (to - from).clamp(0, LARGEST_SHIFT as i32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_last_bit_of_a_double() {
        for value in [1.0, -0.3, 1e-200, 7.5e180, f64::EPSILON] {
            let e = exponent(f64::abs(value));
            let whole = fixed(value, e);
            assert!(whole.unsigned_abs() <= ONE as u64);
            assert_eq!(whole as f64 * power_of_two(e - ONE_BITS as i32), value);
        }
        assert_eq!(exponent(8.0), 3);
        assert_eq!(exponent(8.000001), 4);
    }

    #[test]
    fn products_at_the_edge_do_not_overflow() {
        for (a, b, expected) in [
            (ONE, ONE, ONE),
            (-ONE, ONE, -ONE),
            (-ONE, -ONE, ONE),
            (-1, ONE, -1),
        ] {
            assert_eq!(product(a, b), expected);
        }
        // Never more than the product, and at most three units less.
        let mut v = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..10_000 {
            let mut next = || {
                v ^= v << 13;
                v ^= v >> 7;
                v ^= v << 17;
                (v as i64) >> 2
            };
            let (a, b) = (next(), next());
            let exact = (i128::from(a) * i128::from(b)) >> ONE_BITS;
            let off = exact - i128::from(product(a, b));
            assert!((0..=3).contains(&off), "{a} · {b} is off by {off}");
        }
        assert_eq!(rounded_down(-5, 1), -2);
        for largest in [0, 1, 7, 8, (1 << 29) - 1, 1 << 29] {
            let v = (i64::from(largest) << 32) | 0xffff_ffff;
            assert!(largest == 1 << 29 || (v << lead(largest)) <= ONE, "{largest}");
        }
    }
}
