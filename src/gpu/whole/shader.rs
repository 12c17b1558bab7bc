//! The shaders of whole numbers: the files in `shaders/` behind a generated block of constants.

use crate::gpu::shader::params;
use crate::gpu::{WORKGROUP, listed};
use crate::sums::whole::{BLOCK, LARGEST_COUNT, SUM_BITS, WholeTerm};
use std::fmt::Write;

params! {
    /// Constants of `whole_jets.wgsl`.
    WholeJetsParams { stride, first, last, clear }
    /// Constants of `whole_channels.wgsl`.
    WholeChannelsParams { stride, with_load, only_residual }
    /// Constants of `peaks.wgsl`.
    PeaksParams { stride, blocks }
    /// Constants of `runs.wgsl`.
    RunsParams { stride, tasks }
    /// Constants of `neurons.wgsl`.
    NeuronsParams { stride, blocks }
    /// Constants of `whole_risk.wgsl`.
    WholeRiskParams { stride, blocks }
}

/// A stage in whole numbers: a file in `shaders/` and its entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WholeShader {
    /// A network to jets.
    Jets,
    /// Jets to channels.
    Channels,
    /// The largest magnitudes of columns.
    Peaks,
    /// Sums over sorted runs, so many invocations to a task.
    Runs {
        /// A power of two up to [`WORKGROUP`].
        lanes: usize,
    },
    /// Sums for neurons one by one.
    Neurons {
        /// Whether with slopes.
        slopes: bool,
    },
    /// The parts of Σ w φ.
    Risk,
}

impl WholeShader {
    /// Every stage.
    pub const ALL: [WholeShader; 8] = [
        WholeShader::Jets,
        WholeShader::Channels,
        WholeShader::Peaks,
        WholeShader::Runs { lanes: 1 },
        WholeShader::Runs { lanes: 16 },
        WholeShader::Neurons { slopes: false },
        WholeShader::Neurons { slopes: true },
        WholeShader::Risk,
    ];

    fn source(self) -> &'static str {
        match self {
            WholeShader::Jets => include_str!("../../../shaders/whole_jets.wgsl"),
            WholeShader::Channels => include_str!("../../../shaders/whole_channels.wgsl"),
            WholeShader::Peaks => include_str!("../../../shaders/peaks.wgsl"),
            WholeShader::Runs { .. } => include_str!("../../../shaders/runs.wgsl"),
            WholeShader::Neurons { .. } => include_str!("../../../shaders/neurons.wgsl"),
            WholeShader::Risk => include_str!("../../../shaders/whole_risk.wgsl"),
        }
    }

    /// The entry point.
    pub fn entry(self) -> &'static str {
        match self {
            WholeShader::Jets => "whole_jets_main",
            WholeShader::Channels => "whole_channels_main",
            WholeShader::Peaks => "peaks_main",
            WholeShader::Runs { .. } => "runs_main",
            WholeShader::Neurons { .. } => "neurons_main",
            WholeShader::Risk => "whole_risk_main",
        }
    }

    /// The whole WGSL text for a term: constants, arithmetic, stage. `native` is whether the adapter has 64-bit integers.
    pub fn wgsl(self, term: &WholeTerm, native: bool) -> String {
        let arithmetic = match native {
            true => include_str!("../../../shaders/wide_native.wgsl"),
            false => include_str!("../../../shaders/wide_pairs.wgsl"),
        };
        let of_term = match self {
            WholeShader::Runs { .. } => line_terms(term),
            _ => String::new(),
        };
        format!(
            "{}\n{arithmetic}\n{}\n{of_term}",
            self.constants(term),
            self.source()
        )
    }

    fn constants(self, term: &WholeTerm) -> String {
        let layout = term.term.layout();
        let (orders, sizes) = (term.orders(), term.sizes());
        let lanes = match self {
            WholeShader::Runs { lanes } => lanes,
            _ => 1,
        };
        let neuron_sums = match self {
            WholeShader::Neurons { slopes: true } => 2 + term.dimension(),
            _ => 1,
        };
        let point_bits = LARGEST_COUNT.ilog2() as usize;
        let mut text = String::new();
        for (name, value) in [
            ("DIMENSION", term.dimension()),
            ("SYMBOLS", orders.len()),
            ("POWER", term.power),
            ("COEFFICIENTS", sizes.iter().sum()),
            ("COLUMNS", layout.columns()),
            ("SOURCE", layout.source()),
            ("WORKGROUP", WORKGROUP),
            ("BLOCK", BLOCK),
            ("SUM_BITS", SUM_BITS as usize),
            ("LARGEST_COUNT", LARGEST_COUNT),
            ("POINT_BITS", point_bits),
            ("PLACE_SHIFT", point_bits - 2),
            ("LANES", lanes),
            ("NEURON_SUMS", neuron_sums),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "const {name}: u32 = {value}u;");
        }
        for (name, values) in [
            ("ORDERS", orders.as_slice()),
            ("SIZES", &sizes),
            ("QUADRATIC", layout.quadratic()),
            ("LOAD", &layout.load()),
        ] {
            let _ = writeln!(text, "const {name} = array<u32, SYMBOLS>({});", listed(values));
        }
        let _ = writeln!(text, "const IS_RESIDUAL: bool = {};", layout.is_residual());
        text
    }
}

