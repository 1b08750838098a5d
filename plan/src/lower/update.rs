//! The optimizer's steps: one for each parameter, as soon as its gradient is complete, or all at the end where the
//! gradients are needed together.

use super::{Lowering, read, update, write};
use crate::graph::{ParameterId, Training};
use crate::schedule::{BufferId, Content, Operand, Role, StepKind};
use crate::shape::Size;
use crate::strategy::row_tiles;

impl Lowering<'_> {
    /// Clipping by global norm needs every gradient, and accumulation needs every batch.
    fn updates_are_deferred(training: &Training) -> bool {
        training.accumulate > 1 || training.clip_grad_norm.is_some()
    }

    /// Called when a parameter's gradient is complete and no later step reads the parameter.
    pub(super) fn update_when_ready(&mut self, parameter: ParameterId) {
        let training = self.graph.training.as_ref().expect("updates belong to training");
        if self.is_trained(parameter) && !Self::updates_are_deferred(training) {
            self.update(parameter, None);
        }
    }

    /// The updates that had to wait for the end.
    pub(super) fn deferred_updates(&mut self) {
        let training = self.graph.training.as_ref().expect("updates belong to training");
        if !Self::updates_are_deferred(training) {
            return;
        }
        let all = (0..self.graph.parameters.len() as u32).map(ParameterId);
        let with_gradient: Vec<ParameterId> = all.filter(|p| self.parameter_gradients[p.index()].is_some()).collect();
        let scale = training.clip_grad_norm.map(|_| {
            let scale = self.buffer(Content::GradientScale, Size::fixed(4));
            let mut operands = vec![write(Role::GradientScale, scale)];
            for (i, parameter) in with_gradient.iter().enumerate() {
                let gradient = self.parameter_gradients[parameter.index()].expect("filtered above");
                operands.push(read(Role::ParameterGradient(i as u32), gradient));
            }
            self.step(StepKind::ClipGradNorm, operands);
            read(Role::GradientScale, scale)
        });
        for parameter in with_gradient {
            self.update(parameter, scale);
        }
    }

    fn update(&mut self, parameter: ParameterId, scale: Option<Operand>) {
        let training = self.graph.training.as_ref().expect("updates belong to training");
        let gradient = self.parameter_gradients[parameter.index()].expect("a trained parameter has a gradient");
        let mut operands = vec![update(Role::Parameter(0), self.parameters[parameter.index()])];
        // A gradient that was added to the momentum is found there.
        if self.states[parameter.index()] != Some(gradient) {
            let role = Role::ParameterGradient(0);
            // An accumulated gradient is left at zero for the next batch.
            operands.push(if training.accumulate > 1 { update(role, gradient) } else { read(role, gradient) });
        }
        self.push_states(parameter, &mut operands);
        operands.extend(scale);
        self.step(StepKind::Update { parameter }, operands);
    }

    pub(super) fn push_states(&self, parameter: ParameterId, operands: &mut Vec<Operand>) {
        let training = self.graph.training.as_ref().expect("updates belong to training");
        if let Some(first) = self.states[parameter.index()] {
            let states = 0..training.optimizer.state().len() as u32;
            operands.extend(states.map(|which| update(Role::State(which), BufferId(first.0 + which))));
        }
    }

    /// Whether the gradient of a node's weight comes into being a tile of rows at a time.
    pub(super) fn is_updated_by_rows(&self, node: usize) -> bool {
        self.strategy.row_tiles.binary_search(&(node as u32)).is_ok()
    }

    /// The gradient and update of a node's weight, a tile of rows at a time.
    pub(super) fn update_rows(&mut self, node: usize, gradient: BufferId) {
        let n = &self.graph.nodes[node];
        let weight = n.parameters[0];
        let mut operands = vec![read(Role::OutputGradient, gradient)];
        for (i, part) in self.facts.parts_of(n.inputs[0]).enumerate() {
            operands.push(read(Role::Input(i as u32), self.stored(part)));
        }
        operands.push(update(Role::Parameter(0), self.parameters[weight.index()]));
        self.push_states(weight, &mut operands);
        let tile = row_tiles::tile_bytes(&n.layer, &self.graph.parameters[weight.index()]);
        let workspace = self.memory(node).workspace.backward_parameters.plus(tile);
        self.workspace(node, workspace, &mut operands);
        self.step(StepKind::UpdateRows { node }, operands);
    }
}
