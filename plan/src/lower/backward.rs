//! Backward steps: from a node's output gradient to the gradients of its inputs and parameters.
//!
//! A value's gradient is a sum with a term for each node that reads the value. The first term is written, the others are
//! added where it stands. Where a node passes its gradient through unchanged, as a sum does, no step is made: both values
//! share one buffer, and each holds a *claim* on it until its own node's backward step. A buffer with more than one claim
//! must not be changed.

use std::iter::repeat;

use super::facts::is_parameter;
use super::{Lowering, read, update, write};
use crate::graph::{ParameterId, ParameterRole, ValueId};
use crate::schedule::{Access, BufferId, Content, Operand, Part, Role, StepKind};
use crate::shape::Size;

impl<'g> Lowering<'g> {
    /// The steps that compute a node's gradients, and the updates that they complete.
    pub(super) fn backward(&mut self, node: usize) {
        let output = self.graph.value_of(node);
        // What reads a concat that is left out has given each part its gradient.
        if !self.facts.is_made(output) {
            return;
        }
        let gradient = self.gradients[output.index()].expect("a later node contributed to the gradient");
        self.claims[gradient.index()] -= 1;
        let passed = self.pass_gradient(node, gradient);
        if !is_parameter(self.graph, output) {
            if self.is_updated_by_rows(node) {
                // The weight must be whole until the input's gradient has been computed from it.
                self.backward_step(node, gradient, Part::Inputs, &passed);
                self.backward_step(node, gradient, Part::Parameters, &passed);
                self.update_rows(node, gradient);
            } else if self.memory(node).separate_parameter_gradients {
                // Parameters first: the input is then free when its gradient, of the same size, comes into being.
                self.backward_step(node, gradient, Part::Parameters, &passed);
                self.backward_step(node, gradient, Part::Inputs, &passed);
            } else {
                self.backward_step(node, gradient, Part::All, &passed);
            }
        }
        self.complete_gradients(node);
    }

    /// The updates of the parameters whose last term has come from a node.
    pub(super) fn complete_gradients(&mut self, node: usize) {
        for (_, parameter) in self.parameters_with_gradients(node) {
            self.pending[parameter.index()] -= 1;
            if self.pending[parameter.index()] == 0 {
                self.update_when_ready(parameter);
            }
        }
    }

    /// Gives the output's gradient to the inputs for which it is theirs too. Returns which inputs have been served.
    fn pass_gradient(&mut self, node: usize, gradient: BufferId) -> Vec<bool> {
        let n = &self.graph.nodes[node];
        let mut passed = vec![false; n.inputs.len()];
        for (i, &input) in n.inputs.iter().enumerate() {
            let passes = self.memory(node).passes_gradient.get(i).copied().unwrap_or(false);
            if !passes || !self.facts.needs_gradient[input.index()] {
                continue;
            }
            passed[i] = true;
            if self.gradients[input.index()].is_none() && !is_parameter(self.graph, input) {
                self.gradients[input.index()] = Some(gradient);
                self.claims[gradient.index()] += 1;
                self.overwrite(gradient, Content::ValueGradient(input));
            } else {
                let target = self.contribute(input, gradient, false);
                let operands =
                    vec![read(Role::OutputGradient, gradient), Operand { role: Role::InputGradient(0), ..target }];
                self.step(StepKind::Accumulate { value: input }, operands);
            }
        }
        passed
    }

    /// One backward step, unless there is nothing for it to compute.
    fn backward_step(&mut self, node: usize, gradient: BufferId, part: Part, passed: &[bool]) {
        let n = &self.graph.nodes[node];
        let inputs_wanted = part != Part::Parameters
            && n.inputs.iter().zip(passed).any(|(input, passed)| self.facts.needs_gradient[input.index()] && !passed);
        let parameters_wanted = part != Part::Inputs && self.parameters_with_gradients(node).next().is_some();
        if !inputs_wanted && !parameters_wanted {
            return;
        }
        let mut targets = Vec::new();
        if inputs_wanted {
            self.input_gradients(node, gradient, passed, &mut targets);
        }
        if parameters_wanted {
            for (role, parameter) in self.parameters_with_gradients(node) {
                targets.push(Operand { role, ..self.parameter_gradient(parameter) });
            }
        }
        let mut operands = vec![read(Role::OutputGradient, gradient)];
        self.push_kept(node, part, &mut operands);
        // The factor of a norm or the weight of a product; offsets and running statistics play no part.
        if let (true, Some(&weight)) = (part != Part::Parameters, n.parameters.first())
            && self.graph.parameters[weight.index()].role != ParameterRole::Buffer
        {
            operands.push(read(Role::Parameter(0), self.parameters[weight.index()]));
        }
        operands.append(&mut targets);
        let workspace = &self.memory(node).workspace;
        let size = if part == Part::Parameters { workspace.backward_parameters } else { workspace.backward };
        self.workspace(node, size, &mut operands);
        self.step(StepKind::Backward { node, part }, operands);
    }

