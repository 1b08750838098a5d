//! Forward steps, and the loss.

use super::{Lowering, read, update, write};
use crate::graph::ParameterRole;
use crate::graph::ValueId;
use crate::schedule::{BufferId, Content, Operand, Role, StepKind};
use crate::shape::Size;
use crate::strategy::Saving;

impl Lowering<'_> {
    /// The step that computes a node's output, for the first time or again; none for a view.
    pub(super) fn forward(&mut self, node: usize) {
        let n = &self.graph.nodes[node];
        let output = self.graph.value_of(node);
        if self.facts.is_view[output.index()] {
            if n.inputs.is_empty() {
                self.storage[output.index()] = Some(self.parameters[n.parameters[0].index()]);
            }
            return;
        }
        // A concat that is left out is read where its parts are.
        if !self.facts.is_made(output) {
            return;
        }
        let again = self.storage[output.index()].is_some();
        let mut operands = Vec::with_capacity(6);
        for (i, part) in n.inputs.iter().flat_map(|input| self.facts.parts_of(*input)).enumerate() {
            operands.push(read(Role::Input(i as u32), self.stored(part)));
        }
        let buffer = match self.overwritten_input(node) {
            Some(buffer) => {
                self.overwrite(buffer, Content::Value(output));
                buffer
            }
            None => self.buffer(Content::Value(output), self.facts.size[output.index()]),
        };
        self.storage[output.index()] = Some(buffer);
        operands.push(write(Role::Output, buffer));
        for (i, &parameter) in n.parameters.iter().enumerate() {
            let role = Role::Parameter(i as u32);
            let changes = self.training && self.graph.parameters[parameter.index()].role == ParameterRole::Buffer;
            let buffer = self.parameters[parameter.index()];
            match (changes, again) {
                (false, _) => operands.push(read(role, buffer)),
                (true, false) => operands.push(update(role, buffer)),
                // Running statistics move once for each batch.
                (true, true) => {}
            }
        }
        if self.facts.has_backward[node] {
            self.push_saved(node, again, &mut operands);
        }
        self.workspace(node, self.memory(node).workspace.forward, &mut operands);
        let kind = if again { StepKind::Recompute { node } } else { StepKind::Forward { node } };
        self.step(kind, operands);
    }

    /// What the step leaves for backward beside its output, or finds there when it runs again.
    fn push_saved(&mut self, node: usize, again: bool, operands: &mut Vec<Operand>) {
        let memory = self.memory(node);
        if memory.saved_is_remade && self.uses.is_remade_after(node, self.at) {
            return;
        }
        if again && !memory.saved_is_remade {
            if let Some(first) = self.saved[node] {
                let saved = (0..memory.saved.len() as u32).map(|i| read(Role::Saved(i), BufferId(first.0 + i)));
                operands.extend(saved);
            }
            return;
        }
        self.saved[node] = (!memory.saved.is_empty()).then_some(BufferId(self.buffers.len() as u32));
        for (i, saved) in memory.saved.iter().enumerate() {
            let buffer = self.buffer(Content::Saved(node, i as u32), saved.size);
            operands.push(write(Role::Saved(i as u32), buffer));
        }
    }

    /// The buffer of an input whose elements die at the node, if the output can take its place.
    fn overwritten_input(&self, node: usize) -> Option<BufferId> {
        if !self.memory(node).in_place {
            return None;
        }
        let output = self.graph.value_of(node);
        let (size, dtype) = (self.facts.size[output.index()], self.value_type(output).dtype);
        for &input in &self.graph.nodes[node].inputs {
            let fits = self.facts.size[input.index()] == size && self.value_type(input).dtype == dtype;
            if fits && self.facts.is_made(input) && self.dies(input) && !self.is_kept_as_it_is(input) {
                return Some(self.stored(input));
            }
        }
        None
    }

    /// Whether nobody needs the elements of a value after the present action.
    fn dies(&self, value: ValueId) -> bool {
        self.uses.dies_at(self.facts.source[value.index()], self.at)
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
        self.output = Some(buffer);
        let overwrites = self.graph.uses(Saving::InPlace) && self.dies(output) && !self.is_kept_as_it_is(output);
        let content = Content::ValueGradient(output);
        let gradient = if overwrites {
            self.overwrite(buffer, content);
            buffer
        } else {
            self.buffer(content, self.facts.size[output.index()])
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
