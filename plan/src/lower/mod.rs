//! From the network to steps and buffers.
//!
//! [`training`] and [`inference`] follow an [order](crate::order) of actions. Every step states which buffers it touches and
//! how; a buffer's lifespan is then simply from the first touch to the last.

mod backward;
mod facts;
mod forward;
mod sliced_loss;
mod update;
mod uses;

pub use facts::Facts;

use crate::graph::{Graph, ParameterId, ParameterRole, ValueId};
use crate::layers::Memory;
use crate::order::Action;
use crate::schedule::{Access, Buffer, BufferId, Content, Holding, Operand, Role, Schedule, Step, StepKind};
use crate::shape::{Size, ValueType};
use crate::strategy::Strategy;

use uses::Uses;

/// The schedule of one training step. The graph must have a training part, and the strategy must be one for it.
pub fn training(graph: &Graph, facts: &Facts, strategy: &Strategy) -> Schedule {
    let training = graph.training.as_ref().expect("only a network that is trained has a training schedule");
    let mut lowering = Lowering::new(graph, facts, strategy, true);
    lowering.run(&strategy.order);
    let updates_from = lowering.steps.len();
    lowering.deferred_updates();
    let updates_from = if training.accumulate > 1 { updates_from } else { lowering.steps.len() };
    lowering.finish(updates_from)
}

/// The schedule of one pass of inference.
pub fn inference(graph: &Graph, facts: &Facts, strategy: &Strategy) -> Schedule {
    let mut lowering = Lowering::new(graph, facts, strategy, false);
    lowering.run(&strategy.order);
    let steps = lowering.steps.len();
    lowering.finish(steps)
}

/// A schedule in the making.
struct Lowering<'g> {
    graph: &'g Graph,
    facts: &'g Facts,
    strategy: &'g Strategy,
    uses: Uses,
    training: bool,
    /// Which action of the order is being lowered.
    at: usize,
    steps: Vec<Step>,
    buffers: Vec<Buffer>,
    persistent: usize,
    inputs: Vec<BufferId>,
    target: Option<BufferId>,
    loss: Option<BufferId>,
    /// The buffer of the network's output when it was first complete.
    output: Option<BufferId>,
    /// The buffer of each parameter.
    parameters: Vec<BufferId>,
    /// The buffers of the optimizer's state for each parameter: the first of them.
    states: Vec<Option<BufferId>>,
    /// The buffer that holds each value, as it was computed last. Views are found under their source.
    storage: Vec<Option<BufferId>>,
    /// What each node saved, by its first buffer.
    saved: Vec<Option<BufferId>>,
    /// The buffer of each value's gradient, once something contributed to it.
    gradients: Vec<Option<BufferId>>,
    /// For each buffer, how many values' gradients live in it and still wait for their node's backward step.
    claims: Vec<u32>,
    /// The buffer of each parameter's gradient, once there is one.
    parameter_gradients: Vec<Option<BufferId>>,
    /// For each parameter, how many nodes still contribute to its gradient.
    pending: Vec<u32>,
}

impl<'g> Lowering<'g> {
    fn new(graph: &'g Graph, facts: &'g Facts, strategy: &'g Strategy, training: bool) -> Self {
        let (values, parameters, nodes) = (graph.types.len(), graph.parameters.len(), graph.nodes.len());
        let mut pending = vec![0; parameters];
        for (node, n) in graph.nodes.iter().enumerate() {
            if facts.has_backward[node] {
                n.parameters.iter().for_each(|p| pending[p.index()] += 1);
            }
        }
        Lowering {
            graph,
            facts,
            strategy,
            uses: Uses::new(graph, facts, &strategy.order, training),
            training,
            at: 0,
            steps: Vec::with_capacity(nodes * 4),
            buffers: Vec::with_capacity(nodes * 6),
            persistent: 0,
            inputs: Vec::new(),
            target: None,
            loss: None,
            output: None,
            parameters: Vec::with_capacity(parameters),
            states: vec![None; parameters],
            storage: vec![None; values],
            saved: vec![None; nodes],
            gradients: vec![None; values],
            claims: Vec::with_capacity(nodes * 6),
            parameter_gradients: vec![None; parameters],
            pending,
        }
    }

    /// Makes steps of every action.
    fn run(&mut self, order: &[Action]) {
        self.place_persistent();
        self.place_inputs();
        for (at, action) in order.iter().enumerate() {
            self.at = at;
            match *action {
                // What the last layer computes is part of the loss.
                Action::Forward(node) if self.facts.is_sliced(node as usize) => {}
                Action::Forward(node) => self.forward(node as usize),
                Action::Loss => match self.facts.sliced_head {
                    Some(head) => self.sliced_loss(head),
                    None => self.loss(),
                },
                Action::Backward(node) if self.facts.is_sliced(node as usize) => self.complete_gradients(node as usize),
                Action::Backward(node) => self.backward(node as usize),
            }
        }
    }

