//! Rows of columns made of runs of a source, a vector at a time.
//!
//! A row of a panel has neighbours of the source in it, with gaps where a run ends or lies on padding. The runs and gaps are the
//! same for every channel of the source, so that they are found once, as masks of vectors, and used for many channels.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::microkernel::WIDTH;
use super::product::Block;

/// Lanes of a vector.
const LANES: usize = 16;
const VECTORS: usize = WIDTH / LANES;

/// Some lanes of a vector, from the source: lane `i` from `at + i * step`.
#[derive(Clone, Copy)]
struct Piece {
    /// A bit for each lane; they are neighbours.
    lanes: u16,
    /// Where lane 0 would be, which may be before the source's beginning.
    at: isize,
}

/// How a row is made.
pub struct Pieces {
    step: usize,
    /// A vector's pieces, and room for one that is written but not counted.
    pieces: [[Piece; LANES + 1]; VECTORS],
    counts: [usize; VECTORS],
    /// The last place of the source that is used.
    last: usize,
}

impl Pieces {
    /// Zeros all over. Neighbouring lanes will be `step` apart in the source.
    pub fn new(step: usize) -> Pieces {
        let none = Piece { lanes: 0, at: 0 };
        Pieces { step, pieces: [[none; LANES + 1]; VECTORS], counts: [0; VECTORS], last: 0 }
    }

    /// Zeros all over again.
    pub fn clear(&mut self) {
        (self.counts, self.last) = ([0; VECTORS], 0);
    }

    /// Some lanes of the row, the first of them from `at`. Lanes come in their order, none twice.
    pub fn push(&mut self, lanes: Range<usize>, at: usize) {
        self.last = self.last.max(at + (lanes.len() - 1) * self.step);
        let at = at.cast_signed() - (lanes.start * self.step).cast_signed();
        let lanes = (u32::MAX >> (WIDTH - lanes.len())) << lanes.start;
        for (vector, (pieces, count)) in self.pieces.iter_mut().zip(&mut self.counts).enumerate() {
            let lanes = (lanes >> (vector * LANES)) as u16;
            pieces[*count] = Piece { lanes, at: at + (vector * LANES * self.step).cast_signed() };
            *count += usize::from(lanes != 0);
        }
    }

    /// Writes the row of each of `count` channels, which are `channel` apart in the source; their rows are `row` apart.
    pub fn gather(&self, source: &[f32], channel: usize, count: usize, to: &mut Block, row: usize) {
        assert!(count > 0 && (count - 1) * row + WIDTH <= to.len(), "rows end outside of the block");
        assert!((count - 1) * channel + self.last < source.len(), "channels end outside of the source");
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx512f") && self.step <= 2 {
            // SAFETY: the processor has the instructions, and all is within source and block, as was checked.
            return unsafe { x86::gather_avx512(self, source.as_ptr(), channel, count, to.as_mut_ptr().cast(), row) };
        }
        for i in 0..count {
            let (source, to) = (&source[i * channel..], &mut to[i * row..][..WIDTH]);
            for (to, vector) in to.chunks_exact_mut(LANES).zip(0..) {
                to.fill(MaybeUninit::new(0.0));
                for Piece { lanes, at } in &self.pieces[vector][..self.counts[vector]] {
                    let (first, count) = (lanes.trailing_zeros() as usize, lanes.count_ones() as usize);
                    let from = (at + (first * self.step).cast_signed()).cast_unsigned();
                    let from = source[from..].iter().step_by(self.step);
                    to[first..first + count].iter_mut().zip(from).for_each(|(to, x)| *to = MaybeUninit::new(*x));
                }
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{
        __m512, __mmask16, _mm512_mask_blend_ps, _mm512_mask_loadu_ps, _mm512_maskz_loadu_ps, _mm512_permutex2var_ps,
        _mm512_set_epi32, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{LANES, Pieces, VECTORS};

    /// # Safety
    /// Every lane of every piece is in the source, for `count` channels, and every row in the block.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn gather_avx512(
        pieces: &Pieces,
        source: *const f32,
        channel: usize,
        count: usize,
        to: *mut f32,
        row: usize,
    ) {
        for vector in 0..VECTORS {
            let (mut source, mut to) = (source, to.wrapping_add(vector * LANES));
            let parts = &pieces.pieces[vector][..pieces.counts[vector]];
            for _ in 0..count {
                let mut sum = _mm512_setzero_ps();
                for part in parts {
                    let from = source.wrapping_offset(part.at);
                    // SAFETY: lanes outside of the mask are not read; the others are in the source, as the caller promised.
                    sum = unsafe {
                        if pieces.step == 1 {
                            _mm512_mask_loadu_ps(sum, part.lanes, from)
                        } else {
                            every_second(sum, part.lanes, from)
                        }
                    };
                }
                // SAFETY: the row is in the block, as the caller promised.
                unsafe { _mm512_storeu_ps(to, sum) };
                source = source.wrapping_add(channel);
                to = to.wrapping_add(row);
            }
        }
    }

    /// The lanes of `mask` from every second element.
    ///
    /// # Safety
    /// These elements can be read.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn every_second(sum: __m512, mask: __mmask16, from: *const f32) -> __m512 {
        let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        // Half of the lanes come from each of two vectors.
        let [low, high] = [mask as u8, (mask >> 8) as u8].map(spread);
        // SAFETY: as the caller promised.
        let (low, high) =
            unsafe { (_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, from.wrapping_add(LANES))) };
        _mm512_mask_blend_ps(mask, sum, _mm512_permutex2var_ps(low, even, high))
    }

    /// Bit `i` as bit `2 i`.
    fn spread(bits: u8) -> __mmask16 {
        let bits = u16::from(bits);
        let bits = (bits | bits << 4) & 0x0f0f;
        let bits = (bits | bits << 2) & 0x3333;
        (bits | bits << 1) & 0x5555
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs with gaps before, between and after them, across the border of the vectors, in two channels.
    #[test]
    fn runs_and_gaps() {
        let source: Vec<f32> = (1..=400).map(|i| i as f32).collect();
        for step in 1..=3 {
            let mut pieces = Pieces::new(step);
            pieces.push(2..9, 5);
            pieces.push(12..31, 60);
            let mut block = [MaybeUninit::new(-1.0); 3 * WIDTH];
            pieces.gather(&source, 200, 2, &mut block, 2 * WIDTH);
            for (channel, row) in [(0, 0), (1, 2)] {
                for lane in 0..WIDTH {
                    let at = match lane {
                        2..9 => Some(5 + (lane - 2) * step),
                        12..31 => Some(60 + (lane - 12) * step),
                        _ => None,
                    };
                    let expected = at.map_or(0.0, |at| (200 * channel + at + 1) as f32);
                    // SAFETY: all of the block was initialized.
                    let got = unsafe { block[row * WIDTH + lane].assume_init() };
                    assert_eq!(got, expected, "step {step}, channel {channel}, lane {lane}");
                }
            }
        }
    }
}
