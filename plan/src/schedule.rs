//! A training step, or a pass of inference, as a list of steps over buffers.
//!
//! Steps and buffers refer to the [`Graph`] by index and carry sizes that are still symbolic in the batch, so that one
//! schedule serves every batch. Nothing here is placed yet; see [`Placement`](crate::placement::Placement).

use serde::Serialize;

use crate::graph::{Graph, ParameterId, ValueId};
use crate::shape::Size;

/// A buffer of a schedule, as an index into [`Schedule::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

impl BufferId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Steps, and the buffers that they read and write.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Whether this trains; else it is a pass of inference.
    pub training: bool,
    /// The steps in the order of execution.
    pub steps: Vec<Step>,
    /// The buffers: first the persistent ones, then the transient ones in the order of their first use.
    pub buffers: Vec<Buffer>,
    /// How many of the buffers are persistent.
    pub persistent: usize,
    /// The first step that runs once per update rather than once per batch; differs from the number of steps where
    /// gradients are accumulated over several batches.
    pub updates_from: usize,
    /// The buffer that holds each input.
    pub inputs: Vec<BufferId>,
    /// The buffer of the targets.
    pub target: Option<BufferId>,
    /// The buffer of the loss, one `f32`.
    pub loss: Option<BufferId>,
    /// The buffer that holds the network's output after the last forward step; none where it never exists as a whole.
    pub output: Option<BufferId>,
    /// For each value that is never made, the values whose channels make it up, in their order; for all others, nothing.
    /// What reads it has an operand for each.
    pub parts: Vec<Vec<ValueId>>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// What it reads and writes.
    pub operands: Vec<Operand>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A node's output from its inputs.
    Forward {
        /// Which node.
        node: usize,
    },
    /// A node's output once more, as it was: from its inputs and what the first run saved. Changes no state.
    Recompute {
        /// Which node.
        node: usize,
    },
    /// The loss, and its gradient with respect to the output.
    Loss,
    /// The last layer, a linear one, and the loss together, over slices of the classes, so that neither the output nor its
    /// gradient exists as a whole; then the layer's gradients. Where the weight is updated too, slice after slice, the
    /// operands have the optimizer's state in place of the weight's gradient.
    SlicedLoss {
        /// The last layer.
        node: usize,
    },
    /// Gradients of a node.
    Backward {
        /// Which node.
        node: usize,
        /// Which of its gradients.
        part: Part,
    },
    /// One gradient copied or added to another of the same size: `InputGradient(0)` from `OutputGradient`.
    Accumulate {
        /// The value whose gradient is written.
        value: ValueId,
    },
    /// The global norm of all gradients, and the factor that bounds it.
    ClipGradNorm,
    /// The optimizer's update of one parameter. Without a gradient among the operands, that was added to the momentum.
    Update {
        /// Which parameter.
        parameter: ParameterId,
    },
    /// The gradient of a node's weight and its update, a tile of rows after the other. The workspace begins with the tile;
    /// after it comes what the layer needs to compute parameters' gradients.
    UpdateRows {
        /// Which node.
        node: usize,
    },
}

impl StepKind {
    /// Whether this is the loss, which ends forward and begins backward.
    pub fn is_loss(self) -> bool {
        matches!(self, StepKind::Loss | StepKind::SlicedLoss { .. })
    }

    /// The node whose inputs it works on, if there is one.
    pub fn node(self) -> Option<usize> {
        match self {
            StepKind::Forward { node }
            | StepKind::Recompute { node }
            | StepKind::Backward { node, .. }
            | StepKind::SlicedLoss { node }
            | StepKind::UpdateRows { node } => Some(node),
            _ => None,
        }
    }
}

/// Which gradients a backward step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Those of the inputs and of the parameters together.
    All,
    /// Those of the parameters.
    Parameters,
    /// Those of the inputs.
    Inputs,
}

/// A buffer in a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What the step uses it for.
    pub role: Role,
    /// Which buffer.
    pub buffer: BufferId,
    /// How it is touched.
    pub access: Access,
}

/// What a step uses a buffer for. Numbers count within the node: inputs, parameters, saved tensors. Where an input is
/// never made, its [parts](Schedule::parts) are counted in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input value.
    Input(u32),
    /// The output value.
    Output,
    /// A parameter or buffer of the layer, in its order.
    Parameter(u32),
    /// What forward leaves for backward, in the layer's order.
    Saved(u32),
    /// The gradient of the loss with respect to the output.
    OutputGradient,
    /// The gradient of the loss with respect to an input.
    InputGradient(u32),
    /// The gradient of the loss with respect to a parameter.
    ParameterGradient(u32),
    /// The optimizer's state, in its order.
    State(u32),
    /// Scratch memory, whose content does not outlive the step.
    Workspace,
    /// The batch's targets.
    Target,
    /// The loss.
    Loss,
    /// The factor by which gradients are scaled to bound their global norm.
    GradientScale,
}

