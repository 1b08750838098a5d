//! Checks a plan from its steps and offsets alone, sharing no code with the planner.
//!
//! It runs the steps symbolically: every write labels its buffer with what is written, and every read must find the label
//! that the step's definition calls for. So a buffer that was overwritten too early, or freed and taken by another, is
//! found whatever rule let it happen. Beside that, buffers that are live together must not share bytes, and each must be
//! aligned and inside the arena.

use crate::graph::{Graph, ValueId};
use crate::layers::{Layer, Output};
use crate::losses::Loss;
use crate::optimizers::Optimizer;
use crate::plan::{Plan, Planned};
use crate::schedule::{Access, Operand, Role, Schedule, Step, StepKind};

/// What is wrong with a plan: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// Checks both schedules of a plan.
///
/// # Errors
/// The first fault that is found.
pub fn validate(plan: &Plan) -> Result<(), Fault> {
    if let Some(training) = &plan.training
        && training.placement.persistent_bytes < plan.inference.placement.persistent_bytes
    {
        return Err(Fault("inference keeps more than training does".to_string()));
    }
    validate_part(&plan.graph, &plan.inference, plan.evaluation_shift())?;
    if let Some(training) = &plan.training {
        validate_part(&plan.graph, training, 0)?;
        let needed = plan.inference.placement.length + plan.evaluation_shift();
        if plan.peak_bytes() < training.placement.length.max(needed) {
            return Err(Fault("the peak is smaller than a part of it".to_string()));
        }
        let shared = plan.inference.schedule.persistent;
        if training.placement.offsets[..shared] != plan.inference.placement.offsets[..shared] {
            return Err(Fault("parameters lie elsewhere in training than in inference".to_string()));
        }
    }
    Ok(())
}

fn validate_part(graph: &Graph, planned: &Planned, shift: u64) -> Result<(), Fault> {
    check_lifespans(planned)?;
    check_operands(graph, &planned.schedule)?;
    check_offsets(planned, shift)?;
    check_contents(graph, &planned.schedule)
}

/// No step lacks what its layer reads or writes in any case.
fn check_operands(graph: &Graph, schedule: &Schedule) -> Result<(), Fault> {
    let values = Values::new(graph, schedule);
    for (time, step) in schedule.steps.iter().enumerate() {
        let roles: Vec<Role> = match step.kind {
            StepKind::Forward { node } | StepKind::Recompute { node } => {
                let inputs = (0..values.read_by(graph, node).len() as u32).map(Role::Input);
                inputs.chain([Role::Output]).collect()
            }
            StepKind::Backward { node, .. } => {
                let n = &graph.nodes[node];
                let output = graph.value_type(graph.value_of(node));
                let saved = n.layer.rule().memory(&graph.value_types(&n.inputs), output).saved.len() as u32;
                (0..saved).map(Role::Saved).chain([Role::OutputGradient]).collect()
            }
            _ => Vec::new(),
        };
        if let Some(role) = roles.into_iter().find(|role| step.buffer(*role).is_none()) {
            return Err(Fault(format!("step {time}, {}, lacks {role:?}", step.describe(graph))));
        }
        check_parts(graph, &values, step).map_err(|Fault(fault)| Fault(format!("step {time}, {fault}")))?;
    }
    Ok(())
}

