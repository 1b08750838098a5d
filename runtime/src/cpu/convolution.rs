//! The three products of a convolution, for convolutions and transposed ones alike.
//!
//! An *image* has `channels` a group, a *map* has `maps` a group; the kernel `[groups * maps, channels, height, width]`
//! slides over the image, one position for each element of the map. [`correlate`] goes from the image to the map,
//! [`spread`] back, [`kernel_gradient`] from both to the kernel. A convolution's forward pass is the first, a transposed
//! convolution's the second.
//!
//! All are products with columns of what the kernel slides over ("im2col", Chellapilla et al. 2006), of which only the
//! blocks are made that the product works on. The way back is a correlation too: with stride 1 the kernel slides over the
//! map in reverse; with a larger one, pixels whose places leave the same rest by the stride have taps in common, and each
//! such phase is a correlation of its own. Taps that never leave the padding are left out everywhere.

use std::mem::MaybeUninit;
use std::ops::Range;

use plimsoll_plan::layers::window::Window;

use super::bounds::Bounds;
use super::correlation::{Grid, Run};
use super::gather::{Pieces, gather};
use super::microkernel::{HEIGHT, WIDTH};
use super::product::{
    Block, COLUMNS, DEPTH, Left, LeftTiles, PANELS, Place, Right, Rows, Start, Target, copy_column, product,
    product_in_parts, transpose, transpose_tile,
};
use super::step::Image;
use super::{depthwise, direct, parallel, vector, winograd};

/// The sizes of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Groups of channels, each convolved alone.
    pub groups: usize,
    /// Channels of the image, in a group.
    pub channels: usize,
    /// Channels of the map, in a group.
    pub maps: usize,
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Height and width of the map.
    pub map: [usize; 2],
    /// Taps of the kernel.
    pub kernel: [usize; 2],
    /// Distance between positions.
    pub stride: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// Distance between taps.
    pub dilation: [usize; 2],
}

impl Geometry {
    /// The sizes of a convolution from `image` to `map`, both `[channels, ..., width]`, in `groups`.
    pub fn new(window: &Window, groups: u64, image: &[u64], map: &[u64]) -> Geometry {
        let pair = |x: [u64; 2]| x.map(|x| x as usize);
        let extent = |shape: &[u64]| match shape[1..] {
            [width] => [1, width as usize],
            [height, width] => [height as usize, width as usize],
            _ => unreachable!("the shape rule of convolutions"),
        };
        let g = Geometry {
            groups: groups as usize,
            channels: (image[0] / groups) as usize,
            maps: (map[0] / groups) as usize,
            image: extent(image),
            map: extent(map),
            kernel: pair(window.kernel),
            stride: pair(window.stride),
            padding: pair(window.padding),
            dilation: pair(window.dilation),
        };
        if (g.kernel, g.stride, g.padding) == ([1, 1], [1, 1], [0, 0]) {
            // One tap that visits every pixel sees one long row.
            let row = [1, g.pixels()];
            return Geometry { image: row, map: row, ..g };
        }
        g
    }

    /// Elements of the image.
    pub(super) fn pixels(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Elements of the map, each a position of the kernel.
    pub(super) fn positions(&self) -> usize {
        self.map[0] * self.map[1]
    }

    pub(super) fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Rows of the kernel: the channels of the map.
    pub fn kernel_rows(&self) -> usize {
        self.groups * self.maps
    }

    /// Elements of the kernel for one channel of the map.
    fn rows(&self) -> usize {
        self.channels * self.taps()
    }

    /// Whether each channel of the image goes to so few of the map that there is no product worth its name.
    fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.maps < 4
    }

    /// The positions along an axis at which a tap lies on the image and not on its padding.
    pub(super) fn inside(&self, axis: usize, tap: usize) -> Range<usize> {
        let (stride, offset) = (self.stride[axis], tap * self.dilation[axis]);
        let first = self.padding[axis].saturating_sub(offset).div_ceil(stride);
        let end = (self.image[axis] + self.padding[axis]).saturating_sub(offset).div_ceil(stride);
        let end = end.min(self.map[axis]);
        first.min(end)..end
    }

    /// Where on the image a tap lies at a position that is [`inside`](Geometry::inside).
    pub(super) fn at(&self, axis: usize, position: usize, tap: usize) -> usize {
        position * self.stride[axis] + tap * self.dilation[axis] - self.padding[axis]
    }
}

