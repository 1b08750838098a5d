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

#[cfg(test)]
mod tests {
    use super::philox;

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
