//! The two sides of a product, wherever their elements come from, and how they are laid out for it.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::microkernel::{self, HEIGHT, WIDTH};
use super::DEPTH;

/// A block of the right matrix, panel after panel. A panel has a row of [`WIDTH`] elements for each of the block's rows.
pub type Block = [MaybeUninit<f32>];

/// Rows of the left matrix that are copied at a time: in some of its layouts, they are neighbours in memory.
pub const LEFT: usize = 4 * HEIGHT;

/// Room for some tiles of the left matrix, [`HEIGHT`] times [`DEPTH`] elements each.
pub type LeftTiles = [f32];

/// The left matrix, wherever its elements come from.
pub trait Left: Sync {
    /// Its rows.
    fn rows(&self) -> usize;

    /// Its columns.
    fn depth(&self) -> usize;

    /// Whether [`tiles`](Left::tiles) copies.
    fn copies(&self) -> bool;

    /// Up to [`LEFT`] rows and [`DEPTH`] columns: where they lie already, or in a copy.
    fn tiles<'a>(&'a self, rows: Range<usize>, depth: Range<usize>, copy: &'a mut LeftTiles) -> Rows<'a>;
}

/// Some rows of the left matrix.
pub struct Rows<'a> {
    /// From their first element on.
    pub elements: &'a [f32],
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
    /// Elements from tile to tile of [`HEIGHT`] rows.
    pub tile: usize,
}

impl<'a> Rows<'a> {
    /// Rows that lie in the matrix, so far apart.
    pub fn in_place(elements: &'a [f32], row: usize) -> Self {
        Rows { elements, row, column: 1, tile: HEIGHT * row }
    }

    /// Tiles that were copied column by column.
    pub fn columns(copy: &'a LeftTiles) -> Self {
        Rows { elements: copy, row: 1, column: HEIGHT, tile: HEIGHT * DEPTH }
    }

    /// The tile of number `i`, of so many rows and columns.
    pub fn tile(&self, i: usize, rows: usize, columns: usize) -> microkernel::Rows {
        let elements = &self.elements[i * self.tile..];
        let last = (rows - 1) * self.row + (columns - 1) * self.column;
        assert!(last < elements.len(), "the left matrix ends outside of its elements");
        microkernel::Rows { start: elements.as_ptr(), count: rows, row: self.row, column: self.column }
    }
}

/// The right matrix, wherever its elements come from.
pub trait Right: Sync {
    /// Its columns.
    fn columns(&self) -> usize;

    /// Writes `depth` (rows) times `columns` (at most [`COLUMNS`]) of its elements. Where the last panel has fewer columns
    /// than [`WIDTH`], what stands in the others must be initialized and is not used.
    fn pack(&self, depth: Range<usize>, columns: Range<usize>, block: &mut Block);
}

/// A matrix in memory.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// Its elements.
    pub elements: &'a [f32],
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    pub fn rows(elements: &'a [f32], rows: usize, columns: usize) -> Self {
        Matrix { elements, rows, columns, row: columns, column: 1 }
    }

    /// A row of a matrix whose rows are contiguous.
    pub fn line(&self, row: usize) -> &'a [f32] {
        assert_eq!(self.column, 1, "the row is not contiguous");
        &self.elements[row * self.row..][..self.columns]
    }

    /// With rows for columns.
    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }
}

impl Left for Matrix<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn depth(&self) -> usize {
        self.columns
    }

    /// Where neighbours in a row lie far apart, every one of them would be read from another line of the cache.
    fn copies(&self) -> bool {
        self.column != 1
    }

    fn tiles<'a>(&'a self, rows: Range<usize>, depth: Range<usize>, copy: &'a mut LeftTiles) -> Rows<'a> {
        let elements = &self.elements[rows.start * self.row + depth.start * self.column..];
        if !self.copies() {
            return Rows::in_place(elements, self.row);
        }
        for k in 0..depth.len() {
            copy_column(&elements[k * self.column..], self.row, rows.len(), k, copy);
        }
        Rows::columns(copy)
    }
}

