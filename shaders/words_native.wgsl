// Fractions of 32 bits and their sums where the adapter has 64-bit integers: the twin of src/sums/tables/whole_pass.rs.

alias total = u64;

// The upper 32 bits of a product.
fn upper_product(a: u32, b: u32) -> u32 { return u32((u64(a) * u64(b)) >> 32u); }

// The product of two fractions, rounded.
fn times(a: u32, b: u32) -> u32 { return u32((u64(a) * u64(b) + 0x80000000lu) >> 32u); }

fn increased(sum: total, low: u32, high: u32) -> total { return sum + ((u64(high) << 32u) | u64(low)); }

// A point and its distance in the bin.
alias entry = u64;
fn entry_of(point: u32, distance: u32) -> entry { return (u64(distance) << 32u) | u64(point); }
fn point_of(a: entry) -> u32 { return u32(a & 0xfffffffflu); }
fn distance_of(a: entry) -> u32 { return u32(a >> 32u); }
