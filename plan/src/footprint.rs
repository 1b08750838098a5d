//! The numbers of a plan: what each class takes in all, and what is live where the peak is.

use std::cmp::Reverse;

use crate::graph::{Graph, ParameterRole};
use crate::known::Known;
use crate::layers::Output;
use crate::placement::align_up;
use crate::plan::{Plan, Planned};
use crate::schedule::{BufferId, Class, Content, Schedule};
use crate::what_if::{arena_budget, largest_batch_with};

/// Every number of a network, in bytes unless said. The constants of a network are these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Documented where users meet them: the constants that `network!` writes.
pub struct Footprint {
    pub batch: u64,
    pub parameters: u64,
    pub parameter_bytes: u64,
    pub gradient_bytes: u64,
    pub optimizer_bytes: u64,
    pub buffer_bytes: u64,
    pub input_bytes: u64,
    pub activation_bytes: u64,
    pub saved_bytes: u64,
    pub workspace_bytes: u64,
    pub textbook_bytes: u64,
    pub peak_bytes: u64,
    pub lower_bound_bytes: u64,
    pub inference_bytes: u64,
    pub budget_bytes: Option<u64>,
    pub max_batch: Option<u64>,
    pub flops: u64,
    pub recompute_flops: u64,
}

impl Footprint {
    /// The numbers of a plan. Sums that would pass 64 bits stop there; a plan with such numbers has no placement, so that
    /// only `textbook_bytes` and `flops` ever could.
    pub fn new(plan: &Plan) -> Footprint {
        Footprint::new_with(plan, &Known::default())
    }

    /// The same, with what is known since the plan was made.
    pub fn new_with(plan: &Plan, known: &Known) -> Footprint {
        let graph = &plan.graph;
        let batch = graph.declared_batch();
        let bytes_of = |role: ParameterRole| -> u64 {
            graph.parameters.iter().filter(|p| p.role == role).map(|p| p.bytes()).sum()
        };
        let trained = bytes_of(ParameterRole::Trained);
        let states = graph.training.as_ref().map_or(0, |t| t.optimizer.state().len() as u64);
        let parameter_bytes = trained + bytes_of(ParameterRole::Frozen);
        let gradient_bytes = if graph.training.is_some() { trained } else { 0 };
        let optimizer_bytes = trained * states;
        let inputs = graph.inputs.iter().map(|input| input.value_type.size());
        let input_bytes = inputs
            .chain(graph.target_type().map(|target| target.size()))
            .map(|size| size.bytes(batch).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add);
        let activation_bytes = activation_bytes(graph, batch);
        let main = plan.training.as_ref().unwrap_or(&plan.inference);
        let workspace_bytes = workspaces(graph, &plan.inference).chain(workspaces(graph, main)).max().unwrap_or(0);
        let saved_bytes = saved(graph, main).map(|(_, bytes)| bytes).sum();
        let textbook_bytes = [parameter_bytes, gradient_bytes, optimizer_bytes, input_bytes]
            .into_iter()
            .fold(activation_bytes.saturating_mul(2), u64::saturating_add);
        let flops = main.schedule.steps.iter().map(|step| step.flops(graph)).fold(0, u64::saturating_add);
        let again = main.schedule.steps.iter().map(|step| step.repeated_flops(graph)).fold(0, u64::saturating_add);
        let budget_bytes = match graph.training {
            Some(_) => graph.budget.train,
            None => graph.budget.infer,
        };
        Footprint {
            batch,
            parameters: graph.trainable_parameters(),
            parameter_bytes,
            gradient_bytes,
            optimizer_bytes,
            buffer_bytes: bytes_of(ParameterRole::Buffer),
            input_bytes,
            activation_bytes,
            saved_bytes,
            workspace_bytes,
            textbook_bytes,
            peak_bytes: plan.peak_bytes(),
            lower_bound_bytes: plan.lower_bound_bytes(),
            inference_bytes: plan.inference_bytes(),
            budget_bytes,
            max_batch: budget_bytes
                .map(|budget| largest_batch_with(plan, arena_budget(budget, graph.budget.reserve), known)),
            flops: flops.saturating_mul(batch),
            recompute_flops: again.saturating_mul(batch),
        }
    }
}

/// The outputs of all layers for a batch, as layer tables count them.
fn activation_bytes(graph: &Graph, batch: u64) -> u64 {
    let sizes = (0..graph.nodes.len()).map(|node| node_activation_bytes(graph, node, batch));
    sizes.fold(0, u64::saturating_add)
}

