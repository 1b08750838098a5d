//! The same with the vector instructions of x86-64.

use std::arch::x86_64::{
    __m128, __m512, _MM_TRANSPOSE4_PS, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_epi32, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_permutexvar_ps, _mm512_reduce_add_ps, _mm512_set_epi32,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

use super::{DOTS, HEIGHT, LANES, Panel, Rows, Sums, spread};

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
pub unsafe fn multiply_avx512(rows: Rows, panel: Panel, width: usize, sums: Sums) {
    // SAFETY: as the caller promised.
    unsafe {
        if width > LANES {
            columns_avx512::<2>(rows, panel, sums);
        } else {
            columns_avx512::<1>(rows, panel, sums);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn columns_avx512<const V: usize>(rows: Rows, panel: Panel, sums: Sums) {
    // SAFETY: as the caller promised; one row more or less is one loop of the same kind.
    unsafe {
        match rows.count {
            12 => rows_avx512::<12, V>(rows, panel, sums),
            11 => rows_avx512::<11, V>(rows, panel, sums),
            10 => rows_avx512::<10, V>(rows, panel, sums),
            9 => rows_avx512::<9, V>(rows, panel, sums),
            8 => rows_avx512::<8, V>(rows, panel, sums),
            7 => rows_avx512::<7, V>(rows, panel, sums),
            6 => rows_avx512::<6, V>(rows, panel, sums),
            5 => rows_avx512::<5, V>(rows, panel, sums),
            4 => rows_avx512::<4, V>(rows, panel, sums),
            3 => rows_avx512::<3, V>(rows, panel, sums),
            2 => rows_avx512::<2, V>(rows, panel, sums),
            _ => rows_avx512::<1, V>(rows, panel, sums),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn rows_avx512<const R: usize, const V: usize>(rows: Rows, panel: Panel, to: Sums) {
    let adds = to.adds;
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    let mut x = rows.start;
    for offset in panel.rows {
        // SAFETY: `x` is within the rows and the vectors within the panel, as the caller promised.
        unsafe {
            let mut right = [_mm512_setzero_ps(); V];
            for (right, half) in right.iter_mut().zip(panel.halves) {
                *right = _mm512_loadu_ps(half.add(*offset));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = _mm512_set1_ps(*x.add(i * rows.row));
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = _mm512_fmadd_ps(x, right, *sum);
                }
            }
        }
        x = x.wrapping_add(rows.column);
    }
    for (i, sums) in sums.into_iter().enumerate() {
        for (j, mut sum) in sums.into_iter().enumerate() {
            // SAFETY: the vector may be written, and read where it is added to, as the caller promised.
            unsafe {
                let to = to.start.add(i * to.row + j * LANES);
                if adds {
                    sum = _mm512_add_ps(sum, _mm512_loadu_ps(to));
                }
                _mm512_storeu_ps(to, sum);
            }
        }
    }
}

/// # Safety
/// All rows have this length.
#[target_feature(enable = "avx512f")]
pub unsafe fn dots_avx512<const C: usize>(left: [&[f32]; DOTS], right: [&[f32]; C], length: usize) -> [[f32; C]; DOTS] {
    let mut sums = [[_mm512_setzero_ps(); C]; DOTS];
    let whole = length / LANES * LANES;
    for k in (0..whole).step_by(LANES) {
        // SAFETY: all lanes are within the rows.
        unsafe { add_products_avx512(left, right, k, u16::MAX, &mut sums) };
    }
    if whole < length {
        // SAFETY: these lanes are within the rows.
        unsafe { add_products_avx512(left, right, whole, u16::MAX >> (LANES + whole - length), &mut sums) };
    }
    let mut dots = [[0.0; C]; DOTS];
    for (dots, sums) in dots.iter_mut().zip(sums) {
        for (dot, sum) in dots.iter_mut().zip(sums) {
            *dot = _mm512_reduce_add_ps(sum);
        }
    }
    dots
}

/// # Safety
/// In all rows, there are these lanes from `k` on.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn add_products_avx512<const C: usize>(
    left: [&[f32]; DOTS],
    right: [&[f32]; C],
    k: usize,
    lanes: u16,
    sums: &mut [[__m512; C]; DOTS],
) {
    let mut y = [_mm512_setzero_ps(); C];
    for (y, right) in y.iter_mut().zip(right) {
        // SAFETY: other lanes are not read.
        *y = unsafe { _mm512_maskz_loadu_ps(lanes, right.as_ptr().add(k)) };
    }
    for (sums, left) in sums.iter_mut().zip(left) {
        // SAFETY: as above.
        let x = unsafe { _mm512_maskz_loadu_ps(lanes, left.as_ptr().add(k)) };
        for (sum, y) in sums.iter_mut().zip(y) {
            *sum = _mm512_fmadd_ps(x, y, *sum);
        }
    }
}

/// Twice two of the rows: 8 of the 16 registers hold sums.
///
/// # Safety
/// All rows have this length.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn dots_avx2<const C: usize>(left: [&[f32]; DOTS], right: [&[f32]; C], length: usize) -> [[f32; C]; DOTS] {
    const LANES: usize = 8;
    let whole = length / LANES * LANES;
    let mut dots = [[0.0; C]; DOTS];
    for (left, dots) in left.chunks_exact(2).zip(dots.chunks_exact_mut(2)) {
        let mut sums = [[_mm256_setzero_ps(); C]; 2];
        for k in (0..whole).step_by(LANES) {
            let mut y = [_mm256_setzero_ps(); C];
            for (y, right) in y.iter_mut().zip(right) {
                // SAFETY: within the row.
                *y = unsafe { _mm256_loadu_ps(right.as_ptr().add(k)) };
            }
            for (sums, left) in sums.iter_mut().zip(left) {
                // SAFETY: as above.
                let x = unsafe { _mm256_loadu_ps(left.as_ptr().add(k)) };
                for (sum, y) in sums.iter_mut().zip(y) {
                    *sum = _mm256_fmadd_ps(x, y, *sum);
                }
            }
        }
        for ((dots, sums), left) in dots.iter_mut().zip(sums).zip(left) {
            for ((dot, sum), right) in dots.iter_mut().zip(sums).zip(right) {
                let mut lanes = [0.0; LANES];
                // SAFETY: there are so many lanes.
                unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
                let rest = left[whole..].iter().zip(&right[whole..]).map(|(x, y)| x * y);
                *dot = lanes.iter().sum::<f32>() + rest.sum::<f32>();
            }
        }
    }
    dots
}

/// # Safety
/// As [`store`](super::store), one place after the other.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn store_avx512(to: *mut f32, sums: &[f32], adds: bool) {
    let lanes = u16::MAX >> (LANES - sums.len());
    // SAFETY: as the caller promised; the sums have these lanes.
    unsafe { store_lanes(to, lanes, _mm512_maskz_loadu_ps(lanes, sums.as_ptr()), adds) };
}

/// # Safety
/// As [`store`](super::store), at every second place.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn store_every_second_avx512(to: *mut f32, sums: &[f32], adds: bool) {
    let lanes = u16::MAX >> (LANES - sums.len());
    let [low, high] = [lanes as u8, (lanes >> 8) as u8].map(spread);
    let twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    // SAFETY: as the caller promised; half of the lanes go to each of two vectors of places.
    unsafe {
        let sums = _mm512_maskz_loadu_ps(lanes, sums.as_ptr());
        store_lanes(to, low, _mm512_permutexvar_ps(twice, sums), adds);
        let upper = _mm512_add_epi32(twice, _mm512_set1_epi32(8));
        store_lanes(to.wrapping_add(LANES), high, _mm512_permutexvar_ps(upper, sums), adds);
    }
}

/// # Safety
/// These lanes may be written.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_lanes(to: *mut f32, lanes: u16, mut sums: __m512, adds: bool) {
    // SAFETY: lanes outside of the mask are neither read nor written; the others the caller promised.
    unsafe {
        if adds {
            sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(lanes, to));
        }
        _mm512_mask_storeu_ps(to, lanes, sums);
    }
}