impl Right for Matrix<'_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, block: &mut Block) {
        let size = depth.len() * WIDTH;
        for (first, panel) in columns.clone().step_by(WIDTH).zip(block.chunks_exact_mut(size)) {
            let width = (columns.end - first).min(WIDTH);
            if self.column != 1 {
                // Along the columns, which are the rows of memory where the matrix is a transposed one.
                let from = &self.elements[first * self.column + depth.start * self.row..];
                transpose(from, [self.column, self.row], [width, depth.len()], panel);
            } else {
                for (k, to) in depth.clone().zip(panel.chunks_exact_mut(WIDTH)) {
                    to[..width].write_copy_of_slice(&self.elements[k * self.row + first..][..width]);
                }
            }
            if width < WIDTH {
                panel.chunks_exact_mut(WIDTH).for_each(|row| row[width..].fill(MaybeUninit::new(0.0)));
            }
        }
    }
}

/// Copies a column of some rows, which are `row` apart, as column `k` of their tiles.
#[inline]
pub fn copy_column(from: &[f32], row: usize, rows: usize, k: usize, copy: &mut LeftTiles) {
    for (first, tile) in (0..rows).step_by(HEIGHT).zip(copy.chunks_exact_mut(HEIGHT * DEPTH)) {
        let height = (rows - first).min(HEIGHT);
        copy_strided(&from[first * row..], row, as_block(&mut tile[k * HEIGHT..][..height]));
    }
}

/// The same elements, to be written.
pub fn as_block(elements: &mut [f32]) -> &mut Block {
    // SAFETY: `Block` has the same layout, and nothing here makes an element uninitialized.
    unsafe { &mut *(elements as *mut [f32] as *mut Block) }
}

/// Copies elements that are `step` apart.
#[inline]
fn copy_strided(from: &[f32], step: usize, to: &mut Block) {
    if let (Ok(to), 1) = (<&mut [_; HEIGHT]>::try_from(&mut *to), step) {
        // A whole column of a tile, without a call or a check for each element.
        to.write_copy_of_slice(&from[..HEIGHT]);
        return;
    }
    assert!(to.is_empty() || (to.len() - 1) * step < from.len(), "the last element is outside");
    if let Ok(to) = <&mut [_; HEIGHT]>::try_from(&mut *to) {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: no further than the last, which was checked.
            to.write(unsafe { *from.get_unchecked(i * step) });
        }
        return;
    }
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: no further than the last, which was checked.
        to.write(unsafe { *from.get_unchecked(i * step) });
    }
}

/// Writes `width` lines of `depth` elements each, which lie `line` elements apart and their elements `step` apart, as the
/// columns of a panel.
pub fn transpose(from: &[f32], apart: [usize; 2], size: [usize; 2], panel: &mut Block) {
    transpose_to::<WIDTH>(from, apart, size, panel);
}

/// The same for a tile of the left matrix, whose rows are contiguous lines.
pub fn transpose_tile(from: &[f32], line: usize, size: [usize; 2], tile: &mut [f32]) {
    transpose_to::<HEIGHT>(from, [line, 1], size, as_block(tile));
}

/// Into rows that are `ROW` elements apart.
#[inline(always)]
fn transpose_to<const ROW: usize>(from: &[f32], [line, step]: [usize; 2], [width, depth]: [usize; 2], to: &mut Block) {
    const SIDE: usize = 4;
    assert!((width - 1) * line + (depth - 1) * step < from.len(), "the last element is outside");
    assert!((depth - 1) * ROW + width <= to.len(), "the last row is outside");
    let squares = if step == 1 { [width / SIDE * SIDE, depth / SIDE * SIDE] } else { [0, 0] };
    for j in (0..squares[0]).step_by(SIDE) {
        for k in (0..squares[1]).step_by(SIDE) {
            // SAFETY: lines and rows end no later than the last, which was checked.
            unsafe {
                let line = |i: usize| *from.as_ptr().add((j + i) * line + k).cast::<[f32; SIDE]>();
                let columns = microkernel::transpose(std::array::from_fn(line));
                for (i, column) in columns.into_iter().enumerate() {
                    *to.as_mut_ptr().add((k + i) * ROW + j).cast::<[f32; SIDE]>() = column;
                }
            }
        }
    }
    for k in 0..depth {
        let first = if k < squares[1] { squares[0] } else { 0 };
        if first < width {
            copy_strided(&from[first * line + k * step..], line, &mut to[k * ROW + first..k * ROW + width]);
        }
    }
}
