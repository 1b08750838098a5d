//! Products of matrices.
//!
//! Both matrices come in blocks of [`DEPTH`] of their common extent. A block of the right one is laid out in panels of
//! [`WIDTH`] columns that stay in the second-level cache; a tile of the left one, [`HEIGHT`] rows, goes over all of them
//! while it is in the first (Goto & van de Geijn 2008). Nothing is allocated: blocks lie on the stack (the crate `gemm`
//! allocates them at every call, which a training step must not). The product is cut into tasks whatever the number of
//! threads, so that results do not depend on it.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::bounds::Bounds;
use super::microkernel::{self, HEIGHT, LANES, Panel, Tile, WIDTH, multiply};
use super::parallel::{self, Shared};

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

/// Where the columns of a result lie.
pub trait Place: Sync {
    /// Writes the place of each column's element in the first row.
    fn offsets(&self, columns: Range<usize>, offsets: &mut [usize]);
}

/// Columns that many elements apart.
pub struct Apart(usize);

impl Place for Apart {
    fn offsets(&self, columns: Range<usize>, offsets: &mut [usize]) {
        offsets.iter_mut().zip(columns).for_each(|(offset, column)| *offset = column * self.0);
    }
}

/// What the product is added to.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Nothing: what is there is overwritten.
    Zero,
    /// What is there.
    Target,
    /// One number for each row.
    Bias(&'a [f32]),
}

impl Start<'_> {
    /// For a result that is added to what is there, or overwrites it.
    pub fn adding(adds: bool) -> Self {
        if adds { Start::Target } else { Start::Zero }
    }

    /// For rows that are one group of several.
    pub fn part(self, group: usize, rows: usize) -> Self {
        match self {
            Start::Bias(bias) => Start::Bias(&bias[group * rows..][..rows]),
            other => other,
        }
    }

    /// Lays it down in (part of) a row.
    pub fn lay(self, elements: &mut [f32], row: usize) {
        match self {
            Start::Zero => elements.fill(0.0),
            Start::Target => {}
            Start::Bias(bias) => elements.fill(bias[row]),
        }
    }
}

/// Where a result goes, which several tasks write at once.
pub struct Target<'a, P> {
    elements: *mut f32,
    length: usize,
    pub rows: usize,
    pub columns: usize,
    row: usize,
    place: P,
    pub start: Start<'a>,
    bounds: Bounds,
}

// SAFETY: tasks write different rows or columns, which are different elements.
unsafe impl<P: Sync> Sync for Target<'_, P> {}

impl<'a> Target<'a, Apart> {
    /// Rows of so many columns, one after the other.
    pub fn rows(elements: &'a mut [f32], columns: usize, start: Start<'a>) -> Self {
        let rows = elements.len() / columns.max(1);
        // SAFETY: every row has `columns` elements of its own.
        unsafe { Target::new(elements, [rows, columns], columns, Apart(1), start) }
    }

    /// Columns of so many rows, one after the other.
    pub fn columns(elements: &'a mut [f32], rows: usize, start: Start<'a>) -> Self {
        let columns = elements.len() / rows.max(1);
        // SAFETY: every column has `rows` elements of its own.
        unsafe { Target::new(elements, [rows, columns], 1, Apart(rows), start) }
    }
}

impl<'a, P: Place> Target<'a, P> {
    /// Rows of which the first lies at the places of the columns, and the others `row` elements apart.
    ///
    /// # Safety
    /// Every pair of a row and a column has an element of its own.
    pub unsafe fn new(
        elements: &'a mut [f32],
        [rows, columns]: [usize; 2],
        row: usize,
        place: P,
        start: Start<'a>,
    ) -> Self {
        let length = elements.len();
        Target { elements: elements.as_mut_ptr(), length, rows, columns, row, place, start, bounds: Bounds::NONE }
    }

    /// The same with its elements clamped at the end.
    pub fn within(self, bounds: Bounds) -> Self {
        Target { bounds, ..self }
    }
}

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

impl<P: Place> Target<'_, P> {
    /// The columns of a panel.
    fn segments(&self, columns: Range<usize>) -> Segments {
        let mut offsets = [0; WIDTH];
        let offsets = &mut offsets[..columns.len()];
        self.place.offsets(columns, offsets);
        let segments = Segments::of(offsets);
        assert!((self.rows - 1) * self.row + segments.last < self.length, "the result ends outside of its elements");
        segments
    }

    /// Writes a row's sums in some columns, added to what `start` says.
    ///
    /// # Safety
    /// Nobody else writes the row in these columns.
    #[inline]
    unsafe fn store(&self, row: usize, segments: &Segments, sums: &mut [f32; WIDTH], start: Start) {
        debug_assert!(row < self.rows);
        if let Start::Bias(bias) = start {
            sums.iter_mut().for_each(|sum| *sum += bias[row]);
        }
        let to = self.elements.wrapping_add(row * self.row);
        // SAFETY: the result is within its elements, as `segments` checked, and is this caller's.
        unsafe { segments.store(to, sums, matches!(start, Start::Target)) };
    }
}

