//! Values side by side along an axis.
//!
//! In terms of rows, one for each sample and each place along the axes before that one, a row of the output is the rows of
//! the inputs one after the other. A value that is the same for all samples comes again for each.

use plimsoll_plan::layers::concat::Concat;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::shape::ValueType;

use super::parallel;
use super::step::Step;

/// Where an input lies in the rows of the output.
struct Place {
    /// Rows of one sample.
    rows: usize,
    /// Elements of a row of the output.
    width: usize,
    /// Elements of the rows of the inputs before.
    before: usize,
    /// Elements of a row of this input.
    own: usize,
}

/// The place of input `i`.
fn place(layer: &Concat, step: &Step, i: usize) -> Place {
    let axis = layer.axis_of(step.output());
    let width = |value: &ValueType| value.shape.0[axis..].iter().product::<u64>() as usize;
    Place {
        rows: step.output().shape.0[..axis].iter().product::<u64>() as usize,
        width: width(step.output()),
        before: step.parts()[..i].iter().map(width).sum(),
        own: width(&step.parts()[i]),
    }
}

/// The outputs.
pub fn forward(layer: &Concat, step: &Step) {
    let y = step.write::<f32>(Role::Output);
    for i in 0..step.parts().len() {
        let Place { width, before, own, .. } = place(layer, step, i);
        let x = step.read::<f32>(Role::Input(i as u32));
        parallel::chunks(y, width, |row, y| {
            let start = row * own % x.len();
            y[before..before + own].copy_from_slice(&x[start..start + own]);
        });
    }
}

/// `dx`: the input's part of every row of `dy`, summed over the batch where the input is the same for all samples.
pub fn backward(layer: &Concat, step: &Step) {
    let dy = step.read::<f32>(Role::OutputGradient);
    let role = |i: usize| Role::InputGradient(i as u32);
    let count = step.parts().len();
    for first in (0..count).filter(|&i| step.has(role(i))) {
        // A value that is concatenated with itself has one gradient.
        let same = |i: &usize| step.has(role(*i)) && step.in_place(role(first), role(*i));
        if (0..first).any(|i| same(&i)) {
            continue;
        }
        let Some(dx) = step.gradient(role(first)) else { continue };
        for i in (first..count).filter(same) {
            add_part(dx, dy, place(layer, step, i));
        }
    }
}

fn add_part(dx: &mut [f32], dy: &[f32], Place { rows, width, before, own }: Place) {
    const BLOCK: usize = 64;
    let total = dx.len() / own;
    parallel::chunks(dx, own, |row, dx| {
        for (block, dx) in dx.chunks_mut(BLOCK).enumerate() {
            let mut sums = [0.0f64; BLOCK];
            // All samples of this row; one alone, where the input has a row for each.
            for row in (row..dy.len() / width).step_by(if total == rows { rows } else { usize::MAX }) {
                let start = row * width + before + block * BLOCK;
                sums.iter_mut().zip(&dy[start..start + dx.len()]).for_each(|(sum, dy)| *sum += f64::from(*dy));
            }
            dx.iter_mut().zip(&sums).for_each(|(dx, sum)| *dx += *sum as f32);
        }
    });
}
