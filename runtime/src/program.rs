//! A schedule made ready to run: all that a step needs, looked up once.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_plan::graph::{Graph, Node, Training};
use plimsoll_plan::placement::ALIGNMENT;
use plimsoll_plan::plan::{Plan, Planned};
use plimsoll_plan::schedule::{Buffer, BufferId, Operand, Role, Schedule, StepKind};
use plimsoll_plan::shape::{DType, Size, ValueType};

use crate::error::Error;

/// Where a buffer lies in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first byte.
    pub offset: u64,
    /// Its bytes for a batch.
    pub size: Size,
}

impl Region {
    /// Where it ends, if 64 bits can say it.
    fn end(&self, batch: usize) -> Option<u64> {
        self.offset.checked_add(self.size.bytes(batch as u64)?)
    }

    /// Its bytes for a batch, which is no larger than the planned one.
    pub fn bytes(&self, batch: usize) -> usize {
        self.size.bytes(batch as u64).expect("smaller than a size that was planned") as usize
    }
}

/// One step with the types of its values.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What it does.
    pub kind: StepKind,
    /// What it reads and writes.
    pub operands: Vec<Operand>,
    /// For a node, the types of its inputs; for the loss, that of the network's output; for a sum of gradients, that of the
    /// value.
    pub inputs: Vec<ValueType>,
    /// The types of the operands that are inputs: for an input that is never made, those of its parts.
    pub parts: Vec<ValueType>,
    /// For a node, the type of its output; for the loss, that of the targets; for a parameter's update, the parameter's.
    pub output: ValueType,
    /// The largest aligned piece of the arena that holds nothing while the step runs, empty where there is none: room for
    /// what a library needs inside of it. Nothing depends on how large it is but speed.
    pub spare: Range<u64>,
}

impl Instruction {
    /// The operand in a role.
    pub fn operand(&self, role: Role) -> Option<Operand> {
        self.operands.iter().copied().find(|operand| operand.role == role)
    }
}

/// A schedule at its place in the arena.
#[derive(Clone, Debug)]
pub struct Program {
    /// The network.
    pub graph: Arc<Graph>,
    /// Whether this trains; else it is a pass of inference.
    pub training: bool,
    /// The samples that were planned for.
    pub batch: usize,
    /// The steps.
    pub instructions: Vec<Instruction>,
    /// Where each buffer lies.
    pub regions: Vec<Region>,
    /// The plan's own account of steps, buffers and lifespans.
    pub schedule: Schedule,
}

impl Program {
    /// The training step of a plan, if it has one.
    pub fn training(plan: &Plan) -> Option<Program> {
        plan.training.as_ref().map(|planned| Program::new(&plan.graph, planned, 0))
    }

    /// The plan's pass of inference, in an arena of its own.
    pub fn inference(plan: &Plan) -> Program {
        Program::new(&plan.graph, &plan.inference, 0)
    }

    /// The plan's pass of inference in a trainer's arena: what is transient lies above the optimizer's state.
    pub fn evaluation(plan: &Plan) -> Program {
        Program::new(&plan.graph, &plan.inference, plan.evaluation_shift())
    }

    fn new(graph: &Graph, planned: &Planned, shift: u64) -> Program {
        let Planned { schedule, placement, .. } = planned;
        let batch = placement.batch as usize;
        let regions: Vec<Region> = schedule
            .buffers
            .iter()
            .zip(&placement.offsets)
            .enumerate()
            .map(|(i, (buffer, offset))| Region {
                offset: if i < schedule.persistent { *offset } else { offset + shift },
                size: buffer.size,
            })
            .collect();
        let transient = placement.persistent_bytes + shift..placement.length + shift;
        let mut live = Vec::new();
        let instructions = schedule.steps.iter().enumerate().map(|(index, step)| {
            find_live(schedule, &regions, batch, index, &mut live);
            let aligned = gaps(&live, transient.clone()).map(|gap| gap.start.next_multiple_of(ALIGNMENT)..gap.end);
            let spare = aligned.filter(|gap| !gap.is_empty()).max_by_key(|gap| gap.end - gap.start);
            Instruction { spare: spare.unwrap_or_default(), ..instruction(graph, schedule, step) }
        });
        let instructions = instructions.collect();
        Program {
            graph: Arc::new(graph.clone()),
            training: schedule.training,
            batch,
            instructions,
            regions,
            schedule: schedule.clone(),
        }
    }

    /// The pieces of a part of the arena that belong to no buffer which is live at a step.
    pub(crate) fn dead(&self, step: usize, within: Range<u64>) -> Vec<Range<u64>> {
        let mut live = Vec::new();
        find_live(&self.schedule, &self.regions, self.batch, step, &mut live);
        gaps(&live, within).collect()
    }

    /// How the network is trained. Only asked by steps of training.
    pub fn options(&self) -> &Training {
        self.graph.training.as_ref().expect("a step of training belongs to a network that is trained")
    }

    /// Whether gradients are added straight to the momentum of SGD.
    pub(crate) fn adds_to_momentum(&self) -> bool {
        let updates = |i: &Instruction| matches!(i.kind, StepKind::Update { .. });
        self.instructions.iter().any(|i| updates(i) && i.operand(Role::ParameterGradient(0)).is_none())
    }

    /// A node of the network.
    pub fn node(&self, node: usize) -> &Node {
        &self.graph.nodes[node]
    }

