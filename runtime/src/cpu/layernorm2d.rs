//! Normalization of each position of an image over its channels (Liu et al. 2022).
//!
//! The channels of a position lie far apart, so that a block of neighbouring positions is handled side by side.

use plimsoll_plan::layers::layernorm::LayerNorm;
use plimsoll_plan::schedule::Role;

use super::channels::Channels;
use super::moments::Moments;
use super::parallel;
use super::step::{Pair, Step};
use super::sums::sum;

/// How many positions are handled side by side.
const WIDTH: usize = 64;

/// The outputs.
pub fn forward(layer: &LayerNorm, step: &Step) {
    let channels = Channels::of(step.output());
    let (weight, bias) = (step.read(Role::Parameter(0)), step.read(Role::Parameter(1)));
    let image = Image { channels, weight, bias, eps: layer.eps };
    let pair = step.pair(Role::Input(0), Role::Output);
    pair.chunks_saving(channels.sample(), step.saved_moments(channels.positions), |_, pair, saved| {
        image.normalize(pair, saved);
    });
}

struct Image<'a> {
    channels: Channels,
    weight: &'a [f32],
    bias: &'a [f32],
    eps: f64,
}

impl Image<'_> {
    fn normalize(&self, mut pair: Pair, mut saved: Option<[&mut [f32]; 2]>) {
        let positions = self.channels.positions;
        for first in (0..positions).step_by(WIDTH) {
            let block = first..positions.min(first + WIDTH);
            let moments = self.moments(pair.from(), block.clone());
            for (channel, (weight, bias)) in self.weight.iter().zip(self.bias).enumerate() {
                let plane = channel * positions;
                let mut part = pair.part(plane + block.start..plane + block.end);
                part.map(|i, x| moments[i].line(*weight, *bias).at(x));
            }
            if let Some([mean, rstd]) = &mut saved {
                for ((mean, rstd), moments) in mean[block.clone()].iter_mut().zip(&mut rstd[block]).zip(&moments) {
                    (*mean, *rstd) = (moments.mean as f32, moments.rstd as f32);
                }
            }
        }
    }

    fn moments(&self, x: &[f32], block: std::ops::Range<usize>) -> [Moments; WIDTH] {
        let Channels { count, positions } = self.channels;
        let (mut means, mut squares) = ([0.0f64; WIDTH], [0.0f64; WIDTH]);
        for x in x.chunks_exact(positions) {
            means.iter_mut().zip(&x[block.clone()]).for_each(|(mean, x)| *mean += f64::from(*x));
        }
        means.iter_mut().for_each(|mean| *mean /= count as f64);
        for x in x.chunks_exact(positions) {
            for ((square, mean), x) in squares.iter_mut().zip(&means).zip(&x[block.clone()]) {
                *square += (f64::from(*x) - mean).powi(2);
            }
        }
        std::array::from_fn(|i| Moments::new(means[i], squares[i] / count as f64, self.eps))
    }
}

/// The formulas of [`layernorm`](super::layernorm).
pub fn backward(step: &Step) {
    let channels = Channels::of(step.output());
    let gradients = step.gradients();
    let x = step.read::<f32>(Role::Input(0));
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    let dy = gradients.output();
    if let Some(weight) = step.gradient(Role::ParameterGradient(0)) {
        parallel::chunks(weight, 1, |channel, weight| {
            let statistics = mean.chunks_exact(channels.positions).zip(rstd.chunks_exact(channels.positions));
            let planes = channels.planes(dy, channel).zip(channels.planes(x, channel)).zip(statistics);
            let products = planes.map(|((dy, x), (mean, rstd))| {
                let terms = dy.iter().zip(x).zip(mean.iter().zip(rstd));
                terms.map(|((dy, x), (mean, rstd))| f64::from(*dy) * f64::from((x - mean) * rstd)).sum::<f64>()
            });
            weight[0] += products.sum::<f64>() as f32;
        });
    }
    if let Some(bias) = step.gradient(Role::ParameterGradient(1)) {
        parallel::chunks(bias, 1, |channel, bias| {
            bias[0] += channels.planes(dy, channel).map(sum).sum::<f64>() as f32;
        });
    }
    let weight = step.read::<f32>(Role::Parameter(0));
    let Some(dx) = gradients.input() else { return };
    dx.chunks(channels.sample(), |sample, mut dx| {
        let x = &x[sample * channels.sample()..][..channels.sample()];
        let statistics = sample * channels.positions..(sample + 1) * channels.positions;
        input_gradient(channels, &mut dx, x, weight, &mean[statistics.clone()], &rstd[statistics]);
    });
}

fn input_gradient(channels: Channels, dx: &mut Pair, x: &[f32], weight: &[f32], mean: &[f32], rstd: &[f32]) {
    let Channels { count, positions } = channels;
    for first in (0..positions).step_by(WIDTH) {
        let block = first..positions.min(first + WIDTH);
        let (mean, rstd) = (&mean[block.clone()], &rstd[block.clone()]);
        let (mut offsets, mut slopes) = ([0.0f64; WIDTH], [0.0f64; WIDTH]);
        for ((dy, x), weight) in dx.from().chunks_exact(positions).zip(x.chunks_exact(positions)).zip(weight) {
            let sums = offsets.iter_mut().zip(&mut slopes);
            let values = dy[block.clone()].iter().zip(&x[block.clone()]).zip(mean);
            for ((offset, slope), ((dy, x), mean)) in sums.zip(values) {
                let g = f64::from(*weight) * f64::from(*dy);
                *offset += g;
                *slope += g * (f64::from(*x) - f64::from(*mean));
            }
        }
        let offsets = offsets.map(|sum| (sum / count as f64) as f32);
        let slopes = slopes.map(|sum| (sum / count as f64) as f32);
        for (channel, weight) in weight.iter().enumerate() {
            let plane = channel * positions;
            let x = &x[plane..plane + positions][block.clone()];
            dx.part(plane + block.start..plane + block.end).map(|i, dy| {
                let z = (x[i] - mean[i]) * rstd[i];
                rstd[i] * (weight * dy - offsets[i] - z * slopes[i] * rstd[i])
            });
        }
    }
}
