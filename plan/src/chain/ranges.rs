//! What runs of neighbouring stages need, in bytes: the terms of the recurrence, shared by its two solutions.

use super::{ChainError, Stage};

/// Bytes and costs are below this, so that a few of them can be added up unchecked.
pub(super) const TOO_MUCH: u64 = 1 << 62;

/// Checks that no sum over the chain leaves its type.
pub(super) fn check(stages: &[Stage]) -> Result<(), ChainError> {
    let (mut bytes, mut cost) = (0u64, 0u64);
    for (index, stage) in stages.iter().enumerate() {
        let peaks = [stage.forward_peak, stage.saving_peak, stage.backward_peak];
        let sizes = [stage.output, stage.output_gradient, stage.saved, stage.parameter_gradients];
        bytes = sizes
            .iter()
            .chain(&peaks)
            .try_fold(bytes, |sum, &size| sum.checked_add(size))
            .filter(|&bytes| bytes < TOO_MUCH)
            .ok_or(ChainError::TooLarge { stage: index })?;
        // No stage runs forward more often than there are stages: each time, the range it is in has become shorter.
        cost = stage
            .forward_cost
            .checked_add(stage.backward_cost)
            .and_then(|both| both.checked_mul(stages.len() as u64))
            .and_then(|both| both.checked_add(cost))
            .filter(|&cost| cost < TOO_MUCH)
            .ok_or(ChainError::TooCostly { stage: index })?;
    }
    Ok(())
}

/// The terms of the recurrence. A range `first..=last` of stages is *reversed* by all that happens between two moments:
/// its input is there, and the gradient of its output, unless `last` ends the chain; then the gradient of its input is
/// there. The input is not among the bytes of the range: who holds it counts it.
pub(super) struct Ranges<'a> {
    pub stages: &'a [Stage],
    /// The cost of one forward pass of all stages before each.
    forward: Vec<u64>,
    /// The bytes of the gradients that the stages after each leave to the end.
    gradients: Vec<u64>,
    /// See `advance_peak`, without the gradient: a row for every first stage.
    advance: Vec<u64>,
}

impl<'a> Ranges<'a> {
    /// The terms for a chain that is checked.
    pub fn new(stages: &'a [Stage]) -> Self {
        let count = stages.len();
        let mut forward = vec![0];
        forward.extend(stages.iter().scan(0, |sum, stage| {
            *sum += stage.forward_cost;
            Some(*sum)
        }));
        let mut gradients = vec![0; count];
        for index in (1..count).rev() {
            gradients[index - 1] = gradients[index] + stages[index].parameter_gradients;
        }
        let mut advance = vec![0; count * count];
        for first in 0..count {
            let mut peak = 0;
            for last in first..count {
                let input = if last == first { 0 } else { stages[last - 1].output };
                peak = peak.max(input + stages[last].forward_peak);
                advance[first * count + last] = peak;
            }
        }
        Ranges { stages, forward, gradients, advance }
    }

    /// The bytes of a stage that keeps all: until its backward pass.
    pub fn kept(&self, stage: usize) -> u64 {
        self.stages[stage].saved + self.stages[stage].output
    }

    /// The bytes of the gradients that wait while a range runs forward: that of its output, which at the chain's end does
    /// not exist by then, and those of later parameters.
    fn waiting(&self, last: usize) -> u64 {
        if last + 1 == self.stages.len() { 0 } else { self.stages[last].output_gradient + self.gradients[last] }
    }

    /// The most bytes while `first` runs forward and keeps all, and while it runs backward.
    pub fn keep_peak(&self, first: usize, last: usize) -> u64 {
        let stage = &self.stages[first];
        let backward = stage.backward_peak.max(self.kept(first) + stage.output_gradient).max(stage.parameter_gradients);
        (self.waiting(last) + stage.saving_peak).max(self.gradients[first] + backward)
    }

    /// The most bytes while the stages `first..middle` run forward and keep nothing but the input of `first`.
    pub fn advance_peak(&self, first: usize, middle: usize, last: usize) -> u64 {
        self.waiting(last) + self.advance[first * self.stages.len() + middle - 1]
    }

    /// The cost of running the stages `first..middle` forward.
    pub fn advance_cost(&self, first: usize, middle: usize) -> u64 {
        self.forward[middle] - self.forward[first]
    }
}