    /// Whether all operands of every step are aligned and those in different buffers do not overlap. The plan's validator
    /// has proved as much and more; devices ask before they trust it with memory.
    pub fn is_sound(&self) -> bool {
        self.check_sound().is_ok()
    }

    /// The same as [`is_sound`](Program::is_sound), with the reason why not.
    ///
    /// # Errors
    /// [`Error::DamagedPlan`], which says what is wrong where.
    pub fn check_sound(&self) -> Result<(), Error> {
        let damaged = |problem: String| Err(Error::DamagedPlan { problem });
        let (buffers, places) = (self.schedule.buffers.len(), self.regions.len());
        if buffers != places {
            return damaged(format!("it has {buffers} buffers, but {places} places for them"));
        }
        for (index, region) in self.regions.iter().enumerate() {
            if !region.offset.is_multiple_of(ALIGNMENT) {
                return damaged(format!("buffer {index} begins at byte {}, which is not aligned", region.offset));
            }
            if region.end(self.batch).is_none() {
                return damaged(format!("buffer {index} ends beyond all memory"));
            }
        }
        let bytes = |buffer: BufferId| {
            let region = self.region(buffer);
            region.offset..region.end(self.batch).expect("checked above")
        };
        for (index, Instruction { operands, .. }) in self.instructions.iter().enumerate() {
            if operands.iter().any(|operand| operand.buffer.index() >= places) {
                return damaged(format!("step {index} uses a buffer that there is not"));
            }
            let pairs = operands.iter().enumerate().flat_map(|(i, a)| operands[..i].iter().map(move |b| (a, b)));
            for (a, b) in pairs.filter(|(a, b)| a.buffer != b.buffer) {
                let (a, b) = (bytes(a.buffer), bytes(b.buffer));
                if a.start < b.end && b.start < a.end {
                    let step = self.schedule.steps[index].describe(&self.graph);
                    return damaged(format!("two buffers of {step} overlap, at bytes {a:?} and {b:?}"));
                }
            }
        }
        Ok(())
    }

    /// Whether all lies in an arena of so many bytes.
    ///
    /// # Errors
    /// [`Error::DamagedPlan`], for a buffer that does not.
    pub(crate) fn check_within(&self, bytes: u64) -> Result<(), Error> {
        match self.regions.iter().position(|region| region.end(self.batch).is_none_or(|end| end > bytes)) {
            None => Ok(()),
            Some(index) => {
                Err(Error::DamagedPlan { problem: format!("buffer {index} ends beyond the arena of {bytes} bytes") })
            }
        }
    }

    /// Where a buffer lies.
    pub fn region(&self, buffer: BufferId) -> Region {
        self.regions[buffer.index()]
    }
}

impl AsRef<Program> for Program {
    fn as_ref(&self) -> &Program {
        self
    }
}

/// The bytes of the buffers that are live at a step, in ascending order.
fn find_live(schedule: &Schedule, regions: &[Region], batch: usize, step: usize, live: &mut Vec<Range<u64>>) {
    let is_live = |buffer: &Buffer| (buffer.lower..buffer.upper).contains(&(step as u32));
    let buffers = schedule.buffers.iter().zip(regions).filter(|(buffer, _)| is_live(buffer));
    live.clear();
    live.extend(buffers.map(|(_, region)| region.offset..region.offset.saturating_add(region.bytes(batch) as u64)));
    live.sort_unstable_by_key(|bytes| bytes.start);
}

/// What lies between `live` bytes, within some.
fn gaps(live: &[Range<u64>], within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut end = within.start;
    let starts = live.iter().map(|bytes| (bytes.start, bytes.end)).chain([(within.end, within.end)]);
    starts.filter_map(move |(start, next)| {
        let gap = end..start;
        end = end.max(next);
        (!gap.is_empty()).then_some(gap)
    })
}

fn instruction(graph: &Graph, schedule: &Schedule, step: &plimsoll_plan::schedule::Step) -> Instruction {
    let scalar = || ValueType { dtype: DType::F32, shape: Default::default(), batched: false };
    let (inputs, output) = match step.kind {
        StepKind::Forward { node }
        | StepKind::Recompute { node }
        | StepKind::Backward { node, .. }
        | StepKind::SlicedLoss { node }
        | StepKind::UpdateRows { node } => {
            let inputs = graph.value_types(&graph.nodes[node].inputs);
            (inputs, graph.value_type(graph.value_of(node)).clone())
        }
        StepKind::Loss => {
            (vec![graph.value_type(graph.output).clone()], graph.target_type().expect("a loss has targets"))
        }
        StepKind::Accumulate { value } => (vec![graph.value_type(value).clone()], graph.value_type(value).clone()),
        StepKind::ClipGradNorm => (Vec::new(), scalar()),
        StepKind::Update { parameter } => {
            let shape = graph.parameters[parameter.index()].shape.clone();
            (Vec::new(), ValueType { shape, ..scalar() })
        }
    };
    let mut parts = Vec::with_capacity(inputs.len());
    for (i, whole) in inputs.iter().enumerate() {
        let of_node = step.kind.node().map_or(&[][..], |node| &schedule.parts[graph.nodes[node].inputs[i].index()]);
        match of_node {
            [] => parts.push(whole.clone()),
            values => parts.extend(graph.value_types(values)),
        }
    }
    Instruction { kind: step.kind, operands: step.operands.clone(), inputs, parts, output, spare: 0..0 }
}
