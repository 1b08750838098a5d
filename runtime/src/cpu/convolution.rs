//! The three products of a convolution, for convolutions and transposed ones alike.
//!
//! An *image* has `channels` a group, a *map* has `maps` a group; the kernel `[groups * maps, channels, height, width]`
//! slides over the image, one position for each element of the map. [`correlate`] goes from the image to the map,
//! [`spread`] back, [`kernel_gradient`] from both to the kernel. A convolution's forward pass is the first, a transposed
//! convolution's the second.
//!
//! Columns of the image ("im2col", Chellapilla et al. 2006) are made a panel at a time, on the stack, where the product
//! reads them. Where a group has one channel ("depthwise"), there is no product worth its name, and plain loops run along
//! the rows of the image.

use std::mem::MaybeUninit;
use std::ops::Range;

use plimsoll_plan::layers::window::Window;

use super::microkernel::{HEIGHT, Rows, Tile, WIDTH, multiply};
use super::product::{Left, Panel, Right, Target, product, write};
use super::{parallel, vector};

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
        Geometry {
            groups: groups as usize,
            channels: (image[0] / groups) as usize,
            maps: (map[0] / groups) as usize,
            image: extent(image),
            map: extent(map),
            kernel: pair(window.kernel),
            stride: pair(window.stride),
            padding: pair(window.padding),
            dilation: pair(window.dilation),
        }
    }

    /// Elements of the image.
    fn pixels(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Elements of the map, each a position of the kernel.
    fn positions(&self) -> usize {
        self.map[0] * self.map[1]
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Elements of the kernel for one channel of the map.
    fn rows(&self) -> usize {
        self.channels * self.taps()
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1
    }

    /// The positions along an axis at which a tap lies on the image and not on its padding.
    fn inside(&self, axis: usize, tap: usize) -> Range<usize> {
        let (stride, offset) = (self.stride[axis], tap * self.dilation[axis]);
        let first = self.padding[axis].saturating_sub(offset).div_ceil(stride);
        let end = (self.image[axis] + self.padding[axis]).saturating_sub(offset).div_ceil(stride);
        let end = end.min(self.map[axis]);
        first.min(end)..end
    }

    /// Where on the image a tap lies at a position that is [`inside`](Geometry::inside).
    fn at(&self, axis: usize, position: usize, tap: usize) -> usize {
        position * self.stride[axis] + tap * self.dilation[axis] - self.padding[axis]
    }
}

/// A run of neighbouring positions in one row of the map.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Which sample.
    sample: usize,
    /// Which row of the map.
    y: usize,
    /// The first column.
    x: usize,
    /// How many.
    length: usize,
}

/// The runs that make up a range of positions, counted through all samples.
fn runs(g: &Geometry, positions: Range<usize>) -> impl Iterator<Item = Run> {
    let [height, width] = g.map;
    let mut next = positions.start;
    std::iter::from_fn(move || {
        let (row, x) = (next / width, next % width);
        let length = (width - x).min(positions.end - next);
        next += length;
        (length > 0).then_some(Run { sample: row / height, y: row % height, x, length })
    })
}

/// `map = kernel * columns(image)`, or `map += ...` if it `adds`.
pub fn correlate(g: &Geometry, image: &[f32], kernel: &[f32], map: &mut [f32], adds: bool) {
    if g.is_depthwise() {
        return depthwise_correlate(g, image, kernel, map, adds);
    }
    let (size, rows, positions) = (g.groups * g.maps * g.positions(), g.rows(), g.positions());
    let samples = map.len() / size;
    for (group, kernel) in kernel.chunks_exact(g.maps * rows).enumerate() {
        let left = Left::rows(kernel, g.maps, rows);
        let right = Columns { g, image, group, samples };
        let elements = &mut map[group * g.maps * positions..];
        product(Target { elements, row: positions, column: 1, width: positions, group: size }, left, &right, adds);
    }
}

/// The columns of the image: a row for each channel and tap, a column for each position of each sample.
struct Columns<'a> {
    g: &'a Geometry,
    image: &'a [f32],
    group: usize,
    samples: usize,
}

impl Columns<'_> {
    /// One channel of one sample.
    fn channel(&self, sample: usize, channel: usize) -> &[f32] {
        let pixels = self.g.pixels();
        let start = ((sample * self.g.groups + self.group) * self.g.channels + channel) * pixels;
        &self.image[start..start + pixels]
    }
}

