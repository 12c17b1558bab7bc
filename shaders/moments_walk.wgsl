// One invocation a row walks along its points: for software adapters, which do atomic operations lane by lane.

fn add_term(cell: u32, term: u32) {
    table[cell] = increased(table[cell], term, 0u);
}

@compute @workgroup_size(WORKGROUP)
fn moments_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * WORKGROUP + lane;
    if row >= params.rows {
        return;
    }
    let begin = starts[params.starts_at + row] + params.skipped;
    let end = min(starts[params.starts_at + row + 1u], begin + LONGEST_WALK);
    for (var k = begin; k < end; k++) {
        let at = entries[params.entries_at + k];
        let point = point_of(at);
        let across = places[params.places_at + point];
        let column = upper_product(across, params.columns);
        let cell = (row * params.columns + column) * SIZE * SIZE;
        add_point(cell, weights[point], distance_of(at), across * params.columns);
    }
}
