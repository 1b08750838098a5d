//! The network as data: inputs, parameters and layers applied in order.
//!
//! A [`Graph`] is what the language lowers a declaration to and what the planner plans. It can be asked "what if":
//! [`batch`](Graph::batch), [`optimizer`](Graph::optimizer), [`budget`](Graph::budget) give a changed copy to
//! [`plan`](crate::plan::Plan::new) anew.

use serde::{Deserialize, Serialize};

use crate::layers::{Init, Layer};
use crate::losses::Loss;
use crate::optimizers::Optimizer;
use crate::shape::{DType, Shape, ValueType};
use crate::strategy::Saving;
use crate::units::Units;

/// The most elements that one sample of a value, or one parameter, may have: 2^40, four tebibytes of `f32`.
pub const MAX_ELEMENTS: u64 = 1 << 40;

/// The largest batch.
pub const MAX_BATCH: u64 = i32::MAX as u64;

/// A value: an input of the network, or the output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub u32);

/// A parameter or buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterId(pub u32);

impl ValueId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ParameterId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An input of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type; inputs are always batched.
    pub value_type: ValueType,
}

/// A parameter or buffer of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// PyTorch's name: the member's path and the name within the layer, joined by dots.
    pub path: String,
    /// Its shape, as PyTorch stores it. Elements are `f32`.
    pub shape: Shape,
    /// Its initial distribution.
    pub init: Init,
    /// What becomes of it in training.
    pub role: ParameterRole,
}

/// What becomes of a parameter in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterRole {
    /// The optimizer updates it.
    Trained,
    /// `#[freeze]`: it stays as it is.
    Frozen,
    /// A buffer, such as running statistics: written by its layer, not by the optimizer.
    Buffer,
}

impl Parameter {
    /// Its elements.
    pub fn elements(&self) -> u64 {
        self.shape.elements().expect("the graph builder checks every shape")
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.elements() * DType::F32.bytes()
    }
}

/// A layer applied to values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The member's path, or for what `forward` applies directly, the path of the block and the layer's name.
    pub path: String,
    /// The layer.
    pub layer: Layer,
    /// What it is applied to.
    pub inputs: Vec<ValueId>,
    /// Its parameters, in the layer's order.
    pub parameters: Vec<ParameterId>,
}

/// How the network is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Samples of one step.
    pub batch: u64,
    /// What updates the parameters.
    pub optimizer: Optimizer,
    /// What is minimized.
    pub loss: Loss,
    /// How many batches' gradients are averaged for one update.
    pub accumulate: u64,
    /// The largest global norm of the gradients (Pascanu et al. 2013), if any.
    pub clip_grad_norm: Option<f64>,
}

/// The memory that may be used, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// For training (with its evaluation).
    pub train: Option<u64>,
    /// For inference alone.
    pub infer: Option<u64>,
    /// What the device's context and libraries take of either.
    pub reserve: u64,
    /// Whether activations may be computed again until training fits.
    pub recompute: bool,
    /// The units to print in.
    pub units: Units,
}

/// A network: its inputs, parameters, layers and options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The type's name.
    pub name: String,
    /// The inputs: values `0..inputs.len()`.
    pub inputs: Vec<Input>,
    /// The parameters and buffers, in the order of the first use.
    pub parameters: Vec<Parameter>,
    /// The layers in the order of execution; node `i` gives value `inputs.len() + i`.
    pub nodes: Vec<Node>,
    /// The types of all values.
    pub types: Vec<ValueType>,
    /// The network's output.
    pub output: ValueId,
    /// How it is trained, if it is.
    pub training: Option<Training>,
    /// The batch of inference; without one, that of training.
    pub inference_batch: Option<u64>,
    /// What it may use.
    pub budget: Budget,
    /// The ways to save memory that the planner must do without.
    pub without: Vec<Saving>,
}

