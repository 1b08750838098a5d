//! Convolutions over one or two axes.

use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::schedule::{Part, Role};

use super::convolution::{Geometry, bias_gradient, correlate, kernel_gradient, spread};
use super::optimizer;
use super::product::Start;
use super::step::Step;

fn geometry(layer: &Conv, step: &Step) -> Geometry {
    Geometry::new(&layer.window, layer.groups, &step.inputs()[0].shape.0, &step.output().shape.0)
}

/// `y = columns(x) W + b`.
pub fn forward(layer: &Conv, step: &Step) {
    let g = geometry(layer, step);
    let y = step.write(Role::Output);
    let start = if layer.bias { Start::Bias(step.read(Role::Parameter(1))) } else { Start::Zero };
    correlate(&g, step.read_image().image(), step.read(Role::Parameter(0)), y, start, step.bounds());
}

/// The gradients: of weight and bias, or of the input.
pub fn backward(layer: &Conv, step: &Step, part: Part) {
    let g = geometry(layer, step);
    let dy = step.read(Role::OutputGradient);
    if part != Part::Inputs {
        let weight = Role::ParameterGradient(0);
        if let Some(dweight) = step.write_if(weight) {
            let room = step.write_if(Role::Workspace).unwrap_or_default();
            let parts = step.read_image();
            kernel_gradient(&g, parts.image(), dy, 0..g.kernel_rows(), dweight, step.adds(weight), room);
        }
        if let Some(dbias) = step.gradient(Role::ParameterGradient(1)) {
            bias_gradient(dy, dbias, g.map[0] * g.map[1]);
        }
    }
    if part != Part::Parameters {
        let mut first = 0;
        for (part, i) in step.parts().iter().zip(0..) {
            let (role, channels) = (Role::InputGradient(i), part.shape.0[0] as usize / g.groups);
            if let Some(dx) = step.write_if(role) {
                let start = Start::adding(step.adds(role));
                spread(&g, dy, step.read(Role::Parameter(0)), dx, start, first..first + channels);
            }
            first += channels;
        }
    }
}

/// The weight's gradient and its update, a tile of output channels at a time.
pub fn update_rows(layer: &Conv, step: &Step, node: usize) {
    let g = geometry(layer, step);
    let (parts, map) = (step.read_image(), step.read(Role::OutputGradient));
    let image = parts.image();
    optimizer::update_rows(step, node, |rows, tile, room| kernel_gradient(&g, image, map, rows, tile, false, room));
}
