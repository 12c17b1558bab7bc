//! `whole_field.wgsl`: jets, and what becomes of them.

use super::{Packs, affine, lines, list};
use crate::gpu::whole::shader::{Adapter, Outcome};
use crate::loss::DensityLayout;
use crate::sums::whole::WholeTerm;

/// How many points an invocation of `whole_field.wgsl` has: where what is the same for all is read by each, many, as
/// long as their coordinates fit into registers; elsewhere few, so that there are many invocations.
pub(in crate::gpu::whole) fn points_at_once(term: &WholeTerm, adapter: Adapter) -> usize {
    match (adapter.software, term.dimension() <= 3) {
        (true, _) => 4,
        (false, true) => 2,
        (false, false) => 1,
    }
}

/// Rows of four numbers that hold the shifts, at the beginning of a network's numbers.
pub(in crate::gpu::whole) fn shift_quads(term: &WholeTerm) -> usize {
    (2 * term.term.symbols.len()).div_ceil(4)
}

/// Rows of four numbers that hold a single neuron.
pub(in crate::gpu::whole) fn single_quads(term: &WholeTerm) -> usize {
    (term.dimension() + 2 + term.term.symbols.len()).div_ceil(4)
}

/// `whole_field.wgsl`: everything but the search for a piece.
pub(in crate::gpu::whole) fn field(
    term: &WholeTerm,
    continued: bool,
    outcome: Outcome,
    points: usize,
) -> String {
    let text = [
        field_bindings(term, continued, outcome),
        field_structs(term),
        add_single(term),
        add_piece(term),
        ends_with(term, outcome),
        field_main(term, continued, outcome, points),
    ];
    lines(text)
}

fn field_bindings(term: &WholeTerm, continued: bool, outcome: Outcome) -> String {
    let mut declared = Vec::new();
    if continued || outcome == Outcome::Jets {
        declared.push("read_write> jets: array<wide>");
    }
    if outcome.has_columns() {
        declared.push("read> columns: array<wide>");
    }
    if outcome != Outcome::Jets {
        declared.push(match outcome {
            Outcome::Channels { .. } => "read_write> values: array<pack>",
            _ => "read_write> values: array<wide>",
        });
        declared.push("read_write> scales: array<atomic<u32>>");
    }
    let numbered = declared.iter().enumerate();
    let numbered =
        numbered.map(|(place, text)| format!("@group(0) @binding({}) var<storage, {text};", place + 4));
    let alias = Packs::new(term.term.symbols.len()).alias();
    lines([alias].into_iter().chain(numbered))
}

fn field_structs(term: &WholeTerm) -> String {
    let (d, s) = (term.dimension(), term.term.symbols.len());
    // The numbers of a single neuron, four at a time.
    let number = |k: usize| format!("q{}.{}", k / 4, ["x", "y", "z", "w"][k % 4]);
    let quads = (0..single_quads(term)).map(|q| format!("let q{q} = quads[row + {q}u];"));
    lines([
        format!("const SINGLES: u32 = {}u;", shift_quads(term)),
        format!("const SINGLE: u32 = {}u;", single_quads(term)),
        format!("const LINE: u32 = {}u;", d + 3),
        format!("const PIECE: u32 = {}u;", 2 + term.sizes().iter().sum::<usize>()),
        format!("struct Point {{ {} }}", list(d, |d| format!("x{d}: wide"))),
        format!("struct Jet {{ {} }}", list(s, |c| format!("j{c}: wide"))),
        format!(
            "struct Single {{ c: wide, {}, lift: u32, {} }}",
            list(d, |d| format!("o{d}: wide")),
            list(s, |c| format!("a{c}: wide"))
        ),
        format!(
            "struct Line {{ c: wide, {}, first: u32, last: u32 }}",
            list(d, |d| format!("o{d}: wide"))
        ),
        format!(
            "fn point_at(i: u32) -> Point {{ return Point({}); }}",
            list(d, |d| format!("coordinates[{d}u * params.stride + i]"))
        ),
        format!(
            "fn single_at(row: u32) -> Single {{\n{}\nreturn Single({}, {}, wide_low({}), {});\n}}",
            lines(quads),
            number(0),
            list(d, |d| number(d + 1)),
            number(d + 1),
            list(s, |c| number(d + 2 + c))
        ),
        format!(
            "fn line_at(row: u32) -> Line {{ return Line(network[row], {}, wide_low(network[row + {}u]), \
             wide_low(network[row + {}u])); }}",
            list(d, |d| format!("network[row + {}u]", d + 1)),
            d + 1,
            d + 2
        ),
    ])
}

