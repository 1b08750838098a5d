//! Where the result of a product goes.

use std::ops::Range;

use super::super::bounds::Bounds;
use super::super::microkernel::{self, LANES, WIDTH};

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

    /// The columns of a panel.
    pub fn segments(&self, columns: Range<usize>) -> Segments {
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
    pub unsafe fn store(&self, row: usize, segments: &Segments, sums: &mut [f32; WIDTH], start: Start) {
        debug_assert!(row < self.rows);
        if let Start::Bias(bias) = start {
            sums.iter_mut().for_each(|sum| *sum += bias[row]);
        }
        let to = self.elements.wrapping_add(row * self.row);
        // SAFETY: the result is within its elements, as `segments` checked, and is this caller's.
        unsafe { segments.store(to, sums, matches!(start, Start::Target)) };
    }

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
pub struct Segments {
    /// Of each, how many columns and where the first is.
    parts: [(usize, usize); WIDTH],
    count: usize,
    /// Elements from column to column of a segment.
    step: usize,
    /// Columns of all.
    pub width: usize,
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