/// A value that is never made is read by such layers only that can do with its parts, of which none is missing.
fn check_parts(graph: &Graph, values: &Values, step: &Step) -> Result<(), Fault> {
    let (StepKind::Forward { node }
    | StepKind::Recompute { node }
    | StepKind::Backward { node, .. }
    | StepKind::SlicedLoss { node }
    | StepKind::UpdateRows { node }) = step.kind
    else {
        return Ok(());
    };
    let n = &graph.nodes[node];
    if n.inputs.iter().all(|input| values.is_made(*input)) {
        return Ok(());
    }
    let layer_can = match &n.layer {
        Layer::Conv(conv) => conv.groups == 1,
        Layer::Concat(concat) => concat.axis_of(graph.value_type(graph.value_of(node))) == 0,
        Layer::BatchNorm(_) | Layer::Pool(_) | Layer::AdaptivePool(_) => true,
        _ => false,
    };
    let parts = values.read_by(graph, node);
    let are_batched = parts.iter().all(|part| graph.value_type(*part).batched);
    let read = (0..parts.len() as u32).filter(|i| step.buffer(Role::Input(*i)).is_some()).count();
    if !layer_can || !are_batched || (read != 0 && read != parts.len()) {
        return Err(Fault(format!("{}, can't read {read} parts of {}", step.describe(graph), parts.len())));
    }
    Ok(())
}

/// Every buffer is live whenever a step touches it.
fn check_lifespans(planned: &Planned) -> Result<(), Fault> {
    for (time, step) in planned.schedule.steps.iter().enumerate() {
        for operand in &step.operands {
            let buffer = &planned.schedule.buffers[operand.buffer.index()];
            if (time as u32) < buffer.lower || time as u32 >= buffer.upper {
                return Err(Fault(format!("step {time} touches buffer {} outside its lifespan", operand.buffer.0)));
            }
        }
    }
    Ok(())
}

/// Buffers are aligned and inside, persistent ones below transient ones, and no two that are live together share bytes.
fn check_offsets(planned: &Planned, shift: u64) -> Result<(), Fault> {
    let (schedule, placement) = (&planned.schedule, &planned.placement);
    if placement.length < placement.lower_bound || !placement.length.is_multiple_of(256) {
        return Err(Fault(format!("an arena of {} bytes is shorter than the live bytes, or uneven", placement.length)));
    }
    let mut events: Vec<(u32, bool, usize)> = Vec::new();
    for (i, buffer) in schedule.buffers.iter().enumerate() {
        let (offset, size) = (placement.offsets[i], placement.sizes[i]);
        let end = offset.checked_add(size).ok_or_else(|| Fault(format!("buffer {i} ends beyond 2^64")))?;
        let persistent = i < schedule.persistent;
        if !offset.is_multiple_of(256) || !shift.is_multiple_of(256) {
            return Err(Fault(format!("buffer {i} lies at {offset}, which is not a multiple of 256")));
        }
        if end > placement.length || (persistent && end > placement.persistent_bytes) {
            return Err(Fault(format!("buffer {i} ends at {end}, outside its part of the arena")));
        }
        if !persistent && offset < placement.persistent_bytes {
            return Err(Fault(format!("buffer {i} lies at {offset}, among the persistent ones")));
        }
        if size > 0 {
            events.push((buffer.lower, true, i));
        }
        // What is live to the end needs no event there.
        if size > 0 && (buffer.upper as usize) < schedule.steps.len() {
            events.push((buffer.upper, false, i));
        }
    }
    // At one time, ends come before beginnings.
    events.sort_by_key(|&(time, begins, _)| 2 * u64::from(time) + u64::from(begins));
    // The live buffers by offset. None overlap, so only the neighbours of a new one need a look.
    let mut live: Vec<(u64, usize)> = Vec::new();
    for (_, begins, i) in events {
        let (offset, size) = (placement.offsets[i], placement.sizes[i]);
        let at = live.partition_point(|&(other, _)| other < offset);
        if !begins {
            live.remove(at);
            continue;
        }
        let below = at.checked_sub(1).map(|below| live[below].1).filter(|&j| {
            let end = placement.offsets[j] + placement.sizes[j];
            end > offset
        });
        let above = live.get(at).filter(|&&(other, _)| other < offset + size).map(|&(_, j)| j);
        if let Some(j) = below.or(above) {
            return Err(Fault(format!("buffers {j} and {i} share bytes while both are live")));
        }
        live.insert(at, (offset, i));
    }
    Ok(())
}