/// `map = kernel * columns(image)`, added to what `start` says, within bounds.
pub fn correlate(g: &Geometry, image: Image, kernel: &[f32], map: &mut [f32], start: Start, bounds: Bounds) {
    if let (true, Image::Whole(image)) = (g.is_depthwise(), image) {
        return depthwise::correlate(g, image, kernel, map, start, bounds);
    }
    let samples = map.len() / (g.groups * g.maps * g.positions());
    let grid = Grid::forward(g, samples);
    let start = blank(map, g.positions(), start, grid.taps() == 0);
    if grid.taps() == 0 {
        return parallel::chunks(map, parallel::CHUNK, |_, part| bounds.clamp(part));
    }
    for group in 0..g.groups {
        let kernel = Kernel {
            grid: &grid,
            elements: &kernel[group * g.maps * g.rows()..][..g.maps * g.rows()],
            rows: g.maps,
            channels: g.channels,
            row: g.rows(),
            channel: g.taps(),
            taps: g.taps(),
            width: g.kernel[1],
        };
        let columns = columns(g, grid, image, group);
        let places = Places { grid: &grid, sample: g.groups * g.maps * g.positions(), width: g.map[1] };
        let map = &mut map[group * g.maps * g.positions()..];
        // SAFETY: results have positions of their own, and maps planes of their own.
        let target =
            unsafe { Target::new(map, [g.maps, grid.results()], g.positions(), places, start.part(group, g.maps)) };
        multiply(target.within(bounds), &kernel, &columns, g.maps);
    }
}

/// `target = kernel * columns`, by the way that suits their sizes, where the whole kernel has so many rows.
fn multiply(target: Target<Places>, kernel: &Kernel, columns: &Columns, rows: usize) {
    if direct::suits(rows, columns) {
        direct::correlate(&target, kernel, columns);
    } else if winograd::suits(rows, kernel, columns) {
        winograd::correlate(&target, kernel, columns);
    } else {
        product(target, kernel, columns);
    }
}

/// The columns of the image's channels in a group.
fn columns<'a>(g: &Geometry, grid: Grid, image: Image<'a>, group: usize) -> Columns<'a> {
    let source = match image {
        Image::Whole(image) => Image::Whole(&image[group * g.channels * g.pixels()..]),
        // They have one group.
        parts => parts,
    };
    Columns {
        grid,
        source,
        channels: g.channels,
        sample: g.groups * g.channels * g.pixels(),
        channel: g.pixels(),
        width: g.image[1],
    }
}

/// Lays down what the products are added to where they do not make every element; gives what they are to be added to.
fn blank<'a>(result: &mut [f32], plane: usize, start: Start<'a>, has_gaps: bool) -> Start<'a> {
    match start {
        _ if !has_gaps => return start,
        Start::Zero => parallel::chunks(result, parallel::CHUNK, |_, part| part.fill(0.0)),
        Start::Bias(bias) => parallel::chunks(result, plane, |i, plane| plane.fill(bias[i % bias.len()])),
        Start::Target => {}
    }
    Start::Target
}

/// `image = image(kernel^T * map)`: what every position gives to the pixels under its taps, summed, and added to what
/// `start` says. The image has those `channels` of each group.
pub fn spread(g: &Geometry, map: &[f32], kernel: &[f32], image: &mut [f32], start: Start, channels: Range<usize>) {
    if g.is_depthwise() {
        return depthwise::spread(g, map, kernel, image, start);
    }
    let (first, channels) = (channels.start, channels.len());
    let samples = image.len() / (g.groups * channels * g.pixels());
    let phases = || {
        let rows = (0..g.stride[0].min(g.image[0])).flat_map(|y| (0..g.stride[1].min(g.image[1])).map(move |x| [y, x]));
        rows.map(|phase| Grid::backward(g, phase, samples))
    };
    let start = blank(image, g.pixels(), start, phases().any(|grid| grid.taps() == 0));
    for grid in phases().filter(|grid| grid.taps() > 0) {
        for group in 0..g.groups {
            let kernel = Kernel {
                grid: &grid,
                elements: &kernel[group * g.maps * g.rows()..][..g.maps * g.rows()][first * g.taps()..],
                rows: channels,
                channels: g.maps,
                row: g.taps(),
                channel: g.rows(),
                taps: g.taps(),
                width: g.kernel[1],
            };
            let columns = Columns {
                grid,
                source: Image::Whole(&map[group * g.maps * g.positions()..]),
                channels: g.maps,
                sample: g.groups * g.maps * g.positions(),
                channel: g.positions(),
                width: g.map[1],
            };
            let places = Places { grid: &grid, sample: g.groups * channels * g.pixels(), width: g.image[1] };
            let image = &mut image[group * channels * g.pixels()..];
            let start = start.part(group, channels);
            // SAFETY: results have pixels of their own, and channels planes of their own.
            let target = unsafe { Target::new(image, [channels, grid.results()], g.pixels(), places, start) };
            // Some of the channels go the way of them all.
            multiply(target, &kernel, &columns, g.channels);
        }
    }
}

