//! Schedules of the learning rate, with the formulas of `torch.optim.lr_scheduler`.

use std::f64::consts::PI;

/// A learning rate for every update.
pub trait LearningRate {
    /// The rate of an update, counted from 0.
    fn at(&self, update: u64) -> f64;
}

impl<F: Fn(u64) -> f64> LearningRate for F {
    fn at(&self, update: u64) -> f64 {
        self(update)
    }
}

/// The same rate always.
#[derive(Clone, Copy, Debug)]
pub struct Constant(pub f64);

impl LearningRate for Constant {
    fn at(&self, _update: u64) -> f64 {
        self.0
    }
}

/// Multiplied by `gamma` after every `step_size` updates (PyTorch's `StepLR`).
#[derive(Clone, Copy, Debug)]
pub struct StepDecay {
    /// The rate at the start.
    pub lr: f64,
    /// Updates between changes.
    pub step_size: u64,
    /// The factor.
    pub gamma: f64,
}

impl LearningRate for StepDecay {
    fn at(&self, update: u64) -> f64 {
        self.lr * self.gamma.powf((update / self.step_size.max(1)) as f64)
    }
}

/// Half a cosine from `lr` down to `eta_min` over `updates`, and there it stays (Loshchilov & Hutter 2017).
#[derive(Clone, Copy, Debug)]
pub struct Cosine {
    /// The rate at the start.
    pub lr: f64,
    /// The rate at the end.
    pub eta_min: f64,
    /// How long it takes.
    pub updates: u64,
}

impl LearningRate for Cosine {
    fn at(&self, update: u64) -> f64 {
        half_cosine(self.lr, self.eta_min, update as f64 / self.updates as f64)
    }
}

/// Up to `max_lr` and down to next to nothing (Smith & Topin 2018), with the defaults of PyTorch's `OneCycleLR`.
#[derive(Clone, Copy, Debug)]
pub struct OneCycle {
    /// The rate at the top.
    pub max_lr: f64,
    /// How long the whole cycle takes.
    pub updates: u64,
    /// The share of it that goes up.
    pub pct_start: f64,
    /// It starts at `max_lr / div_factor`,
    pub div_factor: f64,
    /// and ends at `max_lr / (div_factor * final_div_factor)`.
    pub final_div_factor: f64,
}

impl OneCycle {
    /// A cycle with PyTorch's defaults.
    pub fn new(max_lr: f64, updates: u64) -> Self {
        OneCycle { max_lr, updates, pct_start: 0.3, div_factor: 25.0, final_div_factor: 1e4 }
    }
}

impl LearningRate for OneCycle {
    fn at(&self, update: u64) -> f64 {
        let start = self.max_lr / self.div_factor;
        let end = start / self.final_div_factor;
        // PyTorch counts from the first update to the last, so that the end is reached by the last.
        let top = self.pct_start * self.updates as f64 - 1.0;
        let last = self.updates as f64 - 1.0;
        let update = update as f64;
        match update < top {
            true => half_cosine(start, self.max_lr, update / top),
            false => half_cosine(self.max_lr, end, (update - top) / (last - top)),
        }
    }
}

/// A straight line from next to nothing up to what `then` starts with, over `updates`; then `then`.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp<S> {
    /// How long it takes.
    pub updates: u64,
    /// What follows.
    pub then: S,
}

impl<S: LearningRate> LearningRate for WarmUp<S> {
    fn at(&self, update: u64) -> f64 {
        match update.checked_sub(self.updates) {
            Some(update) => self.then.at(update),
            None => self.then.at(0) * (update as f64 + 1.0) / (self.updates as f64 + 1.0),
        }
    }
}

/// Half a cosine between two values; `t` from 0 to 1, past which it stays where it is. No time at all is over at once.
fn half_cosine(from: f64, to: f64, t: f64) -> f64 {
    let t = if t.is_nan() { 1.0 } else { t.clamp(0.0, 1.0) };
    to + (from - to) * (1.0 + (PI * t).cos()) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(rate: f64, expected: f64) {
        assert!((rate - expected).abs() <= 1e-12 * expected.abs().max(1e-9), "{rate} is not {expected}");
    }

    #[test]
    fn steps() {
        let decay = StepDecay { lr: 0.1, step_size: 30, gamma: 0.1 };
        assert_near(decay.at(29), 0.1);
        assert_near(decay.at(30), 0.01);
        assert_near(decay.at(65), 0.001);
    }

    #[test]
    fn cosine() {
        let cosine = Cosine { lr: 0.2, eta_min: 0.1, updates: 100 };
        assert_near(cosine.at(0), 0.2);
        assert_near(cosine.at(50), 0.15);
        assert_near(cosine.at(100), 0.1);
        assert_near(cosine.at(1000), 0.1);
    }

    /// `[opt.param_groups[0]["lr"]]` of PyTorch's `OneCycleLR(opt, max_lr = 0.1, total_steps = 10)`: the top is at
    /// update 2, the end at update 9.
    #[test]
    fn one_cycle() {
        let cycle = OneCycle::new(0.1, 10);
        assert_near(cycle.at(0), 0.004);
        assert_near(cycle.at(1), 0.052);
        assert_near(cycle.at(2), 0.1);
        assert_near(cycle.at(9), 4e-7);
    }

    #[test]
    fn warm_up() {
        let warm_up = WarmUp { updates: 4, then: Constant(1.0) };
        assert_near(warm_up.at(0), 0.2);
        assert_near(warm_up.at(3), 0.8);
        assert_near(warm_up.at(4), 1.0);
        // Longer than any run, and no overflow.
        assert_near(WarmUp { updates: u64::MAX, ..warm_up }.at(3), 4.0 / 2f64.powi(64));
    }
}
