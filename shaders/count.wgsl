// The first part of sorting a block's points by their bins along the axes: how many of each share lie in each bin. One
// invocation an axis and a share, which is every SHARES-th point; without atomic operations.

struct CountParams {
    count: u32,    // points
    stride: u32,   // from an axis to the next among the places
    bins: u32,     // of the axis that has most
}

@group(0) @binding(0) var<uniform> params: CountParams;
@group(0) @binding(1) var<storage, read> bins: array<u32>;           // per axis
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;   // per axis, share and bin

@compute @workgroup_size(WORKGROUP)
fn count_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let share = group.x * WORKGROUP + lane;
    let axis = group.y;
    let own = (axis * SHARES + share) * params.bins;
    for (var bin = 0u; bin < params.bins; bin++) {
        counts[own + bin] = 0u;
    }
    for (var point = share; point < params.count; point += SHARES) {
        counts[own + upper_product(places[axis * params.stride + point], bins[axis])] += 1u;
    }
}
