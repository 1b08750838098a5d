//! The last layer and cross-entropy together, over slices of the classes: see `loss.cu`, and the CPU's file of this name.

use plimsoll_plan::losses::Loss;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::strategy::sliced_loss::{STATISTICS, slice_classes};

use super::kernels::{Argument, Grid, Pointer};
use super::optimizer;
use super::product::{Matrix, Product};
use super::step::Step;
use crate::error::Error;

/// Computes the loss, and all gradients or updates that the step has operands for.
pub fn loss(step: &Step, head: usize) -> Result<(), Error> {
    /// Every block counts the targets that matter, so that there are no more than this.
    const MOST_BLOCKS: u32 = 128;
    let training = step.program().options();
    let Loss::CrossEntropy { label_smoothing, ignore_index } = training.loss else {
        unreachable!("the planner slices no other loss");
    };
    let (smoothing, share) = (label_smoothing as f32, (1.0 / training.accumulate as f64) as f32);
    let samples = step.batch();
    let inputs = step.count(Role::Input(0)) / samples;
    let classes = step.count(Role::Parameter(0)) / inputs;
    let most = slice_classes(&step.program().graph, head) as u32;
    // Where the weight is updated, the gradient of a slice of it comes first.
    let updates = step.adds(Role::Parameter(0)) != 0;
    let tile = step.at(Role::Workspace);
    let statistics = if updates { tile.after(most as usize * inputs as usize) } else { tile };
    let logits = statistics.after(samples as usize * STATISTICS as usize);
    let [x, targets, loss] = [Role::Input(0), Role::Target, Role::Loss].map(|role| step.at(role));
    let slices = || (0..classes).step_by(most as usize).map(|first| (first, most.min(classes - first)));
    let weight = |first: u32| Matrix::rows(step.at(Role::Parameter(0)).after(first as usize * inputs as usize), inputs);
    let multiply = |first: u32, width: u32| {
        step.product(&Product {
            a: Matrix::rows(x, inputs),
            b: weight(first).transposed(),
            c: Matrix::rows(logits, width),
            rows: samples,
            columns: width,
            depth: inputs,
            batches: 1,
            adds: false,
        })?;
        if !step.has(Role::Parameter(1)) {
            return Ok(());
        }
        let (bias, count) = (step.at(Role::Parameter(1)).after(first as usize), samples * width);
        step.launch("add_bias", Grid::each(count), &[&logits, &bias, &count, &width, &1u32])
    };
    for (first, width) in slices() {
        multiply(first, width)?;
        let arguments: &[&dyn Argument] = &[&logits, &targets, &statistics, &samples, &first, &width];
        step.launch("sliced_statistics", Grid::each(samples.saturating_mul(32)), arguments)?;
    }
    let arguments: &[&dyn Argument] = &[&statistics, &targets, &loss, &samples, &classes, &smoothing, &ignore_index];
    step.launch("sliced_loss", Grid::groups(1, samples), arguments)?;
    for (first, width) in slices() {
        multiply(first, width)?;
        let arguments: &[&dyn Argument] =
            &[&logits, &targets, &statistics, &samples, &first, &width, &classes, &smoothing, &share, &ignore_index];
        let blocks = (samples * width).div_ceil(Grid::THREADS);
        step.launch("sliced_gradient", Grid::blocks(blocks, MOST_BLOCKS), arguments)?;
        gradients(step, [first, width, samples, inputs], logits, weight(first), updates.then_some(tile))?;
    }
    Ok(())
}

/// What a slice of the logits' gradient gives to the gradients of input, weight and bias.
fn gradients(
    step: &Step,
    [first, width, samples, inputs]: [u32; 4],
    dy: Pointer,
    weight: Matrix,
    tile: Option<Pointer>,
) -> Result<(), Error> {
    let (dx, dweight, dbias) = (Role::InputGradient(0), Role::ParameterGradient(0), Role::ParameterGradient(1));
    let (of_dy, start) = (Matrix::rows(dy, width), first as usize * inputs as usize);
    if step.has(dx) {
        step.product(&Product {
            a: of_dy,
            b: weight,
            c: Matrix::rows(step.at(dx), inputs),
            rows: samples,
            columns: inputs,
            depth: width,
            batches: 1,
            adds: first > 0,
        })?;
    }
    let to = tile.or_else(|| step.has(dweight).then(|| step.at(dweight).after(start)));
    if let Some(to) = to {
        step.product(&Product {
            a: of_dy.transposed(),
            b: Matrix::rows(step.at(Role::Input(0)), inputs),
            c: Matrix::rows(to, inputs),
            rows: width,
            columns: inputs,
            depth: samples,
            batches: 1,
            adds: tile.is_none() && step.adds(dweight) != 0,
        })?;
    }
    if let Some(tile) = tile {
        optimizer::update_range(step, first * inputs, width * inputs, tile)?;
    }
    if step.has(dbias) {
        let (to, adds) = (step.at(dbias).after(first as usize), step.adds(dbias));
        let arguments: &[&dyn Argument] = &[&dy, &Pointer::NONE, &to, &samples, &width, &1u32, &adds];
        step.launch("channel_sums", Grid::groups(width, samples), arguments)?;
    }
    Ok(())
}
