//! Long chains made shorter.

use super::{Keeps, Operation, Stage};

/// A chain whose stages stand for one or more neighbouring stages of another.
pub(super) struct Merged {
    /// The stages of the shorter chain.
    pub stages: Vec<Stage>,
    /// The first stage that each stands for, and the end of the last.
    bounds: Vec<usize>,
}

impl Merged {
    /// Merges neighbours such that no more than `most` stages are left, and the most bytes that one of them keeps are as
    /// few as can be: so those that keep much stay apart.
    pub fn new(stages: &[Stage], most: usize) -> Self {
        if stages.len() <= most {
            return Merged { stages: stages.to_vec(), bounds: (0..=stages.len()).collect() };
        }
        // The fewest bytes for a stage with which there are not too many, by halving.
        let (mut low, mut high) = (0, stages.iter().map(kept).sum());
        while low < high {
            let middle = low + (high - low) / 2;
            if bounds(stages, middle).len() - 1 <= most.max(1) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let bounds = bounds(stages, high);
        let stages = bounds.windows(2).map(|ends| merge_all(&stages[ends[0]..ends[1]])).collect();
        Merged { stages, bounds }
    }

    /// The operations on the longer chain that do the same.
    pub fn expand(&self, operations: &[Operation]) -> Vec<Operation> {
        let mut expanded = Vec::new();
        for &operation in operations {
            match operation {
                Operation::Forward { stage, keeps } => {
                    let rest = if keeps == Keeps::All { Keeps::All } else { Keeps::Nothing };
                    let (first, end) = (self.bounds[stage], self.bounds[stage + 1]);
                    expanded.push(Operation::Forward { stage: first, keeps });
                    expanded.extend((first + 1..end).map(|stage| Operation::Forward { stage, keeps: rest }));
                }
                Operation::Backward { stage } => {
                    let stages = (self.bounds[stage]..self.bounds[stage + 1]).rev();
                    expanded.extend(stages.map(|stage| Operation::Backward { stage }));
                }
            }
        }
        expanded
    }
}

fn kept(stage: &Stage) -> u64 {
    stage.saved + stage.output
}

/// The bounds of runs of stages, each as long as it can be while it keeps no more than `most` bytes, if only one stage.
fn bounds(stages: &[Stage], most: u64) -> Vec<usize> {
    let mut bounds = vec![0];
    let mut sum = 0;
    for (index, stage) in stages.iter().enumerate() {
        if index > 0 && sum + kept(stage) > most {
            bounds.push(index);
            sum = 0;
        }
        sum += kept(stage);
    }
    bounds.push(stages.len());
    bounds
}

fn merge_all(stages: &[Stage]) -> Stage {
    stages[1..].iter().fold(stages[0], |merged, stage| merge(&merged, stage))
}

/// Two neighbours as one stage. The value between them can no longer be held on its own.
fn merge(first: &Stage, second: &Stage) -> Stage {
    let kept = kept(first);
    Stage {
        forward_cost: first.forward_cost + second.forward_cost,
        backward_cost: first.backward_cost + second.backward_cost,
        output: second.output,
        output_gradient: second.output_gradient,
        saved: kept + second.saved,
        forward_peak: first.forward_peak.max(first.output + second.forward_peak),
        saving_peak: first.saving_peak.max(kept + second.saving_peak),
        backward_peak: (kept + second.backward_peak.max(self::kept(second) + second.output_gradient))
            .max(second.parameter_gradients + first.backward_peak.max(kept + first.output_gradient)),
        parameter_gradients: first.parameter_gradients + second.parameter_gradients,
    }
}
