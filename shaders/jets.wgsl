// Adds a batch of neurons to the jets of the network: one invocation per point.

struct JetsParams {
    stride: u32,   // distance between two columns
    first: u32,    // the batch of neurons
    last: u32,
    clear: u32,    // whether the jets start from zero
}

@group(0) @binding(0) var<uniform> params: JetsParams;
@group(0) @binding(1) var<storage, read> points: array<real>;        // DIMENSION columns
@group(0) @binding(2) var<storage, read> network: array<real>;       // per neuron: ω, b, a p_c(ω)
@group(0) @binding(3) var<storage, read_write> jets: array<real>;    // SYMBOLS columns

@compute @workgroup_size(WORKGROUP)
fn jets_main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.stride {
        return;
    }
    var x: array<real, DIMENSION>;
    for (var d = 0u; d < DIMENSION; d++) {
        x[d] = points[d * params.stride + i];
    }
    var jet: array<real, SYMBOLS>;
    for (var c = 0u; c < SYMBOLS; c++) {
        jet[c] = select(jets[c * params.stride + i], real(0.0), params.clear == 1u);
    }
    for (var n = params.first; n < params.last; n++) {
        let row = n * (DIMENSION + 1u + SYMBOLS);
        var z = network[row + DIMENSION];
        for (var d = 0u; d < DIMENSION; d++) {
            z += network[row + d] * x[d];
        }
        for (var c = 0u; c < SYMBOLS; c++) {
            jet[c] += network[row + DIMENSION + 1u + c] * derivative(ORDERS[c], z);
        }
    }
    for (var c = 0u; c < SYMBOLS; c++) {
        jets[c * params.stride + i] = jet[c];
    }
}
