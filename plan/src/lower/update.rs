//! The optimizer's steps: one for each parameter, as soon as its gradient is complete, or all at the end where the
//! gradients are needed together.

use super::{Lowering, read, update, write};
use crate::graph::{ParameterId, Training};
use crate::schedule::{Content, Operand, Role, StepKind};
use crate::shape::Size;

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
        let role = Role::ParameterGradient(0);
        // An accumulated gradient is left at zero for the next batch.
        operands.push(if training.accumulate > 1 { update(role, gradient) } else { read(role, gradient) });
        if let Some(first) = self.states[parameter.index()] {
            for which in 0..training.optimizer.state().len() as u32 {
                let buffer = crate::schedule::BufferId(first.0 + which);
                operands.push(update(Role::State(which), buffer));
            }
        }
        operands.extend(scale);
        self.step(StepKind::Update { parameter }, operands);
    }
}
