// One workgroup a row and tile of columns: it adds up its points in its own memory, in halves of 16 bits that cannot
// overflow, and then adds the row to the table.

const CELLS: u32 = COLUMN_TILE * SIZE * SIZE;
// Sums of so many 16-bit halves fit 32 bits.
const CHUNK: u32 = 65536u;

var<workgroup> low: array<atomic<u32>, CELLS>;
var<workgroup> high: array<atomic<u32>, CELLS>;

fn add_term(cell: u32, term: u32) {
    atomicAdd(&low[cell], term & 0xffffu);
    atomicAdd(&high[cell], term >> 16u);
}

@compute @workgroup_size(WORKGROUP)
fn moments_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    let first_column = group.y * COLUMN_TILE;
    let end = starts[params.starts_at + row + 1u];
    for (var start = starts[params.starts_at + row]; start < end; start += CHUNK) {
        for (var cell = lane; cell < CELLS; cell += WORKGROUP) {
            atomicStore(&low[cell], 0u);
            atomicStore(&high[cell], 0u);
        }
        workgroupBarrier();
        let stop = min(end, start + CHUNK);
        for (var k = start + lane; k < stop; k += WORKGROUP) {
            let at = entries[params.entries_at + k];
            let point = point_of(at);
            let across = places[params.places_at + point];
            let column = upper_product(across, params.columns) - first_column;
            // Columns before the tile wrap around to large numbers.
            if column < COLUMN_TILE {
                add_point(column * SIZE * SIZE, weights[point], distance_of(at), across * params.columns);
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
            table[place + cell] = increased(table[place + cell], sum, (h >> 16u) + carry);
        }
        workgroupBarrier();
    }
}