/// What a buffer is known to hold while the steps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Nothing,
    Parameter(u32),
    /// A parameter after its update, which no step of the same batch may read.
    Updated(u32),
    State(u32, u32),
    /// The momentum of a parameter with its gradient added.
    StateWithGradient(u32),
    ParameterGradient(u32),
    Value(u32),
    ValueGradient,
    Saved(usize, u32),
    Target,
    Loss,
    Scale,
}

/// Every read finds what its step calls for.
fn check_contents(graph: &Graph, schedule: &Schedule) -> Result<(), Fault> {
    let values = Values::new(graph, schedule);
    let mut labels = initial_labels(graph, schedule, &values.sources)?;
    for (time, step) in schedule.steps.iter().enumerate() {
        check_kind(graph, step)?;
        for (i, operand) in step.operands.iter().enumerate().filter(|(_, operand)| operand.access != Access::Write) {
            // Both gradients of `x * x` go to one place: the step writes the first and adds the second.
            let written = |earlier: &Operand| earlier.buffer == operand.buffer && earlier.access == Access::Write;
            if operand.access == Access::Update && step.operands[..i].iter().any(written) {
                continue;
            }
            let expected = label(graph, &values, step, operand.role);
            let found = labels[operand.buffer.index()];
            let fits = match (step.kind, expected, found) {
                // The norm takes the gradients of all parameters that have one, whichever they are.
                (StepKind::ClipGradNorm, _, Label::ParameterGradient(_)) => true,
                // Added to the momentum, a gradient needs no buffer of its own.
                (
                    StepKind::Backward { .. } | StepKind::Accumulate { .. } | StepKind::SlicedLoss { .. },
                    Label::ParameterGradient(p),
                    Label::State(q, 0) | Label::StateWithGradient(q),
                ) => p == q && operand.access == Access::Update && training_adds_to_momentum(graph),
                (StepKind::Recompute { .. }, ..) if operand.access == Access::Update => false,
                _ => found == expected,
            };
            if !fits {
                return Err(Fault(format!(
                    "step {time}, {}, needs {expected:?} in buffer {} but finds {found:?}",
                    step.describe(graph),
                    operand.buffer.0
                )));
            }
        }
        for operand in &step.operands {
            let found = &mut labels[operand.buffer.index()];
            *found = match (operand.access, *found, operand.role) {
                (Access::Write, ..) => label(graph, &values, step, operand.role),
                (Access::Update, Label::State(p, 0), Role::ParameterGradient(_) | Role::InputGradient(_)) => {
                    Label::StateWithGradient(p)
                }
                (Access::Update, Label::StateWithGradient(p), Role::State(0)) => Label::State(p, 0),
                (Access::Update, Label::Parameter(p), Role::Parameter(_)) if is_update(step) => Label::Updated(p),
                (_, found, _) => found,
            };
        }
    }
    match schedule.output.map(|output| labels[output.index()]) {
        Some(Label::Value(value)) if value == values.sources[graph.output.index()].0 => Ok(()),
        _ if schedule.training => Ok(()),
        other => Err(Fault(format!("the output's buffer ends up with {other:?}"))),
    }
}

/// A loss by slices has the last layer in it, one position a sample. What is updated at once must not wait for other gradients.
fn check_kind(graph: &Graph, step: &Step) -> Result<(), Fault> {
    let Some(training) = &graph.training else { return Ok(()) };
    if let StepKind::SlicedLoss { node } = step.kind {
        let is_head = graph.value_of(node) == graph.output
            && matches!(graph.nodes[node].layer, Layer::Linear(_))
            && graph.value_type(graph.output).shape.rank() == 1
            && matches!(training.loss, Loss::CrossEntropy { .. });
        if !is_head {
            return Err(Fault(format!("{} is no loss of logits", step.describe(graph))));
        }
    }
    let updates = |operand: &Operand| matches!((operand.role, operand.access), (Role::Parameter(_), Access::Update));
    let at_once = match step.kind {
        StepKind::UpdateRows { .. } | StepKind::SlicedLoss { .. } => step.operands.iter().any(updates),
        _ => false,
    };
    if at_once && (training.accumulate > 1 || training.clip_grad_norm.is_some()) {
        return Err(Fault(format!("{} updates a weight too early", step.describe(graph))));
    }
    Ok(())
}

