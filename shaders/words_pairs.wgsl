// Fractions of 32 bits and their sums where the adapter has no 64-bit integers: the twin of src/sums/tables/whole_pass.rs.

alias total = vec2<u32>;   // low, high

// The upper 32 bits of a product.
fn upper_product(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return a1 * b1 + (middle >> 16u) + (other >> 16u);
}

// The product of two fractions, rounded.
fn times(a: u32, b: u32) -> u32 { return upper_product(a, b) + ((a * b) >> 31u); }

fn increased(sum: total, low: u32, high: u32) -> total {
    let more = sum.x + low;
    return total(more, sum.y + high + select(0u, 1u, more < low));
}

// A point and its distance in the bin.
alias entry = vec2<u32>;
fn entry_of(point: u32, distance: u32) -> entry { return entry(point, distance); }
fn point_of(a: entry) -> u32 { return a.x; }
fn distance_of(a: entry) -> u32 { return a.y; }
