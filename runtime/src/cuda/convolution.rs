//! Convolutions and transposed ones, by tiles of columns and products within the planned workspace: see `convolution.cu`.
//!
//! A convolution's forward pass goes from the image to the map, a transposed convolution's the other way round. Where the
//! columns are the image itself ("pointwise"), and where a group has one channel ("depthwise"), no tiles are needed.

use std::ops::Range;

use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::layers::conv_transpose::ConvTranspose;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::schedule::{Part, Role};

use super::channels::{Channels, add_bias, bias_gradient};
use super::kernels::{Argument, Grid, Pointer};
use super::optimizer;
use super::product::{Matrix, Product};
use super::step::Step;
use crate::error::Error;

/// The sizes of a convolution.
#[derive(Clone, Copy)]
#[repr(C)]
struct Geometry {
    groups: u32,
    /// Channels of the image and of the map, in a group.
    channels: u32,
    maps: u32,
    /// Height and width of each.
    image: [u32; 2],
    map: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    padding: [u32; 2],
    dilation: [u32; 2],
}

// SAFETY: `Geometry` in `convolution.cu`.
unsafe impl Argument for Geometry {}

impl Geometry {
    /// The sizes of a convolution from `image` to `map`, both `[channels, ..., width]`, in `groups`.
    fn new(window: &Window, groups: u64, image: &[u64], map: &[u64]) -> Geometry {
        let pair = |x: [u64; 2]| x.map(|x| x as u32);
        let extent = |shape: &[u64]| match shape[1..] {
            [width] => [1, width as u32],
            [height, width] => [height as u32, width as u32],
            _ => unreachable!("the shape rule of convolutions"),
        };
        Geometry {
            groups: groups as u32,
            channels: (image[0] / groups) as u32,
            maps: (map[0] / groups) as u32,
            image: extent(image),
            map: extent(map),
            kernel: pair(window.kernel),
            stride: pair(window.stride),
            padding: pair(window.padding),
            dilation: pair(window.dilation),
        }
    }

    fn pixels(&self) -> u32 {
        self.image[0] * self.image[1]
    }

    fn positions(&self) -> u32 {
        self.map[0] * self.map[1]
    }

    /// Elements of the kernel for one channel of the map: rows of columns.
    fn rows(&self) -> u32 {
        self.channels * self.kernel[0] * self.kernel[1]
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1
    }

    /// The same with some of the image's channels.
    fn with(&self, channels: &Range<u32>) -> Geometry {
        Geometry { channels: channels.end - channels.start, ..*self }
    }

    fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == [0, 0]
    }

    /// A group's kernel in all kernels: `maps` rows.
    fn kernel_of(&self, kernel: Pointer, group: u32) -> Matrix {
        Matrix::rows(kernel.after((group * self.maps * self.rows()) as usize), self.rows())
    }

    /// A group's channels of the image, those of all samples: `channels` rows of pixels.
    fn image_of(&self, image: Pointer, group: u32) -> Matrix {
        let first = image.after((group * self.channels * self.pixels()) as usize);
        Matrix::rows(first, self.pixels()).apart(self.groups * self.channels * self.pixels())
    }

    /// A group's channels of the map, those of all samples: `maps` rows of positions.
    fn map_of(&self, map: Pointer, group: u32) -> Matrix {
        let first = map.after((group * self.maps * self.positions()) as usize);
        Matrix::rows(first, self.positions()).apart(self.groups * self.maps * self.positions())
    }
}

/// A piece of the work: some positions of a group, counted through all samples, with their part of the workspace.
struct Tile {
    group: u32,
    first: u32,
    width: u32,
    /// `rows` times `width` elements.
    columns: Pointer,
    /// `maps` times `width` elements.
    map: Pointer,
}

impl Tile {
    fn columns(&self) -> Matrix {
        Matrix::rows(self.columns, self.width)
    }

    /// Where the columns have the rows of some of the image's channels.
    fn columns_of(&self, g: &Geometry, channels: &Range<u32>) -> Pointer {
        self.columns.after((channels.start * g.kernel[0] * g.kernel[1]) as usize * self.width as usize)
    }

    fn map(&self) -> Matrix {
        Matrix::rows(self.map, self.width)
    }
}

/// Where tiles lie: so many floats of the workspace.
#[derive(Clone, Copy)]
struct Room {
    at: Pointer,
    floats: u32,
}

