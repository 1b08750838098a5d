//! The last layer and the loss in one step, where the logits exist a slice at a time.

use super::{Lowering, read, update, write};
use crate::schedule::{Content, Operand, Role, StepKind};
use crate::shape::Size;
use crate::strategy::sliced_loss;

impl Lowering<'_> {
    /// The loss, and the gradients that the last layer's backward pass would compute.
    pub(super) fn sliced_loss(&mut self, head: usize) {
        let n = &self.graph.nodes[head];
        let (input, weight) = (n.inputs[0], n.parameters[0]);
        let by_rows = self.is_updated_by_rows(head);
        let loss = self.buffer(Content::Loss, Size::fixed(4));
        self.loss = Some(loss);
        let mut operands = vec![
            read(Role::Input(0), self.stored(input)),
            read(Role::Target, self.target.expect("training has targets")),
            write(Role::Loss, loss),
        ];
        for (i, parameter) in n.parameters.iter().enumerate() {
            let (role, buffer) = (Role::Parameter(i as u32), self.parameters[parameter.index()]);
            operands.push(if by_rows && i == 0 { update(role, buffer) } else { read(role, buffer) });
        }
        if by_rows {
            self.push_states(weight, &mut operands);
        }
        if self.facts.needs_gradient[input.index()] {
            let gradient = self.buffer(Content::ValueGradient(input), self.facts.size[input.index()]);
            self.gradients[input.index()] = Some(gradient);
            self.claims[gradient.index()] += 1;
            operands.push(write(Role::InputGradient(0), gradient));
        }
        for (role, parameter) in self.parameters_with_gradients(head) {
            operands.push(Operand { role, ..self.parameter_gradient(parameter) });
        }
        self.workspace(head, sliced_loss::workspace(self.graph, head, by_rows), &mut operands);
        self.step(StepKind::SlicedLoss { node: head }, operands);
    }
}
