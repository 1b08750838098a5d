//! Normalization of each channel over the batch and all positions: see `batchnorm.cu`.

use std::ops::Range;

use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::schedule::{Role, StepKind};

use super::channels::Channels;
use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::error::Error;

/// The outputs, by the statistics of the batch in training and by the running ones in inference. Running statistics move
/// once for each batch: they are not there when the layer runs again.
pub fn forward(layer: &BatchNorm, step: &Step) -> Result<(), Error> {
    // Factor and offset, if the layer has them, come before the running statistics.
    let first = if layer.affine { 2 } else { 0 };
    let affine = |i| if layer.affine { step.at(Role::Parameter(i)) } else { Pointer::NONE };
    let (weight, bias) = (affine(0), affine(1));
    let [mean, var] = [first, first + 1].map(|i| step.at(Role::Parameter(i)));
    let y = step.at(Role::Output);
    let Channels { count: channels, positions } = Channels::of(step.output());
    let saved = [Role::Saved(0), Role::Saved(1)].map(|role| step.at(role));
    let (eps, momentum) = (layer.eps as f32, layer.momentum as f32);
    let again = matches!(step.kind(), StepKind::Recompute { .. }) && step.has(Role::Saved(0));
    step.channels_of_parts().try_for_each(|(number, Range { start: first, end })| {
        let (x, count, own) = (step.at(Role::Input(number)), step.count(Role::Input(number)), end - first);
        if !step.is_training() {
            let arguments: &[&dyn Argument] =
                &[&x, &y, &weight, &bias, &mean, &var, &count, &channels, &own, &first, &positions, &eps];
            return step.launch("batchnorm_infer", Grid::each(count), arguments);
        }
        if again {
            let arguments: &[&dyn Argument] =
                &[&x, &y, &weight, &bias, &saved[0], &saved[1], &count, &channels, &own, &first, &positions];
            return step.launch("batchnorm_again", Grid::each(count), arguments);
        }
        let elements = count / own;
        let arguments: &[&dyn Argument] = &[
            &x, &y, &weight, &bias, &mean, &var, &saved[0], &saved[1], &elements, &channels, &own, &first, &positions,
            &eps, &momentum,
        ];
        step.launch("batchnorm_train", Grid::groups(own, elements), arguments)
    })
}

/// The gradients of input, factor and offset.
pub fn backward(step: &Step) -> Result<(), Error> {
    let Channels { count: channels, positions } = Channels::of(step.output());
    let (dweight, dbias) = (Role::ParameterGradient(0), Role::ParameterGradient(1));
    step.channels_of_parts().try_for_each(|(number, Range { start: first, end })| {
        let (x, dx, own) = (Role::Input(number), Role::InputGradient(number), end - first);
        let elements = step.count(x) / own;
        let arguments: &[&dyn Argument] = &[
            &step.at(Role::OutputGradient),
            &step.at(x),
            &step.at(Role::Parameter(0)),
            &step.at(Role::Saved(0)),
            &step.at(Role::Saved(1)),
            &step.at(dx),
            &step.at(dweight),
            &step.at(dbias),
            &elements,
            &channels,
            &own,
            &first,
            &positions,
            &step.adds(dx),
            &step.adds(dweight),
            &step.adds(dbias),
        ];
        step.launch("batchnorm_backward", Grid::groups(own, elements), arguments)
    })
}
