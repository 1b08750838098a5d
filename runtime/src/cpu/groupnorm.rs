//! Normalization of each sample over groups of channels (Wu & He 2018).

use plimsoll_plan::layers::groupnorm::GroupNorm;
use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::moments::Moments;
use super::parallel;
use super::step::Step;
use super::sums::{sum, sum_of2};

/// A group as a tensor of its own: its channels, with the positions of the whole.
fn group(layer: &GroupNorm, channels: Channels) -> Channels {
    Channels { count: channels.count / layer.groups as usize, ..channels }
}

/// The outputs.
pub fn forward(layer: &GroupNorm, step: &Step) {
    let channels = Channels::of(step.output());
    let group = group(layer, channels);
    let affine = step.read_if::<f32>(Role::Parameter(0)).zip(step.read_if::<f32>(Role::Parameter(1)));
    let pair = step.pair(Role::Input(0), Role::Output);
    pair.chunks_saving(group.sample(), step.saved_moments(1), |i, mut pair, saved| {
        let moments = Moments::of(pair.from(), layer.eps);
        let first = i * group.count % channels.count;
        for plane in 0..group.count {
            let channel = first + plane;
            let (weight, bias) = affine.map_or((1.0, 0.0), |(weight, bias)| (weight[channel], bias[channel]));
            let line = moments.line(weight, bias);
            pair.part(plane * group.positions..(plane + 1) * group.positions).map(|_, x| line.at(x));
        }
        if let Some([mean, rstd]) = saved {
            (mean[0], rstd[0]) = (moments.mean as f32, moments.rstd as f32);
        }
    });
}

/// With `z = (x - mean) rstd`, `g = w dy`, and means over the group: `dw = sum dy z`, `db = sum dy`,
/// `dx = rstd (g - mean(g) - z mean(g z))`.
pub fn backward(layer: &GroupNorm, step: &Step) {
    let channels = Channels::of(step.output());
    let group = group(layer, channels);
    let groups = layer.groups as usize;
    let gradients = step.gradients();
    let x = step.read::<f32>(Role::Input(0));
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    let dy = gradients.output();
    if let Some(weight) = step.gradient(Role::ParameterGradient(0)) {
        parallel::chunks(weight, 1, |channel, weight| {
            let planes = channels.planes(dy, channel).zip(channels.planes(x, channel));
            let of_samples = planes.enumerate().map(|(sample, (dy, x))| {
                let i = sample * groups + channel / group.count;
                let mean = f64::from(mean[i]);
                sum_of2(dy, x, |dy, x| dy * (x - mean)) * f64::from(rstd[i])
            });
            weight[0] += of_samples.sum::<f64>() as f32;
        });
    }
    if let Some(bias) = step.gradient(Role::ParameterGradient(1)) {
        parallel::chunks(bias, 1, |channel, bias| {
            bias[0] += channels.planes(dy, channel).map(sum).sum::<f64>() as f32;
        });
    }
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let Some(dx) = gradients.input() else { return };
    dx.chunks(group.sample(), |i, mut dx| {
        let x = &x[i * group.sample()..][..group.sample()];
        let (mean, rstd) = (f64::from(mean[i]), f64::from(rstd[i]));
        let weight = |plane| weight.map_or(1.0, |weight| weight[(i * group.count + plane) % channels.count]);
        let (mut offset, mut slope) = (0.0, 0.0);
        let planes = dx.from().chunks_exact(group.positions).zip(x.chunks_exact(group.positions));
        for (plane, (dy, x)) in planes.enumerate() {
            offset += f64::from(weight(plane)) * sum(dy);
            slope += f64::from(weight(plane)) * sum_of2(dy, x, |dy, x| dy * (x - mean));
        }
        let count = group.sample() as f64;
        let (offset, slope) = ((offset / count) as f32, (slope / count * rstd * rstd) as f32);
        let (mean, rstd) = (mean as f32, rstd as f32);
        for plane in 0..group.count {
            let range = plane * group.positions..(plane + 1) * group.positions;
            let weight = weight(plane);
            dx.part(range.clone()).zip(&x[range], |dy, x| rstd * (weight * dy - offset - (x - mean) * slope));
        }
    });
}