impl Graph {
    /// The type of a value.
    pub fn value_type(&self, value: ValueId) -> &ValueType {
        &self.types[value.index()]
    }

    /// The types of several values.
    pub fn value_types(&self, values: &[ValueId]) -> Vec<ValueType> {
        values.iter().map(|&value| self.value_type(value).clone()).collect()
    }

    /// The value that a node gives.
    pub fn value_of(&self, node: usize) -> ValueId {
        ValueId((self.inputs.len() + node) as u32)
    }

    /// The type of the targets in training.
    pub fn target_type(&self) -> Option<ValueType> {
        let training = self.training.as_ref()?;
        training.loss.target(self.value_type(self.output)).ok()
    }

    /// Trainable scalars.
    pub fn trainable_parameters(&self) -> u64 {
        self.parameters.iter().filter(|p| p.role == ParameterRole::Trained).map(Parameter::elements).sum()
    }

    /// The batch of training, or of inference for a network that is not trained.
    pub fn declared_batch(&self) -> u64 {
        self.training.as_ref().map_or_else(|| self.inference_batch(), |training| training.batch)
    }

    /// The batch of inference.
    pub fn inference_batch(&self) -> u64 {
        self.inference_batch.or(self.training.as_ref().map(|training| training.batch)).unwrap_or(1)
    }

    /// What if the batch were this, in training (or in inference, for a network that is not trained)?
    #[must_use]
    pub fn batch(mut self, batch: u64) -> Graph {
        match &mut self.training {
            Some(training) => training.batch = batch,
            None => self.inference_batch = Some(batch),
        }
        self
    }

    /// What if inference used batches of its own?
    #[must_use]
    pub fn infer_batch(mut self, batch: u64) -> Graph {
        self.inference_batch = Some(batch);
        self
    }

    /// What if another optimizer trained it?
    #[must_use]
    pub fn optimizer(mut self, optimizer: Optimizer) -> Graph {
        if let Some(training) = &mut self.training {
            training.optimizer = optimizer;
        }
        self
    }

    /// What if the gradients of several batches were averaged for each update?
    #[must_use]
    pub fn accumulate(mut self, batches: u64) -> Graph {
        if let Some(training) = &mut self.training {
            training.accumulate = batches;
        }
        self
    }

    /// What if it were not trained?
    #[must_use]
    pub fn inference_only(mut self) -> Graph {
        self.inference_batch = Some(self.inference_batch());
        self.training = None;
        self
    }

    /// What if the budget were this many bytes?
    #[must_use]
    pub fn budget(mut self, bytes: u64) -> Graph {
        match self.training {
            Some(_) => self.budget.train = Some(bytes),
            None => self.budget.infer = Some(bytes),
        }
        self
    }
}

impl Graph {
    /// What if activations were computed again until training fits its budget?
    #[must_use]
    pub fn recompute(mut self) -> Graph {
        self.budget.recompute = true;
        self
    }
}

/// Why a layer can't be applied: one or two sentences for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LayerError {
    /// What does not fit, and the remedy.
    pub message: String,
}

impl From<String> for LayerError {
    fn from(message: String) -> Self {
        LayerError { message }
    }
}

/// A layer with parameters of its own, which may be called several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(u32);

struct Member {
    path: String,
    kind: MemberKind,
    frozen: bool,
    /// The parameters, made at the first call, when the inputs' shapes are known.
    parameters: Option<Vec<ParameterId>>,
}

enum MemberKind {
    Layer(Layer),
    Tied(MemberId),
}

/// Builds a [`Graph`] call by call.
pub struct GraphBuilder {
    graph: Graph,
    members: Vec<Member>,
}

impl GraphBuilder {
    /// A network of that name with nothing in it.
    pub fn new(name: &str) -> Self {
        let graph = Graph {
            name: name.to_string(),
            inputs: Vec::new(),
            parameters: Vec::new(),
            nodes: Vec::new(),
            types: Vec::new(),
            output: ValueId(0),
            training: None,
            inference_batch: None,
            budget: Budget::default(),
            without: Vec::new(),
        };
        GraphBuilder { graph, members: Vec::new() }
    }

