//! `runs.wgsl`, `neurons.wgsl` and `whole_risk.wgsl`: sums over points.

use super::{Packs, SUMS_AT_ONCE, affine, lines, list};
use crate::gpu::WORKGROUP;
use crate::loss::DensityLayout;
use crate::sums::whole::{LineValues, WholeTerm};

/// What `runs.wgsl` does with a line and with an entry.
pub(in crate::gpu::whole) fn line_terms(term: &WholeTerm) -> String {
    let (power, orders) = (term.power, term.orders());
    let (size, symbols) = (power + 1, orders.len());
    let packs = Packs::new(symbols);
    let declared = (0..size).map(|r| format!("var t{r} = wide_zero();"));
    let used = (0..symbols).filter(|&c| orders[c] <= power);
    let products = used.map(|c| {
        let r = power - orders[c];
        format!(
            "t{r} = plus(t{r}, product(line.f{c}, moved_up({}, line.l{c})));",
            packs.channel(c)
        )
    });
    let shifts = (0..power).flat_map(|low| (low..power).rev());
    let shifts = shifts.map(|r| format!("t{r} = plus(t{r}, product(t{}, distance));", r + 1));
    let scales = (0..symbols).map(|c| format!("let e{c} = scale_of(row + {c}u, {c}u);"));
    let unit = (1..symbols).fold("e0".to_string(), |unit, c| format!("max({unit}, e{c})"));
    lines([
        packs.alias(),
        format!("const SIZE: u32 = {size}u;"),
        format!("struct TermSums {{ {} }}", list(size, |r| format!("s{r}: wide"))),
        format!(
            "fn no_sums() -> TermSums {{ return TermSums({}); }}",
            list(size, |_| "wide_zero()".to_string())
        ),
        format!(
            "fn hand_over(a: TermSums, place: u32) {{ {} }}",
            lines((0..size).map(|r| format!("lanes[place + {r}u] = a.s{r};")))
        ),
        format!(
            "fn write_sums(a: TermSums, place: u32) {{ {} }}",
            lines((0..size).map(|r| format!("sums[place + {r}u] = a.s{r};")))
        ),
        format!(
            "struct LineNumbers {{ doublings: u32, {} }}",
            list(symbols, |c| format!("f{c}: wide, l{c}: u32"))
        ),
        format!(
            "fn numbers_of(line: vec4<u32>) -> LineNumbers {{\nlet row = line.z * SYMBOLS;\n{}\n\
             let unit = {unit} + {};\nreturn LineNumbers(line.w, {});\n}}",
            lines(scales),
            LineValues::room(term),
            list(symbols, |c| format!(
                "factor_of(row + {c}u, e{c}, unit), lead_of(scales[{c}u])"
            ))
        ),
        format!(
            "fn add_entry(a: TermSums, entry: vec2<u32>, line: LineNumbers) -> TermSums {{\n\
             let i = entry.x & (LARGEST_COUNT - 1u);\nlet distance = moved_down(place_of(entry), line.doublings);\n\
             {}\n{}\n{}\nreturn TermSums({});\n}}",
            lines([packs.read(0..symbols)].into_iter().chain(declared)),
            lines(products),
            lines(shifts),
            list(size, |r| format!("plus(a.s{r}, rounded(t{r}))"))
        ),
    ])
}

/// How many symbols one workgroup of `neurons.wgsl` serves.
pub(in crate::gpu::whole) fn symbols_at_once(symbols: usize, sums: usize) -> usize {
    (SUMS_AT_ONCE / sums).clamp(1, symbols.max(1))
}

/// How many neurons: those who share points and channels read them once.
pub(in crate::gpu::whole) fn neurons_at_once(symbols: usize, slopes: bool) -> usize {
    match slopes {
        false if 4 * symbols <= SUMS_AT_ONCE => 4,
        false if 2 * symbols <= SUMS_AT_ONCE => 2,
        _ => 1,
    }
}

/// The sums of `neurons.wgsl` for some symbols, those of one neuron after those of another.
pub(in crate::gpu::whole) fn neurons(term: &WholeTerm, slopes: bool, first: usize) -> String {
    let (dimension, orders) = (term.dimension(), term.orders());
    let sums = if slopes { dimension + 2 } else { 1 };
    let symbols = first..(first + symbols_at_once(orders.len(), sums)).min(orders.len());
    let at_once = neurons_at_once(orders.len(), slopes);
    let mut numbers = Vec::new();
    for n in 0..at_once {
        numbers.push(format!(
            "let row{n} = (group.y * {at_once}u + {n}u) * {}u;\nlet c{n} = neurons[row{n}];\n\
             let lift{n} = wide_low(neurons[row{n} + {}u]);",
            dimension + 2,
            dimension + 1
        ));
        numbers.extend((0..dimension).map(|d| format!("let omega{n}_{d} = neurons[row{n} + {}u];", d + 1)));
    }
    numbers.extend(
        symbols
            .clone()
            .map(|c| format!("let lead{c} = lead_of(scales[{c}u]);")),
    );
    let xs = (0..dimension).map(|d| format!("let x{d} = coordinates[{d}u * params.stride + i];"));
    let mut terms: Vec<String> = xs.collect();
    let packs = Packs::new(orders.len());
    terms.push(packs.read(symbols.clone()));
    let moved = |c: usize| format!("let rho{c} = moved_up({}, lead{c});", packs.channel(c));
    terms.extend(symbols.clone().map(moved));
    for n in 0..at_once {
        let below = affine(
            dimension,
            &format!("c{n}"),
            |d| format!("omega{n}_{d}"),
            |d| format!("x{d}"),
        );
        terms.push(format!(
            "let below{n} = {below};\nlet active{n} = is_positive(below{n});\nlet z{n}_1 = moved_up(below{n}, lift{n});"
        ));
        // z², z³, …: symbols share them.
        let least = orders[symbols.clone()].iter().min().copied().unwrap_or(0);
        let highest = term.power.saturating_sub(least);
        terms.extend((2..=highest).map(|r| format!("let z{n}_{r} = product(z{n}_{}, z{n}_1);", r - 1)));
        for (place, c) in symbols.clone().enumerate() {
            let total = (n * symbols.len() + place) * sums;
            terms.extend(neuron_terms(term, (n, c), slopes, total));
        }
    }
    // A workgroup that has several neurons has all their symbols.
    let place = format!("(group.y * {at_once}u * SYMBOLS + {first}u) * {sums}u");
    let totals = at_once * symbols.len() * sums;
    let main = block_totals("neurons_main", totals, &lines(numbers), &lines(terms), &place);
    lines([packs.alias(), main])
}

