// Sums over runs of points that are sorted by their bins along a direction: for ReLU^k the coefficients of a
// polynomial of degree k per bin, from which the scores of all offsets follow. LANES invocations share a task.

struct RunsParams {
    stride: u32,
    tasks: u32,    // places per line in the sums
}

@group(0) @binding(0) var<uniform> params: RunsParams;
@group(0) @binding(1) var<storage, read> entries: array<vec2<u32>>;   // point and place in the bin
@group(0) @binding(2) var<storage, read> tasks: array<vec2<u32>>;     // first entry, the one after the last
@group(0) @binding(3) var<storage, read> lines: array<vec4<u32>>;     // first task, their number, factors, doublings
@group(0) @binding(4) var<storage, read> factors: array<wide>;        // per line and symbol
@group(0) @binding(5) var<storage, read> channels: array<wide>;       // SYMBOLS columns
@group(0) @binding(6) var<storage, read> leads: array<u32>;           // by which channels are moved up
@group(0) @binding(7) var<storage, read_write> sums: array<wide>;     // per line and task: SIZE

const SIZE: u32 = POWER + 1u;

var<workgroup> lanes: array<wide, WORKGROUP * SIZE>;

// The coefficients of Σ_m q_m (δ + s)^(k−m) in s.
fn polynomial(entry: vec2<u32>, line: vec4<u32>, doublings: u32) -> array<wide, SIZE> {
    let i = entry.x & (LARGEST_COUNT - 1u);
    var terms: array<wide, SIZE>;
    for (var r = 0u; r < SIZE; r++) {
        terms[r] = wide_zero();
    }
    for (var c = 0u; c < SYMBOLS; c++) {
        if ORDERS[c] <= POWER {
            let rho = moved_up(channels[c * params.stride + i], leads[c]);
            let r = POWER - ORDERS[c];
            terms[r] = plus(terms[r], product(factors[line.z * SYMBOLS + c], rho));
        }
    }
    // The place as a part of one: its low bits stand beside the point's number.
    let low = ((entry.x >> POINT_BITS) << PLACE_SHIFT) | (entry.y << 30u);
    let distance = moved_down(wide_of(low, entry.y >> 2u), doublings);
    for (var step = 0u; step < POWER; step++) {
        for (var r = POWER; r > step; r--) {
            terms[r - 1u] = plus(terms[r - 1u], product(terms[r], distance));
        }
    }
    return terms;
}

@compute @workgroup_size(WORKGROUP)
fn runs_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let line = lines[group.y];
    let task = group.x * (WORKGROUP / LANES) + lane / LANES;
    var total: array<wide, SIZE>;
    for (var r = 0u; r < SIZE; r++) {
        total[r] = wide_zero();
    }
    if task < line.y {
        let run = tasks[line.x + task];
        for (var k = run.x + lane % LANES; k < run.y; k += LANES) {
            var terms = polynomial(entries[k], line, line.w);
            for (var r = 0u; r < SIZE; r++) {
                total[r] = plus(total[r], rounded(terms[r]));
            }
        }
    }
    if LANES > 1u {
        for (var r = 0u; r < SIZE; r++) {
            lanes[r * WORKGROUP + lane] = total[r];
        }
        workgroupBarrier();
        if lane % LANES == 0u {
            for (var r = 0u; r < SIZE; r++) {
                for (var l = 1u; l < LANES; l++) {
                    total[r] = plus(total[r], lanes[r * WORKGROUP + lane + l]);
                }
            }
        }
    }
    if lane % LANES == 0u && task < line.y {
        for (var r = 0u; r < SIZE; r++) {
            sums[(group.y * params.tasks + task) * SIZE + r] = total[r];
        }
    }
}
