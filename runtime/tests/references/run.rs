//! Runs a case step by step, and looks at values and gradients on the way.

use std::collections::HashMap;

use plimsoll_plan::graph::{Graph, ParameterId, ParameterRole};
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::{BufferId, Content, Role, StepKind};
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::Saving;
use plimsoll_runtime::program::Instruction;
use plimsoll_runtime::{Arguments, Device, Program};

use crate::case::{Case, Group, floats};
use crate::compare::Comparison;
use crate::network::{network, probe};

/// How a case is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// As it is, with every gradient in a buffer.
    Plain,
    /// As it is planned by default.
    Saving,
    /// In a plan for a larger batch.
    SmallBatch,
    /// Every layer twice, so that gradients are made of two terms: those that come second are added.
    Twice,
}

impl Way {
    /// Whether a case can be run like this.
    pub fn suits(self, case: &Case) -> bool {
        // With no layers there is nothing to do twice.
        self != Way::Twice || !case.calls.is_empty()
    }
}

/// A device with a program and an arena of its own.
struct Session<'d, D: Device> {
    device: &'d mut D,
    program: D::Prepared,
    arena: D::Arena,
    graph: Graph,
    batch: usize,
}

impl<'d, D: Device> Session<'d, D> {
    /// The program in an arena of its own.
    fn new(device: &'d mut D, plan: &Plan, program: Program, batch: usize) -> Result<Self, String> {
        let length = if program.training { plan.peak_bytes() } else { plan.inference_bytes() };
        let program = device.prepare(program).map_err(|error| error.to_string())?;
        let arena = device.allocate(length).map_err(|error| error.to_string())?;
        Ok(Session { device, program, arena, graph: plan.graph.clone(), batch })
    }

    fn program(&self) -> &Program {
        self.program.as_ref()
    }

    /// The buffer that holds something from its first use on.
    fn find(&self, content: Content) -> Option<BufferId> {
        let buffers = &self.program().schedule.buffers;
        buffers.iter().position(|buffer| buffer.holds[0].content == content).map(|i| BufferId(i as u32))
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) {
        let region = self.program().region(buffer);
        assert_eq!(bytes.len(), region.bytes(self.batch), "the case's tensor has another size than the plan's");
        self.device.upload(&mut self.arena, region.offset, bytes).expect("memory can be copied");
    }

    fn download(&mut self, buffer: BufferId) -> Vec<f32> {
        let region = self.program().region(buffer);
        let mut bytes = vec![0; region.bytes(self.batch)];
        self.device.download(&self.arena, region.offset, &mut bytes).expect("memory can be copied");
        floats(&bytes)
    }

    /// Writes what parameters and optimizer state are before training.
    fn initialize(&mut self, group: &Group, case: &Case) {
        for i in 0..self.graph.parameters.len() {
            let (id, parameter) = (ParameterId(i as u32), self.graph.parameters[i].clone());
            let name = format!("initial/{}", parameter.path);
            let given = group.given(case, &name, DType::F32, parameter.elements() as usize);
            if let (Some(bytes), Some(buffer)) = (given, self.find(Content::Parameter(id))) {
                self.upload(buffer, &bytes);
            }
            let training = self.graph.training.as_ref().expect("cases are trained");
            if let (&Optimizer::Adagrad { initial_accumulator_value, .. }, Some(buffer)) =
                (&training.optimizer, self.find(Content::OptimizerState(id, 0)))
            {
                let sum = (initial_accumulator_value as f32).to_le_bytes();
                self.upload(buffer, &sum.repeat(parameter.elements() as usize));
            }
        }
    }

    /// Writes a batch and, for training, its targets.
    fn feed(&mut self, group: &Group, case: &Case, batch: usize) {
        let mut tensors = Vec::new();
        for (input, &buffer) in self.graph.inputs.iter().zip(&self.program().schedule.inputs) {
            tensors.push((format!("input/{}", input.name), buffer, input.value_type.dtype));
        }
        if let (Some(target), Some(of)) = (self.program().schedule.target, self.graph.target_type()) {
            tensors.push(("target".to_string(), target, of.dtype));
        }
        let batches = case.steps * case.accumulate as usize;
        for (name, buffer, dtype) in tensors {
            let size = self.program().region(buffer).bytes(self.batch);
            let elements = size * batches / dtype.bytes() as usize;
            let bytes = group.given(case, &name, dtype, elements).expect("every case has its inputs and targets");
            self.upload(buffer, &bytes[batch * size..(batch + 1) * size]);
        }
    }

    fn run(&mut self, step: usize, arguments: &Arguments) -> Result<(), String> {
        let run = self.device.run(&mut self.program, &mut self.arena, step..step + 1, arguments);
        run.map_err(|error| error.to_string())
    }

