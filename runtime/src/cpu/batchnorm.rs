//! Normalization of each channel over the batch and all positions (Ioffe & Szegedy 2015).

use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::schedule::{Role, StepKind};

use super::channels::{Channels, Lies};
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
    map(step, |channel| tensors.line(channel, Moments::saved(mean[channel], rstd[channel])));
}

fn infer(layer: &BatchNorm, step: &Step) {
    let tensors = Tensors::of(layer, step);
    let mean = step.read::<f32>(tensors.running_mean);
    let var = step.read::<f32>(tensors.running_var);
    map(step, |channel| {
        tensors.line(channel, Moments::new(f64::from(mean[channel]), f64::from(var[channel]), layer.eps))
    });
}

/// The input as it lies: whole, or in parts, one after the other, each with its number and its first channel.
fn parts<'a>(step: &Step<'a>) -> impl Iterator<Item = (u32, usize, Channels)> + use<'a> {
    let mut first = 0;
    step.parts().iter().zip(0..).map(move |(part, number)| {
        let channels = Channels::of(part);
        first += channels.count;
        (number, first - channels.count, channels)
    })
}

/// Calls `work` with the input and the output, or with each part of the input and the output: with the first channel, the
/// channels, and how they lie in what is read and in what is written.
fn for_each_part(step: &Step, mut work: impl FnMut(usize, Channels, &mut Pair, [Lies; 2])) {
    let all = Channels::of(step.output());
    if step.parts().len() == 1 {
        return work(0, all, &mut step.pair(Role::Input(0), Role::Output), [all.alone(); 2]);
    }
    let to = step.write(Role::Output);
    for (number, before, own) in parts(step) {
        let mut pair = Pair::Apart { from: step.read(Role::Input(number)), to: &mut *to, adds: false };
        work(before, own, &mut pair, [own.alone(), own.among(all, before)]);
    }
}

/// The outputs by the line of each channel.
fn map(step: &Step, line: impl Fn(usize) -> Line + Sync + Send) {
    let bounds = step.bounds();
    for_each_part(step, |before, own, pair, lies| {
        // Nothing is kept of a channel, in as many places as there are channels.
        own.blocks(pair, lies, 0, &mut vec![(); own.count], |_, block, _| {
            block.map(|channel| {
                let line = line(before + channel);
                move |x| bounds.at(line.at(x))
            });
        });
    });
}

/// Channels whose statistics are held at a time. The plan has no memory for them where there is no backward pass.
const BLOCK: usize = 512;

fn train(layer: &BatchNorm, step: &Step) {
    let (tensors, bounds) = (Tensors::of(layer, step), step.bounds());
    // They move once for each batch: not when the layer runs again.
    let mut running = step.write_if::<f32>(tensors.running_mean).zip(step.write_if::<f32>(tensors.running_var));
    let mut saved = step.write_if::<f32>(Role::Saved(0)).zip(step.write_if::<f32>(Role::Saved(1)));
    let count = (step.batch() * Channels::of(step.output()).positions) as f64;
    for_each_part(step, |before, own, pair, lies| {
        for first in (0..own.count).step_by(BLOCK) {
            let mut statistics = [[0.0; 2]; BLOCK];
            let statistics = &mut statistics[..BLOCK.min(own.count - first)];
            own.blocks(pair, lies, first, statistics, |first, block, statistics| {
                // The sums are those of differences from some element, so that a mean that is large beside the deviation does
                // not take the variance's digits.
                let center = |channel: usize| f64::from(block.first_element(channel));
                block.sums(None, center, |center, x, _| [x - center, (x - center) * (x - center)], statistics);
                for (i, statistics) in statistics.iter_mut().enumerate() {
                    let [mean, square] = statistics.map(|sum| sum / count);
                    let variance = square - mean * mean;
                    *statistics = [center(first + i) + mean, if variance < 0.0 { 0.0 } else { variance }];
                }
                block.map(|channel| {
                    let [mean, variance] = statistics[channel - first];
                    let line = tensors.line(before + channel, Moments::new(mean, variance, layer.eps).rounded());
                    move |x| bounds.at(line.at(x))
                });
            });
            for (channel, &[mean, variance]) in (before + first..).zip(&*statistics) {
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
    });
}

fn move_towards(running: &mut f32, value: f64, momentum: f64) {
    *running = (f64::from(*running) * (1.0 - momentum) + value * momentum) as f32;
}

/// With `z = (x - mean) rstd` and means over the channel: `dw = sum dy z`, `db = sum dy`,
/// `dx = w rstd (dy - mean(dy) - z mean(dy z))`.
pub fn backward(step: &Step) {
    let all = Channels::of(step.output());
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let count = (step.batch() * all.positions) as f32;
    // Of each channel, the sums of `dy` and `dy z`.
    let sums = step.write::<f32>(Role::Workspace).as_chunks_mut::<2>().0;
    let mut of_part = |number: u32, before: usize, own: Channels, mut dy: Pair, wants_input: bool, lies: [Lies; 2]| {
        let x = step.read::<f32>(Role::Input(number));
        own.blocks(&mut dy, lies, 0, &mut sums[before..before + own.count], |first, block, sums| {
            let mut both = [[0.0; 2]; BLOCK];
            let both = &mut both[..sums.len()];
            let center = |channel: usize| f64::from(mean[before + channel]);
            block.sums(Some(x), center, |center, dy, x| [dy, dy * (x - center)], both);
            for (i, (sums, [sum, product])) in sums.iter_mut().zip(both).enumerate() {
                *sums = [*sum as f32, (*product * f64::from(rstd[before + first + i])) as f32];
            }
            if wants_input {
                block.zip(x, |channel| {
                    let [sum, product] = sums[channel - first];
                    let (mean, rstd) = (mean[before + channel], rstd[before + channel]);
                    let factor = weight.map_or(1.0, |weight| weight[before + channel]) * rstd;
                    let (offset, slope) = (sum / count, product / count * rstd);
                    move |dy, x| factor * (dy - offset - (x - mean) * slope)
                });
            }
        });
    };
    if step.parts().len() == 1 {
        match step.gradients() {
            Gradients::Both(pair) => of_part(0, 0, all, pair, true, [all.alone(); 2]),
            Gradients::Output(from) => {
                of_part(0, 0, all, Pair::Apart { from, to: &mut [], adds: false }, false, [all.alone(); 2]);
            }
        }
    } else {
        let from = step.read::<f32>(Role::OutputGradient);
        for (number, before, own) in parts(step) {
            let role = Role::InputGradient(number);
            let to = step.write_if::<f32>(role);
            let (wants_input, adds) = (to.is_some(), to.is_some() && step.adds(role));
            let dy = Pair::Apart { from, to: to.unwrap_or_default(), adds };
            of_part(number, before, own, dy, wants_input, [own.among(all, before), own.alone()]);
        }
    }
    for (role, which) in [(Role::ParameterGradient(0), 1), (Role::ParameterGradient(1), 0)] {
        if let Some(gradient) = step.gradient(role) {
            gradient.iter_mut().zip(&*sums).for_each(|(gradient, sums)| *gradient += sums[which]);
        }
    }
}
