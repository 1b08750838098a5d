//! Rows of columns made of runs of a source, a vector at a time.
//!
//! A row of a panel has neighbours of the source in it, with gaps where a run ends or lies on padding. The runs and gaps are the
//! same for every channel of the source, so that they are found once, as masks of vectors, and used for many channels.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::microkernel::{LANES, WIDTH};
use super::product::Block;

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
#[derive(Clone, Copy)]
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
}

/// Writes, for each of `count` channels, which are `channel` apart in the source, a row of every panel: rows of one panel are
/// `row` apart, and panels `panel`. A channel's rows in all panels are written together, for they are neighbours in the source.
pub fn gather(
    panels: &[Pieces],
    source: &[f32],
    [channel, count]: [usize; 2],
    to: &mut Block,
    [row, panel]: [usize; 2],
) {
    assert!(count > 0 && !panels.is_empty());
    let last = (panels.len() - 1) * panel + (count - 1) * row;
    assert!(last + WIDTH <= to.len(), "rows end outside of the block");
    let last = panels.iter().map(|pieces| pieces.last).max().unwrap_or(0);
    assert!((count - 1) * channel + last < source.len(), "channels end outside of the source");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && panels[0].step <= 2 {
        let to = to.as_mut_ptr().cast();
        // SAFETY: the processor has the instructions, and all is within source and block, as was checked.
        return unsafe { x86::gather_avx512(panels, source.as_ptr(), [channel, count], to, [row, panel]) };
    }
    for i in 0..count {
        for (j, pieces) in panels.iter().enumerate() {
            let (source, to) = (&source[i * channel..], &mut to[i * row + j * panel..][..WIDTH]);
            for (to, vector) in to.chunks_exact_mut(LANES).zip(0..) {
                to.fill(MaybeUninit::new(0.0));
                for Piece { lanes, at } in &pieces.pieces[vector][..pieces.counts[vector]] {
                    let (first, count) = (lanes.trailing_zeros() as usize, lanes.count_ones() as usize);
                    let from = (at + (first * pieces.step).cast_signed()).cast_unsigned();
                    let from = source[from..].iter().step_by(pieces.step);
                    to[first..first + count].iter_mut().zip(from).for_each(|(to, x)| *to = MaybeUninit::new(*x));
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, __mmask16, _mm512_mask_blend_ps, _mm512_mask_loadu_ps, _mm512_maskz_loadu_ps, _mm512_permutex2var_ps,
        _mm512_set_epi32, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::super::microkernel::spread;
    use super::{LANES, Pieces, VECTORS};

    /// # Safety
    /// Every lane of every piece is in the source, for `count` channels, and every row in the block.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn gather_avx512(
        panels: &[Pieces],
        source: *const f32,
        [channel, count]: [usize; 2],
        to: *mut f32,
        [row, panel]: [usize; 2],
    ) {
        if panels.iter().any(|pieces| pieces.counts.iter().any(|count| *count > 2)) {
            // Of many short pieces each vector's are best used for all channels at once.
            for (j, pieces) in panels.iter().enumerate() {
                for vector in 0..VECTORS {
                    for i in 0..count {
                        let to = to.wrapping_add(i * row + j * panel + vector * LANES);
                        // SAFETY: source and row are there, as the caller promised.
                        unsafe { _mm512_storeu_ps(to, pieces_of(pieces, vector, source.wrapping_add(i * channel))) };
                    }
                }
            }
            return;
        }
        for i in 0..count {
            for (j, pieces) in panels.iter().enumerate() {
                for vector in 0..VECTORS {
                    let to = to.wrapping_add(i * row + j * panel + vector * LANES);
                    // SAFETY: as above.
                    unsafe { _mm512_storeu_ps(to, pieces_of(pieces, vector, source.wrapping_add(i * channel))) };
                }
            }
        }
    }

    /// A vector of a row.
    ///
    /// # Safety
    /// Every lane of its pieces is in the source.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn pieces_of(pieces: &Pieces, vector: usize, source: *const f32) -> __m512 {
        let mut sum = _mm512_setzero_ps();
        for part in &pieces.pieces[vector][..pieces.counts[vector]] {
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
        sum
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs with gaps before, between and after them, across the border of the vectors, in two channels and two panels.
    #[test]
    fn runs_and_gaps() {
        let source: Vec<f32> = (1..=400).map(|i| i as f32).collect();
        for step in 1..=3 {
            let mut first = Pieces::new(step);
            first.push(2..9, 5);
            first.push(12..31, 60);
            let mut second = Pieces::new(step);
            second.push(0..20, 7);
            let mut block = [MaybeUninit::new(-1.0); 5 * WIDTH];
            gather(&[first, second], &source, [200, 2], &mut block, [3 * WIDTH, WIDTH]);
            for (channel, panel) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for lane in 0..WIDTH {
                    let at = match (panel, lane) {
                        (0, 2..9) => Some(5 + (lane - 2) * step),
                        (0, 12..31) => Some(60 + (lane - 12) * step),
                        (1, 0..20) => Some(7 + lane * step),
                        _ => None,
                    };
                    let expected = at.map_or(0.0, |at| (200 * channel + at + 1) as f32);
                    // SAFETY: all of the block was initialized.
                    let got = unsafe { block[(3 * channel + panel) * WIDTH + lane].assume_init() };
                    assert_eq!(got, expected, "step {step}, channel {channel}, panel {panel}, lane {lane}");
                }
            }
        }
    }
}
