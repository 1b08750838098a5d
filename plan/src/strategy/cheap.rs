//! Values that are not kept for backward because it costs little to compute them again: the output of a normalization or of
//! an activation function from its input, a pooled image from the one before, a sum from its terms.

use std::ops::Range;

use crate::graph::{Graph, ValueId};
use crate::layers::{Layer, Rule};
use crate::lower::Facts;
use crate::order::{self, Action};
use crate::placement::{Live, align_up};
use crate::schedule::{Content, Schedule};
use crate::shape::ValueType;

/// What one byte moved costs, in floating-point operations: about what processors of this decade compute while memory moves
/// a byte.
const OPERATIONS_PER_BYTE: u64 = 8;

/// A value is cheap if computing it again costs no more than this part of the step.
const CHEAP_PART: u64 = 100;

/// What a layer's forward pass costs for one sample: multiply-adds times two, and bytes moved.
pub fn forward_cost(rule: &dyn Rule, inputs: &[ValueType], output: &ValueType) -> u64 {
    let products = rule.multiply_adds(inputs, output).unwrap_or(u64::MAX).saturating_mul(2);
    let bytes = inputs.iter().chain([output]).map(|value| value.elements().saturating_mul(value.dtype.bytes()));
    products.saturating_add(bytes.fold(0, u64::saturating_add).saturating_mul(OPERATIONS_PER_BYTE))
}

/// The most that computing a value again may cost.
pub fn limit(facts: &Facts) -> u64 {
    facts.step_cost() / CHEAP_PART
}

/// Values that are read by a backward pass, and are computed again from what is there anyway at no more than a cost.
pub fn candidates(graph: &Graph, facts: &Facts, limit: u64) -> Vec<ValueId> {
    let saved = saved(graph, facts);
    // What it costs to have each value in backward, in steps that are computed again; `None` where that is not cheap.
    let mut again: Vec<Option<u64>> = vec![Some(0); graph.inputs.len()];
    let mut candidates = Vec::new();
    for (node, n) in graph.nodes.iter().enumerate() {
        let value = graph.value_of(node);
        let source = facts.source[value.index()];
        if source != value {
            again.push(again[source.index()]);
            continue;
        }
        let sources = || n.inputs.iter().flat_map(|input| facts.sources(*input));
        let cost = sources()
            .map(|source| again[source.index()])
            .try_fold(facts.cost[node], |total, input| total.checked_add(input?));
        // What is larger than the value itself is not to be made again, and kept from then on, for its sake.
        let bytes = |value: ValueId| graph.value_type(value).size().bytes(1);
        let is_smaller = |source: ValueId| candidates.binary_search(&source).is_ok() && bytes(value) < bytes(source);
        let is_worth_it = !is_product(graph, node) && !n.inputs.is_empty() && !sources().any(is_smaller);
        let cost = cost.filter(|cost| *cost <= limit && is_worth_it);
        let is_saved = saved[value.index()];
        if cost.is_some() && is_saved {
            candidates.push(value);
        }
        // Whatever backward reads is there when it is needed, kept or computed again already.
        let is_there = is_saved || matches!(n.layer, Layer::Parameter(_));
        again.push(if is_there { Some(0) } else { cost });
    }
    candidates
}

/// Whether a node multiplies matrices.
pub fn is_product(graph: &Graph, node: usize) -> bool {
    let n = &graph.nodes[node];
    let inputs = graph.value_types(&n.inputs);
    n.layer.rule().multiply_adds(&inputs, graph.value_type(graph.value_of(node))) != Some(0)
}

/// For each value, whether a backward pass reads it.
pub fn saved(graph: &Graph, facts: &Facts) -> Vec<bool> {
    let mut saved = vec![false; graph.types.len()];
    for node in order::backward_nodes(facts) {
        facts.backward_reads(node as usize).iter().for_each(|value| saved[value.index()] = true);
    }
    saved
}

/// Forward, the loss and back, where each dropped value is computed again when backward first reads it, and then kept until
/// the last time.
pub fn order(graph: &Graph, facts: &Facts, dropped: &[ValueId]) -> Vec<Action> {
    order_forgetting(graph, facts, dropped, &[])
}

