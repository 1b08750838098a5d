//! Activation functions: see `activation.cu`.

use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::schedule::Role;

use super::kernels::Grid;
use super::step::Step;
use crate::error::Error;

/// The kernels of a function, and its slope below zero.
fn kernels(layer: &Activation) -> ([&'static str; 2], f32) {
    match *layer {
        Activation::Relu => (["relu_forward", "relu_backward"], 0.0),
        Activation::Relu6 => (["relu6_forward", "relu6_backward"], 0.0),
        Activation::LeakyRelu { negative_slope } => {
            (["leaky_relu_forward", "leaky_relu_backward"], negative_slope as f32)
        }
        Activation::Gelu { tanh: false } => (["gelu_forward", "gelu_backward"], 0.0),
        Activation::Gelu { tanh: true } => (["gelu_tanh_forward", "gelu_tanh_backward"], 0.0),
        Activation::Silu => (["silu_forward", "silu_backward"], 0.0),
        Activation::Sigmoid => (["sigmoid_forward", "sigmoid_backward"], 0.0),
        Activation::Tanh => (["tanh_forward", "tanh_backward"], 0.0),
    }
}

/// `y = f(x)`.
pub fn forward(layer: &Activation, step: &Step) -> Result<(), Error> {
    let ([kernel, _], slope) = kernels(layer);
    let count = step.count(Role::Output);
    step.launch(kernel, Grid::each(count), &[&step.at(Role::Input(0)), &step.at(Role::Output), &count, &slope])
}

/// `dx = dy f'(x)`, from whichever of `x` and `y` the planner kept.
pub fn backward(layer: &Activation, step: &Step) -> Result<(), Error> {
    let dx = Role::InputGradient(0);
    if !step.has(dx) {
        return Ok(());
    }
    let ([_, kernel], slope) = kernels(layer);
    let kept = if step.has(Role::Output) { Role::Output } else { Role::Input(0) };
    let count = step.count(dx);
    let dy = step.at(Role::OutputGradient);
    step.launch(kernel, Grid::each(count), &[&dy, &step.at(kept), &step.at(dx), &count, &step.adds(dx), &slope])
}