/// How a step touches a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It reads what is there.
    Read,
    /// It overwrites all of it, whatever was there.
    Write,
    /// It reads what is there and changes it; for a gradient: adds to it.
    Update,
}

/// A region of memory: what it holds, how large it is and when it is in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// What it holds, one after the other: each content after the first overwrites the one before in place.
    pub holds: Vec<Holding>,
    /// Its size.
    pub size: Size,
    /// The first step that touches it.
    pub lower: u32,
    /// One past the last step that touches it.
    pub upper: u32,
}

/// A content of a buffer, from a step on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// What it is.
    pub content: Content,
    /// The step that writes it.
    pub from: u32,
}

/// What a buffer can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A parameter, or a layer's own state.
    Parameter(ParameterId),
    /// The optimizer's state for a parameter: which of its tensors.
    OptimizerState(ParameterId, u32),
    /// A parameter's gradient.
    Gradient(ParameterId),
    /// A value: an input or the output of a node.
    Value(ValueId),
    /// The gradient of the loss with respect to a value.
    ValueGradient(ValueId),
    /// What a node saves for its backward pass: which of its tensors.
    Saved(usize, u32),
    /// Scratch memory of a step of a node.
    Workspace(usize),
    /// The batch's targets.
    Target,
    /// The loss.
    Loss,
    /// The factor that bounds the gradients' norm.
    GradientScale,
}

/// The classes that footprints add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Weights, trained or frozen.
    Parameter,
    /// Untrained state of layers: running statistics.
    Buffer,
    /// The optimizer's state.
    Optimizer,
    /// Gradients of parameters.
    Gradient,
    /// The batch and its targets.
    Input,
    /// Outputs of layers.
    Activation,
    /// What layers keep for backward beside activations: statistics, indices.
    Saved,
    /// Gradients of activations.
    ActivationGradient,
    /// Scratch memory.
    Workspace,
    /// The loss and other single numbers.
    Loss,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Class; 10] = [
        Class::Parameter,
        Class::Buffer,
        Class::Optimizer,
        Class::Gradient,
        Class::Input,
        Class::Activation,
        Class::Saved,
        Class::ActivationGradient,
        Class::Workspace,
        Class::Loss,
    ];

    /// The plural that reports use.
    pub const fn label(self) -> &'static str {
        match self {
            Class::Parameter => "parameters",
            Class::Buffer => "buffers",
            Class::Optimizer => "optimizer",
            Class::Gradient => "gradients",
            Class::Input => "input",
            Class::Activation => "activations",
            Class::Saved => "saved",
            Class::ActivationGradient => "activation gradients",
            Class::Workspace => "workspace",
            Class::Loss => "loss",
        }
    }
}

impl Content {
    /// The class that it counts in.
    pub fn class(self, graph: &Graph) -> Class {
        use crate::graph::ParameterRole;
        match self {
            Content::Parameter(id) if graph.parameters[id.index()].role == ParameterRole::Buffer => Class::Buffer,
            Content::Parameter(_) => Class::Parameter,
            Content::OptimizerState(..) => Class::Optimizer,
            Content::Gradient(_) => Class::Gradient,
            Content::Value(value) if value.index() < graph.inputs.len() => Class::Input,
            Content::Target => Class::Input,
            Content::Value(_) => Class::Activation,
            Content::ValueGradient(_) => Class::ActivationGradient,
            Content::Saved(..) => Class::Saved,
            Content::Workspace(_) => Class::Workspace,
            Content::Loss | Content::GradientScale => Class::Loss,
        }
    }

    /// Its name in reports: `layer1.0.conv1.weight`, `layer1.0.conv1 output`.
    pub fn name(self, graph: &Graph) -> String {
        let value = |value: ValueId| match value.index().checked_sub(graph.inputs.len()) {
            None => graph.inputs[value.index()].name.clone(),
            Some(node) => graph.nodes[node].label(),
        };
        match self {
            Content::Parameter(id) => graph.parameters[id.index()].path.clone(),
            Content::OptimizerState(id, which) => {
                let state = graph.training.as_ref().and_then(|t| t.optimizer.state().get(which as usize).copied());
                format!("{} {}", graph.parameters[id.index()].path, state.unwrap_or("state"))
            }
            Content::Gradient(id) => format!("{} gradient", graph.parameters[id.index()].path),
            Content::Value(id) if id.index() < graph.inputs.len() => value(id),
            Content::Value(id) => format!("{} output", value(id)),
            Content::ValueGradient(id) => format!("{} output gradient", value(id)),
            Content::Saved(node, which) => {
                let n = &graph.nodes[node];
                let memory =
                    n.layer.rule().memory(&graph.value_types(&n.inputs), graph.value_type(graph.value_of(node)));
                let name = memory.saved.get(which as usize).map_or("saved", |saved| saved.name);
                format!("{} {name}", n.label())
            }
            Content::Workspace(node) => match graph.nodes.get(node) {
                Some(node) => format!("{} workspace", node.label()),
                None => "workspace".to_string(),
            },
            Content::Target => "targets".to_string(),
            Content::Loss => "loss".to_string(),
            Content::GradientScale => "gradient scale".to_string(),
        }
    }
}

