//! The innermost loop of a product: a few rows of the left matrix times a panel of columns of the right one.
//!
//! The sums of a tile stay in vector registers while the loop runs over the common extent. The left matrix is read where it
//! lies, an element at a time for all lanes; the panel holds [`WIDTH`] columns, row after row (Goto & van de Geijn 2008,
//! without their packing of the left matrix: reading its elements by broadcast costs no more than reading a packed copy).

/// Columns of a panel.
pub const WIDTH: usize = 32;

/// The most rows of a tile.
pub const HEIGHT: usize = 12;

/// A tile of sums.
pub type Tile = [[f32; WIDTH]; HEIGHT];

/// Some rows of the left matrix.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The first element.
    pub start: *const f32,
    /// How many rows, up to [`HEIGHT`].
    pub count: usize,
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
}

/// `tile = rows * panel` in the first `width` columns at least; the panel has `depth` rows.
///
/// # Safety
/// `rows` has `depth` columns, and the panel `depth` rows of [`WIDTH`] elements, all of them readable.
pub unsafe fn multiply(rows: Rows, panel: *const f32, depth: usize, width: usize, tile: &mut Tile) {
    debug_assert!((1..=HEIGHT).contains(&rows.count));
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions; the caller promised the rest.
            return unsafe { x86::multiply_avx512(rows, panel, depth, width, tile) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { x86::multiply_avx2(rows, panel, depth, tile) };
        }
    }
    // SAFETY: as the caller promised.
    unsafe { multiply_portably(rows, panel, depth, tile) }
}

/// For processors without a kernel of their own: left to the compiler.
unsafe fn multiply_portably(rows: Rows, panel: *const f32, depth: usize, tile: &mut Tile) {
    for (i, sums) in tile[..rows.count].iter_mut().enumerate() {
        *sums = [0.0; WIDTH];
        for k in 0..depth {
            // SAFETY: within the rows and the panel, as the caller promised.
            let (x, row) = unsafe {
                (*rows.start.add(i * rows.row + k * rows.column), &*panel.add(k * WIDTH).cast::<[f32; WIDTH]>())
            };
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        }
    }
}

