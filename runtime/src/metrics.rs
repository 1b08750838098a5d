//! What evaluation measures.

use std::fmt;

use plimsoll_plan::graph::Graph;
use plimsoll_plan::losses::Loss;

use crate::inputs::Slice;
use crate::losses;

/// Sums over evaluated samples; means on request.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Metrics {
    /// The loss, summed over all that it counts.
    loss: f64,
    /// How many terms that sum has.
    terms: usize,
    /// Targets that are the class of the largest output.
    first: usize,
    /// Targets that are among the classes of the five largest outputs.
    first_five: usize,
    /// Targets that count, where targets are classes.
    targets: usize,
    /// Samples.
    samples: usize,
}

impl fmt::Debug for Metrics {
    /// The means, not the sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("samples", &self.samples())
            .field("loss", &self.loss())
            .field("accuracy", &self.accuracy())
            .field("top5", &self.top5())
            .finish()
    }
}

impl Metrics {
    /// Samples evaluated.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The mean loss.
    pub fn loss(&self) -> f64 {
        self.loss / self.terms as f64
    }

    /// The share of targets that are the class of the largest output. Not a number where targets are no classes.
    pub fn accuracy(&self) -> f64 {
        self.first as f64 / self.targets as f64
    }

    /// The share of targets that are among the classes of the five largest outputs.
    pub fn top5(&self) -> f64 {
        self.first_five as f64 / self.targets as f64
    }

    /// Counts a batch: outputs and targets of `batch` samples, which were checked.
    pub(crate) fn add(&mut self, graph: &Graph, loss: &Loss, batch: usize, outputs: &[f32], targets: Slice<'_>) {
        self.samples += batch;
        match (loss, targets) {
            (Loss::CrossEntropy { label_smoothing, ignore_index }, Slice::I32(targets)) => {
                let classes = graph.value_type(graph.output).shape.0[0] as usize;
                let positions = targets.len() / batch;
                self.loss +=
                    losses::cross_entropy(*label_smoothing, *ignore_index, outputs, [classes, positions], targets);
                self.terms += losses::counted(targets, *ignore_index);
                for (i, target) in targets.iter().enumerate().filter(|(_, target)| *target != ignore_index) {
                    let (sample, position) = (i / positions, i % positions);
                    let logit = |class: usize| outputs[(sample * classes + class) * positions + position];
                    let own = logit(*target as usize);
                    // Among equals the lower class is first, as `argmax` has it.
                    let before = |class: &usize| {
                        let other = logit(*class);
                        other > own || (other == own && *class < *target as usize) || own.is_nan()
                    };
                    let rank = (0..classes).filter(before).count();
                    self.targets += 1;
                    self.first += usize::from(rank == 0);
                    self.first_five += usize::from(rank < 5);
                }
            }
            (loss, Slice::F32(targets)) => {
                self.loss += losses::elements(loss, outputs, targets);
                self.terms += targets.len();
            }
            _ => unreachable!("the targets were checked"),
        }
    }
}
