//! The kernel, transformed: `G g G^T`.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::convolution::Kernel;
use super::super::microkernel::LANES;
use super::super::vector::{Wide, run_wide};
use super::{DEPTH, KERNEL, PATCH, TAPS, Transformed};

const ALL: usize = TAPS * TAPS;

/// Lays out the kernel of some maps in some channels, and says how far apart rows (maps) and columns (channels) are. Neighbours
/// in the kernel are neighbours here, so that it is read along.
pub fn transform(kernel: &Kernel, maps: Range<usize>, channels: Range<usize>, to: &mut Transformed) -> [usize; 2] {
    // Where axes are walked backwards, the first tap is the last of the patch.
    let reversed = kernel.grid.x.shift < 0;
    let [mut outer, mut inner] = [(maps, kernel.row), (channels, kernel.channel)];
    let along_channels = kernel.channel <= kernel.row;
    if !along_channels {
        (outer, inner) = (inner, outer);
    }
    let apart = if along_channels { DEPTH } else { LANES };
    for (i, number) in outer.0.enumerate() {
        for first in inner.0.clone().step_by(LANES) {
            let elements = &kernel.elements[number * outer.1 + first * inner.1..];
            let count = LANES.min(inner.0.end - first);
            let to = &mut to[i * apart + first - inner.0.start..];
            transform_lines(Transform { elements, line: inner.1, count, reversed, to });
        }
    }
    if along_channels { [apart, 1] } else { [1, apart] }
}

/// Up to [`LANES`] lines of taps, which are `line` elements apart.
struct Transform<'r, 'a> {
    elements: &'a [f32],
    line: usize,
    count: usize,
    /// Whether the first tap is the last of the patch.
    reversed: bool,
    to: &'r mut [MaybeUninit<f32>],
}

fn transform_lines(lines: Transform) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the instructions.
        return unsafe { x86::transform(lines) };
    }
    run_wide(lines);
}

/// The way for any processor.
impl Wide for Transform<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut taps = [[0.0; LANES]; ALL];
        self.load(&mut taps);
        let mut columns = [[[0.0; LANES]; PATCH]; TAPS];
        for (j, column) in columns.iter_mut().enumerate() {
            *column = transform_taps([&taps[j], &taps[TAPS + j], &taps[2 * TAPS + j]]);
        }
        let [a, b, c] = &columns;
        for row in 0..PATCH {
            for (column, numbers) in transform_taps([&a[row], &b[row], &c[row]]).iter().enumerate() {
                self.to[(row * PATCH + column) * KERNEL..][..LANES].write_copy_of_slice(numbers);
            }
        }
    }
}

impl Transform<'_, '_> {
    fn check(&self) {
        assert!((self.count - 1) * self.line + ALL <= self.elements.len(), "the last line is outside");
    }

    /// The taps at their places in the patch, a line a lane.
    #[inline(always)]
    fn load(&self, taps: &mut [[f32; LANES]; ALL]) {
        self.check();
        for (tap, lanes) in taps.iter_mut().enumerate() {
            for (lane, to) in lanes[..self.count].iter_mut().enumerate() {
                // SAFETY: no further than the last line, as was checked.
                *to = unsafe { *self.elements.get_unchecked(lane * self.line + tap) };
            }
        }
        if self.reversed {
            taps.reverse();
        }
    }
}

