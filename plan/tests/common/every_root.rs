//! The best known simple way to need less memory, written down without the planner.

use plimsoll_plan::graph::{Graph, ValueId};
use plimsoll_plan::lower::Facts;
use plimsoll_plan::order::Action;
use plimsoll_plan::strategy::Strategy;

/// Of the `n` values that backward reads, every `sqrt(n)`-th is kept, and what is missing is computed again from what was
/// kept (Chen et al. 2016, arXiv:1604.06174). All but what is kept, the sequence of the nodes too, is as in `others`.
pub fn every_root(graph: &Graph, others: &Strategy) -> Strategy {
    let facts = others.facts(graph, true);
    let inputs = graph.inputs.len();
    let mut nodes: Vec<usize> = Vec::new();
    for action in &others.order {
        match *action {
            Action::Forward(node) if !nodes.contains(&(node as usize)) => nodes.push(node as usize),
            _ => {}
        }
    }
    let backward = || nodes.iter().rev().copied().filter(|&node| facts.has_backward[node]);
    let mut read: Vec<ValueId> = backward().flat_map(|node| facts.backward_reads(node)).copied().collect();
    read.sort_unstable();
    read.dedup();
    read.retain(|value| value.index() >= inputs);
    let root = read.len().isqrt().max(1);
    let mut is_there = vec![false; graph.types.len()];
    is_there[..inputs].fill(true);
    read.iter().skip(root - 1).step_by(root).for_each(|value| is_there[value.index()] = true);

    /// Computes a value from its inputs, and these before it.
    fn again(graph: &Graph, facts: &Facts, value: ValueId, is_there: &mut [bool], order: &mut Vec<Action>) {
        let Some(node) = value.index().checked_sub(graph.inputs.len()).filter(|_| !is_there[value.index()]) else {
            return;
        };
        // A learned tensor is always there.
        if !graph.nodes[node].inputs.is_empty() {
            for input in graph.nodes[node].inputs.iter().rev() {
                again(graph, facts, facts.source[input.index()], is_there, order);
            }
            order.push(Action::Forward(node as u32));
            is_there[value.index()] = true;
        }
    }
    let mut order: Vec<Action> = nodes.iter().map(|node| Action::Forward(*node as u32)).collect();
    order.push(Action::Loss);
    for node in backward() {
        for &value in facts.backward_reads(node) {
            again(graph, &facts, value, &mut is_there, &mut order);
        }
        order.push(Action::Backward(node as u32));
    }
    Strategy { order, ..others.clone() }
}