fn is_update(step: &Step) -> bool {
    matches!(step.kind, StepKind::Update { .. } | StepKind::UpdateRows { .. } | StepKind::SlicedLoss { .. })
}

/// Whether the first state of the optimizer is a plain momentum, to which gradients may be added.
fn training_adds_to_momentum(graph: &Graph) -> bool {
    graph.training.as_ref().is_some_and(|training| match training.optimizer {
        Optimizer::Sgd { momentum, dampening, nesterov, .. } => momentum > 0.0 && dampening == 0.0 && !nesterov,
        _ => false,
    })
}

/// Where the elements of values are.
struct Values {
    /// For each value, the one whose elements it shares.
    sources: Vec<ValueId>,
    /// For each value that no step makes, a concat's, what it consists of.
    parts: Vec<Vec<ValueId>>,
}

impl Values {
    fn new(graph: &Graph, schedule: &Schedule) -> Values {
        let mut parts: Vec<Vec<ValueId>> = vec![Vec::new(); graph.types.len()];
        let mut is_step = vec![false; graph.nodes.len()];
        for step in &schedule.steps {
            if let StepKind::Forward { node } = step.kind {
                is_step[node] = true;
            }
        }
        for (node, n) in graph.nodes.iter().enumerate() {
            if matches!(n.layer, Layer::Concat(_)) && !is_step[node] {
                let of = |input: &ValueId| match &parts[input.index()][..] {
                    [] => vec![*input],
                    parts => parts.to_vec(),
                };
                parts[graph.value_of(node).index()] = n.inputs.iter().flat_map(of).collect();
            }
        }
        Values { sources: sources(graph, schedule.training), parts }
    }

    fn is_made(&self, value: ValueId) -> bool {
        self.parts[value.index()].is_empty()
    }

    /// The values that a node reads, parts in place of what is never made.
    fn read_by(&self, graph: &Graph, node: usize) -> Vec<ValueId> {
        let of = |input: &ValueId| if self.is_made(*input) { vec![*input] } else { self.parts[input.index()].clone() };
        graph.nodes[node].inputs.iter().flat_map(of).collect()
    }

    /// One of them by its number.
    fn read_as(&self, graph: &Graph, node: usize, number: u32) -> Option<ValueId> {
        let mut number = number as usize;
        for input in &graph.nodes[node].inputs {
            let parts = &self.parts[input.index()];
            match number.checked_sub(parts.len().max(1)) {
                Some(rest) => number = rest,
                None => return Some(parts.get(number).copied().unwrap_or(*input)),
            }
        }
        None
    }
}

/// For each value, the one whose elements it shares: views are followed to where they come from.
fn sources(graph: &Graph, training: bool) -> Vec<ValueId> {
    let mut sources: Vec<ValueId> = (0..graph.inputs.len() as u32).map(ValueId).collect();
    for (node, n) in graph.nodes.iter().enumerate() {
        let own = graph.value_of(node);
        let memory = n.layer.rule().memory(&graph.value_types(&n.inputs), graph.value_type(own));
        let view = memory.output == Output::View || (matches!(n.layer, Layer::Dropout(_)) && !training);
        sources.push(match n.inputs.first() {
            Some(input) if view => sources[input.index()],
            _ => own,
        });
    }
    sources
}

