//! What a training step does, node by node, before it is known which buffers that takes.
//!
//! An order decides what is kept from forward to backward: a value that is computed again before a backward step reads it
//! was not kept, and one that is not computed again was. So dropping activations, checkpointing and plain training are all
//! orders, and everything else about memory follows from them.

use serde::{Deserialize, Serialize};

use crate::graph::{Graph, ValueId};
use crate::lower::Facts;

/// One thing that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// A node's output is computed from its inputs: for the first time or, where it was dropped, again.
    Forward(u32),
    /// The loss and its gradient.
    Loss,
    /// The gradients of a node's inputs and parameters.
    Backward(u32),
}

/// Forward through all nodes, the loss, and back: everything that backward reads is kept.
pub fn plain(facts: &Facts) -> Vec<Action> {
    let mut order = forward(facts);
    order.push(Action::Loss);
    order.extend(backward_nodes(facts).map(Action::Backward));
    order
}

/// Forward through all nodes that matter.
pub fn forward(facts: &Facts) -> Vec<Action> {
    facts.sequence.iter().copied().map(Action::Forward).collect()
}

/// The nodes with a backward pass, the last first.
pub fn backward_nodes(facts: &Facts) -> impl Iterator<Item = u32> {
    facts.sequence.iter().rev().copied().filter(|&node| facts.has_backward[node as usize])
}

/// The nodes that matter in another sequence than the declared one: of those whose inputs are there, always the one that
/// leaves the fewest bytes live, at the declared batch. `None` where the network leaves no choice.
pub fn lean_sequence(graph: &Graph, facts: &Facts) -> Option<Vec<u32>> {
    let batch = graph.declared_batch();
    let source = |value: ValueId| facts.source[value.index()].index();
    let bytes = |index: usize| graph.types[index].size().bytes(batch).unwrap_or(u64::MAX);
    // How many nodes still read each value, and how many inputs each node still waits for.
    let mut readers = vec![0u32; graph.types.len()];
    let mut waiting = vec![0usize; graph.nodes.len()];
    let mut consumers: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for &node in &facts.sequence {
        for &input in &graph.nodes[node as usize].inputs {
            readers[source(input)] += 1;
            if let Some(producer) = input.index().checked_sub(graph.inputs.len()) {
                waiting[node as usize] += 1;
                consumers[producer].push(node);
            }
        }
    }
    readers[source(graph.output)] += 1;
    let growth = |node: u32, readers: &[u32]| {
        let n = &graph.nodes[node as usize];
        let own = graph.value_of(node as usize);
        let made = if source(own) == own.index() && !n.inputs.is_empty() { i128::from(bytes(own.index())) } else { 0 };
        let is_last =
            |value: usize| readers[value] == n.inputs.iter().filter(|input| source(**input) == value).count() as u32;
        let mut read: Vec<usize> = n.inputs.iter().map(|input| source(*input)).collect();
        read.sort_unstable();
        read.dedup();
        let freed = read.into_iter().filter(|&value| value >= graph.inputs.len() && is_last(value));
        made - freed.map(|value| i128::from(bytes(value))).sum::<i128>()
    };
    let mut ready: Vec<u32> = facts.sequence.iter().copied().filter(|&node| waiting[node as usize] == 0).collect();
    let mut sequence = Vec::with_capacity(facts.sequence.len());
    while !ready.is_empty() {
        // Of equals the one declared first.
        let best = (0..ready.len()).min_by_key(|&i| (growth(ready[i], &readers), ready[i])).expect("there is one");
        let node = ready.swap_remove(best);
        sequence.push(node);
        for &input in &graph.nodes[node as usize].inputs {
            readers[source(input)] -= 1;
        }
        for &consumer in &consumers[node as usize] {
            waiting[consumer as usize] -= 1;
            if waiting[consumer as usize] == 0 {
                ready.push(consumer);
            }
        }
    }
    (sequence != facts.sequence).then_some(sequence)
}

/// Checks that every action finds what it needs: inputs before outputs, every output before the loss, gradients only once
/// they are complete, and nothing computed again after it was of use.
///
/// # Errors
/// The first action that is out of place, in words.
pub fn check(graph: &Graph, facts: &Facts, order: &[Action], training: bool) -> Result<(), String> {
    let nodes = graph.nodes.len();
    let (mut computed, mut passed, mut lost) = (vec![false; nodes], vec![false; nodes], false);
    // How many nodes still contribute to the gradient of each node's output.
    let mut waiting = vec![0u32; nodes];
    for node in (0..nodes).filter(|&node| facts.has_backward[node]) {
        producers(graph, node).for_each(|input| waiting[input] += 1);
    }
    for action in order {
        let valid = match *action {
            Action::Forward(node) => {
                let node = node as usize;
                let known = node < nodes && facts.live[node] && !passed[node];
                let ready = known && producers(graph, node).all(|input| computed[input]);
                if ready {
                    computed[node] = true;
                }
                ready
            }
            Action::Loss => {
                let complete = (0..nodes).all(|node| computed[node] == facts.live[node]);
                training && complete && !std::mem::replace(&mut lost, true)
            }
            Action::Backward(node) => {
                let node = node as usize;
                let ready = lost && node < nodes && facts.has_backward[node] && waiting[node] == 0;
                if ready && !std::mem::replace(&mut passed[node], true) {
                    producers(graph, node).for_each(|input| waiting[input] -= 1);
                    true
                } else {
                    false
                }
            }
        };
        if !valid {
            return Err(format!("{action:?} is out of order"));
        }
    }
    let complete =
        (0..nodes).all(|node| computed[node] == facts.live[node] && passed[node] == facts.has_backward[node]);
    if complete && lost == training { Ok(()) } else { Err("the order of steps leaves something out".to_string()) }
}

/// The nodes whose outputs a node reads.
fn producers(graph: &Graph, node: usize) -> impl Iterator<Item = usize> {
    let first = graph.inputs.len();
    graph.nodes[node].inputs.iter().filter_map(move |input| input.index().checked_sub(first))
}
