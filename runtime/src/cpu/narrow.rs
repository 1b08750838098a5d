//! Products with matrices of a few rows: those of a linear layer at a small batch.
//!
//! They take the time that reading or writing the one large matrix takes, the weight or its gradient. So nothing is copied, and
//! the large matrix is gone through once, along its rows: by dot products with them, or by adding up scaled rows.

use std::ops::Range;

use super::microkernel::{DOTS, dots};
use super::parallel::{self, Shared};
use super::product::{Matrix, Start};
use super::vector::wide;

/// How many rows are few. With more, a blocked [product](super::product) is faster, for it uses what it copies often enough.
const FEW: usize = 8;

/// Of rows that are long for a dot product, so many are few: beyond, a blocked product is as fast.
const FEW_LONG: usize = 128;

/// How long that is.
const LONG: usize = 768;

/// Elements of the large matrix that one task handles, about.
const TASK: usize = 16 << 10;

/// No more tasks than that where the matrix is larger.
const TASKS: usize = 64;

/// The part of the dot products that is handled at a time: that of [`DOTS`] rows of the weight stays in the first-level cache.
const DEPTH: usize = 1024;

/// Columns of sums that stay in the first-level cache.
const COLUMNS: usize = 1024;

/// Whether so many rows are few for [`by`] and [`outer`].
pub fn suits(rows: usize) -> bool {
    rows <= FEW
}

/// Whether so many rows of that length are few for [`by_transposed`].
pub fn suits_transposed(rows: usize, length: usize) -> bool {
    rows <= FEW || rows <= FEW_LONG && length >= LONG
}

/// `y = x W^T`, and a bias for each column.
pub fn by_transposed(x: &Matrix, weight: &Matrix, bias: Option<&[f32]>, y: &mut [f32]) {
    let size = (TASK / x.columns).max(weight.rows / TASKS).max(1).next_multiple_of(DOTS);
    let samples = x.rows;
    parallel::columns(y, weight.rows, size, |mut y| {
        let outputs = y.range.clone();
        for sample in 0..samples {
            match bias {
                Some(bias) => y.row(sample).copy_from_slice(&bias[outputs.clone()]),
                None => y.row(sample).fill(0.0),
            }
        }
        for first in (0..x.columns).step_by(DEPTH) {
            let depth = first..x.columns.min(first + DEPTH);
            for first in outputs.clone().step_by(DOTS) {
                let count = (outputs.end - first).min(DOTS);
                // The last one stands for those that are missing.
                let rows = std::array::from_fn(|i| &weight.line(first + i.min(count - 1))[depth.clone()]);
                let x = |sample: usize| &x.line(sample)[depth.clone()];
                let mut add = |sample: usize, dots: [f32; DOTS]| {
                    let y = &mut y.row(sample)[first - outputs.start..][..count];
                    y.iter_mut().zip(dots).for_each(|(y, dot)| *y += dot);
                };
                let whole = samples / DOTS * DOTS;
                for sample in (0..whole).step_by(DOTS) {
                    let dots = dots(rows, std::array::from_fn::<_, DOTS, _>(|i| x(sample + i)));
                    for i in 0..DOTS {
                        add(sample + i, dots.map(|dots| dots[i]));
                    }
                }
                for sample in whole..samples {
                    add(sample, dots(rows, [x(sample)]).map(|[dot]| dot));
                }
            }
        }
    });
}

/// `y = x W`.
pub fn by(x: &Matrix, weight: &Matrix, y: &mut [f32], start: Start) {
    parallel::columns(y, weight.columns, COLUMNS, |mut y| {
        let mut sums = [[0.0; COLUMNS]; FEW];
        let columns = y.range.clone();
        for first in (0..weight.rows).step_by(GROUP) {
            let rows = first..weight.rows.min(first + GROUP);
            for (sample, sums) in sums[..x.rows].iter_mut().enumerate() {
                add_rows(&mut sums[..columns.len()], weight, rows.clone(), columns.start, |row| x.line(sample)[row]);
            }
        }
        for (sample, sums) in sums[..x.rows].iter().enumerate() {
            let y = y.row(sample);
            match start {
                Start::Target => wide(|| y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum)),
                _ => y.copy_from_slice(&sums[..y.len()]),
            }
        }
    });
}

/// `left right`, whose common extent is the few rows of the right one.
pub fn outer(left: &Matrix, right: &Matrix, result: &mut [f32], start: Start) {
    outer_in_pieces(left, right, [result], |sums, [result]| match start {
        Start::Target => wide(|| result.iter_mut().zip(sums).for_each(|(result, sum)| *result += sum)),
        _ => result.copy_from_slice(sums),
    });
}

/// Calls `take` with every piece of [`outer`], part of a row, and with the part of other matrices of its size at its place.
pub fn outer_in_pieces<const N: usize>(
    left: &Matrix,
    right: &Matrix,
    beside: [&mut [f32]; N],
    take: impl Fn(&[f32], [&mut [f32]; N]) + Sync,
) {
    let beside = Shared::new(beside);
    let (rows, columns) = (left.rows, right.columns);
    let size = (TASK / columns).max(1);
    parallel::for_each(rows.div_ceil(size), |i| {
        for row in i * size..rows.min((i + 1) * size) {
            for first in (0..columns).step_by(COLUMNS) {
                let place = first..columns.min(first + COLUMNS);
                let mut sums = [0.0; COLUMNS];
                let sums = &mut sums[..place.len()];
                add_rows(sums, right, 0..right.rows, first, |k| left.elements[row * left.row + k * left.column]);
                // SAFETY: no other task has this row, and the columns come once.
                take(sums, unsafe { beside.take(row * columns + place.start..row * columns + place.end) });
            }
        }
    });
}

