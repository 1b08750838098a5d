//! The patches of tiles, transformed: `B^T d B`.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::convolution::Columns;
use super::super::microkernel::LANES;
use super::super::vector::{Wide, run_wide};
use super::{Chunk, PATCH, PATCHES, Patches, RESULTS, ROW};

/// Elements of a row under the patches of a chunk.
const UNDER: usize = LANES * RESULTS + PATCH - RESULTS;

/// Lays out the patches of all chunks, which are so many tiles, in some channels. A row of them is written up to the end of the
/// last vector that has a tile; what stands after the last tile has no meaning.
pub fn transform(columns: &Columns, chunks: &[Chunk], channels: Range<usize>, tiles: usize, to: &mut Patches) {
    for (channel, first) in channels.clone().zip((0..).step_by(ROW)) {
        for chunk in chunks {
            let plane = columns.plane(chunk.sample, channel);
            let source = Source::new(columns, plane, chunk);
            let to = &mut to[first + chunk.place..];
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                // SAFETY: the processor has the instructions.
                unsafe { x86::transform(&source, chunk.length, to) };
                continue;
            }
            run_wide(Transform { source, to });
        }
    }
    let written = tiles..tiles.next_multiple_of(LANES);
    if !written.is_empty() {
        for to in to.chunks_exact_mut(PATCHES) {
            for to in to.chunks_exact_mut(ROW).take(channels.len()) {
                to[written.clone()].fill(MaybeUninit::new(0.0));
            }
        }
    }
}

/// The elements of a plane that are under the patches of a chunk.
struct Source<'a> {
    plane: &'a [f32],
    /// Of each row of the patches, where it begins in the plane, or would if it did not begin on the padding.
    rows: [isize; PATCH],
    /// A bit for each column that is not on the padding; of each row, those there are.
    columns: [u64; PATCH],
}

impl<'a> Source<'a> {
    #[inline(always)]
    fn new(columns: &Columns, plane: &'a [f32], chunk: &Chunk) -> Source<'a> {
        let [height, width] = [columns.grid.y.extent, columns.grid.x.extent].map(|extent| extent.cast_signed());
        let [top, left] = chunk.patch;
        // The padding is at most as wide as a patch.
        let before = (-left).max(0);
        let end = (width - left).clamp(0, UNDER.cast_signed());
        let mask = if before < end { ((1u64 << end) - 1) & !((1u64 << before) - 1) } else { 0 };
        let mut source = Source { plane, rows: [0; PATCH], columns: [0; PATCH] };
        for i in 0..PATCH {
            let row = top + i.cast_signed();
            if (0..height).contains(&row) {
                source.rows[i] = row * columns.width.cast_signed() + left;
                source.columns[i] = mask;
            }
        }
        source
    }

    /// Whether all that is under the patches is in the plane.
    fn is_inside(&self) -> bool {
        self.rows.iter().zip(&self.columns).all(|(row, columns)| {
            let first = row + columns.trailing_zeros() as isize;
            let end = row + (u64::BITS - columns.leading_zeros()) as isize;
            *columns == 0 || (first >= 0 && end.cast_unsigned() <= self.plane.len())
        })
    }
}

/// The way for any processor.
struct Transform<'r, 'a> {
    source: Source<'a>,
    to: &'r mut [MaybeUninit<f32>],
}

impl Wide for Transform<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Transform { source, to } = self;
        let mut rows = [[0.0; UNDER]; PATCH];
        for ((to, row), columns) in rows.iter_mut().zip(source.rows).zip(source.columns) {
            if columns != 0 {
                let own = columns.trailing_zeros() as usize..(u64::BITS - columns.leading_zeros()) as usize;
                let from = (row + own.start.cast_signed()).cast_unsigned();
                to[own.clone()].copy_from_slice(&source.plane[from..from + own.len()]);
            }
        }
        for (i, row) in transform_patch(&rows).iter().enumerate() {
            let mut patch = [[0.0; LANES]; PATCH];
            for t in 0..LANES {
                for (j, patch) in patch.iter_mut().enumerate() {
                    patch[t] = row[t * RESULTS + j];
                }
            }
            for (j, numbers) in transform_patch(&patch).iter().enumerate() {
                to[(i * PATCH + j) * PATCHES..][..LANES].write_copy_of_slice(numbers);
            }
        }
    }
}

