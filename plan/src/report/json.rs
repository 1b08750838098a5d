//! A plan as JSON, so that any tool can check it. The schema is described in `docs/plan-json.md`.

use serde::Serialize;

use crate::footprint::Footprint;
use crate::graph::Graph;
use crate::placement::ALIGNMENT;
use crate::plan::{Plan, Planned};
use crate::report::savings::Used;
use crate::schedule::{Access, Class, Role, StepKind};

/// The version of the schema.
pub const SCHEMA: &str = "plimsoll-plan/1";

#[derive(Serialize)]
struct PlanReport<'p> {
    schema: &'static str,
    network: &'p str,
    peak_bytes: u64,
    lower_bound_bytes: u64,
    inference_bytes: u64,
    evaluation_shift: u64,
    parameters: u64,
    textbook_bytes: u64,
    savings: Vec<SavingReport>,
    training: Option<ScheduleReport>,
    inference: ScheduleReport,
}

#[derive(Serialize)]
struct SavingReport {
    name: &'static str,
    count: usize,
    bytes: u64,
}

impl SavingReport {
    fn new(used: &Used) -> SavingReport {
        SavingReport { name: used.saving.name(), count: used.count, bytes: used.bytes }
    }
}

#[derive(Serialize)]
struct ScheduleReport {
    batch: u64,
    length: u64,
    persistent_bytes: u64,
    lower_bound: u64,
    peak_step: usize,
    updates_from: usize,
    buffers: Vec<BufferReport>,
    steps: Vec<StepReport>,
}

#[derive(Serialize)]
struct BufferReport {
    name: String,
    class: Class,
    persistent: bool,
    lower: u32,
    upper: u32,
    size: u64,
    alignment: u64,
    offset: u64,
    holds: Vec<HoldingReport>,
}

#[derive(Serialize)]
struct HoldingReport {
    name: String,
    class: Class,
    from: u32,
}

#[derive(Serialize)]
struct StepReport {
    name: String,
    kind: &'static str,
    layer: Option<&'static str>,
    operands: Vec<OperandReport>,
}

#[derive(Serialize)]
struct OperandReport {
    role: String,
    buffer: u32,
    access: Access,
}

impl Plan {
    /// The plan as JSON under the schema [`SCHEMA`].
    pub fn to_json(&self) -> String {
        let footprint = Footprint::new(self);
        let report = PlanReport {
            schema: SCHEMA,
            network: &self.graph.name,
            peak_bytes: footprint.peak_bytes,
            lower_bound_bytes: footprint.lower_bound_bytes,
            inference_bytes: footprint.inference_bytes,
            evaluation_shift: self.evaluation_shift(),
            parameters: footprint.parameters,
            textbook_bytes: footprint.textbook_bytes,
            savings: self.savings().iter().map(SavingReport::new).collect(),
            training: self.training.as_ref().map(|planned| schedule(&self.graph, planned)),
            inference: schedule(&self.graph, &self.inference),
        };
        serde_json::to_string_pretty(&report).expect("a report holds nothing that JSON can't")
    }
}

fn schedule(graph: &Graph, planned: &Planned) -> ScheduleReport {
    let (schedule, placement) = (&planned.schedule, &planned.placement);
    let buffers = schedule.buffers.iter().enumerate().map(|(i, buffer)| {
        let holds = buffer.holds.iter().map(|holding| HoldingReport {
            name: holding.content.name(graph),
            class: holding.content.class(graph),
            from: holding.from,
        });
        BufferReport {
            name: buffer.holds[0].content.name(graph),
            class: buffer.holds[0].content.class(graph),
            persistent: i < schedule.persistent,
            lower: buffer.lower,
            upper: buffer.upper,
            size: placement.sizes[i],
            alignment: ALIGNMENT,
            offset: placement.offsets[i],
            holds: holds.collect(),
        }
    });
    let steps = schedule.steps.iter().map(|step| StepReport {
        name: step.describe(graph),
        kind: kind(step.kind),
        layer: match step.kind {
            StepKind::Forward { node }
            | StepKind::Recompute { node }
            | StepKind::Backward { node, .. }
            | StepKind::SlicedLoss { node }
            | StepKind::UpdateRows { node } => Some(graph.nodes[node].layer.rule().kind()),
            _ => None,
        },
        operands: step
            .operands
            .iter()
            .map(|operand| OperandReport { role: role(operand.role), buffer: operand.buffer.0, access: operand.access })
            .collect(),
    });
    ScheduleReport {
        batch: placement.batch,
        length: placement.length,
        persistent_bytes: placement.persistent_bytes,
        lower_bound: placement.lower_bound,
        peak_step: placement.peak_step,
        updates_from: schedule.updates_from,
        buffers: buffers.collect(),
        steps: steps.collect(),
    }
}

fn kind(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Forward { .. } => "forward",
        StepKind::Recompute { .. } => "recompute",
        StepKind::Loss => "loss",
        StepKind::SlicedLoss { .. } => "sliced_loss",
        StepKind::Backward { .. } => "backward",
        StepKind::Accumulate { .. } => "accumulate",
        StepKind::ClipGradNorm => "clip_grad_norm",
        StepKind::Update { .. } => "update",
        StepKind::UpdateRows { .. } => "update_rows",
    }
}

fn role(role: Role) -> String {
    match role {
        Role::Input(i) => format!("input[{i}]"),
        Role::Output => "output".to_string(),
        Role::Parameter(i) => format!("parameter[{i}]"),
        Role::Saved(i) => format!("saved[{i}]"),
        Role::OutputGradient => "output_gradient".to_string(),
        Role::InputGradient(i) => format!("input_gradient[{i}]"),
        Role::ParameterGradient(i) => format!("parameter_gradient[{i}]"),
        Role::State(i) => format!("state[{i}]"),
        Role::Workspace => "workspace".to_string(),
        Role::Target => "target".to_string(),
        Role::Loss => "loss".to_string(),
        Role::GradientScale => "gradient_scale".to_string(),
    }
}
