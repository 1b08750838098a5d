//! What a training step does, node by node, before it is known which buffers that takes.
//!
//! An order decides what is kept from forward to backward: a value that is computed again before a backward step reads it
//! was not kept, and one that is not computed again was. So dropping activations, checkpointing and plain training are all
//! orders, and everything else about memory follows from them.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
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

/// Forward through all nodes as they are declared, the loss, and back: everything that backward reads is kept.
pub fn plain(graph: &Graph, facts: &Facts) -> Vec<Action> {
    let mut order = forward(graph, facts);
    order.push(Action::Loss);
    order.extend(backward_nodes(graph, facts).map(Action::Backward));
    order
}

/// Forward through all nodes that matter, as they are declared.
pub fn forward(graph: &Graph, facts: &Facts) -> Vec<Action> {
    let nodes = 0..graph.nodes.len() as u32;
    nodes.filter(|&node| facts.live[node as usize]).map(Action::Forward).collect()
}

/// The nodes with a backward pass, the last first.
pub fn backward_nodes(graph: &Graph, facts: &Facts) -> impl Iterator<Item = u32> {
    let nodes = (0..graph.nodes.len() as u32).rev();
    nodes.filter(|&node| facts.has_backward[node as usize])
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
