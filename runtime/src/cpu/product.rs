//! Products of matrices.
//!
//! Nothing is allocated: the right matrix is copied a panel at a time onto the stack (the crate `gemm` allocates its packed
//! copies at every call, which a training step must not). The product is cut into tiles whatever the number of threads,
//! so that results do not depend on it.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::microkernel::{HEIGHT, Rows, Tile, WIDTH, multiply};
use super::parallel;

/// Rows of a panel: with [`WIDTH`] columns, 32 KiB of a first-level cache.
const DEPTH: usize = 256;

/// Rows of the result that one task computes.
const TASK_ROWS: usize = 32 * HEIGHT;

/// Multiply-adds below which handing work to other threads takes longer than doing it.
const SMALL: usize = 64 << 10;

/// A panel of the right matrix: [`DEPTH`] rows of [`WIDTH`] columns.
pub type Panel = [MaybeUninit<f32>];

/// The left matrix: `rows` rows of `repeats * depth` columns, which lie in `repeats` pieces.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    /// All its elements.
    pub elements: &'a [f32],
    /// Its rows.
    pub rows: usize,
    /// The columns of a piece.
    pub depth: usize,
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
    /// Pieces.
    pub repeats: usize,
    /// Elements from piece to piece.
    pub repeat: usize,
}

impl<'a> Left<'a> {
    /// One piece, row after row.
    pub fn rows(elements: &'a [f32], rows: usize, columns: usize) -> Self {
        Left { elements, rows, depth: columns, row: columns, column: 1, repeats: 1, repeat: 0 }
    }

    fn last(&self) -> usize {
        (self.rows - 1) * self.row + (self.depth - 1) * self.column + (self.repeats - 1) * self.repeat
    }
}

/// The right matrix, wherever its elements come from.
pub trait Right: Sync {
    /// Its columns.
    fn columns(&self) -> usize;

    /// Writes `depth` (rows) times `columns` (at most [`WIDTH`]) of its elements, each row of the panel [`WIDTH`] wide. Where
    /// there are fewer columns, what stands in the others must be initialized and is not used.
    fn pack(&self, depth: Range<usize>, columns: Range<usize>, panel: &mut Panel);
}

/// A matrix in memory, on the right.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// Its elements.
    pub elements: &'a [f32],
    /// Its columns.
    pub columns: usize,
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
}

impl Right for Matrix<'_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, panel: &mut Panel) {
        let width = columns.len();
        for (k, to) in depth.clone().zip(panel.chunks_exact_mut(WIDTH)) {
            let start = k * self.row + columns.start * self.column;
            if self.column == 1 {
                write(&mut to[..width], &self.elements[start..start + width]);
            }
            to[width..].fill(MaybeUninit::new(0.0));
        }
        if self.column != 1 {
            // Along the columns, which are the rows of memory where the matrix is a transposed one.
            for (j, column) in columns.enumerate() {
                let from = &self.elements[column * self.column..];
                for (k, to) in depth.clone().zip(panel.chunks_exact_mut(WIDTH)) {
                    to[j].write(from[k * self.row]);
                }
            }
        }
    }
}

/// Copies elements into memory that need not be initialized.
pub fn write(to: &mut [MaybeUninit<f32>], from: &[f32]) {
    assert_eq!(to.len(), from.len());
    to.write_copy_of_slice(from);
}

/// Where the result goes: row `i`, column `j` to element `i * row + (j / width) * group + (j % width) * column`, so that
/// the columns may be the positions of one image after the other.
pub struct Target<'a> {
    /// All elements, among others.
    pub elements: &'a mut [f32],
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column, within a group.
    pub column: usize,
    /// Columns of a group.
    pub width: usize,
    /// Elements from group to group.
    pub group: usize,
}

impl<'a> Target<'a> {
    /// Rows one after the other.
    pub fn rows(elements: &'a mut [f32], columns: usize) -> Self {
        Target { elements, row: columns, column: 1, width: columns.max(1), group: 0 }
    }
}

/// A target that several tasks write at once.
struct Shared {
    start: *mut f32,
    row: usize,
    column: usize,
    width: usize,
    group: usize,
}

impl Shared {
    fn offset(&self, column: usize) -> usize {
        column / self.width * self.group + column % self.width * self.column
    }
}

// SAFETY: tasks write different rows or columns, which `product` checks to be different elements.
unsafe impl Sync for Shared {}

