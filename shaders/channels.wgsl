// Turns jets into channels, in place: ρ_c = w ∂φ/∂j_c. One invocation per point.
//
// Columns of an energy hold w a_c and w l_c; those of a residual c_c and f, with 2w in the last.
// Points beyond the end have zero columns, so their channels are zero, too.

struct ChannelsParams {
    stride: u32,
    with_load: u32,    // 1: gradient, 0: curvature
}

@group(0) @binding(0) var<uniform> params: ChannelsParams;
@group(0) @binding(1) var<storage, read> columns: array<real>;
@group(0) @binding(2) var<storage, read_write> jets: array<real>;

fn column(index: u32, i: u32) -> real {
    return columns[index * params.stride + i];
}

@compute @workgroup_size(WORKGROUP)
fn channels_main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.stride {
        return;
    }
    let load = real(params.with_load);
    if IS_RESIDUAL {
        var residual = -load * column(SOURCE, i);
        for (var c = 0u; c < SYMBOLS; c++) {
            residual += column(QUADRATIC[c], i) * jets[c * params.stride + i];
        }
        residual *= column(COLUMNS - 1u, i);
        for (var c = 0u; c < SYMBOLS; c++) {
            jets[c * params.stride + i] = residual * column(QUADRATIC[c], i);
        }
    } else {
        for (var c = 0u; c < SYMBOLS; c++) {
            var value = column(QUADRATIC[c], i) * jets[c * params.stride + i];
            if LOAD[c] < COLUMNS {
                value -= load * column(LOAD[c], i);
            }
            jets[c * params.stride + i] = value;
        }
    }
}
