//! Pooling and upsampling: see `pool.cu`.

use std::ops::Range;

use plimsoll_plan::layers::pool::{AdaptivePool, Pool, Reduction};
use plimsoll_plan::layers::upsample::Upsample;
use plimsoll_plan::schedule::Role;

use super::kernels::{Argument, Grid};
use super::step::Step;
use crate::error::Error;

/// Where the windows lie; a kernel of no taps stands for adaptive ones.
#[derive(Clone, Copy)]
#[repr(C)]
struct Windows {
    input: [u32; 2],
    output: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    padding: [u32; 2],
    dilation: [u32; 2],
    count_include_pad: u32,
}

// SAFETY: `Windows` in `pool.cu`.
unsafe impl Argument for Windows {}

/// The channels of the input, or of a part of one: `own` of them, which are those from `first` on of `all`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Channels {
    all: u32,
    own: u32,
    first: u32,
}

// SAFETY: `Channels` in `pool.cu`.
unsafe impl Argument for Channels {}

impl Channels {
    /// Those of each part, with its number.
    fn of_parts<'a>(step: &Step<'a>) -> impl Iterator<Item = (u32, Channels)> + use<'a> {
        let all = step.output().shape.0[0] as u32;
        let channels = move |Range { start, end }: Range<u32>| Channels { all, own: end - start, first: start };
        step.channels_of_parts().map(move |(number, range)| (number, channels(range)))
    }
}

impl Windows {
    fn adaptive(step: &Step) -> Windows {
        let plane = |shape: &[u64]| [shape[1] as u32, shape[2] as u32];
        Windows {
            input: plane(&step.inputs()[0].shape.0),
            output: plane(&step.output().shape.0),
            kernel: [0; 2],
            stride: [1; 2],
            padding: [0; 2],
            dilation: [1; 2],
            count_include_pad: 0,
        }
    }

    fn sliding(layer: &Pool, step: &Step) -> Windows {
        let pair = |x: [u64; 2]| x.map(|x| x as u32);
        let count_include_pad = matches!(layer.reduction, Reduction::Mean { count_include_pad: true });
        Windows {
            kernel: pair(layer.window.kernel),
            stride: pair(layer.window.stride),
            padding: pair(layer.window.padding),
            dilation: pair(layer.window.dilation),
            count_include_pad: count_include_pad.into(),
            ..Windows::adaptive(step)
        }
    }
}

/// `maxpool2d`, `avgpool2d`.
pub fn forward(layer: &Pool, step: &Step) -> Result<(), Error> {
    pool(step, layer.reduction == Reduction::Max, &Windows::sliding(layer, step))
}

/// The input's gradient of `maxpool2d`, `avgpool2d`.
pub fn backward(layer: &Pool, step: &Step) -> Result<(), Error> {
    gradient(step, layer.reduction == Reduction::Max, &Windows::sliding(layer, step))
}

/// `adaptive_maxpool2d`, `adaptive_avgpool2d`.
pub fn adaptive_forward(layer: &AdaptivePool, step: &Step) -> Result<(), Error> {
    pool(step, layer.max, &Windows::adaptive(step))
}

/// The input's gradient of `adaptive_maxpool2d`, `adaptive_avgpool2d`.
pub fn adaptive_backward(layer: &AdaptivePool, step: &Step) -> Result<(), Error> {
    gradient(step, layer.max, &Windows::adaptive(step))
}

fn pool(step: &Step, max: bool, windows: &Windows) -> Result<(), Error> {
    let (y, index, whole) = (step.at(Role::Output), Role::Saved(0), step.count(Role::Output));
    let bytes = if step.has(index) { step.bytes(index) as u32 / whole } else { 0 };
    Channels::of_parts(step).try_for_each(|(number, of)| {
        let (x, count) = (step.at(Role::Input(number)), whole / of.all * of.own);
        if !max {
            return step.launch("mean_pool_forward", Grid::each(count), &[&x, &y, &count, &of, windows]);
        }
        let arguments: &[&dyn Argument] = &[&x, &y, &step.at(index), &bytes, &count, &of, windows];
        step.launch("max_pool_forward", Grid::each(count), arguments)
    })
}

fn gradient(step: &Step, max: bool, windows: &Windows) -> Result<(), Error> {
    let (dy, index) = (step.at(Role::OutputGradient), Role::Saved(0));
    let mut wanted = Channels::of_parts(step).filter(|(number, _)| step.has(Role::InputGradient(*number)));
    wanted.try_for_each(|(number, of)| {
        let role = Role::InputGradient(number);
        let (dx, count, adds) = (step.at(role), step.count(role), step.adds(role));
        if !max {
            return step.launch("mean_pool_backward", Grid::each(count), &[&dy, &dx, &count, &adds, &of, windows]);
        }
        let bytes = step.bytes(index) as u32 / step.count(Role::OutputGradient);
        let arguments: &[&dyn Argument] = &[&dy, &step.at(index), &dx, &bytes, &count, &adds, &of, windows];
        step.launch("max_pool_backward", Grid::each(count), arguments)
    })
}

/// Each element repeated.
pub fn upsample_forward(layer: &Upsample, step: &Step) -> Result<(), Error> {
    let [vertical, horizontal] = layer.scale.map(|scale| scale as u32);
    let width = step.output().shape.0[2] as u32;
    let [x, y] = [Role::Input(0), Role::Output].map(|role| step.at(role));
    let count = step.count(Role::Output);
    step.launch("upsample_forward", Grid::each(count), &[&x, &y, &count, &width, &vertical, &horizontal])
}

/// The sum of `dy` over the copies.
pub fn upsample_backward(layer: &Upsample, step: &Step) -> Result<(), Error> {
    let role = Role::InputGradient(0);
    if !step.has(role) {
        return Ok(());
    }
    let [vertical, horizontal] = layer.scale.map(|scale| scale as u32);
    let width = step.inputs()[0].shape.0[2] as u32;
    let (dy, dx, count, adds) = (step.at(Role::OutputGradient), step.at(role), step.count(role), step.adds(role));
    let arguments: &[&dyn Argument] = &[&dy, &dx, &count, &width, &vertical, &horizontal, &adds];
    step.launch("upsample_backward", Grid::each(count), arguments)
}
