// The values of a network under every symbol: one invocation per point. Along each of its directions the network is
// a polynomial between two origins.

struct WholeJetsParams {
    stride: u32,   // distance between two columns
    first: u32,    // the batch of directions
    last: u32,
    clear: u32,    // whether the jets start from zero
}

@group(0) @binding(0) var<uniform> params: WholeJetsParams;
@group(0) @binding(1) var<storage, read> coordinates: array<wide>;    // DIMENSION columns
@group(0) @binding(2) var<storage, read> lines: array<wide>;          // per direction: C, Ω
@group(0) @binding(3) var<storage, read> starts: array<u32>;          // where the pieces of a direction begin
@group(0) @binding(4) var<storage, read> origins: array<wide>;        // per piece: where it begins, and the lift
@group(0) @binding(5) var<storage, read> coefficients: array<wide>;   // per piece and symbol, the constant first
@group(0) @binding(6) var<storage, read_write> jets: array<wide>;     // SYMBOLS columns

@compute @workgroup_size(WORKGROUP)
fn whole_jets_main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.stride {
        return;
    }
    var x: array<wide, DIMENSION>;
    for (var d = 0u; d < DIMENSION; d++) {
        x[d] = coordinates[d * params.stride + i];
    }
    var jet: array<wide, SYMBOLS>;
    for (var c = 0u; c < SYMBOLS; c++) {
        jet[c] = wide_zero();
        if params.clear == 0u {
            jet[c] = jets[c * params.stride + i];
        }
    }
    for (var line = params.first; line < params.last; line++) {
        let row = line * (DIMENSION + 1u);
        var t = lines[row];
        for (var d = 0u; d < DIMENSION; d++) {
            t = plus(t, product(lines[row + 1u + d], x[d]));
        }
        // The last piece that begins at t or before.
        var piece = starts[line];
        var end = starts[line + 1u];
        while end - piece > 1u {
            let middle = (piece + end) / 2u;
            if is_at_most(origins[2u * middle], t) {
                piece = middle;
            } else {
                end = middle;
            }
        }
        let distance = moved_up(minus(t, origins[2u * piece]), wide_low(origins[2u * piece + 1u]));
        var place = piece * COEFFICIENTS;
        for (var c = 0u; c < SYMBOLS; c++) {
            var value = wide_zero();
            for (var r = SIZES[c]; r > 0u; r--) {
                value = plus(product(value, distance), coefficients[place + r - 1u]);
            }
            place += SIZES[c];
            jet[c] = plus(jet[c], value);
        }
    }
    for (var c = 0u; c < SYMBOLS; c++) {
        jets[c * params.stride + i] = jet[c];
    }
}
