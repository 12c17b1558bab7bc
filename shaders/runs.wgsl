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

// Generated for the term: TermSums with its coefficients s0 … sk and SIZE of them, no_sums, added, add_entry, which adds
// the coefficients of Σ_m q_m (δ + s)^(k−m) in s, and write_sums.

var<workgroup> lanes: array<TermSums, WORKGROUP>;

// The place in the bin as a part of one: its low bits stand beside the point's number.
fn place_of(entry: vec2<u32>) -> wide {
    return wide_of(((entry.x >> POINT_BITS) << PLACE_SHIFT) | (entry.y << 30u), entry.y >> 2u);
}

@compute @workgroup_size(WORKGROUP)
fn runs_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let line = lines[group.y];
    let task = group.x * (WORKGROUP / LANES) + lane / LANES;
    var total = no_sums();
    if task < line.y {
        let run = tasks[line.x + task];
        for (var k = run.x + lane % LANES; k < run.y; k += LANES) {
            total = add_entry(total, entries[k], line);
        }
    }
    if LANES > 1u {
        lanes[lane] = total;
        workgroupBarrier();
        if lane % LANES == 0u {
            for (var l = 1u; l < LANES; l++) {
                total = added(total, lanes[lane + l]);
            }
        }
    }
    if lane % LANES == 0u && task < line.y {
        write_sums(total, (group.y * params.tasks + task) * SIZE);
    }
}
