// Sums over the points for neurons one by one: per symbol Σ ρ z^(k−m), and with slopes Σ ρ z^(k−m−1) (X, 1), where
// z > 0. One workgroup per block of points and neuron, for some of the symbols.

struct NeuronsParams {
    stride: u32,
    count: u32,     // points; the others fill up blocks
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: NeuronsParams;
@group(0) @binding(1) var<storage, read> coordinates: array<wide>;    // DIMENSION columns
@group(0) @binding(2) var<storage, read> channels: array<pack>;       // point by point
@group(0) @binding(3) var<storage, read> scales: array<u32>;          // per channel: largest magnitude; exponent
@group(0) @binding(4) var<storage, read> neurons: array<wide>;        // per neuron: C, Ω, lift
@group(0) @binding(5) var<storage, read_write> sums: array<wide>;     // per neuron, symbol and sum: one per block

// Generated for the term: pack, some channels side by side; the totals of a block, written out.