impl Step {
    /// Its name in reports: "the backward pass of `features.2` (conv2d)".
    pub fn describe(&self, graph: &Graph) -> String {
        let node = |node: usize| {
            let node = &graph.nodes[node];
            match node.path.is_empty() {
                true => format!("`{}`", node.layer.rule().kind()),
                false => format!("`{}` ({})", node.path, node.layer.rule().kind()),
            }
        };
        match self.kind {
            StepKind::Forward { node: n } => format!("the forward pass of {}", node(n)),
            StepKind::Recompute { node: n } => format!("computing {} again", node(n)),
            StepKind::Loss => "the loss".to_string(),
            StepKind::SlicedLoss { node: n } => format!("the loss by slices of {}", node(n)),
            StepKind::Backward { node: n, .. } => format!("the backward pass of {}", node(n)),
            StepKind::Accumulate { value } => match value.index().checked_sub(graph.inputs.len()) {
                Some(n) => format!("the sum of the gradients of {}", node(n)),
                None => format!("the sum of the gradients of `{}`", graph.inputs[value.index()].name),
            },
            StepKind::ClipGradNorm => "clipping the gradients' norm".to_string(),
            StepKind::Update { parameter } => {
                format!("the update of `{}`", graph.parameters[parameter.index()].path)
            }
            StepKind::UpdateRows { node } => {
                let weight = graph.nodes[node].parameters[0];
                format!("the update of `{}` by rows", graph.parameters[weight.index()].path)
            }
        }
    }

    /// The buffer in a role.
    pub fn buffer(&self, role: Role) -> Option<BufferId> {
        self.operand(role).map(|operand| operand.buffer)
    }

    /// The operand in a role.
    pub fn operand(&self, role: Role) -> Option<Operand> {
        self.operands.iter().copied().find(|operand| operand.role == role)
    }

    /// The part of [`flops`](Step::flops) that computes something again.
    pub fn repeated_flops(&self, graph: &Graph) -> u64 {
        match self.kind {
            StepKind::Recompute { .. } => self.flops(graph),
            StepKind::SlicedLoss { node } => product_flops(graph, node),
            _ => 0,
        }
    }

    /// Multiply-adds times 2 for one sample: a backward part costs as much as the forward product.
    pub fn flops(&self, graph: &Graph) -> u64 {
        let product = |node: usize| product_flops(graph, node);
        match self.kind {
            StepKind::Forward { node } | StepKind::Recompute { node } | StepKind::UpdateRows { node } => product(node),
            StepKind::Backward { node, part: Part::Inputs } => product(node),
            // The bias alone needs no product.
            StepKind::Backward { node, part: Part::Parameters }
                if self.buffer(Role::ParameterGradient(0)).is_some() =>
            {
                product(node)
            }
            // The logits twice, the gradient of the input, and that of the weight.
            StepKind::SlicedLoss { node } => {
                let has = |role: Role| u64::from(self.buffer(role).is_some());
                let updates = self.operand(Role::Parameter(0)).is_some_and(|weight| weight.access == Access::Update);
                let gradients = has(Role::InputGradient(0)) + has(Role::ParameterGradient(0)) + u64::from(updates);
                product(node).saturating_mul(2 + gradients)
            }
            _ => 0,
        }
    }
}

/// The forward product of a node for one sample.
fn product_flops(graph: &Graph, node: usize) -> u64 {
    let n = &graph.nodes[node];
    let inputs = graph.value_types(&n.inputs);
    let output = graph.value_type(graph.value_of(node));
    n.layer.rule().multiply_adds(&inputs, output).unwrap_or(u64::MAX).saturating_mul(2)
}

impl crate::graph::Node {
    /// The path, or the layer's name where there is none.
    pub fn label(&self) -> String {
        if self.path.is_empty() { self.layer.rule().kind().to_string() } else { self.path.clone() }
    }
}