    /// Declares an input. All inputs come before the first call.
    ///
    /// # Errors
    /// A zero extent, or too many elements.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Result<ValueId, LayerError> {
        assert!(self.graph.nodes.is_empty(), "inputs are declared before the first layer");
        let value_type = ValueType { dtype, shape: Shape::new(shape), batched: true };
        check_extents(&value_type.shape)?;
        self.graph.inputs.push(Input { name: name.to_string(), value_type: value_type.clone() });
        self.graph.types.push(value_type);
        Ok(ValueId(self.graph.types.len() as u32 - 1))
    }

    /// Declares a layer under a path. `frozen`: its parameters are not trained.
    pub fn member(&mut self, path: &str, layer: Layer, frozen: bool) -> MemberId {
        self.push_member(path, MemberKind::Layer(layer), frozen)
    }

    /// Declares a linear layer without bias that uses the weight of another member.
    pub fn tied(&mut self, path: &str, source: MemberId) -> MemberId {
        self.push_member(path, MemberKind::Tied(source), false)
    }

    fn push_member(&mut self, path: &str, kind: MemberKind, frozen: bool) -> MemberId {
        self.members.push(Member { path: path.to_string(), kind, frozen, parameters: None });
        MemberId(self.members.len() as u32 - 1)
    }

    /// The type of a value.
    pub fn value_type(&self, value: ValueId) -> &ValueType {
        &self.graph.types[value.index()]
    }

    /// Whether a member has been called.
    pub fn is_called(&self, member: MemberId) -> bool {
        self.members[member.0 as usize].parameters.is_some()
    }

    /// Applies a member to values. A second call uses the same parameters.
    ///
    /// # Errors
    /// Shapes that do not fit the layer, or parameters of other shapes than in an earlier call.
    pub fn call(&mut self, member: MemberId, inputs: &[ValueId]) -> Result<ValueId, LayerError> {
        let types = self.graph.value_types(inputs);
        let (layer, parameters) = match self.members[member.0 as usize].kind {
            MemberKind::Tied(source) => self.tied_layer(source, &types)?,
            MemberKind::Layer(ref layer) => {
                let layer = layer.clone();
                check_extents(&layer.rule().output(&types)?.shape)?;
                let parameters = self.parameters_of(member, &layer, &types)?;
                (layer, parameters)
            }
        };
        let path = self.members[member.0 as usize].path.clone();
        self.members[member.0 as usize].parameters = Some(parameters.clone());
        self.push(path, layer, inputs, &types, parameters)
    }

    /// Applies a layer without parameters to values.
    ///
    /// # Errors
    /// Shapes that do not fit the layer.
    pub fn apply(&mut self, path: &str, layer: Layer, inputs: &[ValueId]) -> Result<ValueId, LayerError> {
        let types = self.graph.value_types(inputs);
        self.push(path.to_string(), layer, inputs, &types, Vec::new())
    }

    fn push(
        &mut self,
        path: String,
        layer: Layer,
        inputs: &[ValueId],
        types: &[ValueType],
        parameters: Vec<ParameterId>,
    ) -> Result<ValueId, LayerError> {
        let output = layer.rule().output(types)?;
        check_extents(&output.shape)?;
        self.graph.nodes.push(Node { path, layer, inputs: inputs.to_vec(), parameters });
        self.graph.types.push(output);
        Ok(ValueId(self.graph.types.len() as u32 - 1))
    }

    /// The parameters of a member for inputs of these types: those of the first call, or new ones.
    fn parameters_of(
        &mut self,
        member: MemberId,
        layer: &Layer,
        types: &[ValueType],
    ) -> Result<Vec<ParameterId>, LayerError> {
        let specs = layer.rule().parameters(types);
        let Member { path, frozen, parameters, .. } = &self.members[member.0 as usize];
        if let Some(parameters) = parameters {
            for (id, spec) in parameters.iter().zip(&specs) {
                let first = &self.graph.parameters[id.index()];
                if first.shape != spec.shape {
                    return Err(LayerError::from(format!(
                        "`{path}` is called twice, and its `{}` would be {} here but was {} before\nhelp: a member called \
                         twice shares its parameters; declare a second member for other shapes",
                        spec.name, spec.shape, first.shape
                    )));
                }
            }
            return Ok(parameters.clone());
        }
        let mut ids = Vec::with_capacity(specs.len());
        for spec in specs {
            check_extents(&spec.shape)?;
            let role = match (spec.trained, frozen) {
                (false, _) => ParameterRole::Buffer,
                (true, true) => ParameterRole::Frozen,
                (true, false) => ParameterRole::Trained,
            };
            let path = match (spec.name, path.as_str()) {
                ("", path) => path.to_string(),
                (name, "") => name.to_string(),
                (name, path) => format!("{path}.{name}"),
            };
            ids.push(ParameterId(self.graph.parameters.len() as u32));
            self.graph.parameters.push(Parameter { path, shape: spec.shape, init: spec.init, role });
        }
        Ok(ids)
    }

    /// The linear layer that another member's weight makes.
    fn tied_layer(&self, source: MemberId, types: &[ValueType]) -> Result<(Layer, Vec<ParameterId>), LayerError> {
        let Member { path, parameters, .. } = &self.members[source.0 as usize];
        let Some(&weight) = parameters.as_ref().and_then(|p| p.first()) else {
            return Err(LayerError::from(format!(
                "`tied({path})` is used before `{path}`, whose weight it shares\nhelp: call `{path}` first"
            )));
        };
        let shape = &self.graph.parameters[weight.index()].shape;
        let [out_features, in_features] = shape.0[..] else {
            return Err(LayerError::from(format!("`tied({path})` needs a weight of two axes, but it is {shape}")));
        };
        if types[0].shape.0.last() != Some(&in_features) {
            return Err(LayerError::from(format!(
                "`tied({path})` uses a weight of {shape}, which needs a last axis of {in_features}, but its input is {}\nhelp: the \
                 weight is used as it is, not transposed: give it an input of {in_features}",
                types[0]
            )));
        }
        Ok((Layer::Linear(crate::layers::linear::Linear { out_features, bias: false }), vec![weight]))
    }

    /// The whole network.
    ///
    /// # Errors
    /// An output that is no `f32` computed from an input, or that does not suit the loss.
    pub fn finish(
        mut self,
        output: ValueId,
        training: Option<Training>,
        inference_batch: Option<u64>,
        budget: Budget,
    ) -> Result<Graph, LayerError> {
        let output_type = self.value_type(output);
        if output_type.dtype != DType::F32 || !output_type.batched {
            return Err(LayerError::from(format!(
                "the network's output must be f32 values computed from an input, but it is {output_type}"
            )));
        }
        if let Some(training) = &training {
            check_extents(&training.loss.target(output_type)?.shape)?;
        }
        self.graph.output = output;
        self.graph.training = training;
        self.graph.inference_batch = inference_batch;
        self.graph.budget = budget;
        Ok(self.graph)
    }
}

/// Extents of at least 1, and no more than [`MAX_ELEMENTS`] elements.
pub(crate) fn check_extents(shape: &Shape) -> Result<(), LayerError> {
    if shape.0.contains(&0) {
        return Err(LayerError::from(format!("the shape {shape} has an extent of zero")));
    }
    match shape.elements() {
        Some(elements) if elements <= MAX_ELEMENTS => Ok(()),
        _ => Err(LayerError::from(format!(
            "the shape {shape} has more than 2^40 elements\nhelp: make it smaller; nothing of this size fits a device"
        ))),
    }
}