/// `B^T d`, a lane at a time. (A loop, for `std::array::from_fn` is not always inlined, and outside it has no wide vectors.)
#[inline(always)]
fn transform_patch<const L: usize>([a, b, c, d]: &[[f32; L]; PATCH]) -> [[f32; L]; PATCH] {
    let mut numbers = [[0.0; L]; PATCH];
    for i in 0..L {
        numbers[0][i] = a[i] - c[i];
        numbers[1][i] = b[i] + c[i];
        numbers[2][i] = c[i] - b[i];
        numbers[3][i] = b[i] - d[i];
    }
    numbers
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_add_ps, _mm256_maskz_loadu_ps, _mm256_permutex2var_ps, _mm256_set_epi32,
        _mm256_setzero_ps, _mm256_storeu_ps, _mm256_sub_ps, _mm512_add_ps, _mm512_maskz_loadu_ps,
        _mm512_permutex2var_ps, _mm512_set_epi32, _mm512_setzero_ps, _mm512_storeu_ps, _mm512_sub_ps,
    };
    use std::mem::MaybeUninit;

    use super::{PATCH, PATCHES, Source};

    /// Up to 8 tiles at once, or 16.
    #[target_feature(enable = "avx512f,avx512vl")]
    pub fn transform(source: &Source, tiles: usize, to: &mut [MaybeUninit<f32>]) {
        assert!(source.is_inside(), "a patch ends outside of its plane");
        let lanes = if tiles > 8 { 16 } else { 8 };
        assert!((PATCH * PATCH - 1) * PATCHES + lanes <= to.len(), "patches end outside of the room");
        // SAFETY: columns are in the plane, and vectors in the room, as was checked.
        unsafe {
            if tiles > 8 {
                transform_16(source, to.as_mut_ptr().cast())
            } else {
                transform_8(source, to.as_mut_ptr().cast())
            }
        }
    }

    /// The same for vectors of one size: columns are loaded as they lie, twice, the second time two further; those of even and
    /// of odd number are parted when the rows have been transformed.
    macro_rules! transform {
        ($name:ident, $vector:ty, $mask:ty, $lanes:literal, $zero:ident, $load:ident, $store:ident, $add:ident, $sub:ident,
         $permute:ident, $even:expr, $odd:expr) => {
            /// # Safety
            /// The columns are in the plane, and the vectors of all numbers may be written.
            #[target_feature(enable = "avx512f,avx512vl")]
            unsafe fn $name(source: &Source, to: *mut f32) {
                let (even, odd) = ($even, $odd);
                let start = source.plane.as_ptr();
                let mut rows: [[$vector; 4]; PATCH] = [[$zero(); 4]; PATCH];
                for (i, offset) in [0, $lanes, 2, 2 + $lanes].into_iter().enumerate() {
                    let mut patch: [$vector; PATCH] = [$zero(); PATCH];
                    for ((element, row), columns) in patch.iter_mut().zip(source.rows).zip(source.columns) {
                        // SAFETY: the mask has only columns that are in the plane.
                        *element = unsafe { $load((columns >> offset) as $mask, start.wrapping_offset(row + offset)) };
                    }
                    let [a, b, c, d] = patch;
                    let numbers = [$sub(a, c), $add(b, c), $sub(c, b), $sub(b, d)];
                    rows.iter_mut().zip(numbers).for_each(|(row, number)| row[i] = number);
                }
                for (i, [first, second, first_after, second_after]) in rows.into_iter().enumerate() {
                    let (a, b) = ($permute(first, even, second), $permute(first, odd, second));
                    let (c, d) = ($permute(first_after, even, second_after), $permute(first_after, odd, second_after));
                    let to = to.wrapping_add(i * PATCH * PATCHES);
                    for (j, numbers) in [$sub(a, c), $add(b, c), $sub(c, b), $sub(b, d)].into_iter().enumerate() {
                        // SAFETY: as the caller promised.
                        unsafe { $store(to.wrapping_add(j * PATCHES), numbers) };
                    }
                }
            }
        };
    }

    transform!(
        transform_16,
        __m512,
        u16,
        16,
        _mm512_setzero_ps,
        _mm512_maskz_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_permutex2var_ps,
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0),
        _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1)
    );
    transform!(
        transform_8,
        __m256,
        u8,
        8,
        _mm256_setzero_ps,
        _mm256_maskz_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_permutex2var_ps,
        _mm256_set_epi32(14, 12, 10, 8, 6, 4, 2, 0),
        _mm256_set_epi32(15, 13, 11, 9, 7, 5, 3, 1)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEIGHT: isize = 5;
    const WIDTH: isize = 19;

    fn element(row: isize, column: isize) -> f32 {
        let is_inside = (0..HEIGHT).contains(&row) && (0..WIDTH).contains(&column);
        if is_inside { ((row * WIDTH + column) * 7919 % 101) as f32 } else { 0.0 }
    }

    /// Both ways give `B^T d B` by its definition, with padding on any side. The numbers are whole, so that nothing is rounded.
    #[test]
    fn patches_by_definition() {
        const B: [[f32; PATCH]; PATCH] =
            [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, -1.0]];
        let plane: Vec<f32> = (0..HEIGHT * WIDTH).map(|i| element(i / WIDTH, i % WIDTH)).collect();
        let tops: &[isize] = if cfg!(miri) { &[-1, 2] } else { &[-1, 0, 2, 4] };
        let lefts = [(-2, 3), (16, 2), (-1, 10), (-1, 8), (0, 9), (3, 8)];
        for &top in tops {
            for (left, tiles) in lefts.into_iter().take(if cfg!(miri) { 2 } else { lefts.len() }) {
                let mut source = Source { plane: &plane, rows: [0; PATCH], columns: [0; PATCH] };
                for i in (0..PATCH).filter(|i| (0..HEIGHT).contains(&(top + i.cast_signed()))) {
                    source.rows[i] = (top + i.cast_signed()) * WIDTH + left;
                    source.columns[i] =
                        (0..UNDER.cast_signed()).filter(|j| (0..WIDTH).contains(&(left + j))).map(|j| 1 << j).sum();
                }
                assert!(source.is_inside());
                let expected = |number: usize, tile: usize| {
                    let (row, column) = (number / PATCH, number % PATCH);
                    let terms = (0..PATCH * PATCH).map(|at| {
                        let (y, x) = (at / PATCH, at % PATCH);
                        let d = element(top + y.cast_signed(), left + (tile * RESULTS + x).cast_signed());
                        B[y][row] * d * B[x][column]
                    });
                    terms.sum::<f32>()
                };
                let check = |to: &[MaybeUninit<f32>], way: &str| {
                    for number in 0..PATCH * PATCH {
                        for tile in 0..tiles {
                            // SAFETY: all was initialized.
                            let got = unsafe { to[number * PATCHES + tile].assume_init() };
                            assert_eq!(got, expected(number, tile), "{way}: {number} of tile {tile} at {top}, {left}");
                        }
                    }
                };
                let mut to = Box::new_uninit_slice(PATCH * PATCH * PATCHES);
                if cfg!(not(miri)) {
                    to.fill(MaybeUninit::new(f32::NAN));
                }
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: the processor has the instructions.
                    unsafe { x86::transform(&source, tiles, &mut to) };
                    check(&to, "AVX-512");
                    to.fill(MaybeUninit::new(f32::NAN));
                }
                run_wide(Transform { source, to: &mut to });
                check(&to, "any processor");
            }
        }
    }
}
