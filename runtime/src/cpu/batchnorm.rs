//! Normalization of each channel over the batch and all positions (Ioffe & Szegedy 2015).

use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::schedule::{Role, StepKind};

use super::channels::{Channels, Planes};
use super::moments::{Line, Moments};
use super::parallel;
use super::step::Step;
use super::vector::wide;

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

/// The outputs by the line of each channel.
fn map(step: &Step, line: impl Fn(usize) -> Line + Sync + Send) {
    let channels = Channels::of(step.output());
    if step.parts().len() == 1 {
        return channels.map(step.pair(Role::Input(0), Role::Output), |channel| {
            let line = line(channel);
            move |x| line.at(x)
        });
    }
    let y = step.write(Role::Output);
    for (number, first, own) in parts(step) {
        let x = own.planes_of(step.read(Role::Input(number)));
        channels.map_part(x, 0..own.count, y, first, |channel| {
            let line = line(first + channel);
            move |x| line.at(x)
        });
    }
}

/// Channels whose statistics are held at a time. The plan has no memory for them where there is no backward pass.
const BLOCK: usize = 512;

fn train(layer: &BatchNorm, step: &Step) {
    let tensors = Tensors::of(layer, step);
    let channels = Channels::of(step.output());
    // They move once for each batch: not when the layer runs again.
    let mut running = step.write_if::<f32>(tensors.running_mean).zip(step.write_if::<f32>(tensors.running_var));
    let mut saved = step.write_if::<f32>(Role::Saved(0)).zip(step.write_if::<f32>(Role::Saved(1)));
    let count = (step.batch() * channels.positions) as f64;
    let mut note = |first: usize, statistics: &[[f64; 2]]| {
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
    };
    let line = |channel: usize, [mean, variance]: [f64; 2]| {
        tensors.line(channel, Moments::new(mean, variance, layer.eps).rounded())
    };
    if step.parts().len() > 1 {
        let y = step.write(Role::Output);
        for (number, before, own) in parts(step) {
            let x = own.planes_of(step.read(Role::Input(number)));
            for first in (0..own.count).step_by(BLOCK) {
                let mut statistics = [[0.0; 2]; BLOCK];
                let statistics = &mut statistics[..BLOCK.min(own.count - first)];
                find_statistics(own, x, first, count, statistics);
                let some = first..first + statistics.len();
                channels.map_part(x, some, y, before + first, |channel| {
                    let line = line(before + channel, statistics[channel - first]);
                    move |x| line.at(x)
                });
                note(before + first, statistics);
            }
        }
        return;
    }
    let mut pair = step.pair(Role::Input(0), Role::Output);
    for first in (0..channels.count).step_by(BLOCK) {
        let mut statistics = [[0.0; 2]; BLOCK];
        let statistics = &mut statistics[..BLOCK.min(channels.count - first)];
        find_statistics(channels, channels.planes_of(pair.from()), first, count, statistics);
        let whole = 0..pair.len();
        pair.part(whole).chunks(channels.sample(), |_, mut sample| {
            wide(|| {
                for (i, statistics) in statistics.iter().enumerate() {
                    let line = line(first + i, *statistics);
                    let plane = (first + i) * channels.positions..(first + i + 1) * channels.positions;
                    sample.part(plane).map(|_, x| line.at(x));
                }
            });
        });
        note(first, statistics);
    }
}

/// Mean and variance of the channels of `x` from `first` on, each with `count` values.
fn find_statistics(channels: Channels, x: Planes, first: usize, count: f64, statistics: &mut [[f64; 2]]) {
    let together = channels.side_by_side();
    parallel::chunks(statistics, together, |i, statistics| {
        let first = first + i * together;
        let mut means = [[0.0]; BLOCK];
        let means = &mut means[..statistics.len()];
        channels.sums([(x, first); 2], |_| 0.0, |_, x, _| [x], means);
        means.iter_mut().for_each(|[mean]| *mean /= count);
        let mut squares = [[0.0]; BLOCK];
        let squares = &mut squares[..statistics.len()];
        channels.sums(
            [(x, first); 2],
            |channel| means[channel - first][0],
            |mean, x, _| [(x - mean) * (x - mean)],
            squares,
        );
        for (statistics, ([mean], [squares])) in statistics.iter_mut().zip(means.iter().zip(squares)) {
            *statistics = [*mean, *squares / count];
        }
    });
}

fn move_towards(running: &mut f32, value: f64, momentum: f64) {
    *running = (f64::from(*running) * (1.0 - momentum) + value * momentum) as f32;
}

/// With `z = (x - mean) rstd` and means over the channel: `dw = sum dy z`, `db = sum dy`,
/// `dx = w rstd (dy - mean(dy) - z mean(dy z))`.
pub fn backward(step: &Step) {
    let channels = Channels::of(step.output());
    let whole = (step.parts().len() == 1).then(|| step.gradients());
    let dy = whole.as_ref().map_or_else(|| step.read(Role::OutputGradient), |gradients| gradients.output());
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    let (sums, products) = step.write::<f32>(Role::Workspace).split_at_mut(channels.count);
    let dy = channels.planes_of(dy);
    for (number, before, own) in parts(step) {
        let x = own.planes_of(step.read(Role::Input(number)));
        let some = before..before + own.count;
        let (sums, products) = (&mut sums[some.clone()], &mut products[some]);
        let together = own.side_by_side();
        parallel::chunks2((sums, together), (products, together), |i, sums, products| {
            let (within, first) = (i * together, before + i * together);
            let mut both = [[0.0; 2]; BLOCK];
            let both = &mut both[..sums.len()];
            let center = |channel: usize| f64::from(mean[channel]);
            own.sums([(dy, first), (x, within)], center, |center, dy, x| [dy, dy * (x - center)], both);
            for (i, ((sum, product), both)) in sums.iter_mut().zip(products).zip(both).enumerate() {
                *sum = both[0] as f32;
                *product = (both[1] * f64::from(rstd[first + i])) as f32;
            }
        });
    }
    for (role, sums) in [(Role::ParameterGradient(0), &*products), (Role::ParameterGradient(1), &*sums)] {
        if let Some(gradient) = step.gradient(role) {
            gradient.iter_mut().zip(sums).for_each(|(gradient, sum)| *gradient += sum);
        }
    }
    let count = (step.batch() * channels.positions) as f32;
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let gradient = |channel: usize| {
        let (mean, rstd) = (mean[channel], rstd[channel]);
        let factor = weight.map_or(1.0, |weight| weight[channel]) * rstd;
        let (offset, slope) = (sums[channel] / count, products[channel] / count * rstd);
        move |dy, x| factor * (dy - offset - (x - mean) * slope)
    };
    if let Some(gradients) = whole {
        if let Some(dx) = gradients.input() {
            channels.zip(dx, step.read(Role::Input(0)), gradient);
        }
        return;
    }
    for (number, before, own) in parts(step) {
        let role = Role::InputGradient(number);
        let x = own.planes_of(step.read(Role::Input(number)));
        let Some(dx) = step.write_if::<f32>(role) else { continue };
        let adds = step.adds(role);
        parallel::chunks(dx, own.positions, |i, dx| {
            let (sample, channel) = (i / own.count, i % own.count);
            let gradient = gradient(before + channel);
            let dy = dy.plane(sample, before + channel);
            wide(|| {
                for ((dx, dy), x) in dx.iter_mut().zip(dy).zip(x.plane(sample, channel)) {
                    let term = gradient(*dy, *x);
                    *dx = if adds { *dx + term } else { term };
                }
            });
        });
    }
}
