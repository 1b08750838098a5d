//! The last layer and cross-entropy together, over slices of the classes.
//!
//! A first pass computes the logits slice by slice and keeps of each sample what the loss needs (Milakov & Gimelshein 2018,
//! "Online normalizer calculation for softmax"). A second computes each slice again, puts its gradient in its place, and
//! multiplies on from there: to the gradients of the input, the weight and the bias.

use std::ops::Range;

use plimsoll_plan::losses::Loss;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::strategy::sliced_loss::{STATISTICS, slice_classes};

use super::linear;
use super::optimizer::State;
use super::parallel;
use super::product::{Matrix, Start, Target, product};
use super::step::Step;
use crate::losses;

/// Samples that one task handles.
const SAMPLES: usize = 4;

/// Maximum, sum of exponentials, sum, and the target's logit of one sample.
type Statistics = [f32; STATISTICS as usize];

/// Computes the loss, and all gradients or updates that the step has operands for.
pub fn loss(step: &Step, head: usize) {
    let training = step.program().options();
    let Loss::CrossEntropy { label_smoothing: smoothing, ignore_index } = training.loss else {
        unreachable!("the planner slices no other loss");
    };
    let samples = step.batch();
    let x = step.read::<f32>(Role::Input(0));
    let x = Matrix::rows(x, samples, x.len() / samples);
    let targets: &[i32] = step.read(Role::Target);
    let bias = step.read_if::<f32>(Role::Parameter(1));
    let mut weight = Weight::of(step);
    let classes = weight.elements().len() / x.columns;
    let most = slice_classes(&step.program().graph, head) as usize;
    let slices = || (0..classes).step_by(most).map(|first| first..classes.min(first + most));

    let (tile, rest) = step.write::<f32>(Role::Workspace).split_at_mut(weight.tile(most * x.columns));
    let (statistics, logits) = rest.split_at_mut(samples * STATISTICS as usize);
    let (statistics, _) = statistics.as_chunks_mut::<{ STATISTICS as usize }>();

    statistics.fill([f32::NEG_INFINITY, 0.0, 0.0, 0.0]);
    for slice in slices() {
        let logits = &mut logits[..samples * slice.len()];
        linear::multiply(x, rows(weight.elements(), &slice, x.columns), part(bias, &slice), logits);
        let size = SAMPLES * slice.len();
        parallel::chunks2((logits, size), (&mut *statistics, SAMPLES), |i, logits, statistics| {
            let targets = &targets[i * SAMPLES..];
            for ((logits, statistics), target) in logits.chunks_exact(slice.len()).zip(statistics).zip(targets) {
                add(statistics, logits, &slice, *target);
            }
        });
    }
    let statistics = &*statistics;
    let count = losses::counted(targets, ignore_index) as f64;
    let counted = statistics.iter().zip(targets).filter(|(_, target)| **target != ignore_index);
    let sum: f64 = counted
        .map(|([max, sum, total, logit], _)| {
            let log_sum = f64::from(*max) + f64::from(*sum).ln();
            losses::smoothed(log_sum, *logit, f64::from(*total) / classes as f64, smoothing)
        })
        .sum();
    step.write(Role::Loss)[0] = (sum / count) as f32;

    // Gradients of several batches add up to their mean.
    let scale = 1.0 / training.accumulate as f64 / count;
    let gradient = Gradient {
        ignore_index,
        scale: scale as f32,
        even: (smoothing / classes as f64 * scale) as f32,
        at_target: ((1.0 - smoothing) * scale) as f32,
    };
    let mut dx = step.write_if::<f32>(Role::InputGradient(0));
    let mut dweight = step.write_if::<f32>(Role::ParameterGradient(0));
    let mut dbias = step.gradient(Role::ParameterGradient(1));
    for slice in slices() {
        let logits = &mut logits[..samples * slice.len()];
        linear::multiply(x, rows(weight.elements(), &slice, x.columns), part(bias, &slice), logits);
        parallel::chunks(logits, SAMPLES * slice.len(), |i, logits| {
            let first = i * SAMPLES;
            let samples = statistics[first..].iter().zip(&targets[first..]);
            for (logits, (statistics, target)) in logits.chunks_exact_mut(slice.len()).zip(samples) {
                gradient.put(logits, statistics, &slice, *target);
            }
        });
        let dy = Matrix::rows(logits, samples, slice.len());
        if let Some(dx) = &mut dx {
            let start = Start::adding(slice.start > 0);
            product(Target::rows(dx, x.columns, start), &dy, &rows(weight.elements(), &slice, x.columns));
        }
        let elements = slice.start * x.columns..slice.end * x.columns;
        if let Weight::Updated(state) = &mut weight {
            let tile = &mut tile[..elements.len()];
            product(Target::rows(tile, x.columns, Start::Zero), &dy.transposed(), &x);
            state.update(elements.start, (tile, 1.0));
        } else if let Some(dweight) = &mut dweight {
            let start = Start::adding(step.adds(Role::ParameterGradient(0)));
            product(Target::rows(&mut dweight[elements], x.columns, start), &dy.transposed(), &x);
        }
        if let Some(dbias) = &mut dbias {
            linear::sum_rows(&mut dbias[slice], logits);
        }
    }
}

