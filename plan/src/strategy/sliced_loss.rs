//! A loss whose logits never exist as a whole: where the last layer is a linear one and the loss is cross-entropy, both
//! work on a slice of the classes at a time. A first pass over the slices finds each sample's maximum and sum of
//! exponentials as it goes (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"); a second computes the
//! logits again, and from them all gradients.

use super::Saving;
use crate::graph::Graph;
use crate::layers::Layer;
use crate::losses::Loss;
use crate::lower::Facts;
use crate::shape::Size;

/// A slice of the weight is about so large that it stays in a second-level cache from one product to the next.
const SLICE_BYTES: u64 = 256 << 10;
/// Where rows are long, still enough of them for an efficient product.
const LEAST_CLASSES: u64 = 32;
/// Where rows are short, so few that a slice of the logits of many samples stays small.
const MOST_CLASSES: u64 = 512;

/// What is known of each sample between the passes, in floats: maximum, sum of exponentials, sum, and the target's logit.
pub const STATISTICS: u64 = 4;

/// The linear layer whose outputs are the logits, where the loss can be computed by slices: each sample has one position.
pub fn head(graph: &Graph, facts: &Facts) -> Option<usize> {
    let training = graph.training.as_ref()?;
    let node = graph.output.index().checked_sub(graph.inputs.len())?;
    let is_head = matches!(training.loss, Loss::CrossEntropy { .. })
        && matches!(graph.nodes[node].layer, Layer::Linear(_))
        && graph.value_type(graph.output).shape.rank() == 1
        && facts.has_backward[node];
    is_head.then_some(node)
}

/// The classes of a slice.
pub fn slice_classes(graph: &Graph, head: usize) -> u64 {
    let shape = &graph.parameters[graph.nodes[head].parameters[0].index()].shape.0;
    let (classes, row) = (shape[0], shape[1] * 4);
    (SLICE_BYTES / row).clamp(LEAST_CLASSES, MOST_CLASSES).min(classes)
}

/// The scratch memory: where the weight is updated by rows, a slice of its gradient; then the statistics of all samples;
/// then a slice of their logits.
pub fn workspace(graph: &Graph, head: usize, by_rows: bool) -> Size {
    let weight = &graph.parameters[graph.nodes[head].parameters[0].index()];
    let classes = slice_classes(graph, head);
    let slice = weight.bytes() / weight.shape.0[0] * classes;
    Size::per_sample((STATISTICS + classes) * 4).plus(if by_rows { slice } else { 0 })
}

/// What holds where the loss is computed by slices, if it can and may be, and a slice of the logits takes less than all of
/// them.
pub fn facts(graph: &Graph, whole: &Facts) -> Option<Facts> {
    let batch = graph.declared_batch();
    let logits = graph.value_type(graph.output).size().bytes(batch);
    let takes_less = |head: usize| workspace(graph, head, false).bytes(batch) < logits;
    let worth_a_try = graph.uses(Saving::SlicedLoss) && head(graph, whole).is_some_and(takes_less);
    worth_a_try.then(|| whole.clone().slicing_the_loss(graph))
}