/// As [`order()`], but of the dropped values some are `forgotten`: computed again for the sake of another value, they are
/// dropped again, and computed once more for their own.
pub fn order_forgetting(graph: &Graph, facts: &Facts, dropped: &[ValueId], forgotten: &[ValueId]) -> Vec<Action> {
    let mut order = order::forward(facts);
    order.push(Action::Loss);
    let mut there = there(graph, &saved(graph, facts), dropped);
    for node in order::backward_nodes(facts) {
        backward(graph, facts, node, &mut there, &mut order);
        if forgotten.iter().any(|value| there[value.index()]) {
            let read = facts.backward_reads(node as usize);
            forgotten.iter().filter(|value| !read.contains(value)).for_each(|value| there[value.index()] = false);
        }
    }
    order
}

/// For each value, whether it is there when backward begins.
pub fn there(graph: &Graph, saved: &[bool], dropped: &[ValueId]) -> Vec<bool> {
    let mut there = saved.to_vec();
    there[..graph.inputs.len()].fill(true);
    dropped.iter().for_each(|value| there[value.index()] = false);
    there
}

/// A node's backward action, after those that compute again what it reads and is not there.
pub fn backward(graph: &Graph, facts: &Facts, node: u32, there: &mut [bool], order: &mut Vec<Action>) {
    for &value in facts.backward_reads(node as usize) {
        remake(graph, facts, value, there, order);
    }
    order.push(Action::Backward(node));
}

/// The actions that compute a value again, and before it what it is computed from.
fn remake(graph: &Graph, facts: &Facts, value: ValueId, there: &mut [bool], order: &mut Vec<Action>) {
    // A stack of our own, for chains may be long: a value is computed once all that it needs is there.
    let mut wanted = vec![value];
    while let Some(&value) = wanted.last() {
        let node = value.index().checked_sub(graph.inputs.len());
        let Some(node) = node.filter(|&node| !there[value.index()] && !graph.nodes[node].inputs.is_empty()) else {
            wanted.pop();
            continue;
        };
        let sources = graph.nodes[node].inputs.iter().flat_map(|input| facts.sources(*input));
        let missing = sources.filter(|source| {
            let is_parameter =
                source.index().checked_sub(graph.inputs.len()).is_some_and(|node| graph.nodes[node].inputs.is_empty());
            !there[source.index()] && !is_parameter
        });
        let before = wanted.len();
        wanted.extend(missing);
        if wanted.len() == before {
            order.push(Action::Forward(node as u32));
            there[value.index()] = true;
            wanted.pop();
        }
    }
}

/// Of all values that could be dropped, those that the peak asks for. The others are kept wherever that stays below the peak
/// that is reached by dropping all; the most expensive ones are kept first.
pub fn needed(
    graph: &Graph,
    facts: &Facts,
    candidates: &[ValueId],
    schedule: &Schedule,
    live: &Live,
    margin: u64,
) -> Vec<ValueId> {
    let batch = graph.declared_batch();
    let mut room: Vec<u64> = live.steps.iter().map(|bytes| (live.most - bytes).saturating_sub(margin)).collect();
    let gaps = gaps(graph, schedule);
    let mut by_cost: Vec<(u64, ValueId)> =
        candidates.iter().map(|&value| (facts.cost[value.index() - graph.inputs.len()], value)).collect();
    by_cost.sort_unstable_by(|a, b| b.cmp(a));
    let mut dropped = Vec::new();
    for (_, value) in by_cost {
        let bytes = graph.value_type(value).size().bytes(batch).and_then(align_up);
        let is_kept = bytes.zip(gaps[value.index()].clone()).is_some_and(|(bytes, gap)| {
            let room = &mut room[gap];
            let fits = room.iter().all(|room| *room >= bytes);
            if fits {
                room.iter_mut().for_each(|room| *room -= bytes);
            }
            fits
        });
        if !is_kept {
            dropped.push(value);
        }
    }
    dropped.sort_unstable();
    dropped
}

/// For each value that is computed twice, the steps between: from where its first buffer ends to where the second begins.
fn gaps(graph: &Graph, schedule: &Schedule) -> Vec<Option<Range<usize>>> {
    let mut gaps = vec![None; graph.types.len()];
    let mut ends: Vec<Option<u32>> = vec![None; graph.types.len()];
    for buffer in &schedule.buffers {
        for holding in &buffer.holds {
            if let Content::Value(value) = holding.content {
                match ends[value.index()] {
                    None => ends[value.index()] = Some(buffer.upper),
                    Some(end) => gaps[value.index()] = Some(end.min(buffer.lower) as usize..buffer.lower as usize),
                }
            }
        }
    }
    gaps
}