/// `dkernel = map * columns(image)^T`, or `dkernel += ...` if it `adds`, for some of the kernel's `rows`. In `room` lie sums
/// over parts of the batch.
pub fn kernel_gradient(
    g: &Geometry,
    image: Image,
    map: &[f32],
    rows: Range<usize>,
    dkernel: &mut [f32],
    adds: bool,
    room: &mut [f32],
) {
    if let (true, Image::Whole(image)) = (g.is_depthwise(), image) {
        return depthwise::kernel_gradient(g, image, map, rows.start, dkernel, adds);
    }
    let size = g.groups * g.maps * g.positions();
    let samples = map.len() / size;
    let grid = Grid::forward(g, samples);
    let start = blank(dkernel, g.taps(), Start::adding(adds), grid.taps() < g.taps());
    if grid.taps() == 0 {
        return;
    }
    let mut rest = dkernel;
    for group in rows.start / g.maps..rows.end.div_ceil(g.maps) {
        let rows = rows.start.max(group * g.maps)..rows.end.min((group + 1) * g.maps);
        let dkernel = rest.split_off_mut(..rows.len() * g.rows()).expect("the kernel has its rows");
        let maps = Maps {
            elements: &map[rows.start * g.positions()..],
            rows: rows.len(),
            positions: g.positions(),
            samples,
            sample: size,
        };
        let columns = Transposed(columns(g, grid, image, group));
        let taps = Taps { grid: &grid, taps: g.taps(), width: g.kernel[1] };
        // SAFETY: every channel and tap has an element of its own in the row of each map.
        let target = unsafe { Target::new(dkernel, [rows.len(), columns.columns()], g.rows(), taps, start) };
        // As many parts as all rows of the group have room for, so that each row is summed alike however few there are.
        let parts = room.len() / (g.maps * columns.columns());
        if direct::suits(g.maps, &columns.0) {
            let map = |sample: usize| &maps.elements[sample * size..];
            direct::kernel_gradient(&target, map, &columns.0, parts, room);
        } else {
            product_in_parts(target, &maps, &columns, parts, room);
        }
    }
}

/// A map on the left: a row for each of its channels, a column for each position of each sample.
struct Maps<'a> {
    /// From the first channel of the group on.
    elements: &'a [f32],
    rows: usize,
    positions: usize,
    samples: usize,
    /// Elements from sample to sample.
    sample: usize,
}

impl Left for Maps<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn depth(&self) -> usize {
        self.samples * self.positions
    }

    fn copies(&self) -> bool {
        false
    }

    fn tiles<'a>(&'a self, rows: Range<usize>, depth: Range<usize>, copy: &'a mut LeftTiles) -> Rows<'a> {
        let (mut sample, mut position) = (depth.start / self.positions, depth.start % self.positions);
        let at = |sample: usize, row: usize| &self.elements[sample * self.sample + row * self.positions..];
        if position + depth.len() <= self.positions {
            return Rows::in_place(&at(sample, rows.start)[position..], self.positions);
        }
        if self.positions < WIDTH {
            // Across many samples.
            for k in 0..depth.len() {
                copy_column(&at(sample, rows.start)[position..], self.positions, rows.len(), k, copy);
                position += 1;
                if position == self.positions {
                    (sample, position) = (sample + 1, 0);
                }
            }
            return Rows::columns(copy);
        }
        // Across some samples.
        let mut done = 0;
        while done < depth.len() {
            let length = (self.positions - position).min(depth.len() - done);
            for (row, to) in rows.clone().zip(copy.chunks_exact_mut(DEPTH)) {
                to[done..done + length].copy_from_slice(&at(sample, row)[position..][..length]);
            }
            done += length;
            (sample, position) = (sample + 1, 0);
        }
        Rows::in_place(copy, DEPTH)
    }
}

/// The columns of the image as rows.
struct Transposed<'a>(Columns<'a>);

impl Right for Transposed<'_> {
    fn columns(&self) -> usize {
        self.0.rows()
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, block: &mut Block) {
        let mut rows = [const { MaybeUninit::uninit() }; COLUMNS * WIDTH];
        for first in depth.clone().step_by(WIDTH) {
            let positions = first..depth.end.min(first + WIDTH);
            let rows = &mut rows[..columns.len() * WIDTH];
            self.0.write::<1>(columns.clone(), positions.clone(), rows);
            // SAFETY: `write` has written all of them.
            let rows = unsafe { rows.assume_init_ref() };
            for (rows, panel) in rows.chunks(WIDTH * WIDTH).zip(block.chunks_exact_mut(depth.len() * WIDTH)) {
                let width = rows.len() / WIDTH;
                let panel = &mut panel[(first - depth.start) * WIDTH..][..positions.len() * WIDTH];
                transpose(rows, [WIDTH, 1], [width, positions.len()], panel);
                if width < WIDTH {
                    panel.chunks_exact_mut(WIDTH).for_each(|row| row[width..].fill(MaybeUninit::new(0.0)));
                }
            }
        }
    }
}

