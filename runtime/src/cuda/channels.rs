//! What is done channel by channel: biases, learned factors, and the normalization of the input. See `channels.cu`.

use plimsoll_plan::layers::normalize::Normalize;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::shape::{DType, ValueType};

use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::error::Error;

/// The extents of a tensor with channels.
#[derive(Clone, Copy)]
pub struct Channels {
    /// The first extent of a sample.
    pub count: u32,
    /// The others' product.
    pub positions: u32,
}

impl Channels {
    /// Those of a value; one number a sample counts as one channel.
    pub fn of(value: &ValueType) -> Channels {
        let count = value.shape.0.first().copied().unwrap_or(1);
        Channels { count: count as u32, positions: (value.elements() / count) as u32 }
    }
}

/// Adds its bias, parameter 1, to every channel of the output.
pub fn add_bias(step: &Step, of: Channels) -> Result<(), Error> {
    let (y, bias) = (step.at(Role::Output), step.at(Role::Parameter(1)));
    let count = step.count(Role::Output);
    step.launch("add_bias", Grid::each(count), &[&y, &bias, &count, &of.count, &of.positions])
}

/// The gradient of the bias, parameter 1, if that is wanted: the sum of each channel.
pub fn bias_gradient(step: &Step, of: Channels) -> Result<(), Error> {
    sums(step, Pointer::NONE, Role::ParameterGradient(1), of)
}

/// The sum of `dy x` over each channel, or of `dy` alone where there is no `x`.
fn sums(step: &Step, x: Pointer, to: Role, of: Channels) -> Result<(), Error> {
    if !step.has(to) {
        return Ok(());
    }
    let elements = step.count(Role::OutputGradient) / of.count;
    let (dy, sums, adds) = (step.at(Role::OutputGradient), step.at(to), step.adds(to));
    let arguments: &[&dyn Argument] = &[&dy, &x, &sums, &elements, &of.count, &of.positions, &adds];
    step.launch("channel_sums", Grid::groups(of.count, elements), arguments)
}

/// `y = w x`.
pub fn scale_forward(step: &Step) -> Result<(), Error> {
    scale(step, [Role::Input(0), Role::Output])
}

/// `dw = sum dy x`, `dx = w dy`.
pub fn scale_backward(step: &Step) -> Result<(), Error> {
    sums(step, step.at(Role::Input(0)), Role::ParameterGradient(0), Channels::of(step.output()))?;
    match step.has(Role::InputGradient(0)) {
        true => scale(step, [Role::OutputGradient, Role::InputGradient(0)]),
        false => Ok(()),
    }
}

fn scale(step: &Step, [from, to]: [Role; 2]) -> Result<(), Error> {
    let of = Channels::of(step.output());
    let (weight, count) = (step.at(Role::Parameter(0)), step.count(to));
    let arguments: &[&dyn Argument] =
        &[&step.at(from), &weight, &step.at(to), &count, &of.count, &of.positions, &step.adds(to)];
    step.launch("scale", Grid::each(count), arguments)
}

/// `(x - mean) / std` per channel, of floats or of bytes scaled to [0, 1].
pub fn normalize_forward(layer: &Normalize, step: &Step) -> Result<(), Error> {
    let bytes = step.inputs()[0].dtype == DType::U8;
    let kernel = if bytes { "normalize_bytes_forward" } else { "normalize_forward" };
    let (x, y) = (step.at(Role::Input(0)), step.at(Role::Output));
    each_number(layer, step, |[count, channels, positions, first, apart], mean, std| {
        let arguments: &[&dyn Argument] = &[&x, &y, &count, &channels, &positions, &first, &apart, &mean, &std];
        step.launch(kernel, Grid::each(count), arguments)
    })
}

/// `dx = dy / std`.
pub fn normalize_backward(layer: &Normalize, step: &Step) -> Result<(), Error> {
    let role = Role::InputGradient(0);
    if !step.has(role) {
        return Ok(());
    }
    let (dy, dx, adds) = (step.at(Role::OutputGradient), step.at(role), step.adds(role));
    each_number(layer, step, |[count, channels, positions, first, apart], _, std| {
        let arguments: &[&dyn Argument] = &[&dy, &dx, &count, &channels, &positions, &first, &apart, &std, &adds];
        step.launch("normalize_backward", Grid::each(count), arguments)
    })
}

/// Calls `launch` for each of the numbers, which are the program's and not the arena's: with the elements of their
/// channels, all channels and positions, their first channel, and how far apart the others are.
fn each_number(
    layer: &Normalize,
    step: &Step,
    launch: impl Fn([u32; 5], f32, f32) -> Result<(), Error>,
) -> Result<(), Error> {
    let of = Channels::of(step.output());
    let numbers = (layer.mean.len().max(layer.std.len()) as u32).min(of.count);
    for first in 0..numbers {
        let number = |list: &[f64]| list[first as usize % list.len()] as f32;
        let count = step.batch() * (of.count - first).div_ceil(numbers) * of.positions;
        launch([count, of.count, of.positions, first, numbers], number(&layer.mean), number(&layer.std))?;
    }
    Ok(())
}
