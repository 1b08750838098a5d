//! Exponentials over their sum along an axis: see `softmax.cu`.

use plimsoll_plan::layers::softmax::Softmax;
use plimsoll_plan::schedule::Role;

use super::kernels::Grid;
use super::step::Step;
use crate::error::Error;

/// Elements along the axis, and how far apart they lie.
fn line(layer: &Softmax, step: &Step) -> [u32; 2] {
    let extents = &step.output().shape.0;
    let axis = if layer.axis < 0 { layer.axis + extents.len() as i64 } else { layer.axis } as usize;
    [extents[axis] as u32, extents[axis + 1..].iter().product::<u64>() as u32]
}

/// The outputs.
pub fn forward(layer: &Softmax, step: &Step) -> Result<(), Error> {
    let [extent, inner] = line(layer, step);
    let [x, y] = [Role::Input(0), Role::Output].map(|role| step.at(role));
    let lines = step.count(Role::Output) / extent;
    match inner {
        1 => step.launch("softmax_forward", Grid::groups(lines, extent), &[&x, &y, &extent]),
        _ => step.launch("softmax_strided_forward", Grid::each(lines), &[&x, &y, &lines, &extent, &inner]),
    }
}

/// `dx = y (dy - sum dy y)`.
pub fn backward(layer: &Softmax, step: &Step) -> Result<(), Error> {
    let dx = Role::InputGradient(0);
    if !step.has(dx) {
        return Ok(());
    }
    let [extent, inner] = line(layer, step);
    let [dy, y, to] = [Role::OutputGradient, Role::Output, dx].map(|role| step.at(role));
    let (lines, adds) = (step.count(dx) / extent, step.adds(dx));
    match inner {
        1 => step.launch("softmax_backward", Grid::groups(lines, extent), &[&dy, &y, &to, &extent, &adds]),
        _ => {
            let grid = Grid::each(lines);
            step.launch("softmax_strided_backward", grid, &[&dy, &y, &to, &lines, &extent, &inner, &adds])
        }
    }
}