/// A_c z^(k−m), where z > 0.
fn add_single(term: &WholeTerm) -> String {
    let below = affine(
        term.dimension(),
        "s.c",
        |d| format!("s.o{d}"),
        |d| format!("p.x{d}"),
    );
    let orders = term.orders();
    let highest = orders
        .iter()
        .map(|&m| term.power.saturating_sub(m))
        .max()
        .unwrap_or(0);
    let powers = (2..=highest).map(|r| format!("let z{r} = product(z{}, z1);", r - 1));
    let sums = list(orders.len(), |c| match term.power.checked_sub(orders[c]) {
        None => format!("jet.j{c}"),
        Some(0) => format!("plus(jet.j{c}, chosen(s.a{c}, active_here))"),
        Some(r) => format!("plus(jet.j{c}, product(s.a{c}, z{r}))"),
    });
    format!(
        "fn add_single(jet: Jet, s: Single, p: Point) -> Jet {{\nlet below = {below};\n\
         let active_here = is_positive(below);\nlet z1 = chosen(moved_up(below, s.lift), active_here);\n{}\n\
         return Jet({sums});\n}}",
        lines(powers)
    )
}

/// The polynomial of a line's piece.
fn add_piece(term: &WholeTerm) -> String {
    let t = affine(
        term.dimension(),
        "l.c",
        |d| format!("l.o{d}"),
        |d| format!("p.x{d}"),
    );
    let sizes = term.sizes();
    // The coefficients come after where the piece begins, and its lift.
    let start_of = |c: usize| 2 + sizes[..c].iter().sum::<usize>();
    let sums = list(sizes.len(), |c| {
        let coefficient = |r: usize| format!("network[row + {}u]", start_of(c) + r);
        let Some(last) = sizes[c].checked_sub(1) else {
            return format!("jet.j{c}");
        };
        let value = (0..last).rev().fold(coefficient(last), |value, r| {
            format!("plus(product({value}, distance), {})", coefficient(r))
        });
        format!("plus(jet.j{c}, {value})")
    });
    format!(
        "fn add_piece(jet: Jet, l: Line, p: Point) -> Jet {{\nlet t = {t};\nlet row = piece_of(l.first, l.last, t);\n\
         let distance = moved_up(minus(t, network[row]), wide_low(network[row + 1u]));\nreturn Jet({sums});\n}}"
    )
}