/// What `runs.wgsl` does with an entry, written out for a term: software adapters keep arrays that are indexed in loops
/// in memory, and this was some four times slower.
fn line_terms(term: &WholeTerm) -> String {
    let power = term.power;
    let all =
        |of: &dyn Fn(usize) -> String, between: &str| (0..=power).map(of).collect::<Vec<_>>().join(between);
    let mut text = format!(
        "const SIZE: u32 = {}u;\nstruct TermSums {{ {} }}\n",
        power + 1,
        all(&|r| format!("s{r}: wide"), ", ")
    );
    // Writing to a string cannot fail.
    let zeros = all(&|_| "wide_zero()".to_string(), ", ");
    let _ = writeln!(text, "fn no_sums() -> TermSums {{ return TermSums({zeros}); }}");
    let sums = all(&|r| format!("plus(a.s{r}, b.s{r})"), ", ");
    let _ = writeln!(
        text,
        "fn added(a: TermSums, b: TermSums) -> TermSums {{ return TermSums({sums}); }}"
    );
    let writes = all(&|r| format!("sums[place + {r}u] = a.s{r};"), " ");
    let _ = writeln!(text, "fn write_sums(a: TermSums, place: u32) {{ {writes} }}");
    let _ = writeln!(
        text,
        "fn add_entry(a: TermSums, entry: vec2<u32>, line: vec4<u32>) -> TermSums {{\n\
         let i = entry.x & (LARGEST_COUNT - 1u);\nlet distance = moved_down(place_of(entry), line.w);"
    );
    let declared = all(&|r| format!("var t{r} = wide_zero();"), "\n");
    let _ = writeln!(text, "{declared}");
    for (c, order) in term
        .orders()
        .into_iter()
        .enumerate()
        .filter(|(_, order)| *order <= power)
    {
        let r = power - order;
        let _ = writeln!(
            text,
            "t{r} = plus(t{r}, product(factors[line.z * SYMBOLS + {c}u], \
             moved_up(channels[{c}u * params.stride + i], leads[{c}u])));"
        );
    }
    for (above, below) in (0..power).flat_map(|low| (low..power).rev().map(|r| (r + 1, r))) {
        let _ = writeln!(text, "t{below} = plus(t{below}, product(t{above}, distance));");
    }
    let terms = all(&|r| format!("plus(a.s{r}, rounded(t{r}))"), ", ");
    let _ = writeln!(text, "return TermSums({terms});\n}}");
    text
}
