// The last part of sorting: every point to its place. The shares are those of count.wgsl.

struct SortParams {
    count: u32,    // points
    stride: u32,   // from an axis to the next among places and entries
    bins: u32,     // of the axis that has most
}

@group(0) @binding(0) var<uniform> params: SortParams;
@group(0) @binding(1) var<storage, read> bins: array<u32>;                 // per axis
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(3) var<storage, read> starts: array<u32>;               // per axis: bins + 1
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;         // of the bin, how many have their place
@group(0) @binding(5) var<storage, read_write> entries: array<entry>;      // per axis, sorted

@compute @workgroup_size(WORKGROUP)
fn sort_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let share = group.x * WORKGROUP + lane;
    let axis = group.y;
    let own = (axis * SHARES + share) * params.bins;
    let first = axis * (params.bins + 1u);
    for (var point = share; point < params.count; point += SHARES) {
        let place = places[axis * params.stride + point];
        let bin = upper_product(place, bins[axis]);
        let before = counts[own + bin];
        counts[own + bin] = before + 1u;
        entries[axis * params.stride + starts[first + bin] + before] = entry_of(point, place * bins[axis]);
    }
}
