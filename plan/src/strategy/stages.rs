//! A network as a chain: cut wherever a single value passes from the nodes before to the nodes after.

use super::cheap::is_product;
use crate::chain::Stage;
use crate::graph::{Graph, ParameterRole, ValueId};
use crate::layers::Layer;
use crate::lower::Facts;
use crate::order::{self, Action};
use crate::placement::align_up;
use crate::shape::Size;

/// The nodes of one stage, in order, and the value that it hands on.
pub struct Nodes {
    /// The nodes that matter.
    pub nodes: Vec<usize>,
    /// The value through which everything after depends on everything before.
    pub output: ValueId,
}

/// Cuts the network into stages. A cut comes before a product, so that what works in place on a value stays with what made
/// it. Inputs and parameters are always there, and cross cuts freely.
pub fn cut(graph: &Graph, facts: &Facts) -> Vec<Nodes> {
    let live: Vec<usize> = facts.sequence.iter().map(|&node| node as usize).collect();
    let source = |value: ValueId| facts.source[value.index()];
    // By the place in the sequence.
    let mut last_reader = vec![0; graph.types.len()];
    for (i, &node) in live.iter().enumerate() {
        let read = graph.nodes[node].inputs.iter().flat_map(|input| facts.sources(*input));
        read.for_each(|source| last_reader[source.index()] = i);
    }
    last_reader[source(graph.output).index()] = live.len();
    let mut stages = Vec::new();
    let mut nodes = Vec::new();
    let mut crossing: Vec<ValueId> = Vec::new();
    for (i, &node) in live.iter().enumerate() {
        nodes.push(node);
        let output = graph.value_of(node);
        let is_new = source(output) == output && facts.is_made(output);
        if is_new && !matches!(graph.nodes[node].layer, Layer::Parameter(_)) {
            crossing.push(output);
        }
        crossing.retain(|value| last_reader[value.index()] > i);
        let next_is_product = live.get(i + 1).is_none_or(|&next| is_product(graph, next));
        if let ([output], true) = (&crossing[..], next_is_product) {
            stages.push(Nodes { nodes: std::mem::take(&mut nodes), output: *output });
        }
    }
    stages
}

/// What the chain's solver must know of each stage, at the declared batch. `is_kept` says of each value whether it waits for
/// backward once its stage keeps all; `whole_gradients`, whether each parameter's gradient is a buffer. `None` where sizes
/// pass 64 bits.
pub fn stages(
    graph: &Graph,
    facts: &Facts,
    chain: &[Nodes],
    is_kept: &[bool],
    whole_gradients: bool,
) -> Option<Vec<Stage>> {
    let batch = graph.declared_batch();
    let bytes = |size: Size| size.bytes(batch).and_then(align_up);
    let sliced = facts.sliced_head.map(|head| graph.value_of(head));
    let value_bytes =
        |value: ValueId| if sliced == Some(value) { Some(0) } else { bytes(graph.value_type(value).size()) };
    let mut stages = Vec::with_capacity(chain.len());
    for stage in chain {
        let output = stage.output;
        let mut made = Stage {
            output: value_bytes(output)?,
            output_gradient: if facts.needs_gradient[output.index()] { value_bytes(output)? } else { 0 },
            ..Stage::default()
        };
        let (mut remade, mut largest) = (0u64, 0u64);
        for &node in &stage.nodes {
            let memory = &facts.memory[node];
            let n = &graph.nodes[node];
            let value = graph.value_of(node);
            let cost = facts.cost[node];
            made.forward_cost = made.forward_cost.checked_add(cost)?;
            if facts.has_backward[node] {
                made.backward_cost = made.backward_cost.checked_add(cost.checked_mul(2)?)?;
                for saved in &memory.saved {
                    made.saved = made.saved.checked_add(bytes(saved.size)?)?;
                }
                let mut step = bytes(memory.workspace.backward)?.max(bytes(memory.workspace.backward_parameters)?);
                for input in n.inputs.iter().filter(|input| facts.needs_gradient[input.index()]) {
                    step = step.checked_add(if memory.gradient_in_place { 0 } else { value_bytes(*input)? })?;
                }
                let trained = n.parameters.iter().map(|id| &graph.parameters[id.index()]);
                for parameter in trained.filter(|parameter| parameter.role == ParameterRole::Trained) {
                    step = step.checked_add(if whole_gradients { align_up(parameter.bytes())? } else { 0 })?;
                }
                largest = largest.max(step);
            }
            if value != output && facts.source[value.index()] == value && facts.is_made(value) {
                match is_kept[value.index()] {
                    true => made.saved = made.saved.checked_add(value_bytes(value)?)?,
                    false if backward_reads(facts, stage, value) => {
                        remade = remade.checked_add(value_bytes(value)?)?;
                    }
                    false => {}
                }
            }
        }
        made.forward_peak = forward_peak(graph, facts, stage, &value_bytes, |_| false)?;
        made.saving_peak = forward_peak(graph, facts, stage, &value_bytes, |value| is_kept[value.index()])?;
        let held = made.saved.checked_add(made.output)?.checked_add(made.output_gradient)?;
        made.backward_peak = held.checked_add(remade)?.checked_add(largest)?;
        stages.push(made);
    }
    Some(stages)
}

