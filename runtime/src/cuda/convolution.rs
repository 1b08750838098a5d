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

/// Writes the columns of the image to a tile.
fn make_columns(g: &Geometry, step: &Step, image: Pointer, tile: &Tile) -> Result<(), Error> {
    let grid = Grid::each(g.rows() * tile.width);
    step.launch("columns", grid, &[&image, &tile.columns, &tile.group, &tile.first, &tile.width, g])
}

/// Copies what the map has at a tile's positions.
fn take_map(g: &Geometry, step: &Step, map: Pointer, tile: &Tile) -> Result<(), Error> {
    let grid = Grid::each(g.maps * tile.width);
    step.launch("map_to_tile", grid, &[&map, &tile.map, &tile.group, &tile.first, &tile.width, g])
}

/// `map = kernel columns(image)`, or `map += ...` if the operand `to` is added to.
fn correlate(g: &Geometry, step: &Step, image: Role, to: Role) -> Result<(), Error> {
    let (image, kernel, map, adds) = (step.at(image), step.at(Role::Parameter(0)), step.at(to), step.adds(to));
    if g.is_depthwise() {
        let count = step.count(to);
        return step.launch("depthwise_correlate", Grid::each(count), &[&image, &kernel, &map, &count, &adds, g]);
    }
    if g.is_pointwise() {
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
fn spread(g: &Geometry, step: &Step, map: Role, to: Role) -> Result<(), Error> {
    let (map, kernel, image, adds) = (step.at(map), step.at(Role::Parameter(0)), step.at(to), step.adds(to));
    if g.is_depthwise() {
        let count = step.count(to);
        return step.launch("depthwise_spread", Grid::each(count), &[&map, &kernel, &image, &count, &adds, g]);
    }
    if g.is_pointwise() {
        return (0..g.groups).try_for_each(|group| {
            step.product(&Product {
                a: g.kernel_of(kernel, group).transposed(),
                b: g.map_of(map, group),
                c: g.image_of(image, group),
                rows: g.channels,
                columns: g.pixels(),
                depth: g.maps,
                batches: step.batch(),
                adds: adds != 0,
            })
        });
    }
    if adds == 0 {
        step.clear(to)?;
    }
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
        add_columns(g, step, image, tile)
    })
}

/// Adds a tile's columns to the pixels that they are of.
fn add_columns(g: &Geometry, step: &Step, image: Pointer, tile: &Tile) -> Result<(), Error> {
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
        &[&tile.columns, &image, &tile.group, &tile.first, &tile.width, &sample, &samples, &first_row, &rows, g];
    step.launch("columns_to_image", Grid::each(count), arguments)
}

/// `dkernel = map columns(image)^T`, if that is wanted.
fn kernel_gradient(g: &Geometry, step: &Step, image: Role, map: Role) -> Result<(), Error> {
    let to = Role::ParameterGradient(0);
    match step.has(to) {
        true => rows_gradient(g, step, [image, map], 0..g.groups * g.maps, step.at(to), step.adds(to), Room::of(step)),
        false => Ok(()),
    }
}

