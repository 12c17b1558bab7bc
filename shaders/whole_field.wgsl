// A network to jets, jets to channels ρ_c = w ∂φ/∂j_c or to the residual, and how large they are, in one go: POINTS
// points an invocation, so that what is the same for all points is read once for several.
//
// The numbers of the network: first the shifts of products and loads, then a row for each neuron that is alone along its
// direction (C, Ω, lift, A_c), both filled up to multiples of four, then a row for each direction that several share (C, Ω, first and last piece), then
// the pieces (where it begins, lift, coefficients of each symbol, the constant first).

struct WholeFieldParams {
    stride: u32,         // distance between two columns
    count: u32,          // points; the others fill up columns
    first_single: u32,   // the batch of neurons
    last_single: u32,
    first_line: u32,     // the batch of directions
    last_line: u32,
    lines_at: u32,       // where the rows of directions begin
    pieces_at: u32,      // where the pieces begin
}

@group(0) @binding(0) var<uniform> params: WholeFieldParams;
@group(0) @binding(1) var<storage, read> coordinates: array<wide>;    // DIMENSION columns
@group(0) @binding(2) var<storage, read> network: array<wide>;
@group(0) @binding(3) var<storage, read> quads: array<wide4>;         // the same, four at a time

// Generated for the term and the outcome: the other bindings; Point, Jet, Single and Line with point_at, single_at,
// line_at, start_of (the jet to start from), add_single, add_piece, ends_with (what becomes of a jet) and a body that does
// this for each of POINTS points.

// The last piece of a line that begins at t or before.
fn piece_of(first: u32, last: u32, t: wide) -> u32 {
    var piece = first;
    var end = last;
    while end - piece > 1u {
        let middle = (piece + end) / 2u;
        if is_at_most(network[params.pieces_at + middle * PIECE], t) {
            piece = middle;
        } else {
            end = middle;
        }
    }
    return params.pieces_at + piece * PIECE;
}
