//! The table of layers: what each costs.

use std::borrow::Cow;

use crate::footprint::{node_activation_bytes, saved};
use crate::graph::{Graph, ParameterRole};
use crate::plan::Plan;
use crate::schedule::{Content, StepKind};

/// A row of the table: an input, or a layer. Bytes are for the declared batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerRow {
    /// The path, such as `layer1.0.conv1`; an input's name.
    pub path: Cow<'static, str>,
    /// The layer's name in the language; `input` for an input.
    pub kind: &'static str,
    /// The shape of the output for one sample.
    pub shape: Cow<'static, [u64]>,
    /// Trained and frozen scalars. A member that is called twice has them in its first row.
    pub parameters: u64,
    /// Bytes of parameters.
    pub parameter_bytes: u64,
    /// Bytes of untrained state.
    pub buffer_bytes: u64,
    /// Bytes of the parameters' gradients.
    pub gradient_bytes: u64,
    /// Bytes of the optimizer's state.
    pub optimizer_bytes: u64,
    /// Bytes of the output, as layer tables count them; of an input, its batch.
    pub activation_bytes: u64,
    /// Bytes that the plan keeps from forward to backward.
    pub saved_bytes: u64,
    /// The largest workspace of its steps, in bytes.
    pub workspace_bytes: u64,
    /// Multiply-adds times 2 of the forward pass.
    pub forward_flops: u64,
}

impl LayerRow {
    /// For the code that `network!` writes: a row with the numbers of [`numbers`](LayerRow::numbers).
    #[doc(hidden)]
    pub const fn new(path: &'static str, kind: &'static str, shape: &'static [u64], numbers: [u64; 9]) -> LayerRow {
        let [parameters, parameter_bytes, buffer_bytes, gradient_bytes, optimizer_bytes, ..] = numbers;
        let [.., activation_bytes, saved_bytes, workspace_bytes, forward_flops] = numbers;
        LayerRow {
            path: Cow::Borrowed(path),
            kind,
            shape: Cow::Borrowed(shape),
            parameters,
            parameter_bytes,
            buffer_bytes,
            gradient_bytes,
            optimizer_bytes,
            activation_bytes,
            saved_bytes,
            workspace_bytes,
            forward_flops,
        }
    }

    /// All numbers in the order of the fields.
    #[doc(hidden)]
    pub fn numbers(&self) -> [u64; 9] {
        [
            self.parameters,
            self.parameter_bytes,
            self.buffer_bytes,
            self.gradient_bytes,
            self.optimizer_bytes,
            self.activation_bytes,
            self.saved_bytes,
            self.workspace_bytes,
            self.forward_flops,
        ]
    }

    /// Whether this is an input rather than a layer.
    pub const fn is_input(&self) -> bool {
        matches!(self.kind.as_bytes(), b"input")
    }
}

/// The table of a plan: the inputs, then each layer in the order of execution.
pub fn rows(plan: &Plan) -> Vec<LayerRow> {
    let graph = &plan.graph;
    let batch = graph.declared_batch();
    let main = plan.training.as_ref().unwrap_or(&plan.inference);
    let mut rows: Vec<LayerRow> = graph.inputs.iter().map(|input| input_row(input, batch)).collect();
    let mut seen = vec![false; graph.parameters.len()];
    for node in 0..graph.nodes.len() {
        rows.push(layer_row(graph, node, batch, &mut seen));
    }
    let first = graph.inputs.len();
    for (node, bytes) in saved(graph, main) {
        rows[first + node].saved_bytes += bytes;
    }
    for (buffer, size) in main.schedule.buffers.iter().zip(&main.placement.sizes) {
        if let Content::Workspace(node) = buffer.holds[0].content {
            let row = &mut rows[first + node].workspace_bytes;
            *row = (*row).max(*size);
        }
    }
    for step in &main.schedule.steps {
        if let StepKind::Forward { node } = step.kind {
            rows[first + node].forward_flops = step.flops(graph).saturating_mul(batch);
        }
    }
    rows
}

fn input_row(input: &crate::graph::Input, batch: u64) -> LayerRow {
    LayerRow {
        path: input.name.clone().into(),
        kind: "input",
        shape: input.value_type.shape.0.clone().into(),
        parameters: 0,
        parameter_bytes: 0,
        buffer_bytes: 0,
        gradient_bytes: 0,
        optimizer_bytes: 0,
        activation_bytes: input.value_type.size().bytes(batch).unwrap_or(u64::MAX),
        saved_bytes: 0,
        workspace_bytes: 0,
        forward_flops: 0,
    }
}

fn layer_row(graph: &Graph, node: usize, batch: u64, seen: &mut [bool]) -> LayerRow {
    let n = &graph.nodes[node];
    let states = graph.training.as_ref().map(|training| training.optimizer.state().len() as u64);
    let mut row = LayerRow {
        path: n.path.clone().into(),
        kind: n.layer.rule().kind(),
        shape: graph.value_type(graph.value_of(node)).shape.0.clone().into(),
        parameters: 0,
        parameter_bytes: 0,
        buffer_bytes: 0,
        gradient_bytes: 0,
        optimizer_bytes: 0,
        activation_bytes: node_activation_bytes(graph, node, batch),
        saved_bytes: 0,
        workspace_bytes: 0,
        forward_flops: 0,
    };
    for &id in &n.parameters {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let parameter = &graph.parameters[id.index()];
        let bytes = parameter.bytes();
        if parameter.role == ParameterRole::Buffer {
            row.buffer_bytes += bytes;
            continue;
        }
        row.parameters += parameter.elements();
        row.parameter_bytes += bytes;
        if let (ParameterRole::Trained, Some(states)) = (parameter.role, states) {
            row.gradient_bytes += bytes;
            row.optimizer_bytes += bytes * states;
        }
    }
    row
}
