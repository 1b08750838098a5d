//! Normalization of rows: of each sample over its last axes, and of groups of channels. See `rownorm.cu`.

use plimsoll_plan::layers::groupnorm::GroupNorm;
use plimsoll_plan::layers::layernorm::LayerNorm;
use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::kernels::{Argument, Grid};
use super::step::Step;
use crate::error::Error;

/// What is normalized together, and how factors and offsets are spread over it.
pub struct Rows {
    /// Elements of a row.
    size: u32,
    /// Factors, and the neighbouring elements that share one.
    channels: Channels,
    eps: f32,
}

impl Rows {
    /// Those of a layer normalization over the last axes: each element of a row has a factor of its own.
    pub fn of_layer(layer: &LayerNorm, step: &Step) -> Rows {
        let size = layer.normalized(step.output()).iter().product::<u64>() as u32;
        Rows { size, channels: Channels { count: size, positions: 1 }, eps: layer.eps as f32 }
    }

    /// Those of a group normalization.
    pub fn of_groups(layer: &GroupNorm, step: &Step) -> Rows {
        let channels = Channels::of(step.output());
        let size = channels.count / layer.groups as u32 * channels.positions;
        Rows { size, channels, eps: layer.eps as f32 }
    }
}

/// The outputs.
pub fn forward(rows: &Rows, step: &Step) -> Result<(), Error> {
    let Rows { size, channels, eps } = *rows;
    let [x, y] = [Role::Input(0), Role::Output].map(|role| step.at(role));
    let [weight, bias] = [Role::Parameter(0), Role::Parameter(1)].map(|role| step.at(role));
    let [mean, rstd] = [Role::Saved(0), Role::Saved(1)].map(|role| step.at(role));
    let arguments: &[&dyn Argument] =
        &[&x, &y, &weight, &bias, &mean, &rstd, &size, &channels.count, &channels.positions, &eps];
    step.launch("rownorm_forward", Grid::groups(step.count(Role::Output) / size, size), arguments)
}

/// The gradients of factor and offset, and then of the input, which may take the place of `dy`.
pub fn backward(rows: &Rows, step: &Step) -> Result<(), Error> {
    let Rows { size, channels, .. } = *rows;
    let [dy, x] = [Role::OutputGradient, Role::Input(0)].map(|role| step.at(role));
    let [mean, rstd] = [Role::Saved(0), Role::Saved(1)].map(|role| step.at(role));
    let (dx, dweight, dbias) = (Role::InputGradient(0), Role::ParameterGradient(0), Role::ParameterGradient(1));
    let all = step.count(Role::Input(0));
    if step.has(dweight) || step.has(dbias) {
        let elements = all / channels.count;
        let arguments: &[&dyn Argument] = &[
            &dy,
            &x,
            &mean,
            &rstd,
            &step.at(dweight),
            &step.at(dbias),
            &elements,
            &size,
            &channels.count,
            &channels.positions,
            &step.adds(dweight),
            &step.adds(dbias),
        ];
        step.launch("rownorm_parameters", Grid::groups(channels.count, elements), arguments)?;
    }
    if step.has(dx) {
        let weight = step.at(Role::Parameter(0));
        let arguments: &[&dyn Argument] = &[
            &dy,
            &x,
            &weight,
            &mean,
            &rstd,
            &step.at(dx),
            &size,
            &channels.count,
            &channels.positions,
            &step.adds(dx),
        ];
        step.launch("rownorm_backward", Grid::groups(all / size, size), arguments)?;
    }
    Ok(())
}