fn backward_reads(facts: &Facts, stage: &Nodes, value: ValueId) -> bool {
    let mut nodes = stage.nodes.iter().filter(|&&node| facts.has_backward[node]);
    nodes.any(|&node| facts.backward_reads(node).contains(&value))
}

/// The most bytes at once while a stage runs forward.
fn forward_peak(
    graph: &Graph,
    facts: &Facts,
    stage: &Nodes,
    value_bytes: &impl Fn(ValueId) -> Option<u64>,
    stays: impl Fn(ValueId) -> bool,
) -> Option<u64> {
    let batch = graph.declared_batch();
    let own = |value: ValueId| stage.nodes.iter().any(|&node| graph.value_of(node) == value);
    let dies = |value: ValueId, at: usize| {
        let reads = |&node: &usize| {
            let mut sources = graph.nodes[node].inputs.iter().flat_map(|input| facts.sources(*input));
            facts.is_made(graph.value_of(node)) && sources.any(|source| source == value)
        };
        value != stage.output && !stays(value) && !stage.nodes[at + 1..].iter().any(reads)
    };
    let (mut live, mut most) = (0u64, 0u64);
    for (at, &node) in stage.nodes.iter().enumerate() {
        let value = graph.value_of(node);
        let is_new = facts.source[value.index()] == value && facts.is_made(value);
        if !is_new || graph.nodes[node].inputs.is_empty() {
            continue;
        }
        let memory = &facts.memory[node];
        let mut inputs: Vec<ValueId> =
            graph.nodes[node].inputs.iter().flat_map(|input| facts.sources(*input)).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let mut dead = inputs.into_iter().filter(|&input| own(input) && dies(input, at)).collect::<Vec<_>>();
        if memory.in_place
            && let Some(i) = dead.iter().position(|&input| value_bytes(input) == value_bytes(value))
        {
            dead.remove(i);
        } else {
            live = live.checked_add(value_bytes(value)?)?;
        }
        let workspace = memory.workspace.forward.bytes(batch).and_then(align_up)?;
        most = most.max(live.checked_add(workspace)?);
        for input in dead {
            live = live.saturating_sub(value_bytes(input)?);
        }
    }
    Some(most)
}

/// The forward actions of a stage.
pub fn forward(stage: &Nodes) -> impl Iterator<Item = Action> {
    stage.nodes.iter().map(|&node| Action::Forward(node as u32))
}

/// The nodes of a stage with a backward pass, the last first.
pub fn backward<'a>(facts: &'a Facts, stage: &'a Nodes) -> impl Iterator<Item = u32> + 'a {
    let nodes = stage.nodes.iter().rev().filter(|&&node| facts.has_backward[node]);
    nodes.map(|&node| node as u32)
}

/// Whether every node with a backward pass is in the chain, once.
pub fn is_whole(facts: &Facts, chain: &[Nodes]) -> bool {
    let nodes = chain.iter().rev().flat_map(|stage| backward(facts, stage));
    nodes.eq(order::backward_nodes(facts))
}