impl Room {
    /// All of it.
    fn of(step: &Step) -> Room {
        Room { at: step.at(Role::Workspace), floats: step.count(Role::Workspace) }
    }
}

/// Calls `work` with every tile of some groups.
fn each_tile(
    g: &Geometry,
    step: &Step,
    groups: Range<u32>,
    room: Room,
    mut work: impl FnMut(&Tile) -> Result<(), Error>,
) -> Result<(), Error> {
    let workspace = room.at;
    let positions = step.batch() * g.positions();
    let most = (room.floats / (g.rows() + g.maps)).min(positions);
    assert!(most > 0, "the plan's workspace holds no column");
    for group in groups {
        for first in (0..positions).step_by(most as usize) {
            let width = most.min(positions - first);
            let map = workspace.after(g.rows() as usize * width as usize);
            work(&Tile { group, first, width, columns: workspace, map })?;
        }
    }
    Ok(())
}

/// The image: one operand, or, where an input is never made, all its parts, whose roles are numbered.
#[derive(Clone, Copy)]
enum Image {
    Whole(Role),
    Parts(fn(u32) -> Role),
}

impl Image {
    /// A convolution's input, or its gradient.
    fn of(step: &Step, role: fn(u32) -> Role) -> Image {
        if step.parts().len() == 1 { Image::Whole(role(0)) } else { Image::Parts(role) }
    }

    /// Calls `work` with every part that is there, and which of the image's channels it has.
    fn each_part(
        self,
        g: &Geometry,
        step: &Step,
        mut work: impl FnMut(Role, Range<u32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Image::Whole(role) => work(role, 0..g.channels),
            Image::Parts(role) => {
                let mut parts = step.channels_of_parts().filter(|&(i, _)| step.has(role(i)));
                parts.try_for_each(|(i, channels)| work(role(i), channels))
            }
        }
    }
}

/// Writes the columns of the image to a tile.
fn make_columns(g: &Geometry, step: &Step, image: Image, tile: &Tile) -> Result<(), Error> {
    image.each_part(g, step, |part, channels| {
        let (at, columns, g) = (step.at(part), tile.columns_of(g, &channels), &g.with(&channels));
        let grid = Grid::each(g.rows() * tile.width);
        step.launch("columns", grid, &[&at, &columns, &tile.group, &tile.first, &tile.width, g])
    })
}

/// Copies what the map has at a tile's positions.
fn take_map(g: &Geometry, step: &Step, map: Pointer, tile: &Tile) -> Result<(), Error> {
    let grid = Grid::each(g.maps * tile.width);
    step.launch("map_to_tile", grid, &[&map, &tile.map, &tile.group, &tile.first, &tile.width, g])
}

/// `map = kernel columns(image)`, or `map += ...` if the operand `to` is added to.
fn correlate(g: &Geometry, step: &Step, image: Image, to: Role) -> Result<(), Error> {
    let (kernel, map, adds) = (step.at(Role::Parameter(0)), step.at(to), step.adds(to));
    if let (true, Image::Whole(image)) = (g.is_depthwise(), image) {
        let (image, count) = (step.at(image), step.count(to));
        return step.launch("depthwise_correlate", Grid::each(count), &[&image, &kernel, &map, &count, &adds, g]);
    }
    // Parts are put together in tiles.
    if let (true, Image::Whole(image)) = (g.is_pointwise(), image) {
        let image = step.at(image);
        return (0..g.groups).try_for_each(|group| {
            step.product(&Product {
                a: g.kernel_of(kernel, group),
                b: g.image_of(image, group),
                c: g.map_of(map, group),
                rows: g.maps,
                columns: g.positions(),
                depth: g.channels,
                batches: step.batch(),
                adds: adds != 0,
            })
        });
    }
    each_tile(g, step, 0..g.groups, Room::of(step), |tile| {
        make_columns(g, step, image, tile)?;
        step.product(&Product {
            a: g.kernel_of(kernel, tile.group),
            b: tile.columns(),
            c: tile.map(),
            rows: g.maps,
            columns: tile.width,
            depth: g.rows(),
            batches: 1,
            adds: false,
        })?;
        let arguments: &[&dyn Argument] = &[&tile.map, &map, &tile.group, &tile.first, &tile.width, &adds, g];
        step.launch("tile_to_map", Grid::each(g.maps * tile.width), arguments)
    })
}

