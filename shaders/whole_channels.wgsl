// Jets to channels ρ_c = w ∂φ/∂j_c, or to the residual alone: one invocation per point.

struct WholeChannelsParams {
    stride: u32,
    with_load: u32,
    only_residual: u32,
}

@group(0) @binding(0) var<uniform> params: WholeChannelsParams;
@group(0) @binding(1) var<storage, read> columns: array<wide>;
@group(0) @binding(2) var<storage, read> jets: array<wide>;           // SYMBOLS columns
@group(0) @binding(3) var<storage, read> shifts: array<u32>;          // of the products, then of the loads
@group(0) @binding(4) var<storage, read_write> channels: array<wide>; // SYMBOLS columns

fn column(index: u32, i: u32) -> wide {
    return columns[index * params.stride + i];
}

@compute @workgroup_size(WORKGROUP)
fn whole_channels_main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.stride {
        return;
    }
    var residual = wide_zero();
    if IS_RESIDUAL && params.with_load == 1u {
        residual = minus(residual, moved_down(column(SOURCE, i), shifts[SYMBOLS]));
    }
    for (var c = 0u; c < SYMBOLS; c++) {
        let part = moved_down(product(column(QUADRATIC[c], i), jets[c * params.stride + i]), shifts[c]);
        if IS_RESIDUAL {
            residual = plus(residual, part);
            continue;
        }
        var channel = part;
        if LOAD[c] < COLUMNS && params.with_load == 1u {
            channel = minus(channel, moved_down(column(LOAD[c], i), shifts[SYMBOLS + c]));
        }
        channels[c * params.stride + i] = channel;
    }
    if !IS_RESIDUAL {
        return;
    }
    if params.only_residual == 1u {
        channels[i] = residual;
        return;
    }
    let weighted = product(column(COLUMNS - 1u, i), residual);
    for (var c = 0u; c < SYMBOLS; c++) {
        channels[c * params.stride + i] = product(column(QUADRATIC[c], i), weighted);
    }
}
