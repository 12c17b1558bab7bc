//! Independent uniform numbers as a function of a counter.

use std::ops::Range;

/// Philox 4×32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
/// four random words as a function of a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xD251_1F53;
        let second = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// `count` numbers in (0, 1) that belong to an index, a stream and a seed.
pub fn uniforms(seed: u64, stream: u32, index: u64, count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    write_uniforms(seed, stream, index, |place, value| values[place] = value, count);
    values
}

fn write_uniforms(seed: u64, stream: u32, index: u64, mut write: impl FnMut(usize, f64), count: usize) {
    let key = [seed as u32, (seed >> 32) as u32];
    for block in 0..count.div_ceil(4) {
        let word = (stream << 8) | block as u32;
        let random = philox([index as u32, (index >> 32) as u32, word, 0], key);
        for (lane, &bits) in random.iter().enumerate().take(count - 4 * block) {
            write(4 * block + lane, (f64::from(bits) + 0.5) / 4_294_967_296.0);
        }
    }
}

/// Independent uniform points in the unit cube.
#[derive(Debug, Clone)]
pub struct MonteCarlo {
    points: usize,
    dimension: usize,
    seed: u64,
    stream: u32,
}

impl MonteCarlo {
    /// N points in `dimension` coordinates; sets with different streams are independent.
    pub fn new(points: usize, dimension: usize, seed: u64, stream: u32) -> Self {
        Self {
            points,
            dimension,
            seed,
            stream,
        }
    }

    /// Writes the points with these indices.
    pub fn fill(&self, range: Range<usize>, columns: &mut [Vec<f64>], weights: &mut [f64]) {
        weights.fill(1.0 / self.points as f64);
        for (place, index) in range.enumerate() {
            write_uniforms(
                self.seed,
                self.stream,
                index as u64,
                |axis, value| columns[axis][place] = value,
                self.dimension,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the generator.
    #[test]
    fn philox_gives_the_published_words() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
