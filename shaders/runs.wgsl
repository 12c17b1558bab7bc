// Sums over runs of points that are sorted by their bins along a direction: for ReLU^k the coefficients of a
// polynomial of degree k per bin, from which the scores of all offsets follow. LANES invocations share a task.

struct RunsParams {
    stride: u32,
    tasks: u32,    // places per line in the sums
}

@group(0) @binding(0) var<uniform> params: RunsParams;
@group(0) @binding(1) var<storage, read> entries: array<vec2<u32>>;   // point and place in the bin
@group(0) @binding(2) var<storage, read> tasks: array<vec2<u32>>;     // first entry, the one after the last
@group(0) @binding(3) var<storage, read> lines: array<vec4<u32>>;     // first task, their number, values, doublings
@group(0) @binding(4) var<storage, read> mantissas: array<wide>;      // of the values, per line and symbol
@group(0) @binding(5) var<storage, read> powers: array<i32>;          // of the values, per line and symbol
@group(0) @binding(6) var<storage, read> channels: array<pack>;       // point by point
@group(0) @binding(7) var<storage, read> scales: array<u32>;          // per channel: largest magnitude; exponent
@group(0) @binding(8) var<storage, read_write> sums: array<wide>;     // per line and task: SIZE

// Generated for the term: pack, some channels side by side; TermSums with its coefficients s0 … sk and SIZE of them, no_sums, write_sums, and hand_over, which
// puts them where the lanes of a task meet; LineNumbers with each symbol's factor and lead, and numbers_of a line;
// add_entry, which adds the coefficients of Σ_m q_m (δ + s)^(k−m) in s.

// An odd distance between lanes, and one more between tasks: those who add up use different banks.
const LANE: u32 = SIZE | 1u;
var<workgroup> lanes: array<wide, (WORKGROUP + WORKGROUP / LANES) * LANE>;

fn lane_at(lane: u32) -> u32 { return (lane + lane / LANES) * LANE; }

// The place in the bin as a part of one: its low bits stand beside the point's number.
fn place_of(entry: vec2<u32>) -> wide {
    return wide_of(((entry.x >> POINT_BITS) << PLACE_SHIFT) | (entry.y << 30u), entry.y >> 2u);
}

// The exponent of a value's product with its channel.
fn scale_of(value: u32, symbol: u32) -> i32 {
    let power = powers[value];
    let exponent = bitcast<i32>(scales[SYMBOLS + symbol]) - i32(lead_of(scales[symbol]));
    return select(power + exponent, NOTHING, power <= NOTHING || exponent <= NOTHING);
}

// A value as a part of the line's unit.
fn factor_of(value: u32, scale: i32, unit: i32) -> wide {
    if scale <= NOTHING {
        return wide_zero();
    }
    return moved_down(mantissas[value], u32(clamp(unit - scale, 0, 63)));
}

// What one lane adds up of a run.
fn sums_of(run: vec2<u32>, lane: u32, numbers: LineNumbers) -> TermSums {
    var total = no_sums();
    for (var k = run.x + lane; k < run.y; k += LANES) {
        total = add_entry(total, entries[k], numbers);
    }
    return total;
}

@compute @workgroup_size(WORKGROUP)
fn runs_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let line = lines[group.y];
    let numbers = numbers_of(line);
    if LANES == 1u {
        for (var t = 0u; t < TASKS; t++) {
            let task = (group.x * TASKS + t) * WORKGROUP + lane;
            if task < line.y {
                write_sums(sums_of(tasks[line.x + task], 0u, numbers), (group.y * params.tasks + task) * SIZE);
            }
        }
        return;
    }
    let task = group.x * (WORKGROUP / LANES) + lane / LANES;
    let place = (group.y * params.tasks + task) * SIZE;
    var total = no_sums();
    if task < line.y {
        total = sums_of(tasks[line.x + task], lane % LANES, numbers);
    }
    hand_over(total, lane_at(lane));
    workgroupBarrier();
    if task >= line.y {
        return;
    }
    // One lane for each coefficient of the task.
    let first = lane_at(lane - lane % LANES);
    for (var r = lane % LANES; r < SIZE; r += LANES) {
        var sum = lanes[first + r];
        for (var l = 1u; l < LANES; l++) {
            sum = plus(sum, lanes[first + l * LANE + r]);
        }
        sums[place + r] = sum;
    }
}