impl<P: Place> Target<'_, P> {
    /// Writes `sum(row, column)` everywhere, added to what the target says. Nobody else writes meanwhile.
    pub fn fill(&self, sum: impl Fn(usize, usize) -> f32) {
        for first in (0..self.columns).step_by(WIDTH) {
            let columns = first..self.columns.min(first + WIDTH);
            let segments = self.segments(columns.clone());
            for row in 0..self.rows {
                let mut tile = [0.0; WIDTH];
                tile.iter_mut().zip(columns.clone()).for_each(|(tile, column)| *tile = sum(row, column));
                // SAFETY: there is one task, and `segments` checked that the result is within its elements.
                unsafe { self.store(row, &segments, &mut tile, self.start) };
            }
        }
    }

    /// Writes up to [`LANES`] lanes of a tile, from `lane` on, in columns that are neighbours in memory, added to what `start`
    /// says.
    ///
    /// # Safety
    /// Nobody else writes these rows and columns.
    pub unsafe fn store_run(
        &self,
        first: usize,
        columns: Range<usize>,
        tile: &mut [[f32; WIDTH]],
        lane: usize,
        start: Start,
    ) {
        let mut offset = [0];
        self.place.offsets(columns.start..columns.start + 1, &mut offset);
        let last = (first + tile.len() - 1) * self.row + offset[0] + columns.len();
        assert!(last <= self.length, "the result ends outside of its elements");
        for (row, sums) in (first..).zip(tile) {
            let sums = &mut sums[lane..lane + columns.len()];
            if let Start::Bias(bias) = start {
                sums.iter_mut().for_each(|sum| *sum += bias[row]);
            }
            let to = self.elements.wrapping_add(row * self.row + offset[0]);
            // SAFETY: within the elements, as was checked, and this caller's.
            unsafe { microkernel::store(to, 1, sums, matches!(start, Start::Target)) };
        }
    }
}

impl<P: Place> Target<'_, P> {
    /// Clamps what is in some rows and columns to the target's bounds.
    ///
    /// # Safety
    /// It was written, and nobody else writes it.
    pub unsafe fn clamp(&self, rows: Range<usize>, columns: Range<usize>) {
        if self.bounds == Bounds::NONE {
            return;
        }
        assert!(rows.end <= self.rows && columns.end <= self.columns, "outside of the result");
        for first in columns.clone().step_by(WIDTH) {
            let segments = self.segments(first..columns.end.min(first + WIDTH));
            for row in rows.clone() {
                for (length, offset) in &segments.parts[..segments.count] {
                    let (size, step) = match segments.step {
                        1 => (*length, 1),
                        step => (1, step),
                    };
                    for i in (0..*length).step_by(size) {
                        let first = row * self.row + offset + i * step;
                        // SAFETY: within the elements, as `segments` checked, and this caller's.
                        let elements = unsafe { std::slice::from_raw_parts_mut(self.elements.add(first), size) };
                        self.bounds.clamp(elements);
                    }
                }
            }
        }
    }

    /// Writes sums in columns from `first` on, which are neighbours in memory, added to what the target says, and clamped.
    ///
    /// # Safety
    /// Nobody else writes the row in these columns.
    #[inline(always)]
    pub unsafe fn store_line(&self, row: usize, first: usize, sums: &[f32]) {
        let mut offset = [0];
        self.place.offsets(first..first + 1, &mut offset);
        let at = row * self.row + offset[0];
        assert!(row < self.rows && at + sums.len() <= self.length, "the result ends outside of its elements");
        // SAFETY: within the elements, as was checked, and this caller's.
        let to = unsafe { std::slice::from_raw_parts_mut(self.elements.add(at), sums.len()) };
        let lines = to.iter_mut().zip(sums);
        match self.start {
            Start::Zero => lines.for_each(|(to, sum)| *to = self.bounds.at(*sum)),
            Start::Target => lines.for_each(|(to, sum)| *to = self.bounds.at(*to + sum)),
            Start::Bias(bias) => lines.for_each(|(to, sum)| *to = self.bounds.at(sum + bias[row])),
        }
    }
}

/// The columns of a panel in the result, in segments of even steps.
#[derive(Clone, Copy, Default)]
struct Segments {
    /// Of each, how many columns and where the first is.
    parts: [(usize, usize); WIDTH],
    count: usize,
    /// Elements from column to column of a segment.
    step: usize,
    /// Columns of all.
    width: usize,
    /// The last column's place.
    last: usize,
}

impl Segments {
    fn of(offsets: &[usize]) -> Segments {
        // The first step is that of most.
        let step = match offsets {
            [first, second, ..] if second > first => second - first,
            _ => 1,
        };
        let mut segments = Segments { step, width: offsets.len(), ..Segments::default() };
        let mut next = None;
        for offset in offsets.iter().copied() {
            if next == Some(offset) {
                segments.parts[segments.count - 1].0 += 1;
            } else {
                segments.parts[segments.count] = (1, offset);
                segments.count += 1;
            }
            next = Some(offset + step);
            segments.last = segments.last.max(offset);
        }
        segments
    }

    /// Writes or adds a row of sums.
    ///
    /// # Safety
    /// The elements at the segments' places after `row` may be written, and are nobody else's.
    #[inline]
    unsafe fn store(&self, row: *mut f32, sums: &[f32; WIDTH], adds: bool) {
        if let ([(WIDTH, offset)], 1) = (&self.parts[..self.count], self.step) {
            // SAFETY: as the caller promised.
            let to = unsafe { &mut *row.add(*offset).cast::<[f32; WIDTH]>() };
            match adds {
                true => to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum),
                false => *to = *sums,
            }
            return;
        }
        let mut from = &sums[..];
        for (length, offset) in &self.parts[..self.count] {
            let (part, rest) = from.split_at(*length);
            from = rest;
            for (i, part) in part.chunks(LANES).enumerate() {
                // SAFETY: as the caller promised.
                unsafe { microkernel::store(row.add(offset + i * LANES * self.step), self.step, part, adds) };
            }
        }
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
