//! Elements zeroed at random: see `dropout.cu`. The mask is that of the CPU.

use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::schedule::Role;

use super::kernels::{Argument, Grid};
use super::step::Step;
use crate::error::Error;

/// `y = x mask / (1 - p)`.
pub fn forward(layer: &Dropout, step: &Step, node: usize) -> Result<(), Error> {
    apply(layer, step, node, [Role::Input(0), Role::Output])
}

/// `dx = dy mask / (1 - p)`.
pub fn backward(layer: &Dropout, step: &Step, node: usize) -> Result<(), Error> {
    match step.has(Role::InputGradient(0)) {
        true => apply(layer, step, node, [Role::OutputGradient, Role::InputGradient(0)]),
        false => Ok(()),
    }
}

fn apply(layer: &Dropout, step: &Step, node: usize, [from, to]: [Role; 2]) -> Result<(), Error> {
    let (p, scale) = (layer.p as f32, (1.0 / (1.0 - layer.p)) as f32);
    let (seed, pass) = (step.arguments().seed, step.arguments().pass as u32);
    let [low, high] = [seed as u32, (seed >> 32) as u32];
    let count = step.count(to);
    let arguments: &[&dyn Argument] =
        &[&step.at(from), &step.at(to), &count, &low, &high, &(node as u32), &pass, &p, &scale, &step.adds(to)];
    // A thread for each group of four elements, which share the words of one counter.
    step.launch("dropout", Grid::each(count.div_ceil(4)), arguments)
}