    /// What a step is about to read that a case has a reference for.
    fn observe(&mut self, instruction: &Instruction, seen: &mut HashMap<String, Vec<f32>>) {
        let (name, role) = match instruction.kind {
            StepKind::Loss => ("output".to_string(), Role::Input(0)),
            StepKind::Backward { node, .. } => {
                let path = &self.graph.nodes[node].path;
                let input = self.graph.inputs.iter().find(|input| probe(&input.name) == *path);
                match input {
                    Some(input) => (format!("input_gradient/{}", input.name), Role::OutputGradient),
                    None => return,
                }
            }
            StepKind::Update { parameter } => {
                let path = &self.graph.parameters[parameter.index()].path;
                (format!("gradient/{path}"), Role::ParameterGradient(0))
            }
            _ => return,
        };
        // A gradient that is added to the momentum is nowhere by itself.
        let Some(operand) = instruction.operand(role) else { return };
        let values = self.download(operand.buffer);
        seen.entry(name).or_insert(values);
    }
}

/// Runs a case, and gives what is to be compared: every tensor that the case has a reference for.
pub fn run<D: Device>(device: &mut D, group: &Group, case: &Case, way: Way) -> Result<Vec<Comparison>, String> {
    let probed = case.steps == 1;
    let planned = case.batch + if way == Way::SmallBatch { 2 } else { 0 };
    let graph = network(case, planned, probed, way == Way::Twice)?;
    let graph = if way == Way::Saving { graph } else { graph.without(&Saving::ALL) };
    let plan = Plan::new(graph).map_err(|error| error.to_string())?;
    let mut seen = train(device, &plan, group, case)?;
    seen.insert("inference".to_string(), infer(device, &plan, group, case)?);

    let mut comparisons = Vec::new();
    let mut compare = |name: &str, got: Vec<f32>, expected: Vec<f32>| {
        comparisons.push(Comparison { name: name.to_string(), got: case.sampled(got), expected });
    };
    for name in group.names(case) {
        let is_given = ["input/", "initial/"].iter().any(|prefix| name.starts_with(prefix)) || name == "target";
        // Running statistics move once for each application.
        let is_hidden = way == Way::Saving && name.starts_with("gradient/") && !seen.contains_key(name);
        if is_given || is_hidden || (way == Way::Twice && name.starts_with("after/")) {
            continue;
        }
        let expected = group.expected(case, name).expect("the name is the group's own");
        compare(name, seen.remove(name).ok_or_else(|| format!("no step gave `{name}`"))?, expected);
    }
    if let Some(got) = seen.remove("inference") {
        compare("inference", got, group.expected(case, "output").expect("every case has an output"));
    }
    Ok(comparisons)
}

/// Runs all batches of a case.
fn train<D: Device>(
    device: &mut D,
    plan: &Plan,
    group: &Group,
    case: &Case,
) -> Result<HashMap<String, Vec<f32>>, String> {
    let program = Program::training(plan).expect("cases are trained");
    let mut session = Session::new(device, plan, program, case.batch as usize)?;
    session.initialize(group, case);
    let learning_rate = plan.graph.training.as_ref().expect("cases are trained").optimizer.lr();
    let (steps, updates_from) = (session.program().schedule.steps.len(), session.program().schedule.updates_from);
    let mut seen = HashMap::new();
    let mut losses = Vec::new();
    for batch in 0..case.steps * case.accumulate as usize {
        let arguments = Arguments {
            batch: case.batch as usize,
            pass: batch as u64,
            update: batch as u64 / case.accumulate + 1,
            learning_rate,
            seed: 1,
        };
        session.feed(group, case, batch);
        let updates = (batch as u64 + 1).is_multiple_of(case.accumulate);
        for step in 0..if updates { steps } else { updates_from } {
            let instruction = session.program().instructions[step].clone();
            session.observe(&instruction, &mut seen);
            session.run(step, &arguments)?;
        }
        losses.extend(session.download(session.program().schedule.loss.expect("training has a loss")));
        if updates {
            trace(&mut session, &mut seen);
        }
    }
    seen.insert("loss".to_string(), losses);
    for i in 0..session.graph.parameters.len() {
        let buffer = session.find(Content::Parameter(ParameterId(i as u32))).expect("parameters persist");
        let name = format!("after/{}", session.graph.parameters[i].path);
        seen.insert(name, session.download(buffer));
    }
    Ok(seen)
}

/// Appends every trained parameter to its trace.
fn trace<D: Device>(session: &mut Session<D>, seen: &mut HashMap<String, Vec<f32>>) {
    for i in 0..session.graph.parameters.len() {
        if session.graph.parameters[i].role == ParameterRole::Trained {
            let buffer = session.find(Content::Parameter(ParameterId(i as u32))).expect("parameters persist");
            let name = format!("trace/{}", session.graph.parameters[i].path);
            let values = session.download(buffer);
            seen.entry(name).or_default().extend(values);
        }
    }
}

/// The output outside of training, for the first batch.
fn infer<D: Device>(device: &mut D, plan: &Plan, group: &Group, case: &Case) -> Result<Vec<f32>, String> {
    let mut session = Session::new(device, plan, Program::inference(plan), case.batch as usize)?;
    session.initialize(group, case);
    session.feed(group, case, 0);
    let arguments = Arguments { batch: case.batch as usize, pass: 0, update: 0, learning_rate: 0.0, seed: 1 };
    for step in 0..session.program().schedule.steps.len() {
        session.run(step, &arguments)?;
    }
    Ok(session.download(session.program().schedule.output.expect("logits as a whole")))
}
