// Halton points: the low digits from a table, the others from the host, who knows them for each run of low digits.

@group(0) @binding(2) var<storage, read> recipe: array<vec4<u32>>;   // per axis: first low digits, how many there are, where they and the high ones begin
@group(0) @binding(3) var<storage, read> highs: array<u32>;
@group(0) @binding(4) var<storage, read> lows: array<u32>;

fn place_of(axis: u32, point: u32) -> u32 {
    let known = recipe[axis];
    let place = known.x + point;
    let high = place / known.y;
    return lows[known.z + place - high * known.y] + highs[known.w + high];
}
