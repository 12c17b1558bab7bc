// Whole numbers of 64 bits as pairs of words, low and high, where the adapter has none: the twin of
// src/sums/whole/fixed.rs.

alias wide = vec2<u32>;

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

// a b / 2^61, rounded down: the upper words of the product without signs, less what the signs take off.
fn product(a: wide, b: wide) -> wide {
    let low = word_product(a.x, b.x);
    let cross = word_product(a.x, b.y);
    let other = word_product(a.y, b.x);
    let middle = plus(plus(vec2<u32>(low.y, 0u), cross), vec2<u32>(other.x, 0u));
    var high = plus(word_product(a.y, b.y), plus(vec2<u32>(middle.y, 0u), vec2<u32>(other.y, 0u)));
    high = minus(high, b & vec2<u32>(sign_of(a)));
    high = minus(high, a & vec2<u32>(sign_of(b)));
    return vec2<u32>((middle.x >> 29u) | (high.x << 3u), (high.x >> 29u) | (high.y << 3u));
}
