// The parts of Σ w φ: per symbol Σ w a j² and Σ w l j, or Σ 2w r² of a residual. One workgroup per block of points.

struct WholeRiskParams {
    stride: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: WholeRiskParams;
@group(0) @binding(1) var<storage, read> columns: array<wide>;
@group(0) @binding(2) var<storage, read> values: array<wide>;         // jets, or the residual
@group(0) @binding(3) var<storage, read> leads: array<u32>;           // by which values are moved up
@group(0) @binding(4) var<storage, read_write> sums: array<wide>;     // per part: one per block

var<workgroup> lanes: array<wide, WORKGROUP>;

fn column(index: u32, i: u32) -> wide {
    return columns[index * params.stride + i];
}

fn part(index: u32, i: u32) -> wide {
    if IS_RESIDUAL {
        let residual = moved_up(values[i], leads[0]);
        return product(column(COLUMNS - 1u, i), product(residual, residual));
    }
    let c = index / 2u;
    let jet = moved_up(values[c * params.stride + i], leads[c]);
    if index % 2u == 0u {
        return product(product(column(QUADRATIC[c], i), jet), jet);
    }
    if LOAD[c] < COLUMNS {
        return product(column(LOAD[c], i), jet);
    }
    return wide_zero();
}

@compute @workgroup_size(WORKGROUP)
fn whole_risk_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var own = wide_zero();
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        own = plus(own, rounded(part(group.y, group.x * BLOCK + step * WORKGROUP + lane)));
    }
    lanes[lane] = own;
    workgroupBarrier();
    if lane == 0u {
        var sum = lanes[0];
        for (var l = 1u; l < WORKGROUP; l++) {
            sum = plus(sum, lanes[l]);
        }
        sums[group.y * params.blocks + group.x] = sum;
    }
}
