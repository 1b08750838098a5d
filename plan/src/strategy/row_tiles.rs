//! Weights whose gradient never exists as a whole: a tile of rows is computed, used to update these rows, and forgotten.

use crate::graph::{Graph, Parameter, ParameterRole};
use crate::layers::Layer;
use crate::lower::Facts;

/// A tile is about so large that it stays in a second-level cache between its computation and its use.
const TILE_BYTES: u64 = 256 << 10;

/// Where rows are long, still enough of them for an efficient product. A convolution makes its columns again for every
/// tile, which must not take longer than the product itself.
fn least_rows(layer: &Layer) -> u64 {
    if matches!(layer, Layer::Linear(_)) { 8 } else { 64 }
}

/// The rows of a tile of a layer's weight. Rows are the outputs of a linear layer, the output channels of a convolution,
/// the input channels of a transposed one: the first axis of the weight.
pub fn tile_rows(layer: &Layer, weight: &Parameter) -> u64 {
    (TILE_BYTES / row_bytes(weight)).max(least_rows(layer)).min(weight.shape.0[0])
}

/// The bytes of a tile.
pub fn tile_bytes(layer: &Layer, weight: &Parameter) -> u64 {
    row_bytes(weight) * tile_rows(layer, weight)
}

fn row_bytes(weight: &Parameter) -> u64 {
    weight.bytes() / weight.shape.0[0]
}

/// The nodes whose weight can be updated by rows: linear layers and convolutions that are the only user of a trained weight, where
/// the update need not wait for other gradients.
pub fn possible(graph: &Graph, facts: &Facts) -> Vec<u32> {
    let Some(training) = &graph.training else { return Vec::new() };
    if training.accumulate > 1 || training.clip_grad_norm.is_some() {
        return Vec::new();
    }
    let mut users = vec![0u32; graph.parameters.len()];
    for node in (0..graph.nodes.len()).filter(|&node| facts.has_backward[node]) {
        graph.nodes[node].parameters.iter().for_each(|parameter| users[parameter.index()] += 1);
    }
    let nodes = graph.nodes.iter().enumerate().filter(|(node, n)| {
        let weight = n.parameters.first().filter(|weight| users[weight.index()] == 1);
        let trained = weight.is_some_and(|weight| graph.parameters[weight.index()].role == ParameterRole::Trained);
        trained
            && facts.has_backward[*node]
            && matches!(n.layer, Layer::Linear(_) | Layer::Conv(_) | Layer::ConvTranspose(_))
    });
    nodes.map(|(node, _)| node as u32).collect()
}

/// The nodes where that saves memory: the gradient is larger than a tile, by more than the input's gradient, which can't take
/// the input's place then.
pub fn candidates(graph: &Graph, facts: &Facts) -> Vec<u32> {
    let batch = graph.declared_batch();
    let saves = |&node: &u32| {
        let n = &graph.nodes[node as usize];
        if facts.is_sliced(node as usize) {
            // The input's gradient is there beside the input in any case.
            return true;
        }
        let weight = &graph.parameters[n.parameters[0].index()];
        let input = match facts.needs_gradient[n.inputs[0].index()] {
            true => graph.value_type(n.inputs[0]).size().bytes(batch).unwrap_or(u64::MAX),
            false => 0,
        };
        weight.bytes() - tile_bytes(&n.layer, weight) > input
    };
    possible(graph, facts).into_iter().filter(saves).collect()
}
