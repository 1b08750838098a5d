//! Transposed convolutions: forward is a convolution's way back to its input, and the other way round.

use plimsoll_plan::layers::conv_transpose::ConvTranspose;
use plimsoll_plan::schedule::{Part, Role};

use super::bounds::Bounds;
use super::convolution::{Geometry, bias_gradient, correlate, kernel_gradient, spread};
use super::optimizer;
use super::product::Start;
use super::step::Step;

/// The layer's output is the image of the convolution, its input the map.
fn geometry(layer: &ConvTranspose, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.output().shape.0, &step.inputs()[0].shape.0)
}

/// Every element of the input gives the kernel, times itself, to the output.
pub fn forward(layer: &ConvTranspose, step: &Step) {
    let g = geometry(layer, step);
    let y = step.write(Role::Output);
    let start = if layer.bias { Start::Bias(step.read(Role::Parameter(1))) } else { Start::Zero };
    spread(&g, step.read(Role::Input(0)), step.read(Role::Parameter(0)), y, start, 0..g.channels);
}

/// The gradients: of weight and bias, or of the input.
pub fn backward(layer: &ConvTranspose, step: &Step, part: Part) {
    let g = geometry(layer, step);
    let dy: &[f32] = step.read(Role::OutputGradient);
    if part != Part::Inputs {
        let weight = Role::ParameterGradient(0);
        if let Some(dweight) = step.write_if(weight) {
            let room = step.write_if(Role::Workspace).unwrap_or_default();
            kernel_gradient(
                &g,
                dy.into(),
                step.read(Role::Input(0)),
                0..g.kernel_rows(),
                dweight,
                step.adds(weight),
                room,
            );
        }
        if let Some(dbias) = step.gradient(Role::ParameterGradient(1)) {
            bias_gradient(dy, dbias, g.image[0] * g.image[1]);
        }
    }
    if part != Part::Parameters
        && let Some(dx) = step.write_if(Role::InputGradient(0))
    {
        let start = Start::adding(step.adds(Role::InputGradient(0)));
        correlate(&g, dy.into(), step.read(Role::Parameter(0)), dx, start, Bounds::NONE);
    }
}

/// The weight's gradient and its update, a tile of input channels at a time.
pub fn update_rows(layer: &ConvTranspose, step: &Step, node: usize) {
    let g = geometry(layer, step);
    let (image, map): (&[f32], _) = (step.read(Role::OutputGradient), step.read(Role::Input(0)));
    optimizer::update_rows(step, node, |rows, tile, room| {
        kernel_gradient(&g, image.into(), map, rows, tile, false, room)
    });
}
