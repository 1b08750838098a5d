//! A learned factor for each channel.

use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::parallel;
use super::step::Step;
use super::sums::dot;

/// `y = w x`.
pub fn forward(step: &Step) {
    let weight = step.read::<f32>(Role::Parameter(0));
    Channels::of(step.output()).map(step.pair(Role::Input(0), Role::Output), |channel| {
        let w = weight[channel];
        move |x| w * x
    });
}

/// `dw = sum dy x`, `dx = w dy`.
pub fn backward(step: &Step) {
    let channels = Channels::of(step.output());
    let gradients = step.gradients();
    if let Some(weight) = step.gradient(Role::ParameterGradient(0)) {
        let (dy, x) = (gradients.output(), step.read(Role::Input(0)));
        parallel::chunks(weight, 1, |channel, weight| {
            let planes = channels.planes(dy, channel).zip(channels.planes(x, channel));
            weight[0] += planes.map(|(dy, x)| dot(dy, x)).sum::<f64>() as f32;
        });
    }
    if let Some(dx) = gradients.input() {
        let weight = step.read::<f32>(Role::Parameter(0));
        channels.map(dx, |channel| {
            let w = weight[channel];
            move |dy| w * dy
        });
    }
}
