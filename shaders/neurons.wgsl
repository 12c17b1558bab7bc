// Sums over the points for neurons one by one: per symbol Σ ρ z^(k−m), and with slopes Σ ρ z^(k−m−1) (X, 1), where
// z > 0. One workgroup per block of points, neuron and symbol.

struct NeuronsParams {
    stride: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: NeuronsParams;
@group(0) @binding(1) var<storage, read> coordinates: array<wide>;    // DIMENSION columns
@group(0) @binding(2) var<storage, read> channels: array<wide>;       // SYMBOLS columns
@group(0) @binding(3) var<storage, read> leads: array<u32>;           // by which channels are moved up
@group(0) @binding(4) var<storage, read> neurons: array<wide>;        // per neuron: C, Ω, lift
@group(0) @binding(5) var<storage, read_write> sums: array<wide>;     // per neuron, symbol and sum: one per block

var<workgroup> lanes: array<wide, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn neurons_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y * (DIMENSION + 2u);
    let lift = wide_low(neurons[row + DIMENSION + 1u]);
    let c = group.z;
    let order = ORDERS[c];
    var total: array<wide, NEURON_SUMS>;
    for (var k = 0u; k < NEURON_SUMS; k++) {
        total[k] = wide_zero();
    }
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        let i = group.x * BLOCK + step * WORKGROUP + lane;
        var below = neurons[row];
        for (var d = 0u; d < DIMENSION; d++) {
            below = plus(below, product(neurons[row + 1u + d], coordinates[d * params.stride + i]));
        }
        if is_positive(below) && order <= POWER {
            let z = moved_up(below, lift);
            var slope = moved_up(channels[c * params.stride + i], leads[c]);
            if order == POWER {
                total[0] = plus(total[0], rounded(slope));
            } else {
                for (var m = order + 1u; m < POWER; m++) {
                    slope = product(slope, z);
                }
                total[0] = plus(total[0], rounded(product(slope, z)));
                if NEURON_SUMS > 1u {
                    total[NEURON_SUMS - 1u] = plus(total[NEURON_SUMS - 1u], rounded(slope));
                    for (var d = 0u; d + 2u < NEURON_SUMS; d++) {
                        let x = coordinates[d * params.stride + i];
                        total[d + 1u] = plus(total[d + 1u], rounded(product(slope, x)));
                    }
                }
            }
        }
    }
    for (var k = 0u; k < NEURON_SUMS; k++) {
        lanes[lane] = total[k];
        workgroupBarrier();
        if lane == 0u {
            var sum = lanes[0];
            for (var l = 1u; l < WORKGROUP; l++) {
                sum = plus(sum, lanes[l]);
            }
            sums[((group.y * SYMBOLS + c) * NEURON_SUMS + k) * params.blocks + group.x] = sum;
        }
        workgroupBarrier();
    }
}
