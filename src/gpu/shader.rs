//! Shaders for one term of a loss: the files in `shaders/` behind a generated block of constants.

use crate::activation::Activation;
use crate::loss::DensityLayout;
use std::fmt::Write;

/// Invocations per workgroup.
pub const WORKGROUP: usize = 64;
/// Points per workgroup: f32 sums stay inside such a block.
pub const SCORE_BLOCK: usize = 4096;

/// The kind of number a shader works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32-bit floats, which every adapter has.
    F32,
    /// 64-bit floats, where the adapter has `SHADER_F64`.
    F64,
}

impl Precision {
    /// Bytes per number.
    pub fn size(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }

    /// The name in WGSL.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    }

    /// Numbers as bytes of this precision.
    pub fn bytes(self, values: &[f64]) -> Vec<u8> {
        match self {
            Precision::F32 => {
                let narrow: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                bytemuck::cast_slice(&narrow).to_vec()
            }
            Precision::F64 => bytemuck::cast_slice(values).to_vec(),
        }
    }

    /// Reads numbers back.
    pub fn numbers(self, bytes: &[u8]) -> Vec<f64> {
        match self {
            Precision::F32 => bytemuck::pod_collect_to_vec::<u8, f32>(bytes)
                .into_iter()
                .map(f64::from)
                .collect(),
            Precision::F64 => bytemuck::pod_collect_to_vec::<u8, f64>(bytes),
        }
    }
}

/// What the generated block of constants says.
#[derive(Debug, Clone, PartialEq)]
pub struct ShaderSpec {
    /// The numbers.
    pub precision: Precision,
    /// d.
    pub dimension: usize,
    /// σ.
    pub activation: Activation,
    /// The order of each symbol.
    pub orders: Vec<usize>,
    /// How the density uses its columns.
    pub layout: DensityLayout,
    /// Offsets per row of scores: a multiple of 4.
    pub offsets: usize,
}

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($field:ident),+ })+) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
        #[allow(missing_docs)]
        pub struct $name { $(pub $field: u32),+ }
    )+};
}
pub(super) use params;

params! {
    /// Constants of `jets.wgsl`.
    JetsParams { stride, first, last, clear }
    /// Constants of `channels.wgsl`.
    ChannelsParams { stride, with_load }
    /// Constants of `risk.wgsl`.
    RiskParams { stride }
    /// Constants of `score.wgsl`.
    ScoreParams { stride, blocks }
    /// Constants of `refine.wgsl`.
    RefineParams { stride, blocks }
    /// Constants of `narrow.wgsl`.
    NarrowParams { count, width }
}

/// A stage: a file in `shaders/` and its entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shader {
    /// Adds neurons to the jets.
    Jets,
    /// Jets to channels.
    Channels,
    /// Σ w φ.
    Risk,
    /// Directions × offsets.
    Score,
    /// Sums for Newton's method.
    Refine,
}

impl Shader {
    /// All stages.
    pub const ALL: [Shader; 5] = [
        Shader::Jets,
        Shader::Channels,
        Shader::Risk,
        Shader::Score,
        Shader::Refine,
    ];

    fn source(self) -> &'static str {
        match self {
            Shader::Jets => include_str!("../../shaders/jets.wgsl"),
            Shader::Channels => include_str!("../../shaders/channels.wgsl"),
            Shader::Risk => include_str!("../../shaders/risk.wgsl"),
            Shader::Score => include_str!("../../shaders/score.wgsl"),
            Shader::Refine => include_str!("../../shaders/refine.wgsl"),
        }
    }

    /// The entry point.
    pub fn entry(self) -> &'static str {
        match self {
            Shader::Jets => "jets_main",
            Shader::Channels => "channels_main",
            Shader::Risk => "risk_main",
            Shader::Score => "score_main",
            Shader::Refine => "refine_main",
        }
    }

    /// The whole WGSL text: constants, activation, stage.
    pub fn wgsl(self, spec: &ShaderSpec) -> String {
        format!(
            "{}\n{}\n{}",
            spec.constants(),
            spec.activation_source(),
            self.source()
        )
    }
}

impl ShaderSpec {
    /// How many sums [`Shader::Refine`] makes per neuron and symbol.
    pub fn refine_sums(&self) -> usize {
        2 + self.dimension
    }

    /// The factor of a symbol's order that the shaders leave to the host.
    pub fn order_factor(&self, order: usize) -> f64 {
        match self.activation.relu_power() {
            Some(power) if order <= power => crate::activation::falling_factorial(power, order),
            Some(_) => 0.0,
            None => 1.0,
        }
    }

    fn constants(&self) -> String {
        let symbols = self.orders.len();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let name = self.precision.name();
        let _ = writeln!(text, "alias real = {name};\nalias real4 = vec4<{name}>;");
        for (name, value) in [
            ("DIMENSION", self.dimension),
            ("SYMBOLS", symbols),
            ("TOP_ORDER", self.orders.iter().copied().max().unwrap_or(0)),
            ("POWER", self.activation.relu_power().unwrap_or(0)),
            ("WORKGROUP", WORKGROUP),
            ("BLOCK", SCORE_BLOCK),
            ("OFFSETS", self.offsets),
            ("REFINE_SUMS", self.refine_sums()),
            ("COLUMNS", self.layout.columns()),
            ("SOURCE", self.layout.source()),
        ] {
            let _ = writeln!(text, "const {name}: u32 = {value}u;");
        }
        for (name, values) in [
            ("ORDERS", self.orders.as_slice()),
            ("QUADRATIC", self.layout.quadratic()),
            ("LOAD", &self.layout.load()),
        ] {
            let _ = writeln!(text, "const {name} = array<u32, SYMBOLS>({});", listed(values));
        }
        let _ = writeln!(text, "const IS_RESIDUAL: bool = {};", self.layout.is_residual());
        text
    }

    fn activation_source(&self) -> String {
        if self.activation.relu_power().is_some() {
            return include_str!("../../shaders/relu.wgsl").to_string();
        }
        let rows = self.activation.derivative_polynomials();
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(1);
        let numbers: Vec<String> = rows
            .iter()
            .flat_map(|row| (0..width).map(|i| format!("real({:?})", row.get(i).copied().unwrap_or(0.0))))
            .collect();
        format!(
            "const POLYNOMIAL_ROW: u32 = {width}u;\nconst ACTIVATION_IS_TANH: bool = {};\n\
             const POLYNOMIALS = array<real, {}>({});\n{}",
            self.activation == Activation::Tanh,
            numbers.len(),
            numbers.join(", "),
            include_str!("../../shaders/smooth.wgsl")
        )
    }
}

/// Numbers as WGSL lists them.
pub(super) fn listed(values: &[usize]) -> String {
    let texts: Vec<String> = values.iter().map(|value| format!("{value}u")).collect();
    texts.join(", ")
}

/// The WGSL text that rounds channels to single precision.
pub fn narrow_wgsl() -> String {
    format!(
        "const WORKGROUP: u32 = {WORKGROUP}u;\n{}",
        include_str!("../../shaders/narrow.wgsl")
    )
}