/// The last layer's weight, which this step may update, slice after slice: no slice is read once it is.
enum Weight<'a> {
    Kept(&'a [f32]),
    Updated(State<'a>),
}

impl<'a> Weight<'a> {
    fn of(step: &Step<'a>) -> Weight<'a> {
        if step.adds(Role::Parameter(0)) {
            Weight::Updated(State::of(step))
        } else {
            Weight::Kept(step.read(Role::Parameter(0)))
        }
    }

    fn elements(&self) -> &[f32] {
        match self {
            Weight::Kept(elements) => elements,
            Weight::Updated(state) => state.parameter(),
        }
    }

    /// The room for the gradient of a slice of so many elements.
    fn tile(&self, elements: usize) -> usize {
        if matches!(self, Weight::Updated(_)) { elements } else { 0 }
    }
}

/// The weight's rows for a slice of the classes.
fn rows<'a>(weight: &'a [f32], slice: &Range<usize>, columns: usize) -> Matrix<'a> {
    Matrix::rows(&weight[slice.start * columns..slice.end * columns], slice.len(), columns)
}

fn part<'a>(bias: Option<&'a [f32]>, slice: &Range<usize>) -> Option<&'a [f32]> {
    bias.map(|bias| &bias[slice.clone()])
}

/// Takes a slice of a sample's logits into its statistics.
fn add([max, sum, total, at_target]: &mut Statistics, logits: &[f32], slice: &Range<usize>, target: i32) {
    // A NaN must reach the loss, where it is reported.
    let largest = logits.iter().fold(*max, |max, x| if *x > max || x.is_nan() { *x } else { max });
    if largest != f32::NEG_INFINITY {
        *sum = *sum * (*max - largest).exp() + logits.iter().map(|x| (x - largest).exp()).sum::<f32>();
    }
    *max = largest;
    *total += logits.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
    if let Some(logit) = usize::try_from(target).ok().and_then(|target| logits.get(target.checked_sub(slice.start)?)) {
        *at_target = *logit;
    }
}

/// The loss's gradient with respect to the logits: softmax less the target distribution.
struct Gradient {
    ignore_index: i32,
    /// What each sample's gradient is multiplied by.
    scale: f32,
    /// The share of each class in the target distribution, and that of the target class alone, both scaled.
    even: f32,
    at_target: f32,
}

impl Gradient {
    /// Puts the gradient in place of a slice of a sample's logits.
    fn put(&self, logits: &mut [f32], [max, sum, ..]: &Statistics, slice: &Range<usize>, target: i32) {
        if target == self.ignore_index {
            return logits.fill(0.0);
        }
        let factor = self.scale / sum;
        logits.iter_mut().for_each(|x| *x = (*x - max).exp() * factor - self.even);
        if slice.contains(&(target as usize)) {
            logits[target as usize - slice.start] -= self.at_target;
        }
    }
}
