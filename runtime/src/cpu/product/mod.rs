//! Products of matrices.
//!
//! Both matrices come in blocks of [`DEPTH`] of their common extent. A block of the right one is laid out in panels of
//! [`WIDTH`] columns that stay in the second-level cache; a tile of the left one, [`HEIGHT`] rows, goes over all of them
//! while it is in the first (Goto & van de Geijn 2008). Nothing is allocated: blocks lie on the stack (the crate `gemm`
//! allocates them at every call, which a training step must not). The product is cut into tasks whatever the number of
//! threads, so that results do not depend on it.

mod matrix;
mod target;

use std::mem::MaybeUninit;
use std::ops::Range;

use super::microkernel::{HEIGHT, Panel, Tile, WIDTH, multiply};
use super::parallel::{self, Shared};
pub use matrix::{Block, LEFT, Left, LeftTiles, Matrix, Right, Rows, as_block, copy_column, transpose, transpose_tile};
use target::Segments;
pub use target::{Place, Start, Target};

/// The common extent that is handled at a time. Under Miri blocks are small, so that matrices for which an interpreter has the
/// time have several of them.
pub const DEPTH: usize = if cfg!(miri) { 8 } else { 256 };

/// Panels of a block of the right matrix: with [`DEPTH`], 512 KiB of a second-level cache.
pub const PANELS: usize = if cfg!(miri) { 2 } else { 16 };

/// The columns of a block of the right matrix.
pub const COLUMNS: usize = PANELS * WIDTH;

/// Into how many tasks a product is cut, if it is large enough.
pub const TASKS: usize = 16;

/// Multiply-adds that a task should have, for handing it to another thread takes time too.
const TASK: usize = 256 << 10;

/// `target = left * right`, added to what the target says.
pub fn product<P: Place>(target: Target<P>, left: &impl Left, right: &impl Right) {
    product_in_tasks(&target, left, right, TASKS);
}

/// As [`product`], for a common extent that is long beside the result. It is cut into up to so many parts, whose results
/// lie in `room` until they are added up.
pub fn product_in_parts<P: Place>(
    target: Target<P>,
    left: &impl Left,
    right: &impl Right,
    parts: usize,
    room: &mut [f32],
) {
    let (depth, size) = (left.depth(), target.rows * target.columns);
    let parts = parts.min(TASKS).min(depth / DEPTH);
    if parts < 2 {
        return product(target, left, right);
    }
    // All but the last have whole blocks.
    let length = depth.div_ceil(parts).next_multiple_of(DEPTH);
    let parts = depth.div_ceil(length);
    let room = &mut room[..parts * size];
    parallel::chunks(room, size, |i, part| {
        let range = i * length..depth.min((i + 1) * length);
        let (left, right) = (Part { whole: left, range: range.clone() }, Part { whole: right, range });
        product_in_tasks(&Target::rows(part, target.columns, Start::Zero), &left, &right, TASKS.div_ceil(parts));
    });
    sum_parts(&target, room);
}

/// Adds up results that lie in `room` one after the other.
pub fn sum_parts<P: Place>(target: &Target<P>, room: &mut [f32]) {
    let size = target.rows * target.columns;
    let (sums, others) = room.split_at_mut(size);
    parallel::chunks(sums, parallel::CHUNK, |i, sums| {
        for other in others.chunks_exact(size) {
            sums.iter_mut().zip(&other[i * parallel::CHUNK..]).for_each(|(sum, x)| *sum += x);
        }
    });
    target.fill(|row, column| sums[row * target.columns + column]);
}

/// A part of the common extent.
struct Part<'a, T> {
    whole: &'a T,
    range: Range<usize>,
}

impl<T: Left> Left for Part<'_, T> {
    fn rows(&self) -> usize {
        self.whole.rows()
    }

    fn depth(&self) -> usize {
        self.range.len()
    }

    fn copies(&self) -> bool {
        self.whole.copies()
    }

    fn tiles<'a>(&'a self, rows: Range<usize>, depth: Range<usize>, copy: &'a mut LeftTiles) -> Rows<'a> {
        self.whole.tiles(rows, self.range.start + depth.start..self.range.start + depth.end, copy)
    }
}

impl<T: Right> Right for Part<'_, T> {
    fn columns(&self) -> usize {
        self.whole.columns()
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, block: &mut Block) {
        self.whole.pack(self.range.start + depth.start..self.range.start + depth.end, columns, block);
    }
}

/// As [`product`], cut into no more than so many tasks.
fn product_in_tasks<P: Place>(target: &Target<P>, left: &impl Left, right: &impl Right, most: usize) {
    assert_eq!([left.rows(), right.columns()], [target.rows, target.columns], "the result is of another size");
    in_tasks(left, right, most, |rows, columns| block(target, left, right, rows, columns));
}