/// Where channels and taps lie in a row of the kernel.
struct Taps<'a> {
    grid: &'a Grid,
    /// Those that were not left out, too.
    taps: usize,
    width: usize,
}

impl Place for Taps<'_> {
    fn offsets(&self, columns: Range<usize>, offsets: &mut [usize]) {
        for (column, offset) in columns.zip(offsets) {
            let (channel, tap) = (column / self.grid.taps(), column % self.grid.taps());
            *offset = channel * self.taps + self.grid.tap(tap, self.width);
        }
    }
}

/// The columns of a source: a row for each channel and tap, a column for each result.
pub struct Columns<'a> {
    pub grid: Grid,
    /// From the first channel of the group on.
    source: Image<'a>,
    pub channels: usize,
    /// Elements from sample to sample, if the source is whole.
    sample: usize,
    /// Elements from channel to channel, and from row to row.
    channel: usize,
    pub width: usize,
}

impl Columns<'_> {
    pub fn rows(&self) -> usize {
        self.channels * self.grid.taps()
    }

    /// The source from a channel of a sample on.
    pub fn plane(&self, sample: usize, channel: usize) -> &[f32] {
        match self.source {
            Image::Whole(source) => &source[sample * self.sample + channel * self.channel..],
            parts => parts.plane(sample * self.channels + channel, self.channels, self.channel),
        }
    }

    /// Writes some rows in the columns of up to `MOST` panels, panel after panel, as rows of [`WIDTH`] elements, zeros after the last
    /// column.
    fn write<const MOST: usize>(&self, rows: Range<usize>, columns: Range<usize>, to: &mut Block) {
        let panel = rows.len() * WIDTH;
        let parts = match self.source {
            Image::Whole(source) => return self.write_part::<MOST>((source, self.sample), rows, columns, to, panel),
            Image::Parts(parts) => parts,
        };
        let mut first = 0;
        for part in parts {
            let sample = part.len() / self.grid.samples;
            let end = first + sample / self.channel * self.grid.taps();
            let own = rows.start.max(first)..rows.end.min(end);
            if own.start < own.end {
                let to = &mut to[(own.start - rows.start) * WIDTH..];
                let own = own.start - first..own.end - first;
                self.write_part::<MOST>((part, sample), own, columns.clone(), to, panel);
            }
            first = end;
        }
    }

    /// The same for rows of one part of the source, whose samples are `sample` apart, and with panels that are `panel` apart.
    fn write_part<const MOST: usize>(
        &self,
        (source, sample): (&[f32], usize),
        rows: Range<usize>,
        columns: Range<usize>,
        to: &mut Block,
        panel: usize,
    ) {
        let Grid { y, x, .. } = &self.grid;
        let taps = self.grid.taps();
        let panels = columns.len().div_ceil(WIDTH);
        let (mut runs, mut counts) = ([[Run::default(); WIDTH]; MOST], [0; MOST]);
        for (i, first) in columns.clone().step_by(WIDTH).enumerate() {
            for run in self.grid.runs(first..columns.end.min(first + WIDTH)) {
                runs[i][counts[i]] = run;
                counts[i] += 1;
            }
        }
        // A tap has a row for each channel, but for the first and the last channels perhaps.
        let [(first, before), (last, until)] = [rows.start, rows.end].map(|row| (row / taps, row % taps));
        let mut pieces = [Pieces::new(x.step); MOST];
        let pieces = &mut pieces[..panels];
        for ty in 0..y.taps {
            let (inside_y, start_y) = (y.inside(ty), y.start(ty));
            for tx in 0..x.taps {
                let tap = ty * x.taps + tx;
                let channels = first + usize::from(tap < before)..last + usize::from(tap < until);
                if channels.is_empty() {
                    continue;
                }
                let (inside_x, start_x) = (x.inside(tx), x.start(tx));
                for (pieces, (runs, count)) in pieces.iter_mut().zip(runs.iter().zip(&counts)) {
                    pieces.clear();
                    let mut lane = 0;
                    for run in &runs[..*count] {
                        let from = inside_x.start.max(run.x);
                        let end = inside_x.end.min(run.x + run.length);
                        if inside_y.contains(&run.y) && from < end {
                            let at_y = ((run.y * y.step).cast_signed() + start_y).cast_unsigned();
                            let at_x = ((from * x.step).cast_signed() + start_x).cast_unsigned();
                            let at = run.sample * sample + at_y * self.width + at_x;
                            pieces.push(lane + from - run.x..lane + end - run.x, at);
                        }
                        lane += run.length;
                    }
                }
                let to = &mut to[(channels.start * taps + tap - rows.start) * WIDTH..];
                let source = &source[channels.start * self.channel..];
                gather(pieces, source, [self.channel, channels.len()], to, [taps * WIDTH, panel]);
            }
        }
    }
}

