//! Convolutions of few maps with stride 1, without columns.
//!
//! Where a product has few rows, laying out the columns takes longer than to multiply them. With stride 1, neighbours in a row
//! of columns are neighbours in the source too, once its padding lies around it. So a sample is copied into a frame of zeros
//! that stays in the first-level cache, and the product reads each tap's row where it lies there.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::convolution::Columns;
use super::correlation::{Axis, Grid};
use super::microkernel::{self, HEIGHT, LANES, Panel, Tile, WIDTH};
use super::parallel;
use super::product::{
    Aligned, DEPTH, LEFT, Left, Place, Rows, Start, TASKS, Target, as_block, sum_parts, transpose, zeros,
};

/// The most rows of a product that are worth it, and of a kernel's gradient, which has them in lanes.
const MOST_ROWS: usize = WIDTH;

/// The most channels times taps.
const MOST_DEPTH: usize = 2 * DEPTH;

/// The most elements of a frame: 64 KiB.
const ELEMENTS: usize = 16 << 10;

/// The least results in a row: with fewer, vectors would be empty for the most part.
const LEAST_COLUMNS: usize = 8;

/// Where a sample lies in its frame.
struct Layout<'a, 'b> {
    source: &'a Columns<'b>,
    /// Height and width.
    size: [usize; 2],
}

/// Whether the product of a kernel of so many rows with these columns is better done here.
pub fn suits(rows: usize, columns: &Columns) -> bool {
    let Grid { y, x, .. } = &columns.grid;
    let layout = Layout::new(columns);
    [y.step, x.step, x.stride] == [1, 1, 1]
        && rows <= MOST_ROWS
        && columns.rows() <= MOST_DEPTH
        && x.taps <= HEIGHT
        && x.count >= LEAST_COLUMNS
        && columns.channels * layout.plane() <= ELEMENTS
}

/// The first place of the source that any tap of any result is at, and how far it is to the last.
fn span(axis: &Axis) -> (isize, usize) {
    let way = (axis.taps - 1).cast_signed() * axis.shift;
    (axis.offset + way.min(0), axis.count + way.unsigned_abs())
}

impl<'a, 'b> Layout<'a, 'b> {
    fn new(source: &'a Columns<'b>) -> Self {
        Layout { source, size: [span(&source.grid.y).1, span(&source.grid.x).1] }
    }

    fn plane(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Elements of the frame, and of the vector that begins at its last one.
    fn elements(&self) -> usize {
        self.source.channels * self.plane() + LANES
    }

    /// Copies a sample into its frame, whose padding is zero already.
    fn fill(&self, sample: usize, frame: &mut [f32]) {
        let Columns { grid, channels, width, .. } = self.source;
        let [(top, _), (left, _)] = [span(&grid.y), span(&grid.x)];
        let columns = left.max(0).cast_unsigned()
            ..(left + self.size[1].cast_signed()).min(grid.x.extent.cast_signed()).cast_unsigned();
        for (i, plane) in frame.chunks_exact_mut(self.plane()).take(*channels).enumerate() {
            let source = self.source.plane(sample, i);
            for (y, row) in plane.chunks_exact_mut(self.size[1]).enumerate() {
                let y = top + y.cast_signed();
                if (0..grid.y.extent.cast_signed()).contains(&y) {
                    let from = &source[y.cast_unsigned() * width..][columns.clone()];
                    let first = (columns.start.cast_signed() - left).cast_unsigned();
                    row[first..first + from.len()].copy_from_slice(from);
                }
            }
        }
    }

    /// Where a row of the columns begins in the frame.
    fn offset(&self, row: usize) -> usize {
        let Grid { y, x, .. } = &self.source.grid;
        let (channel, tap) = (row / (y.taps * x.taps), row % (y.taps * x.taps));
        let at = |axis: &Axis, tap: usize| (axis.start(tap) - span(axis).0).cast_unsigned();
        channel * self.plane() + at(y, tap / x.taps) * self.size[1] + at(x, tap % x.taps)
    }
}

/// `target = kernel * columns`, added to what the target says.
pub fn correlate<P: Place>(target: &Target<P>, kernel: &impl Left, columns: &Columns) {
    let Grid { y, x, samples } = columns.grid;
    let (layout, rows, depth) = (Layout::new(columns), kernel.rows(), columns.rows());
    // A row of results is some vectors.
    let vectors = x.count.div_ceil(LANES);
    let each = samples.div_ceil(TASKS).max(1);
    parallel::for_each(samples.div_ceil(each), |task| {
        let mut frame = Aligned([const { MaybeUninit::uninit() }; ELEMENTS + LANES]);
        let frame = zeros(&mut frame.0[..layout.elements()]);
        let mut offsets = [0; DEPTH];
        let mut copy = Aligned([const { MaybeUninit::uninit() }; LEFT * DEPTH]);
        let copy = zeros(&mut copy.0[..rows.next_multiple_of(HEIGHT) * DEPTH]);
        let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
        for first in (0..depth).step_by(DEPTH) {
            let depth = first..depth.min(first + DEPTH);
            let offsets = &mut offsets[..depth.len()];
            offsets.iter_mut().zip(depth.clone()).for_each(|(offset, row)| *offset = layout.offset(row));
            let start = if first == 0 { target.start } else { Start::Target };
            let part = kernel.tiles(0..rows, depth.clone(), copy);
            for sample in task * each..samples.min((task + 1) * each) {
                layout.fill(sample, frame);
                for vector in (0..y.count * vectors).step_by(2) {
                    let pair = [vector, vector + 1].map(|vector| (vector / vectors, vector % vectors * LANES));
                    // The last may be alone.
                    let pair = &pair[..2.min(y.count * vectors - vector)];
                    let begin = |(y, x): (usize, usize)| frame[y * layout.size[1] + x..].as_ptr();
                    let panel = Panel { halves: [begin(pair[0]), begin(pair[pair.len() - 1])], rows: &*offsets };
                    for (i, row) in (0..rows).step_by(HEIGHT).enumerate() {
                        let height = HEIGHT.min(rows - row);
                        let part = part.tile(i, height, depth.len());
                        // SAFETY: the last lanes of the last vector end in the room after the frame.
                        unsafe { microkernel::multiply(part, panel, pair.len() * LANES, &mut tile) };
                        for (half, (y_at, x_at)) in pair.iter().enumerate() {
                            let result = (sample * y.count + y_at) * x.count + x_at;
                            let results = result..result + LANES.min(x.count - x_at);
                            // SAFETY: a sample belongs to one task.
                            unsafe { target.store_run(row, results, &mut tile[..height], half * LANES, start) };
                        }
                    }
                }
            }
        }
        let plane = y.count * x.count;
        // SAFETY: as above.
        unsafe { target.clamp(0..rows, task * each * plane..samples.min((task + 1) * each) * plane) };
    });
}

/// `target = map * columns^T`, added to what the target says, where `map(sample)` are the rows of the map in a sample. In `room`
/// lie the sums over up to so many parts of the batch.
pub fn kernel_gradient<'m, P: Place>(
    target: &Target<P>,
    map: impl Fn(usize) -> &'m [f32] + Sync,
    columns: &Columns,
    parts: usize,
    room: &mut [f32],
) {
    let samples = columns.grid.samples;
    let parts = parts.min(TASKS).min(samples);
    if parts < 2 {
        let mut sums = [[0.0; WIDTH]; MOST_DEPTH];
        add_samples(&map, columns, target.rows, 0..samples, &mut sums);
        return target.fill(|row, column| sums[column][row]);
    }
    let each = samples.div_ceil(parts);
    let size = target.rows * target.columns;
    let room = &mut room[..samples.div_ceil(each) * size];
    parallel::chunks(room, size, |i, part| {
        let mut sums = [[0.0; WIDTH]; MOST_DEPTH];
        add_samples(&map, columns, target.rows, i * each..samples.min((i + 1) * each), &mut sums);
        for (row, part) in part.chunks_exact_mut(target.columns).enumerate() {
            part.iter_mut().zip(&sums).for_each(|(to, sums)| *to = sums[row]);
        }
    });
    sum_parts(target, room);
}

