//! Activation functions.

use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::schedule::Role;

use super::step::Step;

/// `y = f(x)`.
pub fn forward(layer: &Activation, step: &Step) {
    let pair = step.pair(Role::Input(0), Role::Output);
    match layer {
        // As PyTorch, NaN stays NaN: `max` would drop it.
        Activation::Relu => pair.par_map(|x| if x < 0.0 { 0.0 } else { x }),
        _ => unimplemented!(),
    }
}

/// `dx = dy f'(x)`, from whichever of `x` and `y` the planner kept.
pub fn backward(layer: &Activation, step: &Step) {
    let Some(gradient) = step.gradient_pair(0) else { return };
    match layer {
        Activation::Relu => gradient.par_zip(step.read(Role::Output), |dy, y| if y > 0.0 { dy } else { 0.0 }),
        _ => unimplemented!(),
    }
}