/// The output of one layer for a batch, or nothing where layer tables count nothing.
pub(crate) fn node_activation_bytes(graph: &Graph, node: usize, batch: u64) -> u64 {
    let output = graph.value_of(node);
    let n = &graph.nodes[node];
    let kind = n.layer.rule().memory(&graph.value_types(&n.inputs), graph.value_type(output)).output;
    if kind == Output::New { graph.value_type(output).size().bytes(batch).unwrap_or(u64::MAX) } else { 0 }
}

/// The scratch memory of each step.
fn workspaces<'p>(graph: &'p Graph, planned: &'p Planned) -> impl Iterator<Item = u64> + 'p {
    planned
        .schedule
        .buffers
        .iter()
        .zip(&planned.placement.sizes)
        .filter_map(|(buffer, size)| (buffer.holds[0].content.class(graph) == Class::Workspace).then_some(*size))
}

/// What is kept from forward to backward, by the node that made it, in bytes: outputs and saved tensors that were written
/// before the loss and are read after it. The batch itself is not among them.
pub(crate) fn saved<'p>(graph: &'p Graph, planned: &'p Planned) -> impl Iterator<Item = (usize, u64)> + 'p {
    let loss = planned.schedule.steps.iter().position(|step| step.kind.is_loss());
    let loss = loss.map_or(u32::MAX, |step| step as u32);
    planned.schedule.buffers.iter().zip(&planned.placement.sizes).filter_map(move |(buffer, size)| {
        if buffer.lower >= loss || buffer.upper <= loss.saturating_add(1) {
            return None;
        }
        match content_at(buffer, loss) {
            Content::Value(value) => value.index().checked_sub(graph.inputs.len()).map(|node| (node, *size)),
            Content::Saved(node, _) => Some((node, *size)),
            _ => None,
        }
    })
}

/// What a buffer holds after a step.
fn content_at(buffer: &crate::schedule::Buffer, step: u32) -> Content {
    let current = buffer.holds.iter().rev().find(|holding| holding.from <= step);
    current.unwrap_or(&buffer.holds[0]).content
}

/// What is live at the step where the peak is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The step, in words.
    pub step: String,
    /// The bytes of each class that are live then, largest class first; classes with none are left out.
    pub classes: Vec<(Class, u64)>,
    /// What rounding up to the alignment takes.
    pub alignment_bytes: u64,
    /// What lies idle between live buffers: the arena's length less the lower bound.
    pub idle_bytes: u64,
    /// The three largest buffers, by name.
    pub largest: Vec<(String, u64)>,
}

impl Peak {
    /// What is live at the peak of a plan.
    pub fn new(plan: &Plan) -> Peak {
        let graph = &plan.graph;
        let planned = plan.peak_part();
        let (schedule, placement) = (&planned.schedule, &planned.placement);
        let time = placement.peak_step as u32;
        let mut bytes = [0u64; Class::ALL.len()];
        let mut aligned = 0;
        let mut live: Vec<(u64, BufferId)> = Vec::new();
        for (i, buffer) in schedule.buffers.iter().enumerate() {
            if buffer.lower <= time && time < buffer.upper {
                let size = placement.sizes[i];
                bytes[content_at(buffer, time).class(graph) as usize] += size;
                aligned += align_up(size).expect("placed sizes stay within 64 bits") - size;
                live.push((size, BufferId(i as u32)));
            }
        }
        // A trainer that evaluates keeps the optimizer's state below.
        let shift = if std::ptr::eq(planned, &plan.inference) { plan.evaluation_shift() } else { 0 };
        if shift > 0 {
            let extra = plan.training.as_ref().map_or(0, |t| t.placement.sizes[..t.schedule.persistent].iter().sum())
                - placement.sizes[..schedule.persistent].iter().sum::<u64>();
            bytes[Class::Optimizer as usize] += extra;
            aligned += shift - extra;
        }
        live.sort_by_key(|&(size, _)| Reverse(size));
        let mut classes: Vec<(Class, u64)> =
            Class::ALL.into_iter().zip(bytes).filter(|(_, bytes)| *bytes > 0).collect();
        classes.sort_by_key(|class| Reverse(class.1));
        let name = |id: BufferId| content_at(&schedule.buffers[id.index()], time).name(graph);
        Peak {
            step: step_name(schedule, time as usize, graph),
            classes,
            alignment_bytes: aligned,
            idle_bytes: placement.length - placement.lower_bound,
            largest: live.iter().take(3).map(|&(size, id)| (name(id), size)).collect(),
        }
    }
}

fn step_name(schedule: &Schedule, step: usize, graph: &Graph) -> String {
    match schedule.steps.get(step) {
        Some(step) => step.describe(graph),
        None => "the start".to_string(),
    }
}
