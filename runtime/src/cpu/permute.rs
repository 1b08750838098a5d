//! The axes in another order, as a copy.

use plimsoll_plan::layers::permute::Permute;
use plimsoll_plan::schedule::Role;

use super::parallel;
use super::step::Step;

/// The outputs.
pub fn forward(layer: &Permute, step: &Step) {
    let x = step.read(Role::Input(0));
    permute(step.write(Role::Output), x, &step.inputs()[0].shape.0, |axis| layer.axes[axis], false);
}

/// `dx`: the gradient with its axes back in order.
pub fn backward(layer: &Permute, step: &Step) {
    let role = Role::InputGradient(0);
    let dy = step.read(Role::OutputGradient);
    if let Some(dx) = step.write_if(role) {
        let inverse = |axis| layer.axes.iter().position(|&from| from == axis).expect("every axis is named once");
        permute(dx, dy, &step.output().shape.0, inverse, step.adds(role));
    }
}

/// Axis `i` of a sample of `to` is axis `axes(i)` of a sample of `from`, which has these extents.
fn permute(to: &mut [f32], from: &[f32], extents: &[u64], axes: impl Fn(usize) -> usize + Sync + Send, adds: bool) {
    let sample = extents.iter().product::<u64>() as usize;
    // One task for each sample and place along the first axis.
    let first = if extents.is_empty() { 1 } else { extents[axes(0)] as usize };
    parallel::chunks(to, sample / first, |i, to| {
        let from = &from[i / first * sample..][..sample];
        let offset = if extents.is_empty() { 0 } else { i % first * stride(extents, axes(0)) };
        gather(to, from, offset, extents, &axes, 1.min(extents.len()), adds);
    });
}

/// How far apart neighbours along an axis lie.
fn stride(extents: &[u64], axis: usize) -> usize {
    extents[axis + 1..].iter().product::<u64>() as usize
}

/// The axes of `to` from `axis` on, where those before chose `offset`.
fn gather(
    to: &mut [f32],
    from: &[f32],
    offset: usize,
    extents: &[u64],
    axes: &impl Fn(usize) -> usize,
    axis: usize,
    adds: bool,
) {
    if axis == extents.len() {
        to[0] = if adds { to[0] + from[offset] } else { from[offset] };
        return;
    }
    let (extent, stride) = (extents[axes(axis)] as usize, stride(extents, axes(axis)));
    if axis + 1 == extents.len() {
        let line = from[offset..].iter().step_by(stride);
        if adds {
            to.iter_mut().zip(line).for_each(|(to, from)| *to += from);
        } else {
            to.iter_mut().zip(line).for_each(|(to, from)| *to = *from);
        }
        return;
    }
    for (i, to) in to.chunks_exact_mut(to.len() / extent).enumerate() {
        gather(to, from, offset + i * stride, extents, axes, axis + 1, adds);
    }
}