/// Calls `block` with rows and up to [`COLUMNS`] columns that make up a product, in no more than so many tasks.
fn in_tasks(left: &impl Left, right: &impl Right, most: usize, block: impl Fn(Range<usize>, Range<usize>) + Sync) {
    let (rows, columns, depth) = (left.rows(), right.columns(), left.depth());
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(depth > 0, "a product of nothing");
    let tiles = rows.div_ceil(HEIGHT);
    let panels = columns.div_ceil(WIDTH);
    let [row_blocks, column_blocks] =
        grid([tiles, panels], (rows * columns * depth / TASK).clamp(1, most), left.copies());
    let task = |i: usize| {
        let (i, j) = (i / column_blocks, i % column_blocks);
        let rows = i * tiles / row_blocks * HEIGHT..rows.min((i + 1) * tiles / row_blocks * HEIGHT);
        let columns = j * panels / column_blocks * WIDTH..columns.min((j + 1) * panels / column_blocks * WIDTH);
        for first in columns.clone().step_by(COLUMNS) {
            block(rows.clone(), first..columns.end.min(first + COLUMNS));
        }
    };
    parallel::for_each(row_blocks * column_blocks, task);
}

/// Calls `take` with every piece of a product, part of a row, and with the part of other matrices of the product's size at its
/// place, while the piece is in the cache. The common extent is [`DEPTH`] at most. The sums are those of [`product`].
pub fn product_in_pieces<const N: usize>(
    left: &impl Left,
    right: &impl Right,
    beside: [&mut [f32]; N],
    take: impl Fn(&[f32], [&mut [f32]; N]) + Sync,
) {
    let width = right.columns();
    let beside = Shared::new(beside);
    in_tasks(left, right, TASKS, |rows, columns| {
        let mut panels = Aligned([const { MaybeUninit::uninit() }; DEPTH * COLUMNS]);
        let mut copy = Aligned([const { MaybeUninit::uninit() }; LEFT * DEPTH]);
        let copy = zeros(&mut copy.0[..rows.len().min(LEFT).next_multiple_of(HEIGHT) * DEPTH]);
        let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
        let mut pieces = [[0.0; COLUMNS]; HEIGHT];
        let depth = left.depth();
        let size = depth * WIDTH;
        let panels = &mut panels.0[..columns.len().div_ceil(WIDTH) * size];
        right.pack(0..depth, columns.clone(), panels);
        for first in rows.clone().step_by(LEFT) {
            let group = first..rows.end.min(first + LEFT);
            let part = left.tiles(group.clone(), 0..depth, copy);
            for (i, row) in group.step_by(HEIGHT).enumerate() {
                let height = (rows.end - row).min(HEIGHT);
                let part = part.tile(i, height, depth);
                for (j, panel) in panels.chunks_exact(size).enumerate() {
                    // SAFETY: the rows are within their elements, as was checked, and `pack` has written the panel.
                    unsafe { multiply(part, Panel::packed(panel.as_ptr().cast(), depth), WIDTH, &mut tile) };
                    for (piece, sums) in pieces.iter_mut().zip(&tile[..height]) {
                        piece[j * WIDTH..][..WIDTH].copy_from_slice(sums);
                    }
                }
                for (row, piece) in (row..).zip(&pieces[..height]) {
                    let place = row * width + columns.start..row * width + columns.end;
                    // SAFETY: no other task has these rows and columns.
                    take(&piece[..columns.len()], unsafe { beside.take(place) });
                }
            }
        }
    });
}

/// How many blocks of rows and of columns make so many tasks, so that as little as can be is copied twice.
fn grid([tiles, panels]: [usize; 2], tasks: usize, copies_left: bool) -> [usize; 2] {
    let whole = panels.div_ceil(PANELS);
    let columns = (1..=tasks.min(panels)).min_by_key(|columns| {
        let rows = tasks.div_ceil(*columns).min(tiles);
        let left = if copies_left { tiles * HEIGHT * 2 * whole.max(*columns) } else { 0 };
        // Too few tasks are the worst.
        (tasks.saturating_sub(rows * columns), left + panels * WIDTH * rows)
    });
    let columns = columns.unwrap_or(1);
    [tasks.div_ceil(columns).min(tiles), if whole > columns { whole } else { columns }]
}

/// Fills some room with zeros.
pub fn zeros(room: &mut Block) -> &mut [f32] {
    // SAFETY: the bytes of 0.0 are zeros, and all are written. (In an interpreter, a loop over the elements takes long.)
    unsafe {
        room.as_mut_ptr().write_bytes(0, room.len());
        room.assume_init_mut()
    }
}