/// What a point adds to the sums of a neuron and a symbol, the first of which is `total`.
fn neuron_terms(term: &WholeTerm, (n, c): (usize, usize), slopes: bool, total: usize) -> Vec<String> {
    let (dimension, power, order) = (term.dimension(), term.power, term.orders()[c]);
    let add = |k: usize, value: String| {
        let k = total + k;
        format!("t{k} = plus(t{k}, rounded({value}));")
    };
    let channel = format!("chosen(rho{c}, active{n})");
    let Some(r) = power.checked_sub(order) else {
        return Vec::new();
    };
    let times_power = |r: usize| match r {
        0 => channel.clone(),
        r => format!("product({channel}, z{n}_{r})"),
    };
    if r == 0 || !slopes {
        return vec![add(0, times_power(r))];
    }
    let mut terms = vec![
        format!("let slope{n}_{c} = {};", times_power(r - 1)),
        add(0, format!("product(slope{n}_{c}, z{n}_1)")),
        add(dimension + 1, format!("slope{n}_{c}")),
    ];
    terms.extend((0..dimension).map(|d| add(1 + d, format!("product(slope{n}_{c}, x{d})"))));
    terms
}

/// The parts of `whole_risk.wgsl`.
pub(in crate::gpu::whole) fn risk(term: &WholeTerm) -> String {
    let layout = term.term.layout();
    let column = |index: usize| format!("columns[{index}u * params.stride + i]");
    let value = |c: usize| format!("let v{c} = moved_up(values[{c}u * params.stride + i], lead{c});");
    let add = |k: usize, value: String| format!("t{k} = plus(t{k}, rounded({value}));");
    let (values, parts, terms): (usize, usize, Vec<String>) = match layout {
        DensityLayout::Residual { columns, .. } => {
            let square = format!("product({}, product(v0, v0))", column(columns - 1));
            (1, 1, vec![value(0), add(0, square)])
        }
        DensityLayout::Energy { quadratic, load, .. } => {
            let of_symbol = |c: usize| {
                let square = format!("product(product({}, v{c}), v{c})", column(quadratic[c]));
                let load = load[c].map(|index| add(2 * c + 1, format!("product({}, v{c})", column(index))));
                [Some(value(c)), Some(add(2 * c, square)), load]
                    .into_iter()
                    .flatten()
            };
            let symbols = quadratic.len();
            (symbols, 2 * symbols, (0..symbols).flat_map(of_symbol).collect())
        }
    };
    let leads = (0..values).map(|c| format!("let lead{c} = lead_of(scales[{c}u]);"));
    block_totals("whole_risk_main", parts, &lines(leads), &lines(terms), "0u")
}

/// A stage in which a workgroup adds up t₀, t₁, … over a block of points: `terms` adds those of point `i`. Total k goes
/// to `sums[(place + k) · blocks + block]`.
fn block_totals(entry: &str, totals: usize, before: &str, terms: &str, place: &str) -> String {
    // Lanes side by side, at an odd distance.
    let distance = totals.min(SUMS_AT_ONCE) | 1;
    let chunk = |first: usize| {
        let count = SUMS_AT_ONCE.min(totals - first);
        let writes = (0..count).map(|k| format!("lanes[lane * {distance}u + {k}u] = t{};", first + k));
        format!(
            "{}\nworkgroupBarrier();\nfor (var k = lane; k < {count}u; k += WORKGROUP) {{\nvar sum = lanes[k];\n\
             for (var l = 1u; l < WORKGROUP; l++) {{ sum = plus(sum, lanes[l * {distance}u + k]); }}\n\
             sums[({place} + {first}u + k) * params.blocks + group.x] = sum;\n}}\nworkgroupBarrier();",
            lines(writes)
        )
    };
    format!(
        "var<workgroup> lanes: array<wide, {}>;\n@compute @workgroup_size(WORKGROUP)\n\
         fn {entry}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{\n\
         {before}\n{}\nlet points = min(BLOCK, params.count - group.x * BLOCK);\n\
         for (var step = 0u; step * WORKGROUP < points; step++) {{\n\
         let i = group.x * BLOCK + step * WORKGROUP + lane;\n{terms}\n}}\n{}\n}}",
        distance * WORKGROUP,
        lines((0..totals).map(|k| format!("var t{k} = wide_zero();"))),
        lines((0..totals).step_by(SUMS_AT_ONCE).map(chunk))
    )
}