/// `image = image(kernel^T map)`: what every position gives to the pixels under its taps, summed.
fn spread(g: &Geometry, step: &Step, map: Role, to: Image) -> Result<(), Error> {
    let (map, kernel) = (step.at(map), step.at(Role::Parameter(0)));
    if let (true, Image::Whole(to)) = (g.is_depthwise(), to) {
        let (image, count, adds) = (step.at(to), step.count(to), step.adds(to));
        return step.launch("depthwise_spread", Grid::each(count), &[&map, &kernel, &image, &count, &adds, g]);
    }
    if g.is_pointwise() {
        return to.each_part(g, step, |part, channels| {
            (0..g.groups).try_for_each(|group| {
                step.product(&Product {
                    a: g.kernel_of(kernel.after(channels.start as usize), group).transposed(),
                    b: g.map_of(map, group),
                    c: g.with(&channels).image_of(step.at(part), group),
                    rows: channels.end - channels.start,
                    columns: g.pixels(),
                    depth: g.maps,
                    batches: step.batch(),
                    adds: step.adds(part) != 0,
                })
            })
        });
    }
    to.each_part(g, step, |part, _| if step.adds(part) == 0 { step.clear(part) } else { Ok(()) })?;
    each_tile(g, step, 0..g.groups, Room::of(step), |tile| {
        take_map(g, step, map, tile)?;
        step.product(&Product {
            a: g.kernel_of(kernel, tile.group).transposed(),
            b: tile.map(),
            c: tile.columns(),
            rows: g.rows(),
            columns: tile.width,
            depth: g.maps,
            batches: 1,
            adds: false,
        })?;
        to.each_part(g, step, |part, channels| {
            add_columns(&g.with(&channels), step, tile.columns_of(g, &channels), step.at(part), tile)
        })
    })
}

/// Adds a tile's columns to the pixels that they are of.
fn add_columns(g: &Geometry, step: &Step, columns: Pointer, image: Pointer, tile: &Tile) -> Result<(), Error> {
    let last = tile.first + tile.width - 1;
    let (sample, samples) = (tile.first / g.positions(), last / g.positions() - tile.first / g.positions() + 1);
    // Within one sample, the rows of the image under the tile's rows of the map; else all.
    let (mut first_row, mut end) = (0, g.image[0]);
    if samples == 1 {
        let row = |position: u32| position % g.positions() / g.map[1] * g.stride[0];
        first_row = row(tile.first).saturating_sub(g.padding[0]);
        end = (row(last) + (g.kernel[0] - 1) * g.dilation[0] + 1).saturating_sub(g.padding[0]).min(g.image[0]);
    }
    // Rows that lie on the padding alone give to no pixel.
    let rows = end.saturating_sub(first_row);
    if rows == 0 {
        return Ok(());
    }
    let count = samples * g.channels * rows * g.image[1];
    let arguments: &[&dyn Argument] =
        &[&columns, &image, &tile.group, &tile.first, &tile.width, &sample, &samples, &first_row, &rows, g];
    step.launch("columns_to_image", Grid::each(count), arguments)
}

/// `dkernel = map columns(image)^T`, if that is wanted.
fn kernel_gradient(g: &Geometry, step: &Step, image: Image, map: Role) -> Result<(), Error> {
    let to = Role::ParameterGradient(0);
    match step.has(to) {
        true => rows_gradient(g, step, (image, map), 0..g.groups * g.maps, step.at(to), step.adds(to), Room::of(step)),
        false => Ok(()),
    }
}

