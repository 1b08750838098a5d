//! Mean and reciprocal standard deviation, which all normalizations are made of.

use super::sums::{sum, sum_of};

/// The mean of some numbers, and `1 / sqrt(variance + eps)` with their biased variance.
#[derive(Clone, Copy, Default)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The reciprocal of the standard deviation.
    pub rstd: f64,
}

impl Moments {
    /// From mean and variance.
    pub fn new(mean: f64, variance: f64, eps: f64) -> Moments {
        Moments { mean, rstd: 1.0 / (variance + eps).sqrt() }
    }

    /// Those of some numbers. The variance is that around the mean, in a second pass: the difference of two large sums
    /// would lose its digits.
    pub fn of(x: &[f32], eps: f64) -> Moments {
        let count = x.len() as f64;
        let mean = sum(x) / count;
        Moments::new(mean, sum_of(x, |x| (x - mean).powi(2)) / count, eps)
    }

    /// As they are saved for backward.
    pub fn saved(mean: f32, rstd: f32) -> Moments {
        Moments { mean: f64::from(mean), rstd: f64::from(rstd) }
    }

    /// Rounded as they are saved, so that what is made of them can be made again.
    pub fn rounded(self) -> Moments {
        Moments::saved(self.mean as f32, self.rstd as f32)
    }

    /// `(x - mean) rstd weight + bias` as a factor and an offset after subtraction: `(x - center) factor + offset`.
    ///
    /// The mean is subtracted first and not folded into the offset, where a mean that is large beside the deviation would
    /// take the digits of the result; only what the mean's nearest float leaves of it goes into the offset.
    pub fn line(self, weight: f32, bias: f32) -> Line {
        let (center, factor) = (self.mean as f32, self.rstd * f64::from(weight));
        let rest = self.mean - f64::from(center);
        Line { center, factor: factor as f32, offset: (f64::from(bias) - rest * factor) as f32 }
    }
}

/// See [`Moments::line`].
#[derive(Clone, Copy)]
pub struct Line {
    center: f32,
    factor: f32,
    offset: f32,
}

impl Line {
    /// The value at `x`.
    pub fn at(self, x: f32) -> f32 {
        (x - self.center) * self.factor + self.offset
    }
}