/// What is there before the first step: parameters and state, zeroed gradients, the batch and its targets.
fn initial_labels(graph: &Graph, schedule: &Schedule, sources: &[ValueId]) -> Result<Vec<Label>, Fault> {
    use crate::schedule::Content;
    let mut labels = vec![Label::Nothing; schedule.buffers.len()];
    for (i, buffer) in schedule.buffers[..schedule.persistent].iter().enumerate() {
        labels[i] = match buffer.holds[0].content {
            Content::Parameter(id) => Label::Parameter(id.0),
            Content::OptimizerState(id, which) => Label::State(id.0, which),
            Content::Gradient(id) => Label::ParameterGradient(id.0),
            other => return Err(Fault(format!("{} is among the persistent buffers", other.name(graph)))),
        };
    }
    for (i, &buffer) in schedule.inputs.iter().enumerate() {
        labels[buffer.index()] = Label::Value(sources[i].0);
    }
    if let Some(target) = schedule.target {
        labels[target.index()] = Label::Target;
    }
    Ok(labels)
}

/// What a step reads or writes in a role.
fn label(graph: &Graph, values: &Values, step: &Step, role: Role) -> Label {
    let value = |value: ValueId| {
        let source = values.sources[value.index()];
        let node = source.index().checked_sub(graph.inputs.len());
        match node.map(|node| &graph.nodes[node]) {
            Some(n) if matches!(n.layer, Layer::Parameter(_)) => Label::Parameter(n.parameters[0].0),
            _ => Label::Value(source.0),
        }
    };
    match (step.kind, role) {
        (_, Role::OutputGradient) => Label::ValueGradient,
        (StepKind::Loss, Role::Input(_)) => value(graph.output),
        (StepKind::Loss | StepKind::SlicedLoss { .. }, Role::Target) => Label::Target,
        (StepKind::Loss | StepKind::SlicedLoss { .. }, Role::Loss) => Label::Loss,
        (StepKind::Loss, _) => Label::ValueGradient,
        (StepKind::UpdateRows { node } | StepKind::SlicedLoss { node }, Role::State(which)) => {
            Label::State(graph.nodes[node].parameters[0].0, which)
        }
        (
            StepKind::Forward { node }
            | StepKind::Recompute { node }
            | StepKind::Backward { node, .. }
            | StepKind::SlicedLoss { node }
            | StepKind::UpdateRows { node },
            role,
        ) => {
            let n = &graph.nodes[node];
            match role {
                Role::Input(i) => values.read_as(graph, node, i).map_or(Label::Nothing, value),
                Role::Output => value(graph.value_of(node)),
                Role::Parameter(i) => Label::Parameter(n.parameters[i as usize].0),
                Role::Saved(i) => Label::Saved(node, i),
                Role::InputGradient(i) => {
                    values.read_as(graph, node, i).map_or(Label::Nothing, |read| gradient_of(graph, read))
                }
                Role::ParameterGradient(i) => Label::ParameterGradient(n.parameters[i as usize].0),
                _ => Label::Nothing,
            }
        }
        (StepKind::Accumulate { value }, _) => gradient_of(graph, value),
        (StepKind::ClipGradNorm, _) => Label::Scale,
        (StepKind::Update { parameter }, Role::Parameter(_)) => Label::Parameter(parameter.0),
        (StepKind::Update { parameter }, Role::ParameterGradient(_)) => Label::ParameterGradient(parameter.0),
        (StepKind::Update { parameter }, Role::State(0)) if step.buffer(Role::ParameterGradient(0)).is_none() => {
            Label::StateWithGradient(parameter.0)
        }
        (StepKind::Update { parameter }, Role::State(which)) => Label::State(parameter.0, which),
        (StepKind::Update { .. }, _) => Label::Scale,
    }
}

/// The gradient of a value; of a parameter used as a value, the parameter's.
fn gradient_of(graph: &Graph, value: ValueId) -> Label {
    let node = value.index().checked_sub(graph.inputs.len());
    match node.map(|node| &graph.nodes[node]) {
        Some(n) if matches!(n.layer, Layer::Parameter(_)) => Label::ParameterGradient(n.parameters[0].0),
        _ => Label::ValueGradient,
    }
}
