//! Random numbers from a counter: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//!
//! Every number is a function of a key and its own counter alone, so that any thread can compute any of them, in any
//! order, again and again.

/// Four random words for a counter, under a key.
pub const fn philox(key: u64, counter: [u32; 4]) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let mut key = [key as u32, (key >> 32) as u32];
    let mut x = counter;
    let mut round = 0;
    while round < 10 {
        let (a, b) = (MULTIPLIERS[0] * x[0] as u64, MULTIPLIERS[1] * x[2] as u64);
        x = [(b >> 32) as u32 ^ x[1] ^ key[0], b as u32, (a >> 32) as u32 ^ x[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        round += 1;
    }
    x
}

/// A number in `[0, 1)` from the upper 24 bits of a word, each of which an `f32` holds exactly.
pub const fn uniform(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// What random numbers are for. Each purpose has streams of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The initial values of a parameter.
    Init,
    /// The mask of a dropout layer.
    Dropout,
    /// The order of the samples in an epoch.
    Shuffle,
}

/// An endless row of random words that can be entered anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of a purpose: its `index` is the parameter or node, its `pass` counts the times that it is drawn anew.
    /// Each stream has a key of its own, which the generator itself draws from the seed.
    pub const fn new(seed: u64, purpose: Purpose, index: u32, pass: u64) -> Stream {
        let words = philox(seed, [purpose as u32, index, pass as u32, (pass >> 32) as u32]);
        Stream { key: words[0] as u64 | (words[1] as u64) << 32 }
    }

    /// Words `4 block` to `4 block + 3` of the stream.
    pub const fn words(&self, block: u64) -> [u32; 4] {
        philox(self.key, [block as u32, (block >> 32) as u32, 0, 0])
    }

    /// Numbers `4 block` to `4 block + 3` of the stream, uniform in `[0, 1)`.
    pub fn uniform(&self, block: u64) -> [f32; 4] {
        self.words(block).map(uniform)
    }

    /// Numbers `4 block` to `4 block + 3` of the stream, normal with mean 0 and variance 1 (Box & Muller 1958).
    pub fn normal(&self, block: u64) -> [f32; 4] {
        let words = self.words(block);
        let mut normal = [0.0; 4];
        for pair in 0..2 {
            // In (0, 1], for the logarithm's sake.
            let radius = (-2.0 * (1.0 - f64::from(uniform(words[2 * pair]))).ln()).sqrt();
            let angle = std::f64::consts::TAU * f64::from(uniform(words[2 * pair + 1]));
            normal[2 * pair] = (radius * angle.cos()) as f32;
            normal[2 * pair + 1] = (radius * angle.sin()) as f32;
        }
        normal
    }
}

#[cfg(test)]
mod tests {
    use super::{Purpose, Stream, philox};

    #[test]
    fn moments() {
        let stream = Stream::new(7, Purpose::Init, 3, 0);
        let normal: Vec<f64> = (0..5_000).flat_map(|block| stream.normal(block)).map(f64::from).collect();
        let uniform: Vec<f64> = (0..5_000).flat_map(|block| stream.uniform(block)).map(f64::from).collect();
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        assert!(mean(&normal).abs() < 0.02 && (square(&normal) - 1.0).abs() < 0.03);
        assert!((mean(&uniform) - 0.5).abs() < 0.01 && (square(&uniform) - 1.0 / 3.0).abs() < 0.01);
    }

    /// The known answers that the authors' library Random123 is tested with.
    #[test]
    fn known_answers() {
        assert_eq!(philox(0, [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox(u64::MAX, [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let key = 0x299f_31d0_a409_3822;
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(key, counter), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