/// At the beginning of a line of the cache, so that no vector lies across two.
#[repr(align(64))]
pub struct Aligned<T>(pub T);

/// Some rows of the result in up to [`COLUMNS`] of its columns.
fn block<P: Place>(
    target: &Target<P>,
    left: &impl Left,
    right: &impl Right,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let mut panels = Aligned([const { MaybeUninit::uninit() }; DEPTH * COLUMNS]);
    let mut copy = Aligned([const { MaybeUninit::uninit() }; LEFT * DEPTH]);
    let copy = zeros(&mut copy.0[..rows.len().min(LEFT).next_multiple_of(HEIGHT) * DEPTH]);
    let panels = &mut panels.0;
    let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
    let mut segments = [Segments::default(); PANELS];
    for (first, segments) in columns.clone().step_by(WIDTH).zip(&mut segments) {
        *segments = target.segments(first..columns.end.min(first + WIDTH));
    }
    let count = columns.len().div_ceil(WIDTH);
    let mut start = target.start;
    for first in (0..left.depth()).step_by(DEPTH) {
        let depth = first..left.depth().min(first + DEPTH);
        let size = depth.len() * WIDTH;
        right.pack(depth.clone(), columns.clone(), &mut panels[..count * size]);
        for first in rows.clone().step_by(LEFT) {
            let group = first..rows.end.min(first + LEFT);
            let part = left.tiles(group.clone(), depth.clone(), copy);
            for (i, row) in group.step_by(HEIGHT).enumerate() {
                let height = (rows.end - row).min(HEIGHT);
                let part = part.tile(i, height, depth.len());
                for (panel, segments) in panels.chunks_exact(size).zip(&segments[..count]) {
                    let panel = Panel::packed(panel.as_ptr().cast(), depth.len());
                    // SAFETY: the rows are within their elements, as was checked, and `pack` has written the panel.
                    unsafe { multiply(part, panel, segments.width, &mut tile) };
                    for (i, sums) in tile[..height].iter_mut().enumerate() {
                        // SAFETY: no other task has these rows and columns.
                        unsafe { target.store(row + i, segments, sums, start) };
                    }
                }
            }
        }
        start = Start::Target;
    }
    // SAFETY: no other task has these rows and columns.
    unsafe { target.clamp(rows, columns) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(i: usize) -> f32 {
        ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0
    }

    /// Against three plain loops, in every orientation.
    #[test]
    fn products() {
        let sizes: &[[usize; 3]] = if cfg!(miri) {
            &[[3, 2, 5], [13, 2, 1], [2, 33, 1], [2, 3, 9]]
        } else {
            &[
                [1, 1, 1],
                [3, 2, 5],
                [13, 35, 300],
                [64, 64, 64],
                [12, 32, 256],
                [25, 1, 257],
                [1, 100, 9],
                [400, 33, 7],
                [50, 700, 600],
            ]
        };
        for &[m, n, k] in sizes {
            let a: Vec<f32> = (0..m * k).map(value).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i + 3)).collect();
            for transposed in 0..8 {
                let [ta, tb, tc] = [1, 2, 4].map(|bit| transposed & bit != 0);
                let left = if ta { Matrix::rows(&a, k, m).transposed() } else { Matrix::rows(&a, m, k) };
                let right = if tb { Matrix::rows(&b, n, k).transposed() } else { Matrix::rows(&b, k, n) };
                let mut c: Vec<f32> = (0..m * n).map(|i| value(i + 7)).collect();
                let (before, bias) = (c.clone(), vec![0.5; m]);
                let (crow, ccolumn) = if tc { (1, m) } else { (n, 1) };
                for (begin, start) in [(1.0, Start::Target), (0.0, Start::Zero), (0.0, Start::Bias(&bias))] {
                    let target = if tc { Target::columns(&mut c, m, start) } else { Target::rows(&mut c, n, start) };
                    product(target, &left, &right);
                    let bias = if matches!(start, Start::Bias(_)) { 0.5 } else { 0.0 };
                    for i in 0..m {
                        for j in 0..n {
                            let terms = (0..k).map(|p| {
                                f64::from(a[i * left.row + p * left.column] * b[p * right.row + j * right.column])
                            });
                            let sum = terms.sum::<f64>() as f32 + begin * before[i * crow + j * ccolumn] + bias;
                            let got = c[i * crow + j * ccolumn];
                            assert!((got - sum).abs() < 1e-3, "{m} x {n} x {k}, {transposed}: {got} is not {sum}");
                        }
                    }
                }
            }
        }
    }
}