    /// A new buffer.
    fn buffer(&mut self, content: Content, size: Size) -> BufferId {
        let from = self.steps.len() as u32;
        self.buffers.push(Buffer { holds: vec![Holding { content, from }], size, lower: u32::MAX, upper: 0 });
        self.claims.push(0);
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// From the next step on, `buffer` holds `content` in place of what it held.
    fn overwrite(&mut self, buffer: BufferId, content: Content) {
        let from = self.steps.len() as u32;
        self.buffers[buffer.index()].holds.push(Holding { content, from });
    }

    fn step(&mut self, kind: StepKind, operands: Vec<Operand>) {
        self.steps.push(Step { kind, operands });
    }

    /// Parameters and layers' state, then the optimizer's state, then gradients that outlive a step: in this order, so
    /// that the first part is the same for training and for inference.
    fn place_persistent(&mut self) {
        for (i, parameter) in self.graph.parameters.iter().enumerate() {
            let size = Size::fixed(parameter.bytes());
            let buffer = self.buffer(Content::Parameter(ParameterId(i as u32)), size);
            self.parameters.push(buffer);
        }
        if let (true, Some(training)) = (self.training, &self.graph.training) {
            let states = training.optimizer.state().len() as u32;
            for (i, parameter) in self.graph.parameters.iter().enumerate() {
                if parameter.role != ParameterRole::Trained {
                    continue;
                }
                for which in 0..states {
                    let content = Content::OptimizerState(ParameterId(i as u32), which);
                    let buffer = self.buffer(content, Size::fixed(parameter.bytes()));
                    self.states[i].get_or_insert(buffer);
                }
            }
            if self.strategy.momentum_gradients {
                for i in (0..self.graph.parameters.len()).filter(|&i| self.pending[i] > 0) {
                    self.parameter_gradients[i] = self.states[i];
                }
            } else if training.accumulate > 1 {
                for (i, parameter) in self.graph.parameters.iter().enumerate() {
                    // One that the loss does not depend on has no gradient, and is not updated.
                    if parameter.role == ParameterRole::Trained && self.pending[i] > 0 {
                        let content = Content::Gradient(ParameterId(i as u32));
                        let buffer = self.buffer(content, Size::fixed(parameter.bytes()));
                        self.parameter_gradients[i] = Some(buffer);
                    }
                }
            }
        }
        self.persistent = self.buffers.len();
    }

    /// The batch and its targets, which the host writes before the first step.
    fn place_inputs(&mut self) {
        for i in 0..self.graph.inputs.len() {
            let buffer = self.buffer(Content::Value(ValueId(i as u32)), self.graph.inputs[i].value_type.size());
            self.storage[i] = Some(buffer);
            self.inputs.push(buffer);
        }
        if let (true, Some(target)) = (self.training, self.graph.target_type()) {
            self.target = Some(self.buffer(Content::Target, target.size()));
        }
    }

    fn value_type(&self, value: ValueId) -> &'g ValueType {
        self.graph.value_type(value)
    }

    fn memory(&self, node: usize) -> &'g Memory {
        &self.facts.memory[node]
    }

    /// The buffer of a value that has been computed.
    fn stored(&self, value: ValueId) -> BufferId {
        let source = self.facts.source[value.index()];
        self.storage[source.index()].expect("values are computed before they are read")
    }

    fn is_trained(&self, parameter: ParameterId) -> bool {
        self.training && self.graph.parameters[parameter.index()].role == ParameterRole::Trained
    }

    /// A scratch buffer for the next step, if it needs one.
    fn workspace(&mut self, node: usize, size: Size, operands: &mut Vec<Operand>) {
        if size != Size::ZERO {
            let buffer = self.buffer(Content::Workspace(node), size);
            operands.push(Operand { role: Role::Workspace, buffer, access: Access::Write });
        }
    }

    /// Derives the lifespans from what the steps touch.
    fn finish(mut self, updates_from: usize) -> Schedule {
        let output = match self.facts.sliced_head {
            Some(_) => None,
            None => Some(self.output.unwrap_or_else(|| self.stored(self.graph.output))),
        };
        let buffers = &mut self.buffers[..];
        for (time, step) in self.steps.iter().enumerate() {
            for operand in &step.operands {
                let buffer = &mut buffers[operand.buffer.0 as usize];
                if buffer.upper == 0 {
                    buffer.lower = time as u32;
                }
                buffer.upper = time as u32 + 1;
            }
        }
        let end = (self.steps.len() as u32).max(1);
        // What persists is always there; the host writes the batch before the first step and reads the result after the last.
        for buffer in &mut self.buffers[..self.persistent] {
            (buffer.lower, buffer.upper) = (0, end);
        }
        for written in self.inputs.iter().chain(&self.target) {
            self.buffers[written.index()].lower = 0;
        }
        if let Some(read) = self.loss.or(output) {
            self.buffers[read.index()].upper = end;
        }
        for buffer in &mut self.buffers[self.persistent..] {
            buffer.lower = buffer.lower.min(end - 1);
            buffer.upper = buffer.upper.max(buffer.lower + 1);
        }
        Schedule {
            training: self.training,
            steps: self.steps,
            buffers: self.buffers,
            persistent: self.persistent,
            updates_from,
            inputs: self.inputs,
            target: self.target,
            loss: self.loss,
            output,
            parts: self.facts.parts.clone(),
        }
    }
}

/// An operand that is read.
fn read(role: Role, buffer: BufferId) -> Operand {
    Operand { role, buffer, access: Access::Read }
}

/// An operand that is overwritten.
fn write(role: Role, buffer: BufferId) -> Operand {
    Operand { role, buffer, access: Access::Write }
}

/// An operand that is read and changed.
fn update(role: Role, buffer: BufferId) -> Operand {
    Operand { role, buffer, access: Access::Update }
}
