//! Which actions of an order read and write each value.

use super::Facts;
use crate::graph::{Graph, ValueId};
use crate::order::Action;

/// When each value is used. Values that share elements are one, under their [`source`](Facts::source).
pub(super) struct Uses {
    /// For each source, the actions that read or write it, in order.
    of: Vec<Vec<Use>>,
    /// For each node, its last forward action.
    last_forward: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Use {
    at: usize,
    writes: bool,
}

impl Uses {
    pub(super) fn new(graph: &Graph, facts: &Facts, order: &[Action], training: bool) -> Uses {
        let mut uses = Uses { of: vec![Vec::new(); graph.types.len()], last_forward: vec![0; graph.nodes.len()] };
        let source = |value: ValueId| facts.source[value.index()].index();
        for (at, action) in order.iter().enumerate() {
            match *action {
                Action::Forward(node) => {
                    uses.last_forward[node as usize] = at;
                    let output = graph.value_of(node as usize);
                    let is_step = !facts.is_view[output.index()] && facts.is_made(output);
                    if !is_step || facts.is_sliced(node as usize) {
                        continue;
                    }
                    for read in graph.nodes[node as usize].inputs.iter().flat_map(|input| facts.sources(*input)) {
                        uses.of[read.index()].push(Use { at, writes: false });
                    }
                    uses.of[source(output)].push(Use { at, writes: true });
                }
                Action::Loss => uses.of[source(facts.loss_reads(graph))].push(Use { at, writes: false }),
                Action::Backward(node) => {
                    for &value in facts.backward_reads(node as usize) {
                        uses.of[value.index()].push(Use { at, writes: false });
                    }
                }
            }
        }
        if !training {
            // The host reads the output.
            uses.of[source(graph.output)].push(Use { at: order.len(), writes: false });
        }
        uses
    }

    /// Whether nobody needs the elements of a value once the action at `at` has run: what comes next, if anything, is that
    /// they are computed again.
    pub(super) fn dies_at(&self, source: ValueId, at: usize) -> bool {
        let uses = &self.of[source.index()];
        uses.get(uses.partition_point(|used| used.at <= at)).is_none_or(|next| next.writes)
    }

    /// Whether a node's output is computed again after the action at `at`.
    pub(super) fn is_remade_after(&self, node: usize, at: usize) -> bool {
        self.last_forward[node] > at
    }
}
