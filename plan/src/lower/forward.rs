//! Forward steps, and the loss.

use super::{Lowering, read, update, write};
use crate::graph::ParameterRole;
use crate::graph::ValueId;
use crate::schedule::{BufferId, Content, Operand, Role, StepKind};
use crate::shape::Size;

impl Lowering<'_> {
    /// The step that computes a node's output; none for a view.
    pub(super) fn forward(&mut self, node: usize) {
        if !self.analysis.live[node] {
            return;
        }
        let n = &self.graph.nodes[node];
        let output = self.graph.value_of(node);
        if self.analysis.is_view[output.index()] {
            self.storage[output.index()] = Some(match n.inputs.first() {
                Some(&input) => self.stored(input),
                None => self.parameters[n.parameters[0].index()],
            });
            return;
        }
        let mut operands = Vec::with_capacity(6);
        for (i, &input) in n.inputs.iter().enumerate() {
            operands.push(read(Role::Input(i as u32), self.stored(input)));
        }
        let buffer = match self.overwritten_input(node) {
            Some(buffer) => {
                self.overwrite(buffer, Content::Value(output));
                buffer
            }
            None => self.buffer(Content::Value(output), self.value_type(output).size()),
        };
        self.storage[output.index()] = Some(buffer);
        operands.push(write(Role::Output, buffer));
        for (i, &parameter) in n.parameters.iter().enumerate() {
            let role = Role::Parameter(i as u32);
            let changes = self.training && self.graph.parameters[parameter.index()].role == ParameterRole::Buffer;
            let buffer = self.parameters[parameter.index()];
            operands.push(if changes { update(role, buffer) } else { read(role, buffer) });
        }
        if self.analysis.has_backward[node] {
            for i in 0..self.memory(node).saved.len() {
                let size = self.memory(node).saved[i].size;
                let buffer = self.buffer(Content::Saved(node, i as u32), size);
                self.saved[node].get_or_insert(buffer);
                operands.push(write(Role::Saved(i as u32), buffer));
            }
        }
        self.workspace(node, self.memory(node).workspace.forward, &mut operands);
        self.step(StepKind::Forward { node }, operands);
    }

    /// The buffer of an input whose elements die at the node, if the output can take its place.
    fn overwritten_input(&self, node: usize) -> Option<BufferId> {
        if !self.memory(node).in_place {
            return None;
        }
        let output = self.value_type(self.graph.value_of(node));
        let n = &self.graph.nodes[node];
        n.inputs.iter().copied().find_map(|input| {
            let fits = self.value_type(input).size() == output.size() && self.value_type(input).dtype == output.dtype;
            let transient = !self.is_kept_as_it_is(input);
            (fits && transient && self.analysis.dies_at(input, node)).then(|| self.stored(input))
        })
    }

    /// The batch stays as the caller gave it, and parameters are not scratch memory.
    fn is_kept_as_it_is(&self, value: ValueId) -> bool {
        let buffer = self.stored(value);
        buffer.index() < self.persistent || self.inputs.contains(&buffer)
    }

    /// The loss and its gradient, in the output's own memory where backward does not read the output.
    pub(super) fn loss(&mut self) {
        let output = self.graph.output;
        let buffer = self.stored(output);
        let target = self.target.expect("training has targets");
        let overwrites = self.analysis.dies_at(output, self.graph.nodes.len()) && !self.is_kept_as_it_is(output);
        let content = Content::ValueGradient(output);
        let gradient = if overwrites {
            self.overwrite(buffer, content);
            buffer
        } else {
            self.buffer(content, self.value_type(output).size())
        };
        let loss = self.buffer(Content::Loss, Size::fixed(4));
        self.loss = Some(loss);
        let operands: Vec<Operand> = vec![
            read(Role::Input(0), buffer),
            read(Role::Target, target),
            write(Role::Loss, loss),
            write(Role::InputGradient(0), gradient),
        ];
        self.gradients[output.index()] = Some(gradient);
        self.claims[gradient.index()] += 1;
        self.step(StepKind::Loss, operands);
    }
}
