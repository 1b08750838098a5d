//! `(x - mean) / std` per channel, of floats or of bytes scaled to [0, 1].

use plimsoll_plan::layers::normalize::Normalize;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::shape::DType;

use super::channels::Channels;
use super::parallel;
use super::step::Step;

/// A channel's number of a list that has one for each, or one for all.
fn of_channel(numbers: &[f64], channel: usize) -> f32 {
    numbers[channel % numbers.len()] as f32
}

/// The outputs.
pub fn forward(layer: &Normalize, step: &Step) {
    let channels = Channels::of(step.output());
    let constants = |channel| (of_channel(&layer.mean, channel), of_channel(&layer.std, channel));
    if step.inputs()[0].dtype == DType::U8 {
        let bytes = step.read::<u8>(Role::Input(0));
        parallel::chunks(step.write(Role::Output), channels.positions, |plane, y| {
            let (mean, std) = constants(plane % channels.count);
            let x = &bytes[plane * channels.positions..];
            y.iter_mut().zip(x).for_each(|(y, x)| *y = (f32::from(*x) / 255.0 - mean) / std);
        });
    } else {
        channels.map(step.pair(Role::Input(0), Role::Output), |channel| {
            let (mean, std) = constants(channel);
            move |x| (x - mean) / std
        });
    }
}

/// `dx = dy / std`.
pub fn backward(layer: &Normalize, step: &Step) {
    if let Some(gradient) = step.gradient_pair(0) {
        Channels::of(step.output()).map(gradient, |channel| {
            let std = of_channel(&layer.std, channel);
            move |dy| dy / std
        });
    }
}
