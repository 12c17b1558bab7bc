// The parts of Σ w φ: per symbol Σ w a j² and Σ w l j, or Σ 2w r² of a residual. One workgroup per block of points.

struct WholeRiskParams {
    stride: u32,
    count: u32,     // points; the others fill up blocks
    blocks: u32,
}

@group(0) @binding(0) var<uniform> params: WholeRiskParams;
@group(0) @binding(1) var<storage, read> columns: array<wide>;
@group(0) @binding(2) var<storage, read> values: array<wide>;         // jets, or the residual
@group(0) @binding(3) var<storage, read> scales: array<u32>;          // per value: largest magnitude
@group(0) @binding(4) var<storage, read_write> sums: array<wide>;     // per part: one per block

// Generated for the term: the totals of a block, written out.
