// The pass of the moment tables for one pair of axes: exact sums of 32-bit fractions.
// The points of a block come sorted by their bin along the first axis, the rows of the table. One
// workgroup per row and tile of columns: it adds up w δᵢᵖ δⱼ^q for its points in its own memory, in halves
// of 16 bits that cannot overflow, and then adds the row to the table in 64-bit arithmetic. Whole numbers
// do not care in which order they are added: the result is the same on every device.

struct MomentsParams {
    columns: u32,
}

@group(0) @binding(0) var<uniform> params: MomentsParams;
@group(0) @binding(1) var<storage, read> points: array<vec4<u32>>;      // sorted: distance, point, weight, -
@group(0) @binding(2) var<storage, read> starts: array<u32>;            // where each row begins
@group(0) @binding(3) var<storage, read> places: array<u32>;            // along the second axis
@group(0) @binding(4) var<storage, read_write> table: array<vec2<u32>>; // per cell and moment: low, high

const CELLS: u32 = COLUMN_TILE * SIZE * SIZE;
// Sums of so many 16-bit halves fit 32 bits.
const CHUNK: u32 = 65536u;

var<workgroup> low: array<atomic<u32>, CELLS>;
var<workgroup> high: array<atomic<u32>, CELLS>;

// The 64 bits of a product.
fn wide_product(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return vec2<u32>(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}

// The product of two fractions, rounded.
fn times(a: u32, b: u32) -> u32 {
    let wide = wide_product(a, b);
    return wide.y + (wide.x >> 31u);
}

@compute @workgroup_size(WORKGROUP)
fn moments_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let first_column = group.y * COLUMN_TILE;
    let end = starts[row + 1u];
    for (var start = starts[row]; start < end; start += CHUNK) {
        for (var cell = lane; cell < CELLS; cell += WORKGROUP) {
            atomicStore(&low[cell], 0u);
            atomicStore(&high[cell], 0u);
        }
        workgroupBarrier();
        let stop = min(end, start + CHUNK);
        for (var k = start + lane; k < stop; k += WORKGROUP) {
            let point = points[k];
            let place = wide_product(places[point.y], params.columns);
            let column = place.y - first_column;
            // Columns before the tile wrap around to large numbers.
            if column < COLUMN_TILE {
                var weight = point.z;
                var cell = column * SIZE * SIZE;
                for (var p = 0u; p < SIZE; p++) {
                    var term = weight;
                    for (var q = 0u; q < SIZE; q++) {
                        atomicAdd(&low[cell], term & 0xffffu);
                        atomicAdd(&high[cell], term >> 16u);
                        term = times(term, place.x);
                        cell += 1u;
                    }
                    weight = times(weight, point.x);
                }
            }
        }
        workgroupBarrier();
        let columns = min(COLUMN_TILE, params.columns - first_column);
        let place = (row * params.columns + first_column) * SIZE * SIZE;
        for (var cell = lane; cell < columns * SIZE * SIZE; cell += WORKGROUP) {
            let l = atomicLoad(&low[cell]);
            let h = atomicLoad(&high[cell]);
            let sum = l + (h << 16u);
            let carry = select(0u, 1u, sum < l);
            let before = table[place + cell];
            let total = before.x + sum;
            let more = select(0u, 1u, total < sum);
            table[place + cell] = vec2<u32>(total, before.y + (h >> 16u) + carry + more);
        }
        workgroupBarrier();
    }
}