/// Sums by row of the columns and, in lanes, by map.
type Sums = [[f32; WIDTH]; MOST_DEPTH];

/// Adds the products of some samples. A map's results are laid out as they lie in the frame, with zeros between rows, so that the
/// taps of a row of the kernel are neighbours everywhere. (Where an image is not finite, these zeros make more of the gradient
/// NaN than the sum itself would.)
fn add_samples<'m>(
    map: &impl Fn(usize) -> &'m [f32],
    columns: &Columns,
    maps: usize,
    samples: Range<usize>,
    sums: &mut Sums,
) {
    let Grid { y, x, .. } = &columns.grid;
    let layout = Layout::new(columns);
    let width = layout.size[1];
    let places = (y.count - 1) * width + x.count;
    let mut frame = Aligned([const { MaybeUninit::uninit() }; ELEMENTS + LANES]);
    let frame = zeros(&mut frame.0[..layout.elements()]);
    let mut panel = Aligned([0.0; DEPTH * WIDTH]);
    let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
    for sample in samples {
        layout.fill(sample, frame);
        for first in (0..places).step_by(DEPTH) {
            let depth = DEPTH.min(places - first);
            lay_out(map(sample), [maps, y.count * x.count], x.count, width, first, &mut panel.0[..depth * WIDTH]);
            for row in (0..columns.rows()).step_by(x.taps) {
                let elements = &frame[layout.offset(row) + first..];
                let rows = Rows::in_place(elements, x.shift.unsigned_abs()).tile(0, x.taps, depth);
                // SAFETY: the panel has so many rows.
                unsafe { microkernel::multiply(rows, Panel::packed(panel.0.as_ptr(), depth), maps, &mut tile) };
                for (sums, products) in sums[row..].iter_mut().zip(&tile[..x.taps]) {
                    sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
                }
            }
        }
    }
}

/// Lays out maps of rows of `count` results as a panel, a row for each place of a frame of some width from `first` on.
fn lay_out(map: &[f32], [maps, results]: [usize; 2], count: usize, width: usize, first: usize, panel: &mut [f32]) {
    let mut rest = panel;
    let mut place = first;
    while !rest.is_empty() {
        let (row, column) = (place / width, place % width);
        let places = (width - column).min(rest.len() / WIDTH);
        let used = count.saturating_sub(column).min(places);
        let (part, others) = rest.split_at_mut(places * WIDTH);
        let (part, gap) = part.split_at_mut(used * WIDTH);
        if used > 0 {
            transpose(&map[row * count + column..], [results, 1], [maps, used], as_block(part));
        }
        gap.fill(0.0);
        (rest, place) = (others, place + places);
    }
}
