// Σ w φ(x, jet), one sum per workgroup.

struct RiskParams {
    stride: u32,
}

@group(0) @binding(0) var<uniform> params: RiskParams;
@group(0) @binding(1) var<storage, read> columns: array<real>;
@group(0) @binding(2) var<storage, read> jets: array<real>;
@group(0) @binding(3) var<storage, read_write> sums: array<real>;

var<workgroup> lanes: array<real, WORKGROUP>;

fn column(index: u32, i: u32) -> real {
    return columns[index * params.stride + i];
}

fn density(i: u32) -> real {
    var value = real(0.0);
    if IS_RESIDUAL {
        var residual = -column(SOURCE, i);
        for (var c = 0u; c < SYMBOLS; c++) {
            residual += column(QUADRATIC[c], i) * jets[c * params.stride + i];
        }
        value = real(0.5) * column(COLUMNS - 1u, i) * residual * residual;
    } else {
        for (var c = 0u; c < SYMBOLS; c++) {
            let jet = jets[c * params.stride + i];
            value += real(0.5) * column(QUADRATIC[c], i) * jet * jet;
            if LOAD[c] < COLUMNS {
                value -= column(LOAD[c], i) * jet;
            }
        }
    }
    return value;
}

@compute @workgroup_size(WORKGROUP)
fn risk_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var sum = real(0.0);
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        let i = group.x * BLOCK + step * WORKGROUP + lane;
        if i < params.stride {
            sum += density(i);
        }
    }
    lanes[lane] = sum;
    workgroupBarrier();
    if lane == 0u {
        var total = real(0.0);
        for (var l = 0u; l < WORKGROUP; l++) {
            total += lanes[l];
        }
        sums[group.x] = total;
    }
}
