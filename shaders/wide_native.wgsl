// Whole numbers of 64 bits where the adapter has them: the twin of src/sums/whole/fixed.rs.

alias wide = i64;
alias wide2 = vec2<i64>;
alias wide4 = vec4<i64>;

fn wide_zero() -> wide { return 0li; }
// Through u64: a conversion from u32 straight to i64 extends the sign on some adapters.
fn wide_of(low: u32, high: u32) -> wide { return i64((u64(high) << 32u) | u64(low)); }
fn wide_low(a: wide) -> u32 { return u32(a & 0xffffffffli); }
fn plus(a: wide, b: wide) -> wide { return a + b; }
fn minus(a: wide, b: wide) -> wide { return a - b; }
fn moved_down(a: wide, bits: u32) -> wide { return a >> bits; }
fn moved_up(a: wide, bits: u32) -> wide { return a << bits; }
fn is_positive(a: wide) -> bool { return a > 0li; }
fn is_at_most(a: wide, b: wide) -> bool { return a <= b; }

// a where something holds, else nothing.
fn chosen(a: wide, holds: bool) -> wide { return select(0li, a, holds); }

// The upper half of |a|.
fn magnitude(a: wide) -> u32 { return u32(((a ^ (a >> 63u)) >> 32u) & 0xffffffffli); }

// a / 2^SUM_BITS, rounded to the nearest.
fn rounded(a: wide) -> wide { return (a + (1li << (SUM_BITS - 1u))) >> SUM_BITS; }

// a b / 2^61, rounded down by up to three units, for |a|, |b| up to one: halves of 31 bits are signed words, so that each
// product is one of 32 by 32 bits; that of the lower halves is too little to count.
fn product(a: wide, b: wide) -> wide {
    let a1 = i64(i32(a >> 31u));
    let a0 = i64(i32(a & 0x7fffffffli));
    let b1 = i64(i32(b >> 31u));
    let b0 = i64(i32(b & 0x7fffffffli));
    return ((a1 * b1) << 1u) + ((a1 * b0 + a0 * b1) >> 30u);
}
