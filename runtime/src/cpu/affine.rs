//! `mul x + add`, for numbers.

use plimsoll_plan::layers::arithmetic::Affine;
use plimsoll_plan::schedule::Role;

use super::step::Step;

/// The outputs.
pub fn forward(layer: &Affine, step: &Step) {
    let (mul, add, bounds) = (layer.mul as f32, layer.add as f32, step.bounds());
    step.pair(Role::Input(0), Role::Output).par_map(|x| bounds.at(mul * x + add));
}

/// `dx = mul dy`.
pub fn backward(layer: &Affine, step: &Step) {
    let mul = layer.mul as f32;
    if let Some(gradient) = step.gradient_pair(0) {
        gradient.par_map(|dy| mul * dy);
    }
}
