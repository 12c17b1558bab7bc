//! WGSL that is written out for a term. Software adapters keep arrays that are indexed in loops in memory, and read what
//! is the same for all invocations once for each of them: so nothing is indexed here, and what is the same for many
//! points is read before the loop over them.

mod field;
mod sums;

pub(super) use field::{field, points_at_once, shift_quads};
pub(super) use sums::{line_terms, neurons, neurons_at_once, risk, symbols_at_once};

use std::ops::Range;

/// Sums that the invocations of a workgroup add up at once: an odd number of them, side by side in its memory, in which
/// no two lanes then use the same bank; 16 KiB hold so many.
pub(super) const SUMS_AT_ONCE: usize = 31;

/// Lines of text.
fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("\n")
}

/// Parts with commas between them.
fn list(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect::<Vec<_>>().join(", ")
}

/// start + Σ Ω_d X_d.
fn affine(
    dimension: usize,
    start: &str,
    slope: impl Fn(usize) -> String,
    x: impl Fn(usize) -> String,
) -> String {
    (0..dimension).fold(start.to_string(), |sum, d| {
        format!("plus({sum}, product({}, {}))", slope(d), x(d))
    })
}

/// The channels of a point lie side by side, so that whoever gathers points finds them in one place: read at once are one,
/// two or four of them.
#[derive(Clone, Copy)]
pub(super) struct Packs {
    /// Channels in a pack.
    width: usize,
    /// Packs of a point.
    count: usize,
}

impl Packs {
    pub(super) fn new(symbols: usize) -> Self {
        let width = match symbols {
            0 | 1 => 1,
            2 => 2,
            _ => 4,
        };
        Self {
            width,
            count: symbols.div_ceil(width).max(1),
        }
    }

    /// Numbers of a point, those that fill up the last pack included.
    pub(super) fn numbers(self) -> usize {
        self.width * self.count
    }

    /// The type of a pack.
    fn alias(self) -> String {
        let name = ["wide", "wide2", "wide4"][self.width.ilog2() as usize];
        format!("alias pack = {name};")
    }

    /// Reads the packs in which some channels of point `i` lie.
    fn read(self, symbols: Range<usize>) -> String {
        let packs = symbols.start / self.width..symbols.end.div_ceil(self.width);
        lines(packs.map(|q| format!("let pack{q} = channels[i * {}u + {q}u];", self.count)))
    }

    /// A channel that was read.
    fn channel(self, c: usize) -> String {
        match self.width {
            1 => format!("pack{c}"),
            width => format!("pack{}.{}", c / width, ["x", "y", "z", "w"][c % width]),
        }
    }

    /// Writes the channels v₀, v₁, … of point `i`.
    fn write(self, symbols: usize) -> String {
        let value = |c: usize| match c < symbols {
            true => format!("v{c}"),
            false => "wide_zero()".to_string(),
        };
        lines((0..self.count).map(|q| {
            let place = format!("values[i * {}u + {q}u]", self.count);
            match self.width {
                1 => format!("{place} = {};", value(q)),
                width => format!("{place} = pack({});", list(width, |k| value(q * width + k))),
            }
        }))
    }
}
