//! The losses' formulas, with PyTorch's conventions, for devices and for evaluation on the host.

use std::ops::Range;

use plimsoll_plan::losses::Loss;

/// A loss of one element and its derivative with respect to the prediction `x`, for a target `t`.
#[inline]
pub fn element(loss: &Loss, x: f32, t: f32) -> (f32, f32) {
    let d = x - t;
    // The derivative of |d|, which is 0 at 0 as in PyTorch.
    let sign = if d == 0.0 { d } else { d.signum() };
    match *loss {
        Loss::Mse => (d * d, 2.0 * d),
        Loss::L1 => (d.abs(), sign),
        Loss::SmoothL1 { beta } => {
            let beta = beta as f32;
            if d.abs() < beta { (0.5 * d * d / beta, d / beta) } else { (d.abs() - 0.5 * beta, sign) }
        }
        Loss::BceWithLogits => {
            // log(1 + exp(-|x|)) can't overflow; sigmoid likewise by the sign of x.
            let e = (-x.abs()).exp();
            let sigmoid = if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) };
            (x.max(0.0) - x * t + e.ln_1p(), sigmoid - t)
        }
        Loss::CrossEntropy { .. } => unreachable!("cross-entropy is no loss of single elements"),
    }
}

/// Positions that are handled together, so that memory is read along its lines.
pub const POSITIONS: usize = 64;

/// The softmax of some positions of a sample `[classes, positions]`: maximum and logarithm of the sum.
pub struct Softmax {
    /// For each position, the largest logit.
    pub max: [f32; POSITIONS],
    /// For each position, the sum of the exponentials of what the logits lie below the largest.
    pub sum: [f32; POSITIONS],
    /// For each position, the sum of the logits, for label smoothing.
    pub total: [f64; POSITIONS],
}

impl Softmax {
    /// Of up to [`POSITIONS`] positions. `logits` has one row of `positions` for each class.
    pub fn new(logits: &[f32], positions: usize, range: Range<usize>) -> Softmax {
        let width = range.len();
        let mut softmax =
            Softmax { max: [f32::NEG_INFINITY; POSITIONS], sum: [0.0; POSITIONS], total: [0.0; POSITIONS] };
        for row in logits.chunks_exact(positions) {
            for ((max, total), x) in softmax.max[..width].iter_mut().zip(&mut softmax.total).zip(&row[range.clone()]) {
                // A NaN must reach the loss, where it is reported.
                *max = if *x > *max || x.is_nan() { *x } else { *max };
                *total += f64::from(*x);
            }
        }
        for row in logits.chunks_exact(positions) {
            for ((sum, max), x) in softmax.sum[..width].iter_mut().zip(&softmax.max).zip(&row[range.clone()]) {
                *sum += (x - max).exp();
            }
        }
        softmax
    }

    /// The loss at position `i` of the range, whose target class has this `logit`, with smoothed labels: a share
    /// `smoothing` of the target lies evenly on all `classes`.
    pub fn loss(&self, i: usize, logit: f32, smoothing: f64, classes: usize) -> f64 {
        let log_sum = f64::from(self.max[i]) + f64::from(self.sum[i]).ln();
        smoothed(log_sum, logit, self.total[i] / classes as f64, smoothing)
    }
}

/// The loss at a position by the logarithm of the sum of exponentials, the target's logit and the mean of all logits: a
/// share `smoothing` of the target lies evenly on all classes.
pub fn smoothed(log_sum: f64, logit: f32, mean: f64, smoothing: f64) -> f64 {
    let smooth = if smoothing == 0.0 { 0.0 } else { smoothing * (log_sum - mean) };
    (1.0 - smoothing) * (log_sum - f64::from(logit)) + smooth
}

/// How many targets count.
pub fn counted(targets: &[i32], ignore_index: i32) -> usize {
    targets.iter().filter(|target| **target != ignore_index).count()
}

/// Cross-entropy summed over the positions of whole samples, each `[classes, positions]`.
pub fn cross_entropy(
    label_smoothing: f64,
    ignore_index: i32,
    outputs: &[f32],
    [classes, positions]: [usize; 2],
    targets: &[i32],
) -> f64 {
    let mut sum = 0.0;
    for (logits, targets) in outputs.chunks_exact(classes * positions).zip(targets.chunks_exact(positions)) {
        for start in (0..positions).step_by(POSITIONS) {
            let range = start..positions.min(start + POSITIONS);
            let softmax = Softmax::new(logits, positions, range.clone());
            for (i, target) in targets[range.clone()].iter().enumerate() {
                if *target != ignore_index {
                    let logit = logits[*target as usize * positions + start + i];
                    sum += softmax.loss(i, logit, label_smoothing, classes);
                }
            }
        }
    }
    sum
}

/// A loss of single elements summed over all of them.
pub fn elements(loss: &Loss, outputs: &[f32], targets: &[f32]) -> f64 {
    outputs.iter().zip(targets).map(|(x, t)| f64::from(element(loss, *x, *t).0)).sum()
}
