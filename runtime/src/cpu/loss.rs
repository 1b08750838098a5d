//! The loss, and its gradient with respect to the network's output, which may take the output's place.

use plimsoll_plan::losses::Loss;
use plimsoll_plan::schedule::Role;

use super::parallel::{self, PARTS};
use super::step::{Pair, Step};
use crate::losses::{self, POSITIONS, Softmax};

/// Computes both.
pub fn loss(step: &Step) {
    let training = step.program().options();
    let output = step.pair(Role::Input(0), Role::InputGradient(0));
    // Gradients of several batches add up to their mean.
    let share = 1.0 / training.accumulate as f64;
    let loss = match &training.loss {
        Loss::CrossEntropy { label_smoothing, ignore_index } => {
            let elements = step.inputs()[0].elements() as usize;
            let classes = step.inputs()[0].shape.0[0] as usize;
            let targets: &[i32] = step.read(Role::Target);
            let count = losses::counted(targets, *ignore_index) as f64;
            let smoothing = *label_smoothing;
            let kernel = CrossEntropy {
                classes,
                positions: elements / classes,
                smoothing,
                ignore_index: *ignore_index,
                scale: share / count,
            };
            let samples = step.batch().div_ceil(PARTS);
            let sum = output.sum_chunks(samples * elements, |i, chunk| {
                kernel.samples(chunk, &targets[i * samples * kernel.positions..])
            });
            sum / count
        }
        loss => {
            let targets: &[f32] = step.read(Role::Target);
            let count = targets.len() as f64;
            let scale = (share / count) as f32;
            let size = targets.len().div_ceil(PARTS).max(parallel::CHUNK);
            let sum = output.sum_chunks(size, |i, mut chunk| {
                let targets = &targets[i * size..];
                let sum = losses::elements(loss, chunk.from(), targets);
                chunk.zip(targets, |x, t| losses::element(loss, x, t).1 * scale);
                sum
            });
            sum / count
        }
    };
    step.write(Role::Loss)[0] = loss as f32;
}

/// Cross-entropy of samples `[classes, positions]`.
struct CrossEntropy {
    classes: usize,
    positions: usize,
    smoothing: f64,
    ignore_index: i32,
    /// What each position's gradient is multiplied by.
    scale: f64,
}

impl CrossEntropy {
    /// The sum of the losses of some samples, whose gradients are written.
    fn samples(&self, output: Pair, targets: &[i32]) -> f64 {
        let size = self.classes * self.positions;
        let sum = losses::cross_entropy(
            self.smoothing,
            self.ignore_index,
            output.from(),
            [self.classes, self.positions],
            targets,
        );
        match output {
            Pair::InPlace(values) => {
                for (sample, targets) in values.chunks_exact_mut(size).zip(targets.chunks_exact(self.positions)) {
                    self.gradient(sample, targets);
                }
            }
            Pair::Apart { from, to, .. } => {
                to.copy_from_slice(from);
                for (sample, targets) in to.chunks_exact_mut(size).zip(targets.chunks_exact(self.positions)) {
                    self.gradient(sample, targets);
                }
            }
        }
        sum
    }

    /// Puts the gradient of one sample in place of its logits: softmax less the target distribution.
    fn gradient(&self, sample: &mut [f32], targets: &[i32]) {
        let even = (self.smoothing / self.classes as f64 * self.scale) as f32;
        let at_target = ((1.0 - self.smoothing) * self.scale) as f32;
        for start in (0..self.positions).step_by(POSITIONS) {
            let range = start..self.positions.min(start + POSITIONS);
            let softmax = Softmax::new(sample, self.positions, range.clone());
            let targets = &targets[range.clone()];
            let mut factor = [0.0; POSITIONS];
            for ((factor, sum), target) in factor.iter_mut().zip(&softmax.sum).zip(targets) {
                *factor = if *target == self.ignore_index { 0.0 } else { self.scale as f32 / sum };
            }
            for row in sample.chunks_exact_mut(self.positions) {
                for (i, x) in row[range.clone()].iter_mut().enumerate() {
                    let counts = factor[i] != 0.0;
                    *x = if counts { (*x - softmax.max[i]).exp() * factor[i] - even } else { 0.0 };
                }
            }
            for (i, target) in targets.iter().enumerate() {
                if *target != self.ignore_index {
                    sample[*target as usize * self.positions + start + i] -= at_target;
                }
            }
        }
    }
}
