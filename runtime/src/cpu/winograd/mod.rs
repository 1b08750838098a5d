//! Convolutions with 3 x 3 taps and stride 1, in less than half of the multiplications (Lavin & Gray, "Fast Algorithms for
//! Convolutional Neural Networks", 2016, with the minimal filtering of Winograd, 1980: F(2 x 2, 3 x 3)).
//!
//! Results come in tiles of 2 x 2, each from the 4 x 4 elements of the source under its taps, its *patch*. Kernel and patches
//! are transformed into 16 numbers each, at which the convolution is one product of matrices a number: maps times channels
//! times tiles, 16 multiplications for 4 results instead of 36. The sums are transformed back into results. (Where a source is
//! not finite, more of the results around it may be NaN than those with a tap on it.)
//!
//! A task has some maps and a block of tiles. For some channels at a time, it lays out the patches of all tiles in the
//! second-level cache, then the kernel of a few maps, and adds their products to sums that stay in that cache too.

mod kernel;
mod patches;
mod sums;

use std::mem::MaybeUninit;
use std::ops::Range;

use super::convolution::{Columns, Kernel};
use super::correlation::{Axis, Grid};
use super::microkernel::{self, HEIGHT, LANES, Panel, Sums, WIDTH};
use super::parallel;
use super::product::{Aligned, Place, Target};

/// Taps along an axis, results of a tile, elements of a patch.
const TAPS: usize = 3;
const RESULTS: usize = 2;
const PATCH: usize = RESULTS + TAPS - 1;

/// Numbers that a patch is transformed into.
const NUMBERS: usize = PATCH * PATCH;

/// The most tiles of a block: whole panels.
const TILES: usize = 4 * WIDTH;

/// Elements from row to row of patches and sums. Vectors may begin at any tile, and end after the last one.
const ROW: usize = TILES + LANES;

/// Channels that are handled at a time.
const DEPTH: usize = if cfg!(miri) { 2 } else { 64 };

/// Maps of a task.
const MAPS: usize = if cfg!(miri) { 2 } else { 64 };

/// Into how many tasks the work is cut, if it is large enough.
const TASKS: usize = 32;

/// The least tiles of a sample or of a batch, and the least maps and channels, with which the transformations pay. (In Miri's small
/// tests they need not.)
const LEAST_TILES: usize = 16;
const LEAST_OF_BATCH: usize = 64;
const LEAST_MAPS: usize = if cfg!(miri) { 2 } else { 32 };
const LEAST_CHANNELS: usize = if cfg!(miri) { 2 } else { 32 };

/// Whether the product of a kernel of so many rows with these columns is better done here.
pub fn suits(rows: usize, kernel: &Kernel, columns: &Columns) -> bool {
    let Grid { y, x, samples } = columns.grid;
    let along = |axis: &Axis| (axis.taps, axis.period, axis.step, axis.stride, axis.shift.abs()) == (TAPS, 1, 1, 1, 1);
    let [height, width] = [y.count, x.count].map(|count| count.div_ceil(RESULTS));
    let tiles = height * width;
    kernel.has_all_taps()
        && kernel.taps == TAPS * TAPS
        && along(&y)
        && along(&x)
        && y.shift == x.shift
        && (tiles >= LEAST_TILES || tiles * samples >= LEAST_OF_BATCH)
        && rows >= LEAST_MAPS
        && columns.channels >= LEAST_CHANNELS
        // Where the last tiles of rows and columns are mostly outside, there is little to spare.
        && 10 * y.count * x.count >= 7 * RESULTS * RESULTS * tiles
}

/// `target = kernel * columns`, added to what the target says.
pub fn correlate<P: Place>(target: &Target<P>, kernel: &Kernel, columns: &Columns) {
    let Grid { y, x, samples } = columns.grid;
    let tiles = samples * y.count.div_ceil(RESULTS) * x.count.div_ceil(RESULTS);
    let blocks = [kernel.rows.div_ceil(MAPS), tiles.div_ceil(TILES)];
    let size = tiles.div_ceil(blocks[1]);
    let count = blocks[0] * blocks[1];
    let tasks = count.min(TASKS);
    parallel::for_each(tasks, |task| {
        let mut room = MaybeUninit::<Room>::uninit();
        // SAFETY: a room is nothing but elements that need no value. Made of its parts, it would be on the stack twice where
        // nothing is optimized.
        let room = unsafe { room.assume_init_mut() };
        let mut chunks = [Chunk::default(); TILES];
        for block in task * count / tasks..(task + 1) * count / tasks {
            // Neighbouring blocks have the same tiles, and other maps.
            let (maps, first) = (block % blocks[0] * MAPS, block / blocks[0] * size);
            let maps = maps..kernel.rows.min(maps + MAPS);
            let tiles = first..tiles.min(first + size);
            let chunks = Chunk::all(&columns.grid, tiles.clone(), &mut chunks);
            room.convolve(target, kernel, columns, chunks, maps, tiles.len());
        }
    });
}

