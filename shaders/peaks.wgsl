// The largest magnitude in each column: one workgroup per block of points and column.

struct PeaksParams {
    stride: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: PeaksParams;
@group(0) @binding(1) var<storage, read> columns: array<wide>;
@group(0) @binding(2) var<storage, read_write> peaks: array<u32>;     // per column: one per block

var<workgroup> largest: atomic<u32>;

@compute @workgroup_size(WORKGROUP)
fn peaks_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var own = 0u;
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        let i = group.x * BLOCK + step * WORKGROUP + lane;
        own = max(own, magnitude(columns[group.y * params.stride + i]));
    }
    atomicMax(&largest, own);
    workgroupBarrier();
    if lane == 0u {
        peaks[group.y * params.blocks + group.x] = atomicLoad(&largest);
    }
}