impl Right for Columns<'_> {
    fn columns(&self) -> usize {
        self.grid.results()
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, block: &mut Block) {
        self.write::<PANELS>(depth, columns, block);
    }
}

/// A kernel from the side of its rows: a row for each channel of the result, a column for each channel and tap of the
/// source.
pub struct Kernel<'a> {
    pub grid: &'a Grid,
    pub elements: &'a [f32],
    pub rows: usize,
    channels: usize,
    /// Elements from row to row, and from channel to channel.
    pub row: usize,
    pub channel: usize,
    /// Taps of the window, and those in a row of it.
    pub taps: usize,
    width: usize,
}

impl Left for Kernel<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn depth(&self) -> usize {
        self.channels * self.grid.taps()
    }

    /// Unless each row is contiguous.
    fn copies(&self) -> bool {
        !(self.has_all_taps() && self.channel == self.taps)
    }

    fn tiles<'a>(&'a self, rows: Range<usize>, depth: Range<usize>, copy: &'a mut LeftTiles) -> Rows<'a> {
        let elements = &self.elements[rows.start * self.row..];
        if !self.copies() {
            return Rows::in_place(&elements[depth.start..], self.row);
        }
        let taps = self.grid.taps();
        let mut k = 0;
        while k < depth.len() {
            let (channel, tap) = ((depth.start + k) / taps, (depth.start + k) % taps);
            let elements = &elements[channel * self.channel..];
            let taps = tap..taps.min(tap + depth.len() - k);
            if self.has_all_taps() && taps.len() > 1 {
                // The taps of a row are neighbours.
                let tiles = copy.chunks_exact_mut(HEIGHT * DEPTH);
                for (first, tile) in (0..rows.len()).step_by(HEIGHT).zip(tiles) {
                    let height = (rows.len() - first).min(HEIGHT);
                    let from = &elements[first * self.row + taps.start..];
                    transpose_tile(from, self.row, [height, taps.len()], &mut tile[k * HEIGHT..]);
                }
            } else {
                for (i, tap) in taps.clone().enumerate() {
                    let from = &elements[self.grid.tap(tap, self.width)..];
                    copy_column(from, self.row, rows.len(), k + i, copy);
                }
            }
            k += taps.len();
        }
        Rows::columns(copy)
    }
}

impl Kernel<'_> {
    /// Whether no tap is left out.
    pub fn has_all_taps(&self) -> bool {
        let Grid { y, x, .. } = self.grid;
        (self.grid.taps(), x.taps) == (self.taps, self.width)
            && [x.tap, y.tap] == [0, 0]
            && [x.period, y.period] == [1, 1]
    }
}

/// Where the results of a grid lie in planes of a width.
struct Places<'a> {
    grid: &'a Grid,
    /// Elements from sample to sample.
    sample: usize,
    width: usize,
}

impl Place for Places<'_> {
    fn offsets(&self, columns: Range<usize>, offsets: &mut [usize]) {
        let Grid { y, x, .. } = self.grid;
        let mut offsets = offsets.iter_mut();
        for run in self.grid.runs(columns) {
            let first = run.sample * self.sample + (y.first + run.y * y.stride) * self.width + x.first;
            for (i, offset) in offsets.by_ref().take(run.length).enumerate() {
                *offset = first + (run.x + i) * x.stride;
            }
        }
    }
}

