// Whole numbers of 64 bits as pairs of words, low and high, where the adapter has none: the twin of
// src/sums/whole/fixed.rs.

alias wide = vec2<u32>;
struct wide2 { x: vec2<u32>, y: vec2<u32> }
struct wide4 { x: vec2<u32>, y: vec2<u32>, z: vec2<u32>, w: vec2<u32> }

fn wide_zero() -> wide { return vec2<u32>(0u, 0u); }
fn wide_of(low: u32, high: u32) -> wide { return vec2<u32>(low, high); }
fn wide_low(a: wide) -> u32 { return a.x; }

fn plus(a: wide, b: wide) -> wide {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn minus(a: wide, b: wide) -> wide {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

// The sign in all bits.
fn sign_of(a: wide) -> u32 { return bitcast<u32>(bitcast<i32>(a.y) >> 31u); }

fn moved_down(a: wide, bits: u32) -> wide {
    if bits == 0u {
        return a;
    }
    if bits < 32u {
        return vec2<u32>((a.x >> bits) | (a.y << (32u - bits)), bitcast<u32>(bitcast<i32>(a.y) >> bits));
    }
    return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (bits - 32u)), sign_of(a));
}

// By less than 32 bits.
fn moved_up(a: wide, bits: u32) -> wide {
    if bits == 0u {
        return a;
    }
    return vec2<u32>(a.x << bits, (a.y << bits) | (a.x >> (32u - bits)));
}

fn is_positive(a: wide) -> bool { return bitcast<i32>(a.y) > 0 || (a.y == 0u && a.x > 0u); }

fn is_at_most(a: wide, b: wide) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x <= b.x);
}

// a where something holds, else nothing.
fn chosen(a: wide, holds: bool) -> wide { return select(vec2<u32>(0u, 0u), a, holds); }

// The upper half of |a|.
fn magnitude(a: wide) -> u32 { return a.y ^ sign_of(a); }

// a / 2^SUM_BITS, rounded to the nearest.
fn rounded(a: wide) -> wide { return moved_down(plus(a, vec2<u32>(1u << (SUM_BITS - 1u), 0u)), SUM_BITS); }

// The 64 bits of a product of words.
fn word_product(a: u32, b: u32) -> wide {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return vec2<u32>(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}

// The upper half of a number, with its sign, and the lower one of 31 bits.
fn upper(a: wide) -> u32 { return (a.y << 1u) | (a.x >> 31u); }
fn lower(a: wide) -> u32 { return a.x & 0x7fffffffu; }

// The product of a signed word and one of 31 bits.
fn half_product(a: u32, b: u32) -> wide {
    let product = word_product(a, b);
    return vec2<u32>(product.x, product.y - select(0u, b, bitcast<i32>(a) < 0));
}

// a b / 2^61, rounded down by up to three units, for |a|, |b| up to one: by halves of 31 bits, as in wide_native.wgsl.
fn product(a: wide, b: wide) -> wide {
    let a1 = upper(a);
    let b1 = upper(b);
    var high = half_product(a1, b1);
    high.y -= select(0u, a1, bitcast<i32>(b1) < 0);
    let middle = plus(half_product(a1, lower(b)), half_product(b1, lower(a)));
    return plus(moved_up(high, 1u), moved_down(middle, 30u));
}
