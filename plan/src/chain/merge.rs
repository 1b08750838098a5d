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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::simulate;

    /// Five stages of small numbers, by a generator of remainders. Peaks may be below what is held.
    fn chain(mut number: u64) -> Vec<Stage> {
        let mut digit = |below| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % below
        };
        let stages = (0..5).map(|_| Stage {
            forward_cost: digit(4),
            backward_cost: digit(4),
            output: digit(9),
            output_gradient: digit(9),
            saved: digit(9),
            forward_peak: digit(20),
            saving_peak: digit(30),
            backward_peak: digit(40),
            parameter_gradients: digit(9),
        });
        stages.collect()
    }

    #[test]
    fn a_merged_chain_needs_no_less_than_what_it_stands_for() {
        let forward = |stage, keeps| Operation::Forward { stage, keeps };
        let backward = |stage| Operation::Backward { stage };
        // Everything kept, and the first stage run twice.
        let everything =
            [forward(0, Keeps::All), forward(1, Keeps::All), backward(1), forward(0, Keeps::All), backward(0)];
        let sequences =
            [[&everything[..3], &everything[4..]].concat(), [&[forward(0, Keeps::Input)], &everything[1..]].concat()];
        for number in 0..2000 {
            let stages = chain(number);
            let merged = Merged::new(&stages, 2);
            if merged.stages.len() < 2 {
                continue;
            }
            for operations in &sequences {
                let (cost, peak) = simulate(&merged.stages, operations).unwrap();
                let (same, exact) = simulate(&stages, &merged.expand(operations)).unwrap();
                assert_eq!(cost, same);
                assert!(exact <= peak, "{exact} > {peak} of {stages:?}");
            }
        }
    }
}
