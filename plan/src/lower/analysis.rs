//! What must be known of the whole graph before the first step: which nodes matter, where gradients flow, and until when
//! each content is needed.

use crate::graph::{Graph, ParameterRole, ValueId};
use crate::layers::{KeepsInput, Layer, Memory, Output};

/// Facts about nodes and values.
pub(super) struct Analysis {
    /// What each node keeps and where it may write.
    pub memory: Vec<Memory>,
    /// Whether the output depends on the node.
    pub live: Vec<bool>,
    /// Whether the node has a backward pass.
    pub has_backward: Vec<bool>,
    /// Whether the loss has a gradient with respect to the value that is of use.
    pub needs_gradient: Vec<bool>,
    /// Whether the value is only another shape of an earlier value (or of a parameter).
    pub is_view: Vec<bool>,
    /// For each value, the value whose elements it shares: itself, unless it is a view.
    pub source: Vec<ValueId>,
    /// For each source, the last node that reads it; the number of nodes where the loss or the host does.
    pub last_reader: Vec<usize>,
    /// For each source, whether backward reads it.
    pub saved: Vec<bool>,
}

impl Analysis {
    pub(super) fn new(graph: &Graph, training: bool) -> Self {
        let (nodes, values) = (graph.nodes.len(), graph.types.len());
        let mut analysis = Analysis {
            memory: Vec::with_capacity(nodes),
            live: vec![false; nodes],
            has_backward: vec![false; nodes],
            needs_gradient: vec![false; values],
            is_view: vec![false; values],
            source: (0..values as u32).map(ValueId).collect(),
            last_reader: vec![0; values],
            saved: vec![false; values],
        };
        for (node, n) in graph.nodes.iter().enumerate() {
            let output = graph.value_of(node);
            let memory = n.layer.rule().memory(&graph.value_types(&n.inputs), graph.value_type(output));
            let is_view = memory.output == Output::View || (!training && memory.identity_in_inference);
            analysis.is_view[output.index()] = is_view;
            if let (true, Some(input)) = (is_view, n.inputs.first()) {
                analysis.source[output.index()] = analysis.source[input.index()];
            }
            analysis.memory.push(memory);
        }
        analysis.find_live(graph);
        if training {
            analysis.find_gradients(graph);
        }
        analysis.find_last_readers(graph);
        analysis
    }

    /// A node matters if the output depends on it.
    fn find_live(&mut self, graph: &Graph) {
        let mut needed = vec![false; graph.types.len()];
        needed[graph.output.index()] = true;
        for (node, n) in graph.nodes.iter().enumerate().rev() {
            if needed[graph.value_of(node).index()] {
                self.live[node] = true;
                n.inputs.iter().for_each(|input| needed[input.index()] = true);
            }
        }
    }

    /// Gradients flow back to whatever depends on a trained parameter; what their computation reads is saved.
    fn find_gradients(&mut self, graph: &Graph) {
        for (node, n) in graph.nodes.iter().enumerate().filter(|&(node, _)| self.live[node]) {
            let trains = n.parameters.iter().any(|p| graph.parameters[p.index()].role == ParameterRole::Trained);
            let passes = n.inputs.iter().any(|input| self.needs_gradient[input.index()]);
            let output = graph.value_of(node);
            self.needs_gradient[output.index()] = trains || passes;
            self.has_backward[node] = trains || passes;
            if !self.has_backward[node] {
                continue;
            }
            for (i, input) in n.inputs.iter().enumerate() {
                let others = || n.inputs.iter().enumerate().filter(move |&(j, _)| j != i);
                let saved = match self.memory[node].keeps_input {
                    KeepsInput::Never => false,
                    KeepsInput::ForParameters => trains,
                    KeepsInput::Always => true,
                    KeepsInput::ForOther => others().any(|(_, other)| self.needs_gradient[other.index()]),
                };
                self.saved[self.source[input.index()].index()] |= saved;
            }
            self.saved[self.source[output.index()].index()] |= self.memory[node].keeps_output && passes;
        }
    }

    fn find_last_readers(&mut self, graph: &Graph) {
        for (node, n) in graph.nodes.iter().enumerate().filter(|&(node, _)| self.live[node]) {
            for input in &n.inputs {
                self.last_reader[self.source[input.index()].index()] = node;
            }
        }
        self.last_reader[self.source[graph.output.index()].index()] = graph.nodes.len();
    }

    /// Whether nobody needs the elements of `value` once `node` has run.
    pub(super) fn dies_at(&self, value: ValueId, node: usize) -> bool {
        let source = self.source[value.index()].index();
        self.last_reader[source] == node && !self.saved[source]
    }
}

/// Whether a value is a parameter itself.
pub(super) fn is_parameter(graph: &Graph, value: ValueId) -> bool {
    let node = value.index().checked_sub(graph.inputs.len());
    node.is_some_and(|node| matches!(graph.nodes[node].layer, Layer::Parameter(_)))
}
