//! The shaders of whole numbers: the files in `shaders/` behind a generated block of constants.

use super::written;
use crate::gpu::shader::params;
use crate::gpu::{Gpu, WORKGROUP};
use crate::sums::whole::fixed::{NOTHING, ONE_BITS};
use crate::sums::whole::{BLOCK, LARGEST_COUNT, SUM_BITS, WholeTerm};
use std::fmt::Write;

params! {
    /// Constants of `whole_field.wgsl`.
    WholeFieldParams { stride, count, first_single, last_single, first_line, last_line, lines_at, pieces_at }
    /// Constants of `runs.wgsl`.
    RunsParams { stride, tasks }
    /// Constants of `neurons.wgsl`.
    NeuronsParams { stride, count, blocks }
    /// Constants of `whole_risk.wgsl`.
    WholeRiskParams { stride, count, blocks }
}

/// What becomes of a network's jets at the points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// They are kept for the next batch of neurons.
    Jets,
    /// They are kept, with how large they are.
    Values,
    /// They become channels.
    Channels {
        /// Of the gradient, not of the curvature.
        with_load: bool,
    },
    /// They become the residual.
    Residual,
}

impl Outcome {
    /// Whether coefficients are needed.
    pub(super) fn has_columns(self) -> bool {
        matches!(self, Outcome::Channels { .. } | Outcome::Residual)
    }

    /// Whether the load is a part of it.
    pub(super) fn has_load(self) -> bool {
        matches!(self, Outcome::Channels { with_load: true } | Outcome::Residual)
    }

    /// How many numbers a point has in the end.
    pub(super) fn values(self, symbols: usize) -> usize {
        match self {
            Outcome::Residual => 1,
            _ => symbols,
        }
    }
}

/// How the invocations of `runs.wgsl` and the tasks are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunsShape {
    /// Invocations that share a task: a power of two up to [`WORKGROUP`].
    pub lanes: usize,
    /// Tasks that an invocation has one after the other.
    pub tasks: usize,
}

impl RunsShape {
    /// Many points to a task.
    pub const SHARED: Self = Self { lanes: 16, tasks: 1 };
    /// Some points to a task.
    pub const ALONE: Self = Self { lanes: 1, tasks: 1 };
    /// Hardly any: what belongs to the line is read once for several tasks.
    pub const CRUMBS: Self = Self { lanes: 1, tasks: 8 };

    /// Tasks of a workgroup.
    pub fn tasks_of_workgroup(self) -> usize {
        WORKGROUP / self.lanes * self.tasks
    }
}

/// What a shader may count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// 64-bit integers.
    pub native: bool,
    /// It is a program on the CPU's cores, where reading a number for all invocations costs as much as one for each.
    pub software: bool,
}

impl Adapter {
    /// What an open device is.
    pub fn of(gpu: &Gpu) -> Self {
        let report = gpu.report();
        Self {
            native: report.i64,
            software: report.kind == "cpu",
        }
    }
}

/// A stage in whole numbers: a file in `shaders/` and its entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WholeShader {
    /// A network to jets, and what becomes of them.
    Field {
        /// Whether it starts from the jets of the batch before.
        continued: bool,
        /// What becomes of the jets.
        outcome: Outcome,
    },
    /// Sums over sorted runs.
    Runs(RunsShape),
    /// Sums for neurons one by one.
    Neurons {
        /// Whether with slopes.
        slopes: bool,
        /// The first of the symbols that are summed.
        first: usize,
    },
    /// The parts of Σ w φ.
    Risk,
}

impl WholeShader {
    /// Every stage for a term.
    pub fn all(term: &WholeTerm) -> Vec<WholeShader> {
        let residual = term.term.layout().is_residual().then_some(Outcome::Residual);
        let outcomes = [
            Outcome::Jets,
            Outcome::Values,
            Outcome::Channels { with_load: false },
            Outcome::Channels { with_load: true },
        ];
        let outcomes = outcomes.into_iter().chain(residual);
        let fields = outcomes
            .flat_map(|outcome| [false, true].map(|continued| WholeShader::Field { continued, outcome }));
        let neurons = [false, true]
            .into_iter()
            .flat_map(|slopes| Self::neurons(term, slopes));
        let runs = [RunsShape::SHARED, RunsShape::ALONE, RunsShape::CRUMBS].map(WholeShader::Runs);
        fields
            .chain(neurons)
            .chain(runs)
            .chain([WholeShader::Risk])
            .collect()
    }

    /// The stages that sum up all symbols for neurons one by one.
    pub(super) fn neurons(term: &WholeTerm, slopes: bool) -> impl Iterator<Item = Self> + use<> {
        let sums = if slopes { 2 + term.dimension() } else { 1 };
        let symbols = term.term.symbols.len();
        let firsts = (0..symbols).step_by(written::symbols_at_once(symbols, sums));
        firsts.map(move |first| WholeShader::Neurons { slopes, first })
    }

    fn source(self) -> &'static str {
        match self {
            WholeShader::Field { .. } => include_str!("../../../shaders/whole_field.wgsl"),
            WholeShader::Runs(_) => include_str!("../../../shaders/runs.wgsl"),
            WholeShader::Neurons { .. } => include_str!("../../../shaders/neurons.wgsl"),
            WholeShader::Risk => include_str!("../../../shaders/whole_risk.wgsl"),
        }
    }

    /// The entry point.
    pub fn entry(self) -> &'static str {
        match self {
            WholeShader::Field { .. } => "whole_field_main",
            WholeShader::Runs(_) => "runs_main",
            WholeShader::Neurons { .. } => "neurons_main",
            WholeShader::Risk => "whole_risk_main",
        }
    }

    /// The whole WGSL text for a term: constants, arithmetic, stage.
    pub fn wgsl(self, term: &WholeTerm, adapter: Adapter) -> String {
        let arithmetic = match adapter.native {
            true => include_str!("../../../shaders/wide_native.wgsl"),
            false => include_str!("../../../shaders/wide_pairs.wgsl"),
        };
        let leads = include_str!("../../../shaders/leads.wgsl");
        let of_term = match self {
            WholeShader::Field { continued, outcome } => {
                let points = written::points_at_once(term, adapter);
                written::field(term, continued, outcome, points)
            }
            WholeShader::Runs(_) => written::line_terms(term),
            WholeShader::Neurons { slopes, first } => written::neurons(term, slopes, first),
            WholeShader::Risk => written::risk(term),
        };
        format!(
            "{}\n{arithmetic}\n{leads}\n{}\n{of_term}",
            self.constants(term),
            self.source()
        )
    }

    fn constants(self, term: &WholeTerm) -> String {
        let shape = match self {
            WholeShader::Runs(shape) => shape,
            _ => RunsShape::ALONE,
        };
        let point_bits = LARGEST_COUNT.ilog2() as usize;
        let mut text = format!("const NOTHING: i32 = {NOTHING};\n");
        for (name, value) in [
            ("SYMBOLS", term.term.symbols.len()),
            ("WORKGROUP", WORKGROUP),
            ("BLOCK", BLOCK),
            ("SUM_BITS", SUM_BITS as usize),
            ("LEAD_ROOM", (ONE_BITS - 32) as usize),
            ("LARGEST_COUNT", LARGEST_COUNT),
            ("POINT_BITS", point_bits),
            ("PLACE_SHIFT", point_bits - 2),
            ("LANES", shape.lanes),
            ("TASKS", shape.tasks),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "const {name}: u32 = {value}u;");
        }
        text
    }
}
