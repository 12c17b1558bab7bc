//! The shaders' text, checked without a device.

mod common;

use common::laws::problem;
use greedy_pde::gpu::{self, Adapter, PassShader, Precision, Shader, ShaderSpec, WholeShader};
use greedy_pde::problem::Purpose;
use greedy_pde::sums::whole::{BLOCK, TASK, WholeTerm};

/// The shaders of several problems, in both precisions where there are both.
fn specs() -> Vec<ShaderSpec> {
    let mut specs = Vec::new();
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (10, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (2, "residual", "relu^3"),
        (2, "residual", "sigmoid"),
        (3, "energy", "tanh"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let loss = problem.loss(8, Purpose::Training).unwrap();
        for term in &loss.terms {
            for precision in [Precision::F32, Precision::F64] {
                if precision == Precision::F64 && problem.dictionary.activation.relu_power().is_none() {
                    continue;
                }
                specs.push(ShaderSpec {
                    precision,
                    dimension,
                    activation: problem.dictionary.activation,
                    orders: term.symbols.iter().map(|symbol| symbol.order()).collect(),
                    layout: term.layout().clone(),
                    offsets: 32,
                });
            }
        }
    }
    specs
}

/// The terms of several problems in whole numbers.
fn whole_terms() -> Vec<WholeTerm> {
    let mut terms = Vec::new();
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (10, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (2, "residual", "relu^5"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let power = problem.dictionary.activation.relu_power().unwrap();
        let loss = problem.loss(8, Purpose::Training).unwrap();
        let whole = |term| WholeTerm::new(term, &problem.domain, power).unwrap();
        terms.extend(loss.terms.iter().map(whole));
    }
    terms
}

#[test]
fn every_shader_of_whole_numbers_compiles_natively_and_in_pairs() {
    for term in whole_terms() {
        for shader in WholeShader::all(&term) {
            for (native, software) in [(true, true), (false, true), (true, false), (false, false)] {
                compiles(&shader.wgsl(&term, Adapter { native, software }));
            }
        }
    }
}

/// Workgroup memory that every adapter has.
#[test]
fn sums_over_runs_fit_the_memory_of_a_workgroup() {
    for term in whole_terms() {
        assert!(8 * gpu::WORKGROUP * (term.power + 1) <= 16 << 10);
    }
}

#[test]
fn every_shader_compiles() {
    for spec in specs() {
        for program in Shader::ALL {
            compiles(&program.wgsl(&spec));
        }
    }
    compiles(&gpu::narrow_wgsl());
}

/// Natively and in pairs of words, for software and for a GPU.
#[test]
fn every_shader_of_the_pass_for_tables_compiles() {
    for power in 1..=4 {
        for shader in PassShader::all(power) {
            for (native, software) in [(true, true), (false, true), (true, false), (false, false)] {
                compiles(&shader.wgsl(Adapter { native, software }));
            }
        }
    }
}

fn compiles(text: &str) {
    let module =
        naga::front::wgsl::parse_str(text).unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
    let mut validator = naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::FLOAT64 | naga::valid::Capabilities::SHADER_INT64,
    );
    validator
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
}

#[test]
fn uniforms_have_the_same_layout_on_both_sides() {
    use gpu::{
        ChannelsParams, CountParams, JetsParams, MomentsParams, NarrowParams, NeuronsParams, Outcome,
        PlacesParams, RefineParams, RiskParams, RunsParams, RunsShape, ScoreParams, SortParams, StartsParams,
        WholeFieldParams, WholeRiskParams,
    };
    use std::mem::offset_of;
    let spec = &specs()[0];
    let check = |wgsl: String, name: &str, size: usize, host: &[(&str, usize)]| {
        let module = naga::front::wgsl::parse_str(&wgsl).unwrap();
        let (_, found) = module
            .types
            .iter()
            .find(|(_, ty)| ty.name.as_deref() == Some(name))
            .unwrap();
        let naga::TypeInner::Struct { members, span } = &found.inner else {
            panic!("{name} is not a struct");
        };
        assert_eq!(*span as usize, size);
        let device: Vec<(&str, usize)> = members
            .iter()
            .map(|m| (m.name.as_deref().unwrap(), m.offset as usize))
            .collect();
        assert_eq!(device, host, "{name}");
    };
    macro_rules! check {
        ($wgsl:expr, $name:ident, $($field:ident),+) => {
            check($wgsl, stringify!($name), size_of::<$name>(), &[$((stringify!($field), offset_of!($name, $field))),+])
        };
    }
    check!(Shader::Jets.wgsl(spec), JetsParams, stride, first, last, clear);
    check!(Shader::Channels.wgsl(spec), ChannelsParams, stride, with_load);
    check!(Shader::Risk.wgsl(spec), RiskParams, stride);
    check!(Shader::Score.wgsl(spec), ScoreParams, stride, blocks);
    check!(Shader::Refine.wgsl(spec), RefineParams, stride, blocks);
    check!(gpu::narrow_wgsl(), NarrowParams, count, width);
    let term = &whole_terms()[0];
    let adapter = Adapter {
        native: true,
        software: true,
    };
    let pass = |shader: PassShader| shader.wgsl(adapter);
    check!(pass(PassShader::HaltonPlaces), PlacesParams, count, stride, axes);
    check!(pass(PassShader::Count), CountParams, count, stride, bins);
    check!(pass(PassShader::Starts), StartsParams, bins);
    check!(pass(PassShader::Sort), SortParams, count, stride, bins);
    check!(
        pass(PassShader::Moments { power: 2 }),
        MomentsParams,
        rows,
        columns,
        entries_at,
        starts_at,
        places_at,
        skipped
    );
    let whole = |shader: WholeShader| shader.wgsl(term, adapter);
    check!(
        whole(WholeShader::Field {
            continued: false,
            outcome: Outcome::Values
        }),
        WholeFieldParams,
        stride,
        count,
        first_single,
        last_single,
        first_line,
        last_line,
        lines_at,
        pieces_at
    );
    check!(
        whole(WholeShader::Runs(RunsShape::ALONE)),
        RunsParams,
        stride,
        tasks
    );
    check!(
        whole(WholeShader::Neurons {
            slopes: true,
            first: 0
        }),
        NeuronsParams,
        stride,
        count,
        blocks
    );
    check!(whole(WholeShader::Risk), WholeRiskParams, stride, count, blocks);
}

/// llvmpipe 22.3 silently ends an invocation's loops after about 65,535 trips in all.
#[test]
fn no_invocation_loops_too_long() {
    let per_lane = gpu::SCORE_BLOCK / gpu::WORKGROUP;
    for spec in specs() {
        let (d, c) = (spec.dimension, spec.orders.len());
        let top = spec.orders.iter().max().unwrap() + 1;
        // Powers of ReLU, or one polynomial per order in the value of a smooth activation.
        let polynomials = spec.activation.derivative_polynomials();
        let derivative = polynomials.iter().map(|row| row.len()).max().unwrap_or(4) + 1;
        let response = if polynomials.is_empty() {
            8
        } else {
            top * derivative
        };
        let score = per_lane * (d + c + spec.offsets / 4 * (response + 1)) + spec.offsets * gpu::WORKGROUP;
        let refine = per_lane * (d * d + 3 * derivative) + spec.refine_sums() * gpu::WORKGROUP;
        let jets = 256 * (d + c * (derivative + 1));
        for trips in [score, refine, jets] {
            assert!(trips < 50_000, "{trips} trips in {spec:?}");
        }
    }
    // The pass for tables: an axis' bins cleared and a share's points; all shares of some bins and the bins; a row.
    let (bins, shares) = (gpu::MOST_BINS, gpu::SHARES);
    let starts = bins.div_ceil(gpu::WORKGROUP) * (shares + 1) + bins;
    for trips in [bins + gpu::TABLE_BLOCK / shares, starts, gpu::LONGEST_WALK] {
        assert!(trips < 50_000, "{trips} trips in the pass for tables");
    }
    for term in whole_terms() {
        let (d, k, c) = (term.dimension(), term.power, term.term.symbols.len());
        let per_lane = BLOCK / gpu::WORKGROUP;
        // Each of up to eight points of an invocation looks for its piece; nothing else loops: it is written out.
        let (points, pieces) = (8, 16);
        let field = gpu::FIELD_BATCH * (2 + points * pieces);
        let chunks = (c * (2 + d)).div_ceil(31);
        let neurons = per_lane + chunks * (gpu::WORKGROUP + 2);
        // Where tasks are not shared by 16 invocations they have at most 256 points.
        let runs = (TASK / 16).max(8 * 256) + 16 * (k + 1);
        for trips in [field, neurons, runs] {
            assert!(trips < 50_000, "{trips} trips, d = {d}, k = {k}");
        }
    }
}