/// Adds to each bias's gradient the sum of its channel over all samples.
pub fn bias_gradient(map: &[f32], dbias: &mut [f32], size: usize) {
    let channels = dbias.len();
    parallel::chunks(dbias, 1, |channel, sum| {
        for sample in map.chunks_exact(channels * size) {
            sum[0] += vector::sum(&sample[channel * size..][..size]);
        }
    });
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::layers::activation::Activation;
    use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_oneof, proptest};

    use super::super::crew::Crew;
    use super::*;

    fn value(i: usize) -> f32 {
        ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0
    }

    /// The map, the image and the kernel that the other two make, by plain loops over their elements and taps, each added to
    /// `start`.
    fn sums_over_taps(g: &Geometry, [image, map, kernel]: [&[f32]; 3], start: f64) -> [Vec<f64>; 3] {
        let [mut map_sums, mut image_sums, mut kernel_sums] =
            [map, image, kernel].map(|elements| vec![start; elements.len()]);
        for (plane, map) in map.chunks(g.positions()).enumerate() {
            let (sample, row) = (plane / g.kernel_rows(), plane % g.kernel_rows());
            for channel in 0..g.channels {
                let image_plane = ((sample * g.groups + row / g.maps) * g.channels + channel) * g.pixels();
                for tap in 0..g.taps() {
                    let [ky, kx] = [tap / g.kernel[1], tap % g.kernel[1]];
                    let k = row * g.rows() + channel * g.taps() + tap;
                    let (factor, mut sum) = (f64::from(kernel[k]), 0.0);
                    for y in g.inside(0, ky) {
                        for x in g.inside(1, kx) {
                            let position = y * g.map[1] + x;
                            let pixel = image_plane + g.at(0, y, ky) * g.image[1] + g.at(1, x, kx);
                            map_sums[plane * g.positions() + position] += factor * f64::from(image[pixel]);
                            image_sums[pixel] += factor * f64::from(map[position]);
                            sum += f64::from(map[position]) * f64::from(image[pixel]);
                        }
                    }
                    kernel_sums[k] += sum;
                }
            }
        }
        [map_sums, image_sums, kernel_sums]
    }

    /// All three products against plain loops: few maps, which are done without columns, and many; added to what is there.
    #[test]
    fn products_are_sums_over_taps() {
        type Case = (usize, usize, usize, usize, [usize; 2], [usize; 2], [usize; 2], [usize; 2], [usize; 2]);
        // One for each way: few maps, each a group, columns, and the algorithm of Winograd with more than it handles at a time.
        const SMALL: [Case; 4] = [
            (2, 1, 2, 2, [2, 8], [2, 3], [1, 1], [0, 1], [1, 1]),
            (2, 2, 1, 2, [2, 5], [2, 2], [1, 2], [1, 0], [1, 1]),
            (2, 1, 2, 3, [4, 5], [3, 3], [2, 2], [1, 1], [1, 1]),
            (1, 1, 2, 3, [7, 7], [3, 3], [1, 1], [1, 1], [1, 1]),
        ];
        const ALL: [Case; 12] = [
            (19, 1, 1, 6, [9, 12], [5, 5], [1, 1], [2, 2], [1, 1]),
            (19, 1, 6, 14, [14, 14], [5, 5], [1, 1], [0, 0], [1, 1]),
            (19, 2, 3, 4, [5, 17], [3, 2], [1, 1], [1, 3], [2, 1]),
            (19, 1, 2, 5, [1, 40], [1, 7], [1, 1], [0, 9], [1, 3]),
            (19, 1, 3, 33, [6, 11], [3, 3], [1, 1], [1, 1], [1, 1]),
            (19, 1, 3, 5, [9, 21], [3, 3], [2, 2], [1, 1], [1, 1]),
            (19, 1, 2, 5, [8, 36], [2, 4], [1, 3], [0, 2], [1, 1]),
            (19, 3, 1, 2, [9, 12], [3, 2], [1, 2], [1, 0], [2, 1]),
            // By the algorithm of Winograd: more channels, maps and tiles than are handled at a time, and odd ones.
            (1, 1, 32, 32, [8, 8], [3, 3], [1, 1], [1, 1], [1, 1]),
            (3, 1, 67, 79, [7, 14], [3, 3], [1, 1], [1, 1], [1, 1]),
            (2, 2, 33, 32, [14, 9], [3, 3], [1, 1], [0, 1], [1, 1]),
            (1, 1, 32, 66, [8, 211], [3, 3], [1, 1], [2, 0], [1, 1]),
        ];
        let cases: &[Case] = if cfg!(miri) { &SMALL } else { &ALL };
        for &(samples, groups, channels, maps, size, kernel, stride, padding, dilation) in cases {
            let count = |axis: usize| {
                let reach: usize = (kernel[axis] - 1) * dilation[axis] + 1;
                (size[axis] + 2 * padding[axis] - reach) / stride[axis] + 1
            };
            let map = [count(0), count(1)];
            let g = Geometry { groups, channels, maps, image: size, map, kernel, stride, padding, dilation };
            let image: Vec<f32> = (0..samples * groups * channels * g.pixels()).map(value).collect();
            let maps: Vec<f32> = (0..samples * groups * maps * g.positions()).map(|i| value(i + 3)).collect();
            let weight: Vec<f32> = (0..g.kernel_rows() * g.rows()).map(|i| value(i + 7)).collect();
            let expected = sums_over_taps(&g, [&image, &maps, &weight], 0.5);
            let check = |which: usize, compute: &mut dyn FnMut(&mut [f32])| {
                let expected = &expected[which];
                let mut got = vec![0.5; expected.len()];
                compute(&mut got);
                let largest = expected.iter().fold(1.0f64, |largest, x| largest.max(x.abs()));
                for (got, expected) in got.iter().zip(expected) {
                    let error = (f64::from(*got) - expected).abs() / largest;
                    assert!(error < 1e-5, "product {which} of {g:?}: {got} is not {expected}");
                }
            };
            let whole = Image::Whole(&image);
            check(0, &mut |got| correlate(&g, whole, &weight, got, Start::Target, Bounds::NONE));
            check(1, &mut |got| spread(&g, &maps, &weight, got, Start::Target, 0..g.channels));
            for parts in [0, 5] {
                let mut room = vec![0.0; parts * g.maps * g.rows()];
                check(2, &mut |got| kernel_gradient(&g, whole, &maps, 0..g.kernel_rows(), got, true, &mut room));
            }
        }
    }

    /// Rows of the kernel's gradient come out the same by themselves as among all of them: within a group or across groups,
    /// with the batch in parts or whole.
    #[test]
    fn rows_of_the_kernel_gradient() {
        let cases: &[(usize, usize, usize, usize)] = if cfg!(miri) {
            &[(2, 1, 4, 1), (2, 1, 2, 1), (1, 17, 2, 1)]
        } else {
            &[(1, 3, 7, 3), (2, 3, 5, 3), (3, 1, 2, 3), (2, 4, 5, 1)]
        };
        let (samples, size) = if cfg!(miri) { (2, [2, 8]) } else { (20, [8, 8]) };
        for &(groups, channels, maps, kernel) in cases {
            let g = Geometry {
                groups,
                channels,
                maps,
                image: size,
                map: size,
                kernel: [kernel; 2],
                stride: [1, 1],
                padding: [kernel / 2; 2],
                dilation: [1, 1],
            };
            let image: Vec<f32> = (0..samples * groups * channels * g.pixels()).map(value).collect();
            let map: Vec<f32> = (0..samples * groups * maps * g.positions()).map(|i| value(i + 3)).collect();
            for parts in [0, 3] {
                let mut room = vec![0.0; parts * maps * g.rows()];
                let mut whole = vec![0.0; groups * maps * g.rows()];
                kernel_gradient(&g, Image::Whole(&image), &map, 0..g.kernel_rows(), &mut whole, false, &mut room);
                for height in (1..g.kernel_rows()).step_by(if cfg!(miri) { 3 } else { 1 }) {
                    let mut tiles = vec![0.0; whole.len()];
                    for (i, tile) in tiles.chunks_mut(height * g.rows()).enumerate() {
                        let first = i * height;
                        let rows = first..first + tile.len() / g.rows();
                        kernel_gradient(&g, Image::Whole(&image), &map, rows, tile, false, &mut room);
                    }
                    assert_eq!(tiles, whole, "{groups} groups, tiles of {height} rows, {parts} parts");
                }
            }
        }
    }

    /// A convolution in the sizes at which its products are computed one way or another.
    fn geometries() -> impl Strategy<Value = (Geometry, usize)> {
        let size = prop_oneof![(1..25usize, 1..25usize), (1..5usize, 30..90usize), (30..90usize, 1..5usize)];
        let channels = prop_oneof![1..40usize, 30..140usize];
        let maps = prop_oneof![1..40usize, 30..140usize];
        let (groups, samples) = (prop_oneof![3 => Just(1), 1 => 2..4usize], 1..4usize);
        // Mostly 3 x 3 taps with stride 1.
        let odd = (1..5usize, 1..5usize, 1..4usize, 1..4usize, 1..4usize, 1..4usize);
        let window = prop_oneof![3 => Just((3, 3, 1, 1, 1, 1)), 1 => odd];
        (size, channels, maps, groups, samples, window, (0..4usize, 0..4usize)).prop_filter_map(
            "the kernel is larger than the image",
            |(size, channels, maps, groups, samples, window, padding)| {
                let (image, padding) = ([size.0, size.1], [padding.0, padding.1]);
                let (kernel, stride, dilation) = ([window.0, window.1], [window.2, window.3], [window.4, window.5]);
                let mut map = [0; 2];
                for axis in 0..2 {
                    let reach = (kernel[axis] - 1) * dilation[axis] + 1;
                    map[axis] = (image[axis] + 2 * padding[axis]).checked_sub(reach)? / stride[axis] + 1;
                }
                // Groups share what there is.
                let [channels, maps] = [channels, maps].map(|count| count.div_ceil(groups));
                let g = Geometry { groups, channels, maps, image, map, kernel, stride, padding, dilation };
                (samples * channels * maps * groups * g.positions() * g.taps() < 20_000_000).then_some((g, samples))
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

        /// All three products of any convolution are the sums over its taps to the last bit, for the numbers are such that
        /// nothing is rounded: added to what is there or not, with a bias, within bounds, for some of the channels or rows,
        /// and with the image in parts.
        #[test]
        #[cfg_attr(miri, ignore)]
        fn products_are_exact((g, samples) in geometries(), seed in 0..1000usize, cut in 0.0..1.0, threads in 1..4usize) {
            let numbers = |count: usize, seed: usize| -> Vec<f32> {
                (0..count).map(|i| (((i + 1000 * seed) * 7919 + i / 11) % 7) as f32 - 3.0).collect()
            };
            let image = numbers(samples * g.groups * g.channels * g.pixels(), seed);
            let map = numbers(samples * g.kernel_rows() * g.positions(), seed + 3);
            let kernel = numbers(g.kernel_rows() * g.rows(), seed + 7);
            let sums = sums_over_taps(&g, [&image, &map, &kernel], 0.0);
            let mut crew = Crew::new(threads).unwrap();
            let check = |what: &str, got: &[f32], expected: &[f64]| {
                let wrong = got.iter().zip(expected).position(|(got, expected)| f64::from(*got) != *expected);
                let wrong = wrong.map(|at| (at, got[at], expected[at]));
                prop_assert!(wrong.is_none() && got.len() == expected.len(), "{what} of {g:?}: {wrong:?}");
                Ok(())
            };

            // The image as the parts of a concat: the first channels of each sample, and the others.
            let cut_channel = (cut * g.channels as f64) as usize;
            let channels = [0..cut_channel, cut_channel..g.channels];
            let part = |own: &Range<usize>| {
                let samples = image.chunks(g.channels * g.pixels());
                let parts = samples.flat_map(|sample| &sample[own.start * g.pixels()..own.end * g.pixels()]);
                parts.copied().collect::<Vec<f32>>()
            };
            let [left, right] = channels.each_ref().map(part);
            let parts = [&left[..], &right[..]];
            let has_parts = g.groups == 1 && cut_channel > 0;
            let images = [Some(Image::Whole(&image)), has_parts.then_some(Image::Parts(&parts))];

            // What is overwritten may be anything.
            for (start, before) in [(Start::Target, 2.0f32), (Start::Zero, f32::NAN)] {
                let adds = matches!(start, Start::Target);
                let [maps, pixels, taps] =
                    sums.each_ref().map(|sums| sums.iter().map(|x| if adds { x + 2.0 } else { *x }).collect::<Vec<_>>());
                for image in images.into_iter().flatten() {
                    for bounds in [None, Bounds::of(&Activation::Relu6)] {
                        let clamped = |x: &f64| if bounds.is_some() { x.clamp(0.0, 6.0) } else { *x };
                        let mut got = vec![before; maps.len()];
                        let within = bounds.unwrap_or(Bounds::NONE);
                        crew.run(|| correlate(&g, image, &kernel, &mut got, start, within));
                        check("the map", &got, &maps.iter().map(clamped).collect::<Vec<_>>())?;
                    }
                    for (room, first) in [(0, 0.0), (3, 0.0), (3, cut)] {
                        let mut room = vec![f32::NAN; room * g.maps * g.rows()];
                        let rows = (first * g.kernel_rows() as f64) as usize..g.kernel_rows();
                        let mut got = vec![before; rows.len() * g.rows()];
                        crew.run(|| kernel_gradient(&g, image, &map, rows.clone(), &mut got, adds, &mut room));
                        check("the kernel", &got, &taps[rows.start * g.rows()..])?;
                    }
                }
                let mut got = vec![before; pixels.len()];
                crew.run(|| spread(&g, &map, &kernel, &mut got, start, 0..g.channels));
                check("the image", &got, &pixels)?;
                for own in channels.iter().filter(|_| has_parts) {
                    let samples = pixels.chunks(g.channels * g.pixels());
                    let expected = samples.flat_map(|sample| &sample[own.start * g.pixels()..own.end * g.pixels()]);
                    let expected: Vec<f64> = expected.copied().collect();
                    let mut got = vec![before; expected.len()];
                    crew.run(|| spread(&g, &map, &kernel, &mut got, start, own.clone()));
                    check("some channels of the image", &got, &expected)?;
                }
            }

            let with_bias = |sums: &[f64], plane: usize, bias: &[f32]| {
                let planes = sums.chunks(plane).zip(bias.iter().cycle());
                planes.flat_map(|(plane, bias)| plane.iter().map(|x| x + f64::from(*bias))).collect::<Vec<_>>()
            };
            let bias = numbers(g.kernel_rows(), seed);
            let mut got = vec![f32::NAN; map.len()];
            crew.run(|| correlate(&g, images[0].unwrap(), &kernel, &mut got, Start::Bias(&bias), Bounds::NONE));
            check("the map with a bias", &got, &with_bias(&sums[0], g.positions(), &bias))?;
            let bias = numbers(g.groups * g.channels, seed);
            let mut got = vec![f32::NAN; image.len()];
            crew.run(|| spread(&g, &map, &kernel, &mut got, Start::Bias(&bias), 0..g.channels));
            check("the image with a bias", &got, &with_bias(&sums[1], g.pixels(), &bias))?;
        }
    }
}