/// Some tiles that are neighbours in a row: as many as a vector has lanes, or as there are.
#[derive(Clone, Copy, Default)]
struct Chunk {
    sample: usize,
    /// The first result of the first tile.
    result: [usize; 2],
    /// Tiles.
    length: usize,
    /// The number of the first tile in its block.
    place: usize,
    /// Where its patch begins in the source; it may be on the padding.
    patch: [isize; 2],
}

impl Chunk {
    /// Those of a block of tiles, which are counted row by row, sample after sample.
    fn all<'a>(grid: &Grid, tiles: Range<usize>, chunks: &'a mut [Chunk; TILES]) -> &'a [Chunk] {
        let Grid { y, x, .. } = grid;
        let [height, width] = [y.count, x.count].map(|count| count.div_ceil(RESULTS));
        let (mut count, mut next) = (0, tiles.start);
        while next < tiles.end {
            let (row, column) = (next / width, next % width);
            let result = [row % height * RESULTS, column * RESULTS];
            let patch = [(y, result[0]), (x, result[1])].map(|(axis, at)| first(axis) + at.cast_signed());
            let length = LANES.min(width - column).min(tiles.end - next);
            chunks[count] = Chunk { sample: row / height, result, length, place: next - tiles.start, patch };
            (count, next) = (count + 1, next + length);
        }
        &chunks[..count]
    }
}

/// Where the patch of the first result begins.
fn first(axis: &Axis) -> isize {
    axis.offset + (axis.shift * (TAPS - 1).cast_signed()).min(0)
}

/// Elements of a line of the cache. With a line more than is needed, matrices do not begin at a multiple of 4096 bytes, at which
/// elements at the same place in all of them would drive each other out of the first-level cache.
const LINE: usize = 16;

/// What a task works in, 1.2 MiB of the stack: for each of the [`NUMBERS`] a matrix of its own.
struct Room {
    patches: Aligned<Patches>,
    kernel: Aligned<Transformed>,
    sums: Aligned<AllSums>,
}

/// Rows for channels, [`ROW`] elements each.
type Patches = [MaybeUninit<f32>; NUMBERS * PATCHES];
const PATCHES: usize = DEPTH * ROW + LINE;

/// Rows for maps or columns for them, see [`kernel::transform`].
type Transformed = [MaybeUninit<f32>; NUMBERS * KERNEL];
const KERNEL: usize = LANES * DEPTH + LINE;

/// Rows for maps, [`ROW`] elements each.
type AllSums = [MaybeUninit<f32>; NUMBERS * SUMS];
const SUMS: usize = MAPS * ROW + LINE;

impl Room {
    /// The results of some maps in a block of so many tiles.
    fn convolve<P: Place>(
        &mut self,
        target: &Target<P>,
        kernel: &Kernel,
        columns: &Columns,
        chunks: &[Chunk],
        maps: Range<usize>,
        tiles: usize,
    ) {
        for first in (0..columns.channels).step_by(DEPTH) {
            let channels = first..columns.channels.min(first + DEPTH);
            patches::transform(columns, chunks, channels.clone(), tiles, &mut self.patches.0);
            for row in maps.clone().step_by(HEIGHT) {
                let rows = row..maps.end.min(row + HEIGHT);
                let layout = kernel::transform(kernel, rows.clone(), channels.clone(), &mut self.kernel.0);
                let own = row - maps.start..rows.end - maps.start;
                self.multiply(layout, own, channels.len(), tiles, first > 0);
            }
        }
        sums::transform(&mut self.sums.0, columns, chunks, maps, tiles, target);
    }

    /// Adds the products of some of the task's maps in so many channels and tiles to their sums, or lays them down. The kernel
    /// has its rows and its columns so far apart.
    fn multiply(&mut self, [row, column]: [usize; 2], maps: Range<usize>, channels: usize, tiles: usize, adds: bool) {
        static ROWS: [usize; DEPTH] = {
            let mut rows = [0; DEPTH];
            let mut k = 0;
            while k < rows.len() {
                rows[k] = k * ROW;
                k += 1;
            }
            rows
        };
        for number in 0..NUMBERS {
            let kernel = self.kernel.0[number * KERNEL..][..KERNEL].as_ptr().cast();
            let rows = microkernel::Rows { start: kernel, count: maps.len(), row, column };
            for panel in (0..tiles).step_by(WIDTH) {
                let patches = self.patches.0[number * PATCHES + panel..].as_ptr().cast::<f32>();
                let sums = &mut self.sums.0[number * SUMS + maps.start * ROW + panel..];
                assert!((maps.len() - 1) * ROW + WIDTH <= sums.len(), "sums end outside of the room");
                let sums = Sums { start: sums.as_mut_ptr().cast(), row: ROW, adds };
                let panel_rows = Panel { halves: [patches, patches.wrapping_add(LANES)], rows: &ROWS[..channels] };
                // SAFETY: the kernel of these maps and channels and their patches, up to the end of the last vector that has a
                // tile, were written; where sums are added to, so were they.
                unsafe { microkernel::multiply_onto(rows, panel_rows, tiles - panel, sums) };
            }
        }
    }
}