/// The same for some rows of the kernel, of which there is one for each channel of the map.
fn rows_gradient(
    g: &Geometry,
    step: &Step,
    (image, map): (Image, Role),
    rows: Range<u32>,
    dkernel: Pointer,
    adds: i32,
    room: Room,
) -> Result<(), Error> {
    let map = step.at(map);
    if let (true, Image::Whole(image)) = (g.is_depthwise(), image) {
        let (image, positions) = (step.at(image), step.batch() * g.positions());
        let grid = Grid::groups((rows.end - rows.start) * g.rows(), positions);
        let arguments: &[&dyn Argument] = &[&image, &map, &dkernel, &rows.start, &positions, &adds, g];
        return step.launch("depthwise_kernel_gradient", grid, arguments);
    }
    // The rows of a group, counted within it, and where their gradient goes.
    let of_group = |group: u32| {
        let first = rows.start.max(group * g.maps);
        let count = rows.end.min((group + 1) * g.maps) - first;
        let to = dkernel.after((first - rows.start) as usize * g.rows() as usize);
        (first - group * g.maps, count, to)
    };
    let groups = rows.start / g.maps..rows.end.div_ceil(g.maps);
    if g.is_pointwise() {
        return image.each_part(g, step, |part, channels| {
            let of_part = g.with(&channels);
            groups.clone().try_for_each(|group| {
                let (first, count, to) = of_group(group);
                (0..step.batch()).try_for_each(|sample| {
                    step.product(&Product {
                        a: g.map_of(map.after(first as usize * g.positions() as usize), group).number(sample),
                        b: of_part.image_of(step.at(part), group).number(sample).transposed(),
                        c: Matrix::rows(to.after(channels.start as usize), g.rows()),
                        rows: count,
                        columns: of_part.channels,
                        depth: g.positions(),
                        batches: 1,
                        adds: adds != 0 || sample > 0,
                    })
                })
            })
        });
    }
    each_tile(g, step, groups, room, |tile| {
        make_columns(g, step, image, tile)?;
        take_map(g, step, map, tile)?;
        let (first, count, to) = of_group(tile.group);
        step.product(&Product {
            a: Matrix::rows(tile.map.after(first as usize * tile.width as usize), tile.width),
            b: tile.columns().transposed(),
            c: Matrix::rows(to, g.rows()),
            rows: count,
            columns: g.rows(),
            depth: tile.width,
            batches: 1,
            adds: adds != 0 || tile.first > 0,
        })
    })
}

/// The weight's gradient and its update, a tile of rows at a time.
fn update_rows(g: &Geometry, step: &Step, node: usize, tensors: (Image, Role)) -> Result<(), Error> {
    optimizer::update_rows(step, node, |rows, tile, at, floats| {
        rows_gradient(g, step, tensors, rows, tile, 0, Room { at, floats })
    })
}

/// That of a convolution.
pub fn conv_update_rows(layer: &Conv, step: &Step, node: usize) -> Result<(), Error> {
    update_rows(&of_conv(layer, step), step, node, (Image::of(step, Role::Input), Role::OutputGradient))
}

/// That of a transposed one.
pub fn transpose_update_rows(layer: &ConvTranspose, step: &Step, node: usize) -> Result<(), Error> {
    update_rows(&of_transpose(layer, step), step, node, (Image::Whole(Role::OutputGradient), Role::Input(0)))
}

fn of_conv(layer: &Conv, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.inputs()[0].shape.0, &step.output().shape.0)
}

/// A convolution's output is the map.
pub fn conv_forward(layer: &Conv, step: &Step) -> Result<(), Error> {
    let g = of_conv(layer, step);
    correlate(&g, step, Image::of(step, Role::Input), Role::Output)?;
    if layer.bias { add_bias(step, Channels::of(step.output())) } else { Ok(()) }
}

/// The gradients: of weight and bias, or of the input.
pub fn conv_backward(layer: &Conv, step: &Step, part: Part) -> Result<(), Error> {
    let g = of_conv(layer, step);
    if part != Part::Inputs {
        kernel_gradient(&g, step, Image::of(step, Role::Input), Role::OutputGradient)?;
        bias_gradient(step, Channels::of(step.output()))?;
    }
    match part != Part::Parameters && step.has_any_input_gradient() {
        true => spread(&g, step, Role::OutputGradient, Image::of(step, Role::InputGradient)),
        false => Ok(()),
    }
}

fn of_transpose(layer: &ConvTranspose, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.output().shape.0, &step.inputs()[0].shape.0)
}

/// A transposed convolution's output is the image.
pub fn transpose_forward(layer: &ConvTranspose, step: &Step) -> Result<(), Error> {
    let g = of_transpose(layer, step);
    spread(&g, step, Role::Input(0), Image::Whole(Role::Output))?;
    if layer.bias { add_bias(step, Channels::of(step.output())) } else { Ok(()) }
}

/// The gradients: of weight and bias, or of the input.
pub fn transpose_backward(layer: &ConvTranspose, step: &Step, part: Part) -> Result<(), Error> {
    let g = of_transpose(layer, step);
    if part != Part::Inputs {
        kernel_gradient(&g, step, Image::Whole(Role::OutputGradient), Role::Input(0))?;
        bias_gradient(step, Channels::of(step.output()))?;
    }
    match part != Part::Parameters && step.has(Role::InputGradient(0)) {
        true => correlate(&g, step, Image::Whole(Role::OutputGradient), Role::InputGradient(0)),
        false => Ok(()),
    }
}
