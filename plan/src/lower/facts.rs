//! What must be known of the whole graph before the first step: which nodes matter, where gradients flow, and what their
//! computation reads.

use crate::graph::{Graph, ParameterRole, ValueId};
use crate::layers::{KeepsInput, Layer, Memory, Output};
use crate::schedule::Part;
use crate::shape::{Size, ValueType};
use crate::strategy::cheap::forward_cost;
use crate::strategy::{Saving, concat_in_place, sliced_loss};

/// Facts about nodes and values. All but the sequence hold in every order of steps.
#[derive(Clone)]
pub struct Facts {
    /// What each node keeps and where it may write.
    pub memory: Vec<Memory>,
    /// Whether the output depends on the node.
    pub live: Vec<bool>,
    /// The nodes that matter, in the sequence of their forward passes.
    pub sequence: Vec<u32>,
    /// Whether the node has a backward pass.
    pub has_backward: Vec<bool>,
    /// Whether the loss has a gradient with respect to the value that is of use.
    pub needs_gradient: Vec<bool>,
    /// Whether the value is only another shape of an earlier value (or of a parameter).
    pub is_view: Vec<bool>,
    /// For each value, the value whose elements it shares: itself, unless it is a view.
    pub source: Vec<ValueId>,
    /// What each value takes.
    pub size: Vec<Size>,
    /// For each value that is never made, the values that it is made of, in their order: see
    /// [`concat_in_place`](crate::strategy::concat_in_place). For all others, nothing.
    pub parts: Vec<Vec<ValueId>>,
    /// For each node, whether any of its parameters is trained.
    pub trains: Vec<bool>,
    /// For each node, the values that its backward pass reads, each by its source.
    pub reads: Vec<Vec<ValueId>>,
    /// The last layer, where its outputs exist a slice at a time and its gradients come with the loss.
    pub sliced_head: Option<usize>,
    /// What each node's forward pass costs for one sample, as [`forward_cost`](crate::strategy::cheap::forward_cost) counts.
    pub cost: Vec<u64>,
}

impl Facts {
    /// The facts of a training step, or of a pass of inference.
    pub fn new(graph: &Graph, training: bool) -> Self {
        let (nodes, values) = (graph.nodes.len(), graph.types.len());
        let mut facts = Facts {
            memory: Vec::with_capacity(nodes),
            live: vec![false; nodes],
            sequence: Vec::new(),
            has_backward: vec![false; nodes],
            needs_gradient: vec![false; values],
            is_view: vec![false; values],
            source: (0..values as u32).map(ValueId).collect(),
            size: graph.types.iter().map(ValueType::size).collect(),
            parts: vec![Vec::new(); values],
            trains: vec![false; nodes],
            reads: vec![Vec::new(); nodes],
            sliced_head: None,
            cost: Vec::with_capacity(nodes),
        };
        let in_place = graph.uses(Saving::InPlace);
        for (node, n) in graph.nodes.iter().enumerate() {
            let output = graph.value_of(node);
            let inputs = graph.value_types(&n.inputs);
            let mut memory = n.layer.rule().memory(&inputs, graph.value_type(output));
            memory.in_place &= in_place;
            memory.gradient_in_place &= in_place;
            facts.cost.push(forward_cost(n.layer.rule(), &inputs, graph.value_type(output)));
            let is_view = memory.output == Output::View || (!training && memory.identity_in_inference);
            facts.is_view[output.index()] = is_view;
            if let (true, Some(input)) = (is_view, n.inputs.first()) {
                facts.source[output.index()] = facts.source[input.index()];
            }
            facts.memory.push(memory);
        }
        facts.find_live(graph);
        facts.sequence = (0..nodes as u32).filter(|&node| facts.live[node as usize]).collect();
        if training {
            facts.find_gradients(graph);
            facts.find_reads(graph);
        }
        facts
    }

    /// The same, with the loss computed by slices if it can be.
    #[must_use]
    pub fn slicing_the_loss(mut self, graph: &Graph) -> Self {
        self.sliced_head = sliced_loss::head(graph, &self);
        // Its gradients come with the loss.
        if let Some(head) = self.sliced_head {
            self.reads[head].clear();
        }
        self
    }

