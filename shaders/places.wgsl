// Points from their index, as fractions of 32 bits: the twin of src/points/fractions.rs. One invocation a point.

struct PlacesParams {
    count: u32,    // points
    stride: u32,   // from an axis to the next
    axes: u32,
}

@group(0) @binding(0) var<uniform> params: PlacesParams;
@group(0) @binding(1) var<storage, read_write> places: array<u32>;   // axis by axis

@compute @workgroup_size(WORKGROUP)
fn places_main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let point = group.x * WORKGROUP + lane;
    if point >= params.count {
        return;
    }
    for (var axis = 0u; axis < params.axes; axis++) {
        places[axis * params.stride + point] = place_of(axis, point);
    }
}