    /// The trained parameters of a node whose gradients come into being as a whole, with their roles.
    pub(super) fn parameters_with_gradients(&self, node: usize) -> impl Iterator<Item = (Role, ParameterId)> + use<'g> {
        let by_rows = self.is_updated_by_rows(node);
        let (graph, training) = (self.graph, self.training);
        let parameters = graph.nodes[node].parameters.iter().enumerate();
        let trained = parameters.filter(move |&(i, parameter)| {
            let is_trained = training && graph.parameters[parameter.index()].role == ParameterRole::Trained;
            is_trained && !(by_rows && i == 0)
        });
        trained.map(|(i, &parameter)| (Role::ParameterGradient(i as u32), parameter))
    }

    /// What the step reads of the forward pass.
    fn push_kept(&self, node: usize, part: Part, operands: &mut Vec<Operand>) {
        let n = &self.graph.nodes[node];
        let memory = self.memory(node);
        let inputs = n.inputs.iter().enumerate();
        let parts = inputs.flat_map(|(i, input)| self.facts.parts_of(*input).map(move |part| (i, part)));
        for (number, (i, value)) in parts.enumerate() {
            if self.facts.backward_reads_input(self.graph, node, part, i) {
                operands.push(read(Role::Input(number as u32), self.stored(value)));
            }
        }
        if self.facts.backward_reads_output(self.graph, node) {
            operands.push(read(Role::Output, self.stored(self.graph.value_of(node))));
        }
        if let Some(first) = self.saved[node] {
            for i in 0..memory.saved.len() as u32 {
                operands.push(read(Role::Saved(i), BufferId(first.0 + i)));
            }
        }
    }

    /// Where the gradients of a node's inputs go.
    fn input_gradients(&mut self, node: usize, gradient: BufferId, passed: &[bool], targets: &mut Vec<Operand>) {
        let inputs = &self.graph.nodes[node].inputs;
        let repeated = inputs.iter().enumerate().any(|(i, input)| inputs[..i].contains(input));
        let facts = self.facts;
        let parts = inputs.iter().zip(passed).flat_map(|(input, passed)| facts.parts_of(*input).zip(repeat(*passed)));
        for (i, (value, passed)) in parts.enumerate() {
            if passed || !facts.needs_gradient[value.index()] {
                continue;
            }
            let in_place = self.memory(node).gradient_in_place && !repeated;
            let target = self.contribute(value, gradient, in_place);
            targets.push(Operand { role: Role::InputGradient(i as u32), ..target });
        }
    }

    /// Where a term of a value's gradient goes: written to a new buffer, or over the output's gradient if that is
    /// `in_place` and nobody else's, or added to the terms before.
    fn contribute(&mut self, value: ValueId, gradient: BufferId, in_place: bool) -> Operand {
        if is_parameter(self.graph, value) {
            let node = &self.graph.nodes[value.index() - self.graph.inputs.len()];
            let target = self.parameter_gradient(node.parameters[0]);
            if self.gradients[value.index()].is_none() {
                self.gradients[value.index()] = Some(target.buffer);
                self.claims[target.buffer.index()] += 1;
            }
            return target;
        }
        let role = Role::InputGradient(0);
        let size = self.facts.size[value.index()];
        match self.gradients[value.index()] {
            None => {
                let unclaimed = self.claims[gradient.index()] == 0;
                let buffer = if in_place && unclaimed && self.buffers[gradient.index()].size == size {
                    self.overwrite(gradient, Content::ValueGradient(value));
                    gradient
                } else {
                    self.buffer(Content::ValueGradient(value), size)
                };
                self.gradients[value.index()] = Some(buffer);
                self.claims[buffer.index()] += 1;
                write(role, buffer)
            }
            Some(buffer) if self.claims[buffer.index()] > 1 || buffer == gradient => {
                let copy = self.buffer(Content::ValueGradient(value), size);
                let operands = vec![read(Role::OutputGradient, buffer), write(role, copy)];
                self.step(StepKind::Accumulate { value }, operands);
                self.claims[buffer.index()] -= 1;
                self.claims[copy.index()] += 1;
                self.gradients[value.index()] = Some(copy);
                update(role, copy)
            }
            Some(buffer) => update(role, buffer),
        }
    }

    /// Where a term of a parameter's gradient goes. Gradients that outlive the step start from zero, so that every term
    /// is added.
    pub(super) fn parameter_gradient(&mut self, parameter: ParameterId) -> Operand {
        let role = Role::ParameterGradient(0);
        match self.parameter_gradients[parameter.index()] {
            Some(buffer) => Operand { role, buffer, access: Access::Update },
            None => {
                let size = Size::fixed(self.graph.parameters[parameter.index()].bytes());
                let buffer = self.buffer(Content::Gradient(parameter), size);
                self.parameter_gradients[parameter.index()] = Some(buffer);
                write(role, buffer)
            }
        }
    }
}
