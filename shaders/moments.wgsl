// Sums of w δᵢᵖ δⱼ^q for one pair of axes, over a block of points that is sorted by its bins along the first, the rows of
// the table. Whole numbers do not care in which order they are added: the table is the same on every device.

struct MomentsParams {
    rows: u32,
    columns: u32,
    entries_at: u32,   // of the first axis
    starts_at: u32,
    places_at: u32,    // of the second axis
    skipped: u32,      // points of every row that were added before
}

@group(0) @binding(0) var<uniform> params: MomentsParams;
@group(0) @binding(1) var<storage, read> entries: array<entry>;       // sorted
@group(0) @binding(2) var<storage, read> starts: array<u32>;          // where each row begins
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> weights: array<u32>;
@group(0) @binding(5) var<storage, read_write> table: array<total>;   // per cell: SIZE × SIZE

// Generated for the power: add_point(cell, weight, distance, across), which adds the moments of a point to those of a cell
// by add_term(place, term).
