//! Activation functions, with PyTorch's choices where a derivative has none.

use std::f32::consts::{FRAC_1_SQRT_2, PI};

use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::schedule::Role;

use super::step::Step;

/// `y = f(x)`.
pub fn forward(layer: &Activation, step: &Step) {
    let pair = step.pair(Role::Input(0), Role::Output);
    match *layer {
        // As in PyTorch, NaN stays NaN: `max` and `min` would drop it.
        Activation::Relu => pair.par_map(|x| if x < 0.0 { 0.0 } else { x }),
        Activation::Relu6 => pair.par_map(|x| x.clamp(0.0, 6.0)),
        Activation::LeakyRelu { negative_slope } => {
            let slope = negative_slope as f32;
            pair.par_map(|x| if x > 0.0 { x } else { slope * x });
        }
        Activation::Gelu { tanh: false } => pair.par_map(|x| x * normal_distribution(x)),
        Activation::Gelu { tanh: true } => pair.par_map(|x| 0.5 * x * (1.0 + gelu_argument(x).tanh())),
        Activation::Silu => pair.par_map(|x| x * sigmoid(x)),
        Activation::Sigmoid => pair.par_map(sigmoid),
        Activation::Tanh => pair.par_map(f32::tanh),
    }
}

/// `dx = dy f'(x)`, from whichever of `x` and `y` the planner kept.
pub fn backward(layer: &Activation, step: &Step) {
    let Some(gradient) = step.gradient_pair(0) else { return };
    match *layer {
        Activation::Relu => gradient.par_zip(step.read(Role::Output), |dy, y| if y > 0.0 { dy } else { 0.0 }),
        Activation::Relu6 => {
            gradient.par_zip(step.read(Role::Output), |dy, y| if y > 0.0 && y < 6.0 { dy } else { 0.0 });
        }
        Activation::LeakyRelu { negative_slope } => {
            // The output, which is kept where the slope is positive, has the input's sign.
            let kept = step.read_if(Role::Output).unwrap_or_else(|| step.read(Role::Input(0)));
            let slope = negative_slope as f32;
            gradient.par_zip(kept, |dy, x| if x > 0.0 { dy } else { slope * dy });
        }
        Activation::Gelu { tanh: false } => gradient.par_zip(step.read(Role::Input(0)), |dy, x| {
            let density = (-0.5 * x * x).exp() * (1.0 / (2.0 * PI).sqrt());
            dy * (normal_distribution(x) + x * density)
        }),
        Activation::Gelu { tanh: true } => gradient.par_zip(step.read(Role::Input(0)), |dy, x| {
            let tanh = gelu_argument(x).tanh();
            let slope = GELU_FACTOR * (1.0 + 3.0 * GELU_CUBE * x * x);
            dy * 0.5 * (1.0 + tanh + x * (1.0 - tanh * tanh) * slope)
        }),
        Activation::Silu => gradient.par_zip(step.read(Role::Input(0)), |dy, x| {
            let s = sigmoid(x);
            dy * s * (1.0 + x * (1.0 - s))
        }),
        Activation::Sigmoid => gradient.par_zip(step.read(Role::Output), |dy, y| dy * y * (1.0 - y)),
        Activation::Tanh => gradient.par_zip(step.read(Role::Output), |dy, y| dy * (1.0 - y * y)),
    }
}

/// `1 / (1 + exp(-x))`; where the exponential passes every float, this is 0.
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The probability that a standard normal variable is below `x`. By erfc rather than erf, which keeps its digits where
/// the probability is small.
fn normal_distribution(x: f32) -> f32 {
    0.5 * libm::erfcf(-x * FRAC_1_SQRT_2)
}

/// `sqrt(2 / pi)`.
const GELU_FACTOR: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;

/// What the approximation of GELU takes the tanh of (Hendrycks & Gimpel 2016).
fn gelu_argument(x: f32) -> f32 {
    GELU_FACTOR * (x + GELU_CUBE * x * x * x)
}