impl Right for Columns<'_> {
    fn columns(&self) -> usize {
        self.samples * self.g.positions()
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, panel: &mut Panel) {
        let g = self.g;
        let mut all = [Run::default(); WIDTH];
        let mut count = 0;
        for run in runs(g, columns.clone()) {
            all[count] = run;
            count += 1;
        }
        for (row, to) in depth.zip(panel.chunks_exact_mut(WIDTH)) {
            let (channel, tap) = (row / g.taps(), row % g.taps());
            let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
            let (inside_y, inside_x) = (g.inside(0, ky), g.inside(1, kx));
            let mut to = to;
            for run in &all[..count] {
                let (part, rest) = to.split_at_mut(run.length);
                to = rest;
                let first = inside_x.start.clamp(run.x, run.x + run.length) - run.x;
                let end = inside_x.end.clamp(run.x, run.x + run.length) - run.x;
                if !inside_y.contains(&run.y) || first >= end {
                    part.fill(MaybeUninit::new(0.0));
                    continue;
                }
                let pixels = &self.channel(run.sample, channel)[g.at(0, run.y, ky) * g.image[1]..][..g.image[1]];
                part[..first].fill(MaybeUninit::new(0.0));
                part[end..].fill(MaybeUninit::new(0.0));
                let from = g.at(1, run.x + first, kx);
                let part = &mut part[first..end];
                if g.stride[1] == 1 {
                    write(part, &pixels[from..from + part.len()]);
                } else {
                    let pixels = pixels[from..].iter().step_by(g.stride[1]);
                    part.iter_mut().zip(pixels).for_each(|(to, x)| *to = MaybeUninit::new(*x));
                }
            }
            to.fill(MaybeUninit::new(0.0));
        }
    }
}

/// `dkernel = map * columns(image)^T`, or `dkernel += ...` if it `adds`.
pub fn kernel_gradient(g: &Geometry, image: &[f32], map: &[f32], dkernel: &mut [f32], adds: bool) {
    if g.is_depthwise() {
        return depthwise_kernel_gradient(g, image, map, dkernel, adds);
    }
    let (size, rows, positions) = (g.groups * g.maps * g.positions(), g.rows(), g.positions());
    let samples = map.len() / size;
    for (group, dkernel) in dkernel.chunks_exact_mut(g.maps * rows).enumerate() {
        let left = Left {
            elements: &map[group * g.maps * positions..],
            rows: g.maps,
            depth: positions,
            row: positions,
            column: 1,
            repeats: samples,
            repeat: size,
        };
        let right = Transposed(Columns { g, image, group, samples });
        product(Target::rows(dkernel, rows), left, &right, adds);
    }
}

/// The columns of the image as rows.
struct Transposed<'a>(Columns<'a>);

impl Right for Transposed<'_> {
    fn columns(&self) -> usize {
        self.0.g.rows()
    }

    fn pack(&self, depth: Range<usize>, columns: Range<usize>, panel: &mut Panel) {
        let g = self.0.g;
        let width = columns.len();
        for to in panel.chunks_exact_mut(WIDTH) {
            to[width..].fill(MaybeUninit::new(0.0));
        }
        for (j, row) in columns.enumerate() {
            let (channel, tap) = (row / g.taps(), row % g.taps());
            let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
            let (inside_y, inside_x) = (g.inside(0, ky), g.inside(1, kx));
            let mut to = panel.chunks_exact_mut(WIDTH).map(|row| &mut row[j]);
            for run in runs(g, depth.clone()) {
                let first = inside_x.start.clamp(run.x, run.x + run.length) - run.x;
                let end = inside_x.end.clamp(run.x, run.x + run.length) - run.x;
                if !inside_y.contains(&run.y) || first >= end {
                    to.by_ref().take(run.length).for_each(|to| *to = MaybeUninit::new(0.0));
                    continue;
                }
                let pixels = &self.0.channel(run.sample, channel)[g.at(0, run.y, ky) * g.image[1]..][..g.image[1]];
                to.by_ref().take(first).for_each(|to| *to = MaybeUninit::new(0.0));
                let from = g.at(1, run.x + first, kx);
                let pixels = pixels[from..].iter().step_by(g.stride[1]);
                to.by_ref().take(end - first).zip(pixels).for_each(|(to, x)| *to = MaybeUninit::new(*x));
                to.by_ref().take(run.length - end).for_each(|to| *to = MaybeUninit::new(0.0));
            }
        }
    }
}