/// `G g`, a lane at a time.
#[inline(always)]
fn transform_taps([a, b, c]: [&[f32; LANES]; TAPS]) -> [[f32; LANES]; PATCH] {
    let mut numbers = [*a, [0.0; LANES], [0.0; LANES], *c];
    for i in 0..LANES {
        let (outer, inner) = (0.5 * (a[i] + c[i]), 0.5 * b[i]);
        numbers[1][i] = outer + inner;
        numbers[2][i] = outer - inner;
    }
    numbers
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, _mm_loadu_ps, _mm512_add_ps, _mm512_castpd_ps, _mm512_castps_pd, _mm512_castps128_ps512,
        _mm512_insertf32x4, _mm512_mul_ps, _mm512_set1_ps, _mm512_storeu_ps, _mm512_sub_ps, _mm512_unpackhi_pd,
        _mm512_unpackhi_ps, _mm512_unpacklo_pd, _mm512_unpacklo_ps,
    };

    use super::{ALL, KERNEL, LANES, PATCH, TAPS, Transform};

    /// Taps that are loaded at once.
    const SIDE: usize = 4;

    #[target_feature(enable = "avx512f")]
    pub fn transform(lines: Transform) {
        lines.check();
        assert!((PATCH * PATCH - 1) * KERNEL + LANES <= lines.to.len(), "the kernel ends outside of the room");
        // SAFETY: the taps are in the lines, which were checked. The last tap comes with three that are there already.
        let (first, second, last) = unsafe { (load(&lines, 0), load(&lines, SIDE), load(&lines, ALL - SIDE)) };
        let ([a, b, c, d], [e, f, g, h], [.., i]) = (first, second, last);
        let [a, b, c, d, e, f, g, h, i] =
            if lines.reversed { [i, h, g, f, e, d, c, b, a] } else { [a, b, c, d, e, f, g, h, i] };
        let [left, middle, right] = [transform_taps([a, d, g]), transform_taps([b, e, h]), transform_taps([c, f, i])];
        let to = lines.to.as_mut_ptr().cast::<f32>();
        for (row, ((left, middle), right)) in left.into_iter().zip(middle).zip(right).enumerate() {
            for (column, numbers) in transform_taps([left, middle, right]).into_iter().enumerate() {
                // SAFETY: up to the last number, which is in the room, as was checked.
                unsafe { _mm512_storeu_ps(to.add((row * PATCH + column) * KERNEL), numbers) };
            }
        }
    }

    /// Some neighbouring taps of all lines, a line a lane. Lanes after the last line have those of the first.
    ///
    /// # Safety
    /// All lines have these taps.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(lines: &Transform, first: usize) -> [__m512; SIDE] {
        let four = |line: usize| {
            let line = if line < lines.count { line } else { 0 };
            // SAFETY: as the caller promised.
            unsafe { _mm_loadu_ps(lines.elements.as_ptr().add(line * lines.line + first)) }
        };
        // Four lines in each, four apart: a square of lines and taps in each quarter of the vectors.
        let row = |line: usize| {
            let row = _mm512_castps128_ps512(four(line));
            let row = _mm512_insertf32x4::<1>(row, four(line + SIDE));
            let row = _mm512_insertf32x4::<2>(row, four(line + 2 * SIDE));
            _mm512_insertf32x4::<3>(row, four(line + 3 * SIDE))
        };
        let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
        let low = |x, y| _mm512_castps_pd(_mm512_unpacklo_ps(x, y));
        let high = |x, y| _mm512_castps_pd(_mm512_unpackhi_ps(x, y));
        let (ab, cd) = (low(a, b), low(c, d));
        let (ab_high, cd_high) = (high(a, b), high(c, d));
        [
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
            _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high)),
            _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high)),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transform_taps([a, b, c]: [__m512; TAPS]) -> [__m512; PATCH] {
        let half = _mm512_set1_ps(0.5);
        let (outer, inner) = (_mm512_mul_ps(half, _mm512_add_ps(a, c)), _mm512_mul_ps(half, b));
        [a, _mm512_add_ps(outer, inner), _mm512_sub_ps(outer, inner), c]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways give `G g G^T` by its definition, for any number of lines. The numbers are such that nothing is rounded.
    #[test]
    fn kernels_by_definition() {
        const G: [[f32; TAPS]; PATCH] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
        let line = 11;
        let elements: Vec<f32> = (0..LANES * line).map(|i| (i * 7919 % 101) as f32).collect();
        for reversed in [false, true] {
            for count in (1..=LANES).step_by(if cfg!(miri) { LANES - 1 } else { 1 }) {
                let elements = &elements[..(count - 1) * line + ALL];
                let expected = |number: usize, lane: usize| {
                    let terms = (0..ALL).map(|tap| {
                        let (y, x) = (tap / TAPS, tap % TAPS);
                        let from = if reversed { ALL - 1 - tap } else { tap };
                        G[number / PATCH][y] * elements[lane * line + from] * G[number % PATCH][x]
                    });
                    terms.sum::<f32>()
                };
                let mut to = Box::new_uninit_slice(PATCH * PATCH * KERNEL);
                if cfg!(not(miri)) {
                    to.fill(MaybeUninit::new(f32::NAN));
                }
                let check = |to: &[MaybeUninit<f32>], way: &str| {
                    for number in 0..PATCH * PATCH {
                        for lane in 0..count {
                            // SAFETY: all was initialized.
                            let got = unsafe { to[number * KERNEL + lane].assume_init() };
                            assert_eq!(got, expected(number, lane), "{way}: {number} of line {lane} of {count}");
                        }
                    }
                };
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") {
                    let lines = Transform { elements, line, count, reversed, to: &mut to };
                    // SAFETY: the processor has the instructions.
                    unsafe { x86::transform(lines) };
                    check(&to, "AVX-512");
                    to.fill(MaybeUninit::new(f32::NAN));
                }
                run_wide(Transform { elements, line, count, reversed, to: &mut to });
                check(&to, "any processor");
            }
        }
    }
}
