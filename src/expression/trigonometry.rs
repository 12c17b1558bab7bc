//! sin and cos in a form that the compiler turns into vector instructions.
//!
//! The polynomials and the two-part π/2 are those of fdlibm; errors stay within about one unit in the
//! last place. Arguments beyond [`LARGEST`] (and those that are not finite) go to the library.

/// The reduction by a two-part π/2 is exact up to here.
const LARGEST: f64 = 1e5;

const HALF_PI_HIGH: f64 = 1.570_796_326_734_125_6;
const HALF_PI_LOW: f64 = 6.077_100_506_506_192e-11;

/// Whether every number may be given to [`sin`] and [`cos`].
pub(super) fn in_range(values: &[f64]) -> bool {
    values.iter().all(|x| x.abs() <= LARGEST)
}

/// sin x for |x| ≤ [`LARGEST`].
#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    turned(x, 0)
}

/// cos x for |x| ≤ [`LARGEST`].
#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    turned(x, 1)
}

/// sin(x + quarter · π/2).
#[inline(always)]
fn turned(x: f64, quarter: i32) -> f64 {
    // Adding and subtracting 1.5 · 2^52 rounds to the nearest whole number.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let turns = (x * std::f64::consts::FRAC_2_PI + ROUND) - ROUND;
    let r = (x - turns * HALF_PI_HIGH) - turns * HALF_PI_LOW;
    // Beyond the last point of a block there may be anything; it is computed along and thrown away.
    let quadrant = (turns as i32).wrapping_add(quarter);
    let z = r * r;
    let sine = r + r
        * z
        * (-1.666_666_666_666_663_2e-1
            + z * (8.333_333_333_322_49e-3
                + z * (-1.984_126_982_985_795e-4
                    + z * (2.755_731_370_707_006_8e-6
                        + z * (-2.505_076_025_340_686_3e-8 + z * 1.589_690_995_211_55e-10)))));
    let cosine = 1.0 - 0.5 * z
        + z * z
            * (4.166_666_666_666_66e-2
                + z * (-1.388_888_888_887_411e-3
                    + z * (2.480_158_728_947_673e-5
                        + z * (-2.755_731_435_139_066_3e-7
                            + z * (2.087_572_321_298_175e-9 - z * 1.135_964_755_778_819_5e-11)))));
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    if quadrant & 2 == 0 { value } else { -value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library_to_the_last_place() {
        for i in -200_000..200_000 {
            let x = f64::from(i) * 0.013_7 + 1e-7;
            assert!((sin(x) - x.sin()).abs() <= 2.3e-16, "sin {x}");
            assert!((cos(x) - x.cos()).abs() <= 2.3e-16, "cos {x}");
        }
    }
}