/// `target = left * right`, or `target += left * right` if it `adds`.
pub fn product(target: Target, left: Left, right: &impl Right, adds: bool) {
    let (rows, columns, depth) = (left.rows, right.columns(), left.depth * left.repeats);
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(depth > 0 && left.last() < left.elements.len(), "the left matrix ends outside of its elements");
    let groups = columns.div_ceil(target.width);
    let last = (rows - 1) * target.row + (groups - 1) * target.group + (target.width.min(columns) - 1) * target.column;
    assert!(last < target.elements.len(), "the result ends outside of its elements");
    // Each pair of a row and a column has an element of its own, since the strides nest one way or the other.
    let span = (target.width.min(columns) - 1) * target.column;
    let nests = match target.column <= target.row {
        true => rows == 1 || (span < target.row && (groups == 1 || (rows - 1) * target.row + span < target.group)),
        false => {
            (rows - 1) * target.row < target.column && (groups == 1 || (rows - 1) * target.row + span < target.group)
        }
    };
    assert!(nests, "rows and columns of the result overlap");
    let Target { elements, row, column, width, group } = target;
    let shared = Shared { start: elements.as_mut_ptr(), row, column, width, group };
    let panels = columns.div_ceil(WIDTH);
    let blocks = rows.div_ceil(TASK_ROWS);
    let task = |i: usize| {
        let (panel, block) = (i / blocks, i % blocks);
        let columns = panel * WIDTH..columns.min((panel + 1) * WIDTH);
        let rows = block * TASK_ROWS..rows.min((block + 1) * TASK_ROWS);
        strip(&shared, &left, right, rows, columns, adds);
    };
    if rows * columns * depth < SMALL {
        (0..panels * blocks).for_each(task);
    } else {
        parallel::for_each(panels * blocks, task);
    }
}

/// Some rows of the result in the columns of one panel.
fn strip(shared: &Shared, left: &Left, right: &impl Right, rows: Range<usize>, columns: Range<usize>, adds: bool) {
    let mut panel = [const { MaybeUninit::uninit() }; DEPTH * WIDTH];
    let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
    let mut offsets = [0; WIDTH];
    for (offset, column) in offsets.iter_mut().zip(columns.clone()) {
        *offset = shared.offset(column);
    }
    let offsets = &offsets[..columns.len()];
    let adjacent = offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut adds = adds;
    for piece in 0..left.repeats {
        for start in (0..left.depth).step_by(DEPTH) {
            let depth = (left.depth - start).min(DEPTH);
            let from = piece * left.depth + start;
            right.pack(from..from + depth, columns.clone(), &mut panel[..depth * WIDTH]);
            for first in rows.clone().step_by(HEIGHT) {
                let count = (rows.end - first).min(HEIGHT);
                let at = piece * left.repeat + first * left.row + start * left.column;
                let part = Rows { start: left.elements[at..].as_ptr(), count, row: left.row, column: left.column };
                // SAFETY: `product` checked that the left matrix is within its elements, and `pack` has written the panel.
                unsafe { multiply(part, panel.as_ptr().cast(), WIDTH, depth, &mut tile) };
                for (i, sums) in tile[..count].iter().enumerate() {
                    let row = shared.start.wrapping_add((first + i) * shared.row);
                    // SAFETY: `product` checked that the result is within its elements, and that rows and columns have
                    // elements of their own; no other task has these.
                    unsafe { store(row, offsets, adjacent, &sums[..offsets.len()], adds) };
                }
            }
            adds = true;
        }
    }
}

/// Writes or adds a row of sums.
///
/// # Safety
/// The elements at `offsets` after `row` may be written, and are nobody else's.
unsafe fn store(row: *mut f32, offsets: &[usize], adjacent: bool, sums: &[f32], adds: bool) {
    if adjacent {
        // SAFETY: the offsets are one after the other.
        let to = unsafe { std::slice::from_raw_parts_mut(row.add(offsets[0]), sums.len()) };
        match adds {
            true => to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum),
            false => to.copy_from_slice(sums),
        }
        return;
    }
    for (offset, sum) in offsets.iter().zip(sums) {
        // SAFETY: as the caller promised.
        let to = unsafe { &mut *row.add(*offset) };
        *to = if adds { *to + sum } else { *sum };
    }
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
            &[[3, 2, 5], [13, 35, 3]]
        } else {
            &[[1, 1, 1], [3, 2, 5], [13, 35, 300], [64, 64, 64], [12, 32, 256], [25, 1, 257], [1, 100, 9], [400, 33, 7]]
        };
        for &[m, n, k] in sizes {
            let a: Vec<f32> = (0..m * k).map(value).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i + 3)).collect();
            for transposed in 0..8 {
                let [ta, tb, tc] = [1, 2, 4].map(|bit| transposed & bit != 0);
                let left = Left { row: if ta { 1 } else { k }, column: if ta { m } else { 1 }, ..Left::rows(&a, m, k) };
                let (row, column) = if tb { (1, k) } else { (n, 1) };
                let right = Matrix { elements: &b, columns: n, row, column };
                let mut c: Vec<f32> = (0..m * n).map(|i| value(i + 7)).collect();
                let before = c.clone();
                let (crow, ccolumn) = if tc { (1, m) } else { (n, 1) };
                for adds in [true, false] {
                    let target = Target { elements: &mut c, row: crow, column: ccolumn, width: n, group: 0 };
                    product(target, left, &right, adds);
                    for i in 0..m {
                        for j in 0..n {
                            let terms = (0..k).map(|p| a[i * left.row + p * left.column] * b[p * row + j * column]);
                            let sum: f32 = terms.sum::<f32>() + if adds { before[i * crow + j * ccolumn] } else { 0.0 };
                            let got = c[i * crow + j * ccolumn];
                            assert!((got - sum).abs() < 1e-3, "{m} x {n} x {k}, {transposed}: {got} is not {sum}");
                        }
                    }
                }
            }
        }
    }
}