/// Rows that are added at a time.
const GROUP: usize = 4;

/// Adds rows of a matrix, from a column on, each times its own factor.
#[inline(always)]
fn add_rows(sums: &mut [f32], matrix: &Matrix, rows: Range<usize>, column: usize, factor: impl Fn(usize) -> f32) {
    let length = sums.len();
    let line = |row: usize| &matrix.line(row)[column..][..length];
    let whole = rows.start + rows.len() / GROUP * GROUP;
    for first in (rows.start..whole).step_by(GROUP) {
        let ([a, b, c, d], f) =
            (std::array::from_fn(|i| line(first + i)), std::array::from_fn::<_, GROUP, _>(|i| factor(first + i)));
        wide(|| {
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *sum = *sum + f[0] * a + f[1] * b + f[2] * c + f[3] * d;
            }
        });
    }
    for row in whole..rows.end {
        let f = factor(row);
        wide(|| sums.iter_mut().zip(line(row)).for_each(|(sum, x)| *sum += f * x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::product::{Target, product, product_in_pieces};

    fn value(i: usize) -> f32 {
        ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0
    }

    fn values(length: usize, first: usize) -> Vec<f32> {
        (first..first + length).map(value).collect()
    }

    /// Few rows, and the two sides of the large matrix, which are no multiples of anything.
    fn sizes() -> impl Iterator<Item = [usize; 3]> {
        let few: &[usize] = if cfg!(miri) { &[1, 6] } else { &[1, 2, 3, 4, 5, 6, 7, 8] };
        let large: &[[usize; 2]] =
            if cfg!(miri) { &[[3, 18]] } else { &[[1, 1], [3, 18], [4, 16], [9, 515], [70, 1050], [21, 2200]] };
        few.iter().flat_map(move |rows| large.iter().map(move |[m, n]| [*rows, *m, *n]))
    }

    /// Compares with `sum(row, column)`.
    #[track_caller]
    fn check(got: &[f32], columns: usize, sum: impl Fn(usize, usize) -> f64) {
        for (i, got) in got.iter().enumerate() {
            let sum = sum(i / columns, i % columns);
            assert!((f64::from(*got) - sum).abs() < 1e-4 * sum.abs().max(10.0), "{i}: {got} is not {sum}");
        }
    }

    #[test]
    fn by_transposed_is_the_product() {
        for [rows, outputs, depth] in sizes() {
            let (x, w, b) = (values(rows * depth, 0), values(outputs * depth, 5), values(outputs, 9));
            for bias in [None, Some(&b[..])] {
                let mut y = values(rows * outputs, 7);
                by_transposed(&Matrix::rows(&x, rows, depth), &Matrix::rows(&w, outputs, depth), bias, &mut y);
                check(&y, outputs, |row, output| {
                    let terms = (0..depth).map(|k| f64::from(x[row * depth + k] * w[output * depth + k]));
                    terms.sum::<f64>() + bias.map_or(0.0, |bias| f64::from(bias[output]))
                });
            }
        }
    }

    #[test]
    fn by_is_the_product() {
        for [rows, depth, columns] in sizes() {
            let (x, w) = (values(rows * depth, 0), values(depth * columns, 5));
            for (start, kept) in [(Start::Zero, 0.0), (Start::Target, 1.0)] {
                let before = values(rows * columns, 7);
                let mut y = before.clone();
                by(&Matrix::rows(&x, rows, depth), &Matrix::rows(&w, depth, columns), &mut y, start);
                check(&y, columns, |row, column| {
                    let terms = (0..depth).map(|k| f64::from(x[row * depth + k] * w[k * columns + column]));
                    terms.sum::<f64>() + kept * f64::from(before[row * columns + column])
                });
            }
        }
    }

    #[test]
    fn outer_is_the_product() {
        for [few, rows, columns] in sizes() {
            let (x, y) = (values(few * rows, 0), values(few * columns, 5));
            for (start, kept) in [(Start::Zero, 0.0), (Start::Target, 1.0)] {
                let before = values(rows * columns, 7);
                let mut result = before.clone();
                let left = Matrix::rows(&x, few, rows).transposed();
                outer(&left, &Matrix::rows(&y, few, columns), &mut result, start);
                check(&result, columns, |row, column| {
                    let terms = (0..few).map(|k| f64::from(x[k * rows + row] * y[k * columns + column]));
                    terms.sum::<f64>() + kept * f64::from(before[row * columns + column])
                });
            }
        }
    }

    /// Pieces are the same bits as the whole, and come with what lies at their place.
    #[test]
    fn pieces_make_up_the_whole() {
        for [few, rows, columns] in sizes() {
            let (x, y) = (values(few * rows, 0), values(few * columns, 5));
            let (left, right) = (Matrix::rows(&x, few, rows).transposed(), Matrix::rows(&y, few, columns));
            let beside = values(rows * columns, 7);
            let add = |sums: &[f32], [to, empty]: [&mut [f32]; 2]| {
                assert!(empty.is_empty());
                to.iter_mut().zip(sums).for_each(|(to, sum)| *to -= sum);
            };
            let mut expected = vec![0.0; rows * columns];
            let check = |got: &[f32], expected: &[f32]| {
                for ((got, before), sum) in got.iter().zip(&beside).zip(expected) {
                    assert_eq!(*got, before - sum, "{few} x {rows} x {columns}");
                }
            };
            let mut got = beside.clone();
            outer(&left, &right, &mut expected, Start::Zero);
            outer_in_pieces(&left, &right, [&mut got, &mut []], add);
            check(&got, &expected);
            let mut got = beside.clone();
            product(Target::rows(&mut expected, columns, Start::Zero), &left, &right);
            product_in_pieces(&left, &right, [&mut got, &mut []], add);
            check(&got, &expected);
        }
    }
}
