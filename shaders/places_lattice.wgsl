// Points of a lattice, folded by the tent.

@group(0) @binding(2) var<storage, read> recipe: array<vec2<u32>>;   // per axis: the first point before folding, the step

fn place_of(axis: u32, point: u32) -> u32 {
    let x = recipe[axis].x + point * recipe[axis].y;
    return select((x << 1u) | 1u, ~(x << 1u), x >= 0x80000000u);
}