    /// The same, with every concat left out that can be.
    #[must_use]
    pub fn with_concats_in_place(mut self, graph: &Graph) -> Self {
        self.parts = concat_in_place::parts(graph, &self);
        for node in (0..graph.nodes.len()).filter(|&node| !self.parts[graph.value_of(node).index()].is_empty()) {
            self.cost[node] = 0;
        }
        self.find_reads(graph);
        self
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

    /// Gradients flow back to whatever depends on a trained parameter.
    fn find_gradients(&mut self, graph: &Graph) {
        for (node, n) in graph.nodes.iter().enumerate().filter(|&(node, _)| self.live[node]) {
            let trains = n.parameters.iter().any(|p| graph.parameters[p.index()].role == ParameterRole::Trained);
            let passes = n.inputs.iter().any(|input| self.needs_gradient[input.index()]);
            self.trains[node] = trains;
            self.needs_gradient[graph.value_of(node).index()] = trains || passes;
            self.has_backward[node] = trains || passes;
        }
    }

    fn find_reads(&mut self, graph: &Graph) {
        for (node, n) in graph.nodes.iter().enumerate() {
            let mut reads = Vec::new();
            for (i, input) in n.inputs.iter().enumerate() {
                if self.backward_reads_input(graph, node, Part::All, i) {
                    reads.extend(self.sources(*input));
                }
            }
            if self.backward_reads_output(graph, node) {
                reads.extend(self.sources(graph.value_of(node)));
            }
            self.reads[node] = reads;
        }
    }

    /// Whether a value is made, and not only its parts.
    pub fn is_made(&self, value: ValueId) -> bool {
        self.parts[value.index()].is_empty()
    }

    /// What there is of a value: itself, or its parts.
    pub fn parts_of(&self, value: ValueId) -> impl Iterator<Item = ValueId> {
        let whole = self.is_made(value).then_some(value);
        whole.into_iter().chain(self.parts[value.index()].iter().copied())
    }

    /// The values whose elements a value has, each by its [`source`](Facts::source).
    pub fn sources(&self, value: ValueId) -> impl Iterator<Item = ValueId> {
        self.parts_of(value).map(|part| self.source[part.index()])
    }

    /// Whether a node's output exists a slice at a time, within the step of the loss.
    pub fn is_sliced(&self, node: usize) -> bool {
        self.sliced_head == Some(node)
    }

    /// The value that the loss reads.
    pub fn loss_reads(&self, graph: &Graph) -> ValueId {
        self.sliced_head.map_or(graph.output, |head| graph.nodes[head].inputs[0])
    }

    /// Whether a part of a node's backward pass reads the value of its input `i`.
    pub fn backward_reads_input(&self, graph: &Graph, node: usize, part: Part, i: usize) -> bool {
        let inputs = &graph.nodes[node].inputs;
        match self.memory[node].keeps_input {
            KeepsInput::Never => false,
            KeepsInput::ForParameters => part != Part::Inputs && self.trains[node],
            KeepsInput::Always => true,
            KeepsInput::ForOther => {
                inputs.iter().enumerate().any(|(j, other)| j != i && self.needs_gradient[other.index()])
            }
        }
    }

    /// Whether a node's backward pass reads the value of its output. It is of use only where the gradient goes on.
    pub fn backward_reads_output(&self, graph: &Graph, node: usize) -> bool {
        let inputs = &graph.nodes[node].inputs;
        self.memory[node].keeps_output && inputs.iter().any(|input| self.needs_gradient[input.index()])
    }

    /// What a training step costs for one sample: backward takes twice as long as forward.
    pub fn step_cost(&self) -> u64 {
        let live = self.cost.iter().zip(&self.live).filter(|(_, live)| **live);
        live.map(|(cost, _)| *cost).fold(0, u64::saturating_add).saturating_mul(3)
    }

    /// The values that a node's backward pass reads, each by its [`source`](Facts::source). Where the loss has computed the
    /// gradients already, none.
    pub fn backward_reads(&self, node: usize) -> &[ValueId] {
        &self.reads[node]
    }
}

/// Whether a value is a parameter itself.
pub(super) fn is_parameter(graph: &Graph, value: ValueId) -> bool {
    let node = value.index().checked_sub(graph.inputs.len());
    node.is_some_and(|node| matches!(graph.nodes[node].layer, Layer::Parameter(_)))
}
