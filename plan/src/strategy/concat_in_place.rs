//! Concats that are never made: what reads one reads its inputs where they are, channels of one tensor after channels of
//! another, and in backward gives each of them its gradient.
//!
//! So no copy of the inputs exists, and none of their gradients. Every input is a buffer of its own and is live as long as
//! itself is needed, which a common buffer of them all would not allow. A concat that takes up another one takes up its
//! inputs: of a block of DenseNet, each layer's output is kept once.

use super::Saving;
use crate::graph::{Graph, ValueId};
use crate::layers::Layer;
use crate::lower::Facts;

/// The most parts of a value. Devices have room for so many in one step.
pub const MOST_PARTS: usize = 64;

/// What holds where concats are left out, if there are any that can and may be.
pub fn facts(graph: &Graph, whole: &Facts) -> Option<Facts> {
    if !graph.uses(Saving::ConcatInPlace) || !graph.nodes.iter().any(|node| matches!(node.layer, Layer::Concat(_))) {
        return None;
    }
    Some(whole.clone().with_concats_in_place(graph)).filter(is_used)
}

/// Whether any concat is left out.
pub fn is_used(facts: &Facts) -> bool {
    facts.parts.iter().any(|parts| !parts.is_empty())
}

/// For each concat that can be left out, the values that it is made of; for all other values, nothing.
///
/// It joins channels, all that reads it [reads parts](crate::layers::Memory::reads_parts), and no value is among its parts
/// twice. Gradients are added up in the same order as ever, so that the results are the same bit by bit.
pub fn parts(graph: &Graph, facts: &Facts) -> Vec<Vec<ValueId>> {
    let readers = Readers::new(graph, facts);
    let mut parts: Vec<Vec<ValueId>> = vec![Vec::new(); graph.types.len()];
    for (place, &node) in facts.sequence.iter().enumerate() {
        let (node, n, value) = (node as usize, &graph.nodes[node as usize], graph.value_of(node as usize));
        let can_be_left_out = joins_channels(facts, node, &n.layer) && !readers.need_whole[value.index()];
        if !can_be_left_out || !readers.keep_order(graph, place, node) {
            continue;
        }
        let own = joined(&n.inputs, &parts);
        let is_batched = own.iter().all(|part| graph.value_type(*part).batched);
        if own.len() <= MOST_PARTS && is_batched && !has_repeated(facts, &own) {
            parts[value.index()] = own;
        }
    }
    parts
}

fn joins_channels(facts: &Facts, node: usize, layer: &Layer) -> bool {
    matches!(layer, Layer::Concat(_)) && facts.memory[node].reads_parts
}

/// Values with their parts in place of those that have some.
fn joined(values: &[ValueId], parts: &[Vec<ValueId>]) -> Vec<ValueId> {
    let mut joined = Vec::with_capacity(values.len());
    for value in values {
        match &parts[value.index()][..] {
            [] => joined.push(*value),
            theirs => joined.extend(theirs),
        }
    }
    joined
}

/// Whether two of the values share elements.
fn has_repeated(facts: &Facts, values: &[ValueId]) -> bool {
    let mut sources: Vec<ValueId> = values.iter().map(|value| facts.source[value.index()]).collect();
    sources.sort_unstable();
    sources.windows(2).any(|pair| pair[0] == pair[1])
}

/// What reads each value, where all concats are left out that any could be.
struct Readers {
    /// Whether any reader needs the value as a whole.
    need_whole: Vec<bool>,
    /// How many terms each value's gradient has at most.
    terms: Vec<usize>,
    /// Whether each of them comes out as one number for each element, and is not summed up where it is added.
    are_numbers: Vec<bool>,
    /// The readers of each value in the order of the sequence.
    spans: Vec<Vec<Span>>,
}

/// From where a reader stands in the sequence to the last that reads the value by it.
#[derive(Clone, Copy)]
struct Span {
    place: usize,
    last: usize,
    /// The last place of any reader so far.
    last_so_far: usize,
}

impl Readers {
    fn new(graph: &Graph, facts: &Facts) -> Readers {
        let values = graph.types.len();
        let mut need_whole = vec![false; values];
        need_whole[graph.output.index()] = true;
        let (mut terms, mut last, mut are_numbers) = (vec![0usize; values], vec![0usize; values], vec![true; values]);
        for (place, &node) in facts.sequence.iter().enumerate().rev() {
            let (node, n, own) = (node as usize, &graph.nodes[node as usize], graph.value_of(node as usize).index());
            if !joins_channels(facts, node, &n.layer) || terms[own] == 0 {
                (terms[own], last[own]) = (1, place);
                are_numbers[own] = facts.memory[node].gradient_in_place;
            }
            for input in &n.inputs {
                let (of_node, input) = ((terms[own], last[own]), input.index());
                need_whole[input] |= !facts.memory[node].reads_parts;
                (terms[input], last[input]) = (terms[input].saturating_add(of_node.0), last[input].max(of_node.1));
                are_numbers[input] &= are_numbers[own];
            }
        }
        let mut spans: Vec<Vec<Span>> = vec![Vec::new(); values];
        for (place, &node) in facts.sequence.iter().enumerate() {
            let last = last[graph.value_of(node as usize).index()].max(place);
            for input in &graph.nodes[node as usize].inputs {
                let spans = &mut spans[input.index()];
                let before = spans.last().map_or(0, |span| span.last_so_far);
                spans.push(Span { place, last, last_so_far: before.max(last) });
            }
        }
        // What comes twice in a concat, by itself and as a part, is joined as a whole.
        let mut parts: Vec<Vec<ValueId>> = vec![Vec::new(); values];
        for (node, n) in graph.nodes.iter().enumerate().filter(|(node, n)| joins_channels(facts, *node, &n.layer)) {
            let own = joined(&n.inputs, &parts);
            match has_repeated(facts, &own) {
                true => n.inputs.iter().for_each(|input| need_whole[input.index()] = true),
                false if own.len() <= MOST_PARTS => parts[graph.value_of(node).index()] = own,
                false => {}
            }
        }
        Readers { need_whole, terms, are_numbers, spans }
    }

    /// Whether each input's gradient is summed up as it is with the concat: the concat's terms come one after the other, and
    /// first of all, unless there is one that is a number.
    fn keep_order(&self, graph: &Graph, place: usize, concat: usize) -> bool {
        let value = graph.value_of(concat).index();
        let is_number = self.terms[value] <= 1 && self.are_numbers[value];
        graph.nodes[concat].inputs.iter().all(|input| {
            let spans = &self.spans[input.index()];
            let at = spans.partition_point(|span| span.place < place);
            let is_after_others = at == 0 || spans[at - 1].last_so_far < place;
            let is_before_others = spans.get(at + 1).is_none_or(|next| is_number && spans[at].last < next.place);
            is_after_others && is_before_others
        })
    }
}
