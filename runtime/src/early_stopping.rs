//! When to stop: training is over once nothing gets better any more.

/// Watches a number that should fall, such as the loss on data that is not trained on.
///
/// ```
/// use plimsoll_runtime::{EarlyStopping, Verdict};
///
/// let mut stopping = EarlyStopping::new(2);
/// let verdicts = [0.9, 0.5, 0.6, 0.55].map(|loss| stopping.observe(loss));
/// assert_eq!(verdicts, [Verdict::Best, Verdict::Best, Verdict::Wait, Verdict::Stop]);
/// assert_eq!(stopping.best(), Some(0.5));
/// ```
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    patience: usize,
    min_delta: f64,
    best: Option<f64>,
    waited: usize,
}

/// What a new value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the best so far: worth saving.
    Best,
    /// It is not, but that may change.
    Wait,
    /// There was nothing better for as long as was agreed.
    Stop,
}

impl EarlyStopping {
    /// Stops at the `patience`-th value in a row that is no better than the best; at the first for a patience of 0.
    pub fn new(patience: usize) -> EarlyStopping {
        EarlyStopping { patience, min_delta: 0.0, best: None, waited: 0 }
    }

    /// Only a value lower than the best by more than this is better.
    #[must_use]
    pub fn min_delta(mut self, min_delta: f64) -> EarlyStopping {
        self.min_delta = min_delta;
        self
    }

    /// Takes note of a value. What should rise, such as an accuracy, is given with its sign changed. What is no number is
    /// never better.
    pub fn observe(&mut self, value: f64) -> Verdict {
        let is_better = self.best.map_or(!value.is_nan(), |best| value < best - self.min_delta);
        if is_better {
            self.best = Some(value);
            self.waited = 0;
            return Verdict::Best;
        }
        self.waited += 1;
        if self.waited >= self.patience { Verdict::Stop } else { Verdict::Wait }
    }

    /// The best value so far.
    pub fn best(&self) -> Option<f64> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_stops() {
        let mut stopping = EarlyStopping::new(2).min_delta(0.1);
        assert_eq!(stopping.observe(f64::NAN), Verdict::Wait);
        assert_eq!(stopping.observe(1.0), Verdict::Best);
        assert_eq!(stopping.observe(0.95), Verdict::Wait);
        assert_eq!(stopping.observe(0.8), Verdict::Best);
        assert_eq!(stopping.observe(f64::NAN), Verdict::Wait);
        assert_eq!(stopping.observe(0.8), Verdict::Stop);
        assert_eq!(stopping.best(), Some(0.8));
        assert_eq!(EarlyStopping::new(0).observe(f64::NAN), Verdict::Stop);
    }
}
