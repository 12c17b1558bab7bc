// The scores of directions × offsets: one workgroup per block of points and row of OFFSETS offsets.
//
// t = ω·x and the channels along ω are computed once per point and shared by all offsets of the row.
// Offsets go four at a time. Sums stay inside a block of BLOCK points; the host adds the blocks in double precision.

struct ScoreParams {
    stride: u32,
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: ScoreParams;
@group(0) @binding(1) var<storage, read> points: array<real>;          // DIMENSION columns
@group(0) @binding(2) var<storage, read> channels: array<real>;        // SYMBOLS columns
@group(0) @binding(3) var<storage, read> rows: array<real>;            // per row: ω, factors p_c(ω), biases
@group(0) @binding(4) var<storage, read_write> sums: array<real>;      // per row and offset: one sum per block

var<workgroup> lanes: array<real, WORKGROUP * OFFSETS>;

@compute @workgroup_size(WORKGROUP)
fn score_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let start = row * (DIMENSION + SYMBOLS + OFFSETS);
    var total: array<real4, OFFSETS / 4u>;
    var bias: array<real4, OFFSETS / 4u>;
    for (var j = 0u; j < OFFSETS / 4u; j++) {
        let first = start + DIMENSION + SYMBOLS + 4u * j;
        bias[j] = real4(rows[first], rows[first + 1u], rows[first + 2u], rows[first + 3u]);
    }
    for (var step = 0u; step < BLOCK / WORKGROUP; step++) {
        let i = group.x * BLOCK + step * WORKGROUP + lane;
        var t = real(0.0);
        for (var d = 0u; d < DIMENSION; d++) {
            t += rows[start + d] * points[d * params.stride + i];
        }
        var q: array<real, TOP_ORDER + 1u>;
        for (var c = 0u; c < SYMBOLS; c++) {
            q[ORDERS[c]] += rows[start + DIMENSION + c] * channels[c * params.stride + i];
        }
        for (var j = 0u; j < OFFSETS / 4u; j++) {
            total[j] += response(&q, real4(t) + bias[j]);
        }
    }
    for (var j = 0u; j < OFFSETS / 4u; j++) {
        for (var k = 0u; k < 4u; k++) {
            lanes[(4u * j + k) * WORKGROUP + lane] = total[j][k];
        }
    }
    workgroupBarrier();
    for (var j = lane; j < OFFSETS; j += WORKGROUP) {
        var sum = real(0.0);
        for (var l = 0u; l < WORKGROUP; l++) {
            sum += lanes[j * WORKGROUP + l];
        }
        sums[(row * OFFSETS + j) * params.blocks + group.x] = sum;
    }
}