/// Four rows of four as columns.
pub fn transpose(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        x86::transpose(rows)
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        std::array::from_fn(|j| std::array::from_fn(|i| rows[i][j]))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{
        __m128, _MM_TRANSPOSE4_PS, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{HEIGHT, Rows, Tile, WIDTH};

    /// In the registers that every processor of this kind has.
    #[inline]
    pub fn transpose(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
        // SAFETY: a vector is four floats, whatever they are; every x86-64 has the instructions.
        unsafe {
            let [mut a, mut b, mut c, mut d]: [__m128; 4] = std::mem::transmute(rows);
            _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
            std::mem::transmute([a, b, c, d])
        }
    }

    /// 12 rows of two vectors: 24 of the 32 registers hold sums. Where half of the columns is enough, one vector.
    ///
    /// # Safety
    /// As [`multiply`](super::multiply).
    #[target_feature(enable = "avx512f")]
    pub unsafe fn multiply_avx512(rows: Rows, panel: *const f32, depth: usize, width: usize, tile: &mut Tile) {
        // SAFETY: as the caller promised.
        unsafe {
            if width > WIDTH / 2 {
                columns_avx512::<2>(rows, panel, depth, tile);
            } else {
                columns_avx512::<1>(rows, panel, depth, tile);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn columns_avx512<const V: usize>(rows: Rows, panel: *const f32, depth: usize, tile: &mut Tile) {
        // SAFETY: as the caller promised; one row more or less is one loop of the same kind.
        unsafe {
            match rows.count {
                12 => rows_avx512::<12, V>(rows, panel, depth, tile),
                11 => rows_avx512::<11, V>(rows, panel, depth, tile),
                10 => rows_avx512::<10, V>(rows, panel, depth, tile),
                9 => rows_avx512::<9, V>(rows, panel, depth, tile),
                8 => rows_avx512::<8, V>(rows, panel, depth, tile),
                7 => rows_avx512::<7, V>(rows, panel, depth, tile),
                6 => rows_avx512::<6, V>(rows, panel, depth, tile),
                5 => rows_avx512::<5, V>(rows, panel, depth, tile),
                4 => rows_avx512::<4, V>(rows, panel, depth, tile),
                3 => rows_avx512::<3, V>(rows, panel, depth, tile),
                2 => rows_avx512::<2, V>(rows, panel, depth, tile),
                _ => rows_avx512::<1, V>(rows, panel, depth, tile),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn rows_avx512<const R: usize, const V: usize>(
        rows: Rows,
        panel: *const f32,
        depth: usize,
        tile: &mut Tile,
    ) {
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        let (mut x, mut y) = (rows.start, panel);
        for _ in 0..depth {
            // SAFETY: `x` is within the rows and `y` within the panel, as the caller promised.
            unsafe {
                let mut right = [_mm512_setzero_ps(); V];
                for (v, right) in right.iter_mut().enumerate() {
                    *right = _mm512_loadu_ps(y.add(16 * v));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_ps(*x.add(i * rows.row));
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = _mm512_fmadd_ps(x, right, *sum);
                    }
                }
            }
            x = x.wrapping_add(rows.column);
            y = y.wrapping_add(WIDTH);
        }
        for (row, sums) in tile.iter_mut().zip(sums) {
            for (part, sum) in row.chunks_exact_mut(16).zip(sums) {
                // SAFETY: the part has 16 elements.
                unsafe { _mm512_storeu_ps(part.as_mut_ptr(), sum) };
            }
        }
    }

    /// Twice the left half of the panel and then the right, each in up to 6 rows of two vectors: 12 of the 16 registers
    /// hold sums.
    ///
    /// # Safety
    /// As [`multiply`](super::multiply).
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn multiply_avx2(rows: Rows, panel: *const f32, depth: usize, tile: &mut Tile) {
        const _: () = assert!(HEIGHT.is_multiple_of(6));
        for first in (0..rows.count).step_by(6) {
            let part =
                Rows { start: rows.start.wrapping_add(first * rows.row), count: (rows.count - first).min(6), ..rows };
            for half in [0, 16] {
                let panel = panel.wrapping_add(half);
                // SAFETY: as the caller promised, for these rows and columns.
                unsafe {
                    match part.count {
                        6 => rows_avx2::<6>(part, panel, depth, &mut tile[first..], half),
                        5 => rows_avx2::<5>(part, panel, depth, &mut tile[first..], half),
                        4 => rows_avx2::<4>(part, panel, depth, &mut tile[first..], half),
                        3 => rows_avx2::<3>(part, panel, depth, &mut tile[first..], half),
                        2 => rows_avx2::<2>(part, panel, depth, &mut tile[first..], half),
                        _ => rows_avx2::<1>(part, panel, depth, &mut tile[first..], half),
                    }
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn rows_avx2<const R: usize>(
        rows: Rows,
        panel: *const f32,
        depth: usize,
        tile: &mut [[f32; WIDTH]],
        half: usize,
    ) {
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        let (mut x, mut y) = (rows.start, panel);
        for _ in 0..depth {
            // SAFETY: `x` is within the rows and `y` within the panel, as the caller promised.
            unsafe {
                let (y0, y1) = (_mm256_loadu_ps(y), _mm256_loadu_ps(y.add(8)));
                for (i, [sum0, sum1]) in sums.iter_mut().enumerate() {
                    let x = _mm256_set1_ps(*x.add(i * rows.row));
                    *sum0 = _mm256_fmadd_ps(x, y0, *sum0);
                    *sum1 = _mm256_fmadd_ps(x, y1, *sum1);
                }
            }
            x = x.wrapping_add(rows.column);
            y = y.wrapping_add(WIDTH);
        }
        for (row, [sum0, sum1]) in tile.iter_mut().zip(sums) {
            let (low, high) = row[half..half + 16].split_at_mut(8);
            // SAFETY: both halves have 8 elements.
            unsafe {
                _mm256_storeu_ps(low.as_mut_ptr(), sum0);
                _mm256_storeu_ps(high.as_mut_ptr(), sum1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let rows: [[f32; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| (10 * i + j) as f32));
        for (i, row) in transpose(rows).iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                assert_eq!(*x, (10 * j + i) as f32);
            }
        }
    }

    /// Every kernel that this processor has gives the same sums, up to rounding.
    #[test]
    fn kernels_agree() {
        let depth = 37;
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let left: Vec<f32> = (0..HEIGHT * depth).map(value).collect();
        let panel: Vec<f32> = (0..depth * WIDTH).map(|i| value(i + 5)).collect();
        for count in 1..=HEIGHT {
            let rows = Rows { start: left.as_ptr(), count, row: depth, column: 1 };
            let mut expected = [[0.0; WIDTH]; HEIGHT];
            // SAFETY: both slices have that many elements.
            unsafe { multiply_portably(rows, panel.as_ptr(), depth, &mut expected) };
            let check = |tile: Tile, width: usize| {
                for (row, expected) in tile.iter().zip(&expected) {
                    let mut pairs = row.iter().zip(expected).take(width);
                    assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-4), "{count} rows");
                }
            };
            for width in [WIDTH, WIDTH / 2] {
                let mut tile = [[0.0; WIDTH]; HEIGHT];
                // SAFETY: as above.
                unsafe { multiply(rows, panel.as_ptr(), depth, width, &mut tile) };
                check(tile, width);
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let mut tile = [[0.0; WIDTH]; HEIGHT];
                // SAFETY: as above, and the processor has the instructions.
                unsafe { x86::multiply_avx2(rows, panel.as_ptr(), depth, &mut tile) };
                check(tile, WIDTH);
            }
        }
    }
}
