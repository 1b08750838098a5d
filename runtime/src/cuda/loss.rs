//! The loss, and its gradient with respect to the network's output, which may take the output's place: see `loss.cu`.

use plimsoll_plan::losses::Loss;
use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::kernels::{Argument, Grid};
use super::step::Step;
use crate::error::Error;

/// Computes both: the loss first, while the output is whole.
pub fn loss(step: &Step) -> Result<(), Error> {
    let training = step.program().options();
    // Gradients of several batches add up to their mean.
    let share = 1.0 / training.accumulate as f64;
    let (names, beta) = match training.loss {
        Loss::CrossEntropy { label_smoothing, ignore_index } => {
            return cross_entropy(step, label_smoothing as f32, ignore_index, share as f32);
        }
        Loss::Mse => (["mse_loss", "mse_gradient"], 0.0),
        Loss::L1 => (["l1_loss", "l1_gradient"], 0.0),
        Loss::SmoothL1 { beta } => (["smooth_l1_loss", "smooth_l1_gradient"], beta as f32),
        Loss::BceWithLogits => (["bce_with_logits_loss", "bce_with_logits_gradient"], 0.0),
    };
    let [x, target, dx, loss] = operands(step);
    let count = step.count(Role::Target);
    let factor = (share / f64::from(count)) as f32;
    step.launch(names[0], Grid::groups(1, count), &[&x, &target, &loss, &count, &beta])?;
    step.launch(names[1], Grid::each(count), &[&x, &target, &dx, &count, &beta, &factor])
}

fn operands(step: &Step) -> [super::kernels::Pointer; 4] {
    [Role::Input(0), Role::Target, Role::InputGradient(0), Role::Loss].map(|role| step.at(role))
}

fn cross_entropy(step: &Step, smoothing: f32, ignore_index: i32, share: f32) -> Result<(), Error> {
    /// Every block counts the targets that matter, so that there are no more than this.
    const MOST_BLOCKS: u32 = 128;
    let [x, target, dx, loss] = operands(step);
    let Channels { count: classes, positions } = Channels::of(&step.inputs()[0]);
    let count = step.count(Role::Target);
    // A thread for each position where neighbours read neighbours, or there is little to read; else a warp.
    let lanes: u32 = if positions >= 32 || classes <= 8 { 1 } else { 32 };
    let arguments: &[&dyn Argument] =
        &[&x, &target, &loss, &count, &classes, &positions, &lanes, &smoothing, &ignore_index];
    step.launch("cross_entropy_loss", Grid::blocks(1, 1), arguments)?;
    let arguments: &[&dyn Argument] =
        &[&x, &target, &dx, &count, &classes, &positions, &lanes, &smoothing, &share, &ignore_index];
    let blocks = count.div_ceil(Grid::THREADS / lanes);
    step.launch("cross_entropy_gradient", Grid::blocks(blocks, MOST_BLOCKS), arguments)
}