/// Twice the left half of the panel and then the right, each in up to 6 rows of two vectors: 12 of the 16 registers
/// hold sums.
///
/// # Safety
/// As [`multiply`](super::multiply).
#[target_feature(enable = "avx2,fma")]
pub unsafe fn multiply_avx2(rows: Rows, panel: Panel, width: usize, sums: Sums) {
    const _: () = assert!(HEIGHT.is_multiple_of(6));
    for first in (0..rows.count).step_by(6) {
        let part =
            Rows { start: rows.start.wrapping_add(first * rows.row), count: (rows.count - first).min(6), ..rows };
        for (half, i) in panel.halves.into_iter().zip([0, LANES]).take(width.div_ceil(LANES)) {
            let sums = Sums { start: sums.start.wrapping_add(first * sums.row + i), ..sums };
            // SAFETY: as the caller promised, for these rows and columns.
            unsafe {
                match part.count {
                    6 => rows_avx2::<6>(part, half, panel.rows, sums),
                    5 => rows_avx2::<5>(part, half, panel.rows, sums),
                    4 => rows_avx2::<4>(part, half, panel.rows, sums),
                    3 => rows_avx2::<3>(part, half, panel.rows, sums),
                    2 => rows_avx2::<2>(part, half, panel.rows, sums),
                    _ => rows_avx2::<1>(part, half, panel.rows, sums),
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows_avx2<const R: usize>(rows: Rows, panel: *const f32, offsets: &[usize], to: Sums) {
    let adds = to.adds;
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let mut x = rows.start;
    for offset in offsets {
        // SAFETY: `x` is within the rows and the vectors within the panel, as the caller promised.
        unsafe {
            let y = panel.add(*offset);
            let (y0, y1) = (_mm256_loadu_ps(y), _mm256_loadu_ps(y.add(8)));
            for (i, [sum0, sum1]) in sums.iter_mut().enumerate() {
                let x = _mm256_set1_ps(*x.add(i * rows.row));
                *sum0 = _mm256_fmadd_ps(x, y0, *sum0);
                *sum1 = _mm256_fmadd_ps(x, y1, *sum1);
            }
        }
        x = x.wrapping_add(rows.column);
    }
    for (i, sums) in sums.into_iter().enumerate() {
        for (j, mut sum) in sums.into_iter().enumerate() {
            // SAFETY: half of the vector may be written, and read where it is added to, as the caller promised.
            unsafe {
                let to = to.start.add(i * to.row + j * 8);
                if adds {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(to));
                }
                _mm256_storeu_ps(to, sum);
            }
        }
    }
}
