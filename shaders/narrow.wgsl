// Channels in double precision to channels in single precision, number by number.

struct NarrowParams {
    count: u32,
    width: u32,    // invocations per row of workgroups
}

@group(0) @binding(0) var<uniform> params: NarrowParams;
@group(0) @binding(1) var<storage, read> wide: array<f64>;
@group(0) @binding(2) var<storage, read_write> narrow: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn narrow_main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.y * params.width + id.x;
    if i < params.count {
        narrow[i] = f32(wide[i]);
    }
}
