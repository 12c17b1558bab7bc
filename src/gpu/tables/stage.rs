//! The shaders of the pass for moment tables: the files in `shaders/` behind a generated block of constants.

use crate::gpu::shader::params;
use crate::gpu::{Adapter, WORKGROUP};
use std::fmt::Write;

params! {
    /// Constants of `places.wgsl`.
    PlacesParams { count, stride, axes }
    /// Constants of `count.wgsl`.
    CountParams { count, stride, bins }
    /// Constants of `starts.wgsl`.
    StartsParams { bins }
    /// Constants of `sort.wgsl`.
    SortParams { count, stride, bins }
    /// Constants of `moments.wgsl`.
    MomentsParams { rows, columns, entries_at, starts_at, places_at, skipped }
}

/// Invocations that share the sorting along an axis.
pub const SHARES: usize = 2 * WORKGROUP;
/// So many points of a row are added by one invocation at a time: software adapters end loops at 65,535 trips.
pub const LONGEST_WALK: usize = 1 << 15;
/// With more bins along an axis an invocation's loops would be too long.
pub const MOST_BINS: usize = 1 << 14;

/// A stage of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassShader {
    /// Halton points from their index.
    HaltonPlaces,
    /// Lattice points from their index.
    LatticePlaces,
    /// How many points there are in the bins.
    Count,
    /// Where bins begin.
    Starts,
    /// Points to their bins.
    Sort,
    /// The sums of a pair of axes for ReLU^k.
    Moments {
        /// k.
        power: usize,
    },
}

impl PassShader {
    /// Every stage for ReLU^`power`.
    pub fn all(power: usize) -> [PassShader; 6] {
        [
            PassShader::HaltonPlaces,
            PassShader::LatticePlaces,
            PassShader::Count,
            PassShader::Starts,
            PassShader::Sort,
            PassShader::Moments { power },
        ]
    }

    /// The entry point.
    pub fn entry(self) -> &'static str {
        match self {
            PassShader::HaltonPlaces | PassShader::LatticePlaces => "places_main",
            PassShader::Count => "count_main",
            PassShader::Starts => "starts_main",
            PassShader::Sort => "sort_main",
            PassShader::Moments { .. } => "moments_main",
        }
    }

    /// The whole WGSL text: constants, arithmetic, stage.
    pub fn wgsl(self, adapter: Adapter) -> String {
        let words = match adapter.native {
            true => include_str!("../../../shaders/words_native.wgsl"),
            false => include_str!("../../../shaders/words_pairs.wgsl"),
        };
        let mut text =
            format!("const WORKGROUP: u32 = {WORKGROUP}u;\nconst SHARES: u32 = {SHARES}u;\n{words}\n");
        if let PassShader::Moments { power } = self {
            text += &moments_constants(power);
        }
        for part in self.sources(adapter) {
            text += part;
        }
        text
    }

    fn sources(self, adapter: Adapter) -> Vec<&'static str> {
        let places = include_str!("../../../shaders/places.wgsl");
        let moments = include_str!("../../../shaders/moments.wgsl");
        match self {
            PassShader::HaltonPlaces => vec![include_str!("../../../shaders/places_halton.wgsl"), places],
            PassShader::LatticePlaces => vec![include_str!("../../../shaders/places_lattice.wgsl"), places],
            PassShader::Count => vec![include_str!("../../../shaders/count.wgsl")],
            PassShader::Starts => vec![include_str!("../../../shaders/starts.wgsl")],
            PassShader::Sort => vec![include_str!("../../../shaders/sort.wgsl")],
            PassShader::Moments { .. } if adapter.software => {
                vec![moments, include_str!("../../../shaders/moments_walk.wgsl")]
            }
            PassShader::Moments { .. } => vec![moments, include_str!("../../../shaders/moments_shared.wgsl")],
        }
    }
}

/// Columns of a table that a workgroup adds up at a time: as many as fit 16 KiB.
pub fn column_tile(power: usize) -> usize {
    let cell = 8 * (power + 1) * (power + 1);
    let fitting = 16384 / cell;
    1 << fitting.ilog2()
}

fn moments_constants(power: usize) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("SIZE", power + 1),
        ("COLUMN_TILE", column_tile(power)),
        ("LONGEST_WALK", LONGEST_WALK),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "const {name}: u32 = {value}u;");
    }
    text + &written_point(power + 1)
}

/// The moments of a point, written out: trips of inner loops would count, too.
fn written_point(size: usize) -> String {
    let mut text = "fn add_point(cell: u32, weight: u32, distance: u32, across: u32) {\n".to_string();
    for p in 0..size {
        let first = match p {
            0 => "weight".to_string(),
            _ => format!("times(t{}_0, distance)", p - 1),
        };
        let _ = writeln!(text, "    let t{p}_0 = {first};");
        for q in 1..size {
            let _ = writeln!(text, "    let t{p}_{q} = times(t{p}_{}, across);", q - 1);
        }
        for q in 0..size {
            let _ = writeln!(text, "    add_term(cell + {}u, t{p}_{q});", p * size + q);
        }
    }
    text + "}\n"
}
