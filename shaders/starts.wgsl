// The second part of sorting: where each bin begins, and in it each share. One workgroup an axis.

struct StartsParams {
    bins: u32,     // of the axis that has most
}

@group(0) @binding(0) var<uniform> params: StartsParams;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;   // becomes: of the bin, how many are in earlier shares
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;   // per axis: bins + 1
@group(0) @binding(3) var<storage, read_write> longest: array<u32>;  // per axis: points of the fullest bin

@compute @workgroup_size(WORKGROUP)
fn starts_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let axis = group.x;
    let first = axis * (params.bins + 1u);
    for (var bin = lane; bin < params.bins; bin += WORKGROUP) {
        var sum = 0u;
        for (var share = 0u; share < SHARES; share++) {
            let place = (axis * SHARES + share) * params.bins + bin;
            let count = counts[place];
            counts[place] = sum;
            sum += count;
        }
        starts[first + bin + 1u] = sum;
    }
    storageBarrier();
    if lane > 0u {
        return;
    }
    var sum = 0u;
    var most = 0u;
    starts[first] = 0u;
    for (var bin = 1u; bin <= params.bins; bin++) {
        let count = starts[first + bin];
        most = max(most, count);
        sum += count;
        starts[first + bin] = sum;
    }
    longest[axis] = most;
}
