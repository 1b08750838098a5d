//! Each element repeated by whole factors, nearest neighbour.

use plimsoll_plan::layers::upsample::Upsample;
use plimsoll_plan::schedule::Role;

use super::parallel;
use super::step::Step;

/// Height and width of the output.
fn extent(step: &Step) -> [usize; 2] {
    let shape = &step.output().shape.0;
    [shape[1] as usize, shape[2] as usize]
}

/// The outputs.
pub fn forward(layer: &Upsample, step: &Step) {
    let [height, width] = extent(step);
    let [vertical, horizontal] = layer.scale.map(|scale| scale as usize);
    let inputs = (height / vertical) * (width / horizontal);
    let x = step.read::<f32>(Role::Input(0));
    parallel::chunks(step.write::<f32>(Role::Output), height * width, |plane, y| {
        let x = &x[plane * inputs..][..inputs];
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let x = &x[row / vertical * (width / horizontal)..];
            for (y, x) in y.chunks_exact_mut(horizontal).zip(x) {
                y.fill(*x);
            }
        }
    });
}

/// `dx`: the sum of `dy` over the copies.
pub fn backward(layer: &Upsample, step: &Step) {
    let [height, width] = extent(step);
    let [vertical, horizontal] = layer.scale.map(|scale| scale as usize);
    let dy = step.read::<f32>(Role::OutputGradient);
    let Some(dx) = step.gradient(Role::InputGradient(0)) else { return };
    parallel::chunks(dx, (height / vertical) * (width / horizontal), |plane, dx| {
        let dy = &dy[plane * height * width..][..height * width];
        for (dx, dy) in dx.chunks_exact_mut(width / horizontal).zip(dy.chunks_exact(vertical * width)) {
            for (column, dx) in dx.iter_mut().enumerate() {
                let rows = dy.chunks_exact(width).map(|row| &row[column * horizontal..][..horizontal]);
                *dx += rows.flatten().map(|dy| f64::from(*dy)).sum::<f64>() as f32;
            }
        }
    });
}