/// What becomes of a point's jet: numbers that are written, and how large they are.
fn ends_with(term: &WholeTerm, outcome: Outcome) -> String {
    let layout = term.term.layout();
    let symbols = term.term.symbols.len();
    let column = |index: usize| format!("columns[{index}u * params.stride + i]");
    let shift = |place: usize| format!("wide_low(network[{place}u])");
    let part = |c: usize| {
        let product = format!("product({}, jet.j{c})", column(layout.quadratic()[c]));
        format!("moved_down({product}, {})", shift(c))
    };
    let with_load = outcome.has_load();
    let residual = || {
        let source = match with_load {
            true => format!("moved_down({}, {})", column(layout.source()), shift(symbols)),
            false => "wide_zero()".to_string(),
        };
        (0..symbols).fold(format!("minus(wide_zero(), {source})"), |sum, c| {
            format!("plus({sum}, {})", part(c))
        })
    };
    let mut text = String::new();
    let values: Vec<String> = match (outcome, layout) {
        (Outcome::Jets, _) => {
            let writes = (0..symbols).map(|c| format!("jets[{c}u * params.stride + i] = jet.j{c};"));
            return format!("fn ends_with(i: u32, jet: Jet) {{ {} }}", lines(writes));
        }
        (Outcome::Values, _) => (0..symbols).map(|c| format!("jet.j{c}")).collect(),
        (Outcome::Residual, _) => vec![residual()],
        (Outcome::Channels { .. }, DensityLayout::Residual { .. }) => {
            let weight = column(layout.columns() - 1);
            text = format!("let weighted = product({weight}, {});\n", residual());
            let columns = layout.quadratic().iter();
            columns
                .map(|&index| format!("product({}, weighted)", column(index)))
                .collect()
        }
        (Outcome::Channels { .. }, DensityLayout::Energy { load, .. }) => {
            let channel = |c: usize| match load[c].filter(|_| with_load) {
                Some(index) => {
                    let load = format!("moved_down({}, {})", column(index), shift(symbols + c));
                    format!("minus({}, {load})", part(c))
                }
                None => part(c),
            };
            (0..symbols).map(channel).collect()
        }
    };
    let count = values.len();
    let made = values
        .iter()
        .enumerate()
        .map(|(c, value)| format!("let v{c} = {value};"));
    let writes = match outcome {
        Outcome::Channels { .. } => Packs::new(symbols).write(symbols),
        _ => lines((0..count).map(|c| format!("values[{c}u * params.stride + i] = v{c};"))),
    };
    let made = made.chain([writes]);
    format!(
        "struct Peaks {{ {} }}\nfn ends_with(i: u32, jet: Jet, before: Peaks) -> Peaks {{\n{text}{}\nreturn Peaks({});\n}}",
        list(count, |c| format!("m{c}: u32")),
        lines(made),
        list(count, |c| format!(
            "max(before.m{c}, select(0u, magnitude(v{c}), i < params.count))"
        ))
    )
}

fn field_main(term: &WholeTerm, continued: bool, outcome: Outcome, points: usize) -> String {
    let symbols = term.term.symbols.len();
    let each = |of: &dyn Fn(usize) -> String| lines((0..points).map(of));
    let start = |k: usize| match continued {
        true => format!(
            "var j{k} = Jet({});",
            list(symbols, |c| format!("jets[{c}u * params.stride + i{k}]"))
        ),
        false => format!(
            "var j{k} = Jet({});",
            list(symbols, |_| "wide_zero()".to_string())
        ),
    };
    let peaks = outcome.values(symbols);
    let (shared, ending) = match outcome {
        Outcome::Jets => (String::new(), each(&|k| format!("ends_with(i{k}, j{k});"))),
        _ => (
            lines((0..peaks).map(|c| format!("var<workgroup> largest{c}: atomic<u32>;"))),
            format!(
                "var peaks = Peaks({});\n{}\n{}\nworkgroupBarrier();\nif lane == 0u {{\n{}\n}}",
                list(peaks, |_| "0u".to_string()),
                each(&|k| format!("peaks = ends_with(i{k}, j{k}, peaks);")),
                lines((0..peaks).map(|c| format!("atomicMax(&largest{c}, peaks.m{c});"))),
                lines((0..peaks).map(|c| format!("atomicMax(&scales[{c}u], atomicLoad(&largest{c}));")))
            ),
        ),
    };
    format!(
        "{shared}\n@compute @workgroup_size(WORKGROUP)\n\
         fn whole_field_main(@builtin(workgroup_id) at: vec3<u32>, @builtin(num_workgroups) row: vec3<u32>, \
         @builtin(local_invocation_index) lane: u32) {{\n\
         let group = at.y * row.x + at.x;\nif group * {points}u * WORKGROUP >= params.stride {{ return; }}\n\
         {}\n{}\n\
         for (var n = params.first_single; n < params.last_single; n++) {{\n\
         let single = single_at(SINGLES + n * SINGLE);\n{}\n}}\n\
         for (var n = params.first_line; n < params.last_line; n++) {{\n\
         let line = line_at(params.lines_at + n * LINE);\n{}\n}}\n{ending}\n}}",
        each(&|k| format!(
            "let i{k} = (group * {points}u + {k}u) * WORKGROUP + lane;\nlet p{k} = point_at(i{k});"
        )),
        each(&start),
        each(&|k| format!("j{k} = add_single(j{k}, single, p{k});")),
        each(&|k| format!("j{k} = add_piece(j{k}, line, p{k});")),
    )
}
