// Sums from which the host gets value and gradient of a score in (ω, b): for each symbol c
//   Σ ρ_c σ^(m),  Σ ρ_c (1, x) σ^(m+1)     at z = ω·x + b.
// One workgroup per block of points, neuron and symbol.

struct RefineParams {
    stride: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: RefineParams;
@group(0) @binding(1) var<storage, read> points: array<real>;          // DIMENSION columns
@group(0) @binding(2) var<storage, read> channels: array<real>;        // SYMBOLS columns
@group(0) @binding(3) var<storage, read> neurons: array<real>;         // per neuron: ω, b
@group(0) @binding(4) var<storage, read_write> sums: array<real>;      // per neuron, symbol and sum: one per block

var<workgroup> lanes: array<real, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn refine_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let neuron = group.y;
    let c = group.z;
    let start = neuron * (DIMENSION + 1u);
    let order = ORDERS[c];
    var total: array<real, REFINE_SUMS>;
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        let i = group.x * BLOCK + step * WORKGROUP + lane;
        var z = neurons[start + DIMENSION];
        for (var d = 0u; d < DIMENSION; d++) {
            z += neurons[start + d] * points[d * params.stride + i];
        }
        let rho = channels[c * params.stride + i];
        total[0] += rho * derivative(order, z);
        let slope = rho * derivative(order + 1u, z);
        total[1] += slope;
        for (var d = 0u; d < DIMENSION; d++) {
            total[2u + d] += slope * points[d * params.stride + i];
        }
    }
    for (var k = 0u; k < REFINE_SUMS; k++) {
        lanes[lane] = total[k];
        workgroupBarrier();
        if lane == 0u {
            var sum = real(0.0);
            for (var l = 0u; l < WORKGROUP; l++) {
                sum += lanes[l];
            }
            sums[((neuron * SYMBOLS + c) * REFINE_SUMS + k) * params.blocks + group.x] = sum;
        }
        workgroupBarrier();
    }
}
