// By how many bits a column may be moved up when the largest of its magnitudes is this: fixed.rs has the twin.
fn lead_of(peak: u32) -> u32 {
    let bits = 32u - countLeadingZeros(peak);
    return select(LEAD_ROOM - bits, 0u, bits > LEAD_ROOM);
}