/// The same for some rows of the kernel, of which there is one for each channel of the map.
fn rows_gradient(
    g: &Geometry,
    step: &Step,
    [image, map]: [Role; 2],
    rows: Range<u32>,
    dkernel: Pointer,
    adds: i32,
    room: Room,
) -> Result<(), Error> {
    let (image, map) = (step.at(image), step.at(map));
    if g.is_depthwise() {
        let positions = step.batch() * g.positions();
        let grid = Grid::groups((rows.end - rows.start) * g.rows(), positions);
        let arguments: &[&dyn Argument] = &[&image, &map, &dkernel, &rows.start, &positions, &adds, g];
        return step.launch("depthwise_kernel_gradient", grid, arguments);
    }
    // The rows of a group, counted within it, and where their gradient goes.
    let of_group = |group: u32| {
        let first = rows.start.max(group * g.maps);
        let count = rows.end.min((group + 1) * g.maps) - first;
        let to = dkernel.after((first - rows.start) as usize * g.rows() as usize);
        (first - group * g.maps, count, Matrix::rows(to, g.rows()))
    };
    let groups = rows.start / g.maps..rows.end.div_ceil(g.maps);
    if g.is_pointwise() {
        return groups.into_iter().try_for_each(|group| {
            let (first, count, c) = of_group(group);
            (0..step.batch()).try_for_each(|sample| {
                step.product(&Product {
                    a: g.map_of(map.after(first as usize * g.positions() as usize), group).number(sample),
                    b: g.image_of(image, group).number(sample).transposed(),
                    c,
                    rows: count,
                    columns: g.channels,
                    depth: g.positions(),
                    batches: 1,
                    adds: adds != 0 || sample > 0,
                })
            })
        });
    }
    each_tile(g, step, groups, room, |tile| {
        make_columns(g, step, image, tile)?;
        take_map(g, step, map, tile)?;
        let (first, count, c) = of_group(tile.group);
        step.product(&Product {
            a: Matrix::rows(tile.map.after(first as usize * tile.width as usize), tile.width),
            b: tile.columns().transposed(),
            c,
            rows: count,
            columns: g.rows(),
            depth: tile.width,
            batches: 1,
            adds: adds != 0 || tile.first > 0,
        })
    })
}

/// The weight's gradient and its update, a tile of rows at a time.
fn update_rows(g: &Geometry, step: &Step, node: usize, tensors: [Role; 2]) -> Result<(), Error> {
    optimizer::update_rows(step, node, |rows, tile, at, floats| {
        rows_gradient(g, step, tensors, rows, tile, 0, Room { at, floats })
    })
}

/// That of a convolution.
pub fn conv_update_rows(layer: &Conv, step: &Step, node: usize) -> Result<(), Error> {
    update_rows(&of_conv(layer, step), step, node, [Role::Input(0), Role::OutputGradient])
}

/// That of a transposed one.
pub fn transpose_update_rows(layer: &ConvTranspose, step: &Step, node: usize) -> Result<(), Error> {
    update_rows(&of_transpose(layer, step), step, node, [Role::OutputGradient, Role::Input(0)])
}

fn of_conv(layer: &Conv, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.inputs()[0].shape.0, &step.output().shape.0)
}

/// A convolution's output is the map.
pub fn conv_forward(layer: &Conv, step: &Step) -> Result<(), Error> {
    let g = of_conv(layer, step);
    correlate(&g, step, Role::Input(0), Role::Output)?;
    if layer.bias { add_bias(step, Channels::of(step.output())) } else { Ok(()) }
}

/// The gradients: of weight and bias, or of the input.
pub fn conv_backward(layer: &Conv, step: &Step, part: Part) -> Result<(), Error> {
    let g = of_conv(layer, step);
    if part != Part::Inputs {
        kernel_gradient(&g, step, Role::Input(0), Role::OutputGradient)?;
        bias_gradient(step, Channels::of(step.output()))?;
    }
    match part != Part::Parameters && step.has(Role::InputGradient(0)) {
        true => spread(&g, step, Role::OutputGradient, Role::InputGradient(0)),
        false => Ok(()),
    }
}

fn of_transpose(layer: &ConvTranspose, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.output().shape.0, &step.inputs()[0].shape.0)
}

/// A transposed convolution's output is the image.
pub fn transpose_forward(layer: &ConvTranspose, step: &Step) -> Result<(), Error> {
    let g = of_transpose(layer, step);
    spread(&g, step, Role::Input(0), Role::Output)?;
    if layer.bias { add_bias(step, Channels::of(step.output())) } else { Ok(()) }
}

/// The gradients: of weight and bias, or of the input.
pub fn transpose_backward(layer: &ConvTranspose, step: &Step, part: Part) -> Result<(), Error> {
    let g = of_transpose(layer, step);
    if part != Part::Inputs {
        kernel_gradient(&g, step, Role::OutputGradient, Role::Input(0))?;
        bias_gradient(step, Channels::of(step.output()))?;
    }
    match part != Part::Parameters && step.has(Role::InputGradient(0)) {
        true => correlate(&g, step, Role::OutputGradient, Role::InputGradient(0)),
        false => Ok(()),
    }
}
