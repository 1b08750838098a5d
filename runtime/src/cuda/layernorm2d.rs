//! Normalization of each position of an image over its channels: see `layernorm2d.cu`.

use plimsoll_plan::layers::layernorm::LayerNorm;
use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::kernels::{Argument, Grid};
use super::step::Step;
use crate::error::Error;

/// The outputs.
pub fn forward(layer: &LayerNorm, step: &Step) -> Result<(), Error> {
    let of = Channels::of(step.output());
    let positions = step.count(Role::Output) / of.count;
    let arguments: &[&dyn Argument] = &[
        &step.at(Role::Input(0)),
        &step.at(Role::Output),
        &step.at(Role::Parameter(0)),
        &step.at(Role::Parameter(1)),
        &step.at(Role::Saved(0)),
        &step.at(Role::Saved(1)),
        &positions,
        &of.count,
        &of.positions,
        &(layer.eps as f32),
    ];
    step.launch("layernorm2d_forward", Grid::each(positions), arguments)
}

/// The gradients of factor and offset, and then of the input, which may take the place of `dy`.
pub fn backward(step: &Step) -> Result<(), Error> {
    let of = Channels::of(step.output());
    let [dy, x] = [Role::OutputGradient, Role::Input(0)].map(|role| step.at(role));
    let [mean, rstd] = [Role::Saved(0), Role::Saved(1)].map(|role| step.at(role));
    let (dx, dweight, dbias) = (Role::InputGradient(0), Role::ParameterGradient(0), Role::ParameterGradient(1));
    let positions = step.count(Role::Input(0)) / of.count;
    if step.has(dweight) || step.has(dbias) {
        let arguments: &[&dyn Argument] = &[
            &dy,
            &x,
            &mean,
            &rstd,
            &step.at(dweight),
            &step.at(dbias),
            &positions,
            &of.count,
            &of.positions,
            &step.adds(dweight),
            &step.adds(dbias),
        ];
        step.launch("layernorm2d_parameters", Grid::groups(of.count, positions), arguments)?;
    }
    if step.has(dx) {
        let weight = step.at(Role::Parameter(0));
        let arguments: &[&dyn Argument] =
            &[&dy, &x, &weight, &mean, &rstd, &step.at(dx), &positions, &of.count, &of.positions, &step.adds(dx)];
        step.launch("layernorm2d_backward", Grid::each(positions), arguments)?;
    }
    Ok(())
}