/// Rows of columns that are made at a time before they are added to the image.
const SPREAD_ROWS: usize = 12 * HEIGHT;

/// Common extent of the products for [`spread`] that is handled at a time.
const DEPTH: usize = 256;

/// `image = image(kernel^T * map)`: what every position gives to the pixels under its taps, summed; or `image += ...` if it
/// `adds`.
pub fn spread(g: &Geometry, map: &[f32], kernel: &[f32], image: &mut [f32], adds: bool) {
    if g.is_depthwise() {
        return depthwise_spread(g, map, kernel, image, adds);
    }
    // A task has some channels of one sample to itself.
    let most = (SPREAD_ROWS / g.taps()).clamp(1, g.channels);
    let channels = (1..=most).rev().find(|channels| g.channels.is_multiple_of(*channels)).unwrap_or(1);
    let blocks = g.groups * g.channels / channels;
    parallel::chunks(image, channels * g.pixels(), |i, image| {
        if !adds {
            image.fill(0.0);
        }
        let (sample, first) = (i / blocks, i % blocks * channels);
        let (group, first) = (first / g.channels, first % g.channels);
        let map = &map[(sample * g.groups + group) * g.maps * g.positions()..][..g.maps * g.positions()];
        let kernel = &kernel[group * g.maps * g.rows()..][..g.maps * g.rows()];
        for row in (0..channels * g.taps()).step_by(SPREAD_ROWS) {
            let rows = row..(channels * g.taps()).min(row + SPREAD_ROWS);
            for start in (0..g.positions()).step_by(WIDTH) {
                let positions = start..g.positions().min(start + WIDTH);
                spread_panel(g, map, kernel, first * g.taps(), rows.clone(), positions, image);
            }
        }
    });
}

