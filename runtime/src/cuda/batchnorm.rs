//! Normalization of each channel over the batch and all positions: see `batchnorm.cu`.

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
    let (x, y) = (step.at(Role::Input(0)), step.at(Role::Output));
    let of = Channels::of(step.output());
    let (count, eps) = (step.count(Role::Output), layer.eps as f32);
    if !step.is_training() {
        let arguments: &[&dyn Argument] =
            &[&x, &y, &weight, &bias, &mean, &var, &count, &of.count, &of.positions, &eps];
        return step.launch("batchnorm_infer", Grid::each(count), arguments);
    }
    let saved = [Role::Saved(0), Role::Saved(1)].map(|role| step.at(role));
    if matches!(step.kind(), StepKind::Recompute { .. }) && step.has(Role::Saved(0)) {
        let arguments: &[&dyn Argument] =
            &[&x, &y, &weight, &bias, &saved[0], &saved[1], &count, &of.count, &of.positions];
        return step.launch("batchnorm_again", Grid::each(count), arguments);
    }
    let elements = count / of.count;
    let arguments: &[&dyn Argument] = &[
        &x,
        &y,
        &weight,
        &bias,
        &mean,
        &var,
        &saved[0],
        &saved[1],
        &elements,
        &of.count,
        &of.positions,
        &eps,
        &(layer.momentum as f32),
    ];
    step.launch("batchnorm_train", Grid::groups(of.count, elements), arguments)
}

/// The gradients of input, factor and offset.
pub fn backward(step: &Step) -> Result<(), Error> {
    let of = Channels::of(step.output());
    let (dx, dweight, dbias) = (Role::InputGradient(0), Role::ParameterGradient(0), Role::ParameterGradient(1));
    let elements = step.count(Role::Input(0)) / of.count;
    let arguments: &[&dyn Argument] = &[
        &step.at(Role::OutputGradient),
        &step.at(Role::Input(0)),
        &step.at(Role::Parameter(0)),
        &step.at(Role::Saved(0)),
        &step.at(Role::Saved(1)),
        &step.at(dx),
        &step.at(dweight),
        &step.at(dbias),
        &elements,
        &of.count,
        &of.positions,
        &step.adds(dx),
        &step.adds(dweight),
        &step.adds(dbias),
    ];
    step.launch("batchnorm_backward", Grid::groups(of.count, elements), arguments)
}
