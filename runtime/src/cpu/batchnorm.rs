//! Normalization of each channel over the batch and all positions (Ioffe & Szegedy 2015).

use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::schedule::{Role, StepKind};

use super::channels::Channels;
use super::moments::{Line, Moments};
use super::step::{Gradients, Pair, Step};

/// The layer's tensors: factor and offset, if it has them, come before the running statistics.
struct Tensors<'a> {
    affine: Option<(&'a [f32], &'a [f32])>,
    running_mean: Role,
    running_var: Role,
}

impl<'a> Tensors<'a> {
    fn of(layer: &BatchNorm, step: &Step<'a>) -> Tensors<'a> {
        let affine = layer.affine.then(|| (step.read(Role::Parameter(0)), step.read(Role::Parameter(1))));
        let first = if layer.affine { 2 } else { 0 };
        Tensors { affine, running_mean: Role::Parameter(first), running_var: Role::Parameter(first + 1) }
    }

    fn line(&self, channel: usize, moments: Moments) -> Line {
        let (weight, bias) = self.affine.map_or((1.0, 0.0), |(weight, bias)| (weight[channel], bias[channel]));
        moments.line(weight, bias)
    }
}

/// The outputs, by the statistics of the batch in training and by the running ones in inference.
pub fn forward(layer: &BatchNorm, step: &Step) {
    let again = matches!(step.kind(), StepKind::Recompute { .. });
    match step.is_training() {
        false => infer(layer, step),
        true if again && step.has(Role::Saved(0)) => normalize_again(layer, step),
        true => train(layer, step),
    }
}

/// The outputs once more, by the statistics that were saved the first time.
fn normalize_again(layer: &BatchNorm, step: &Step) {
    let tensors = Tensors::of(layer, step);
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    Channels::of(step.output()).map(step.pair(Role::Input(0), Role::Output), |channel| {
        let line = tensors.line(channel, Moments::saved(mean[channel], rstd[channel]));
        move |x| line.at(x)
    });
}

fn infer(layer: &BatchNorm, step: &Step) {
    let tensors = Tensors::of(layer, step);
    let mean = step.read::<f32>(tensors.running_mean);
    let var = step.read::<f32>(tensors.running_var);
    Channels::of(step.output()).map(step.pair(Role::Input(0), Role::Output), |channel| {
        let moments = Moments::new(f64::from(mean[channel]), f64::from(var[channel]), layer.eps);
        let line = tensors.line(channel, moments);
        move |x| line.at(x)
    });
}

/// Channels whose statistics are held at a time. The plan has no memory for them where there is no backward pass.
const BLOCK: usize = 512;

fn train(layer: &BatchNorm, step: &Step) {
    let tensors = Tensors::of(layer, step);
    let channels = Channels::of(step.output());
    let mut pair = step.pair(Role::Input(0), Role::Output);
    // They move once for each batch: not when the layer runs again.
    let mut running = step.write_if::<f32>(tensors.running_mean).zip(step.write_if::<f32>(tensors.running_var));
    let mut saved = step.write_if::<f32>(Role::Saved(0)).zip(step.write_if::<f32>(Role::Saved(1)));
    let count = (pair.len() / channels.count) as f64;
    for first in (0..channels.count).step_by(BLOCK) {
        let mut statistics = [[0.0; 2]; BLOCK];
        let statistics = &mut statistics[..BLOCK.min(channels.count - first)];
        let whole = 0..pair.len();
        channels.blocks(pair.part(whole), first, statistics, |first, block, statistics| {
            // The sums are those of differences from some element, so that a mean that is large beside the deviation does not
            // take the variance's digits.
            let center = |channel: usize| f64::from(block.first_element(channel));
            block.sums(None, center, |center, x, _| [x - center, (x - center) * (x - center)], statistics);
            for (i, statistics) in statistics.iter_mut().enumerate() {
                let [mean, square] = statistics.map(|sum| sum / count);
                let variance = square - mean * mean;
                *statistics = [center(first + i) + mean, if variance < 0.0 { 0.0 } else { variance }];
            }
            block.map(|channel| {
                let [mean, variance] = statistics[channel - first];
                let line = tensors.line(channel, Moments::new(mean, variance, layer.eps).rounded());
                move |x| line.at(x)
            });
        });
        for (i, &[mean, variance]) in statistics.iter().enumerate() {
            let channel = first + i;
            // The running variance is the unbiased one, as PyTorch's. One value alone has no variance.
            let unbiased = variance * count / (count - 1.0).max(1.0);
            if let Some((running_mean, running_var)) = &mut running {
                move_towards(&mut running_mean[channel], mean, layer.momentum);
                move_towards(&mut running_var[channel], unbiased, layer.momentum);
            }
            if let Some((saved_mean, saved_rstd)) = &mut saved {
                saved_mean[channel] = mean as f32;
                saved_rstd[channel] = Moments::new(mean, variance, layer.eps).rstd as f32;
            }
        }
    }
}

fn move_towards(running: &mut f32, value: f64, momentum: f64) {
    *running = (f64::from(*running) * (1.0 - momentum) + value * momentum) as f32;
}

/// With `z = (x - mean) rstd` and means over the channel: `dw = sum dy z`, `db = sum dy`,
/// `dx = w rstd (dy - mean(dy) - z mean(dy z))`.
pub fn backward(step: &Step) {
    let channels = Channels::of(step.output());
    let x = step.read::<f32>(Role::Input(0));
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let count = (x.len() / channels.count) as f32;
    // Of each channel, the sums of `dy` and `dy z`.
    let sums = step.write::<f32>(Role::Workspace).as_chunks_mut::<2>().0;
    let (dy, wants_input) = match step.gradients() {
        Gradients::Both(pair) => (pair, true),
        Gradients::Output(from) => (Pair::Apart { from, to: &mut [], adds: false }, false),
    };
    channels.blocks(dy, 0, sums, |first, block, sums| {
        let mut both = [[0.0; 2]; BLOCK];
        let both = &mut both[..sums.len()];
        let center = |channel: usize| f64::from(mean[channel]);
        block.sums(Some(x), center, |center, dy, x| [dy, dy * (x - center)], both);
        for (i, (sums, [sum, product])) in sums.iter_mut().zip(both).enumerate() {
            *sums = [*sum as f32, (*product * f64::from(rstd[first + i])) as f32];
        }
        if wants_input {
            block.zip(x, |channel| {
                let [sum, product] = sums[channel - first];
                let (mean, rstd) = (mean[channel], rstd[channel]);
                let factor = weight.map_or(1.0, |weight| weight[channel]) * rstd;
                let (offset, slope) = (sum / count, product / count * rstd);
                move |dy, x| factor * (dy - offset - (x - mean) * slope)
            });
        }
    });
    for (role, which) in [(Role::ParameterGradient(0), 1), (Role::ParameterGradient(1), 0)] {
        if let Some(gradient) = step.gradient(role) {
            gradient.iter_mut().zip(&*sums).for_each(|(gradient, sums)| *gradient += sums[which]);
        }
    }
}