/// What some positions of a map give to some rows of columns, which begin at row `first` of the kernel.
fn spread_panel(
    g: &Geometry,
    map: &[f32],
    kernel: &[f32],
    first: usize,
    rows: Range<usize>,
    positions: Range<usize>,
    image: &mut [f32],
) {
    let mut panel = [const { MaybeUninit::uninit() }; DEPTH * WIDTH];
    let mut columns = [[0.0; WIDTH]; SPREAD_ROWS];
    let mut tile: Tile = [[0.0; WIDTH]; HEIGHT];
    let width = positions.len();
    for start in (0..g.maps).step_by(DEPTH) {
        let depth = (g.maps - start).min(DEPTH);
        for (k, to) in panel.chunks_exact_mut(WIDTH).take(depth).enumerate() {
            write(&mut to[..width], &map[(start + k) * g.positions()..][positions.clone()]);
            to[width..].fill(MaybeUninit::new(0.0));
        }
        for row in rows.clone().step_by(HEIGHT) {
            let count = (rows.end - row).min(HEIGHT);
            let at = start * g.rows() + first + row;
            let last = at + count - 1 + (depth - 1) * g.rows();
            assert!(last < kernel.len(), "the kernel is smaller");
            let left = Rows { start: kernel[at..].as_ptr(), count, row: 1, column: g.rows() };
            // SAFETY: the kernel has these elements, as was checked; the panel has just been written.
            unsafe { multiply(left, panel.as_ptr().cast(), WIDTH, depth, &mut tile) };
            for (sums, row) in columns[row - rows.start..].iter_mut().zip(&tile[..count]) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
    }
    for (sums, row) in columns.iter().zip(rows) {
        let (channel, tap) = (row / g.taps(), row % g.taps());
        let pixels = &mut image[channel * g.pixels()..][..g.pixels()];
        let mut from = &sums[..];
        for run in runs(g, positions.clone()) {
            let (part, rest) = from.split_at(run.length);
            from = rest;
            spread_run(g, tap, run, part, 1.0, pixels);
        }
    }
}

/// Adds a run of values, times a factor, to the pixels under a tap.
fn spread_run(g: &Geometry, tap: usize, run: Run, values: &[f32], factor: f32, pixels: &mut [f32]) {
    let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
    let inside = g.inside(1, kx);
    let (first, end) = (inside.start.max(run.x), inside.end.min(run.x + run.length));
    if !g.inside(0, ky).contains(&run.y) || first >= end {
        return;
    }
    let pixels = &mut pixels[g.at(0, run.y, ky) * g.image[1]..][..g.image[1]][g.at(1, first, kx)..];
    let values = &values[first - run.x..end - run.x];
    if g.stride[1] == 1 {
        pixels.iter_mut().zip(values).for_each(|(to, x)| *to += factor * x);
    } else {
        pixels.iter_mut().step_by(g.stride[1]).zip(values).for_each(|(to, x)| *to += factor * x);
    }
}

fn depthwise_correlate(g: &Geometry, image: &[f32], kernel: &[f32], map: &mut [f32], adds: bool) {
    parallel::chunks(map, g.positions(), |i, map| {
        if !adds {
            map.fill(0.0);
        }
        let channel = i % (g.groups * g.maps);
        let pixels = &image[(i / (g.groups * g.maps) * g.groups + channel / g.maps) * g.pixels()..][..g.pixels()];
        for (tap, factor) in kernel[channel * g.taps()..][..g.taps()].iter().enumerate() {
            let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
            let inside = g.inside(1, kx);
            if inside.is_empty() {
                continue;
            }
            for y in g.inside(0, ky) {
                let from = &pixels[g.at(0, y, ky) * g.image[1]..][..g.image[1]][g.at(1, inside.start, kx)..];
                let to = &mut map[y * g.map[1]..][inside.clone()];
                if g.stride[1] == 1 {
                    to.iter_mut().zip(from).for_each(|(to, x)| *to += factor * x);
                } else {
                    to.iter_mut().zip(from.iter().step_by(g.stride[1])).for_each(|(to, x)| *to += factor * x);
                }
            }
        }
    });
}

fn depthwise_spread(g: &Geometry, map: &[f32], kernel: &[f32], image: &mut [f32], adds: bool) {
    parallel::chunks(image, g.pixels(), |i, pixels| {
        if !adds {
            pixels.fill(0.0);
        }
        let (sample, group) = (i / g.groups, i % g.groups);
        for channel in group * g.maps..(group + 1) * g.maps {
            let map = &map[(sample * g.groups * g.maps + channel) * g.positions()..][..g.positions()];
            for (tap, factor) in kernel[channel * g.taps()..][..g.taps()].iter().enumerate() {
                for (y, row) in map.chunks_exact(g.map[1]).enumerate() {
                    let run = Run { sample, y, x: 0, length: g.map[1] };
                    spread_run(g, tap, run, row, *factor, pixels);
                }
            }
        }
    });
}

fn depthwise_kernel_gradient(g: &Geometry, image: &[f32], map: &[f32], dkernel: &mut [f32], adds: bool) {
    let samples = map.len() / (g.groups * g.maps * g.positions());
    parallel::chunks(dkernel, 1, |i, sum| {
        let (channel, tap) = (i / g.taps(), i % g.taps());
        let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
        let inside = g.inside(1, kx);
        let mut total = 0.0;
        for sample in 0..samples {
            let map = &map[(sample * g.groups * g.maps + channel) * g.positions()..][..g.positions()];
            let pixels = &image[(sample * g.groups + channel / g.maps) * g.pixels()..][..g.pixels()];
            for y in g.inside(0, ky) {
                if inside.is_empty() {
                    continue;
                }
                let from = &pixels[g.at(0, y, ky) * g.image[1]..][..g.image[1]][g.at(1, inside.start, kx)..];
                let row = &map[y * g.map[1]..][inside.clone()];
                total += match g.stride[1] {
                    1 => vector::dot(row, &from[..row.len()]),
                    stride => row.iter().zip(from.iter().step_by(stride)).map(|(a, b)| a * b).sum(),
                };
            }
        }
        sum[0] = if adds { sum[0] + total } else { total };
    });
}

/// Adds to every channel of every sample its bias; `size` elements a channel.
pub fn add_bias(map: &mut [f32], bias: &[f32], size: usize) {
    parallel::chunks(map, size, |i, map| {
        let bias = bias[i % bias.len()];
        map.iter_mut().for_each(|x| *x += bias);
    });
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
