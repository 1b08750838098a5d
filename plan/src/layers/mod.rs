//! The layers: one file each, holding its arguments, its shape rule, its parameters and what it needs of memory.
//!
//! A new layer is a new file here, a variant of [`Layer`], and a row of [`DEFINITIONS`].

pub mod activation;
pub mod arithmetic;
pub mod batchnorm;
pub mod concat;
pub mod conv;
pub mod conv_transpose;
pub mod dropout;
pub mod groupnorm;
pub mod layernorm;
pub mod linear;
pub mod normalize;
pub mod parameter;
pub mod permute;
pub mod pool;
pub mod scale;
pub mod softmax;
pub mod upsample;
pub mod view;
pub mod window;

use serde::{Deserialize, Serialize};

use crate::arguments::Definition;
use crate::shape::{DType, Shape, Size, ValueType};

/// Every layer that the language knows, in the order of the reference.
pub static DEFINITIONS: &[&Definition<Layer>] = &[
    &linear::LINEAR,
    &conv::CONV1D,
    &conv::CONV2D,
    &conv_transpose::CONV_TRANSPOSE2D,
    &batchnorm::BATCHNORM1D,
    &batchnorm::BATCHNORM2D,
    &layernorm::LAYERNORM,
    &layernorm::LAYERNORM2D,
    &groupnorm::GROUPNORM,
    &pool::MAXPOOL2D,
    &pool::AVGPOOL2D,
    &pool::ADAPTIVE_AVGPOOL2D,
    &pool::ADAPTIVE_MAXPOOL2D,
    &upsample::UPSAMPLE,
    &dropout::DROPOUT,
    &activation::RELU,
    &activation::RELU6,
    &activation::LEAKY_RELU,
    &activation::GELU,
    &activation::SILU,
    &activation::SIGMOID,
    &activation::TANH,
    &softmax::SOFTMAX,
    &view::FLATTEN,
    &view::RESHAPE,
    &view::IDENTITY,
    &permute::PERMUTE,
    &concat::CONCAT,
    &normalize::NORMALIZE,
    &scale::SCALE,
    &parameter::PARAMETER,
];

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static Definition<Layer>> {
    DEFINITIONS.iter().copied().find(|d| d.name == name)
}

/// A layer with its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// See [`linear`].
    Linear(linear::Linear),
    /// See [`conv`].
    Conv(conv::Conv),
    /// See [`conv_transpose`].
    ConvTranspose(conv_transpose::ConvTranspose),
    /// See [`batchnorm`].
    BatchNorm(batchnorm::BatchNorm),
    /// See [`layernorm`].
    LayerNorm(layernorm::LayerNorm),
    /// See [`groupnorm`].
    GroupNorm(groupnorm::GroupNorm),
    /// See [`pool`].
    Pool(pool::Pool),
    /// See [`pool`].
    AdaptivePool(pool::AdaptivePool),
    /// See [`upsample`].
    Upsample(upsample::Upsample),
    /// See [`dropout`].
    Dropout(dropout::Dropout),
    /// See [`activation`].
    Activation(activation::Activation),
    /// See [`softmax`].
    Softmax(softmax::Softmax),
    /// See [`view`].
    View(view::View),
    /// See [`permute`].
    Permute(permute::Permute),
    /// See [`concat`](mod@concat).
    Concat(concat::Concat),
    /// See [`normalize`].
    Normalize(normalize::Normalize),
    /// See [`scale`].
    Scale(scale::Scale),
    /// See [`parameter`].
    Parameter(parameter::Parameter),
    /// See [`arithmetic`].
    Arithmetic(arithmetic::Arithmetic),
    /// See [`arithmetic`].
    Affine(arithmetic::Affine),
}

impl Layer {
    /// The rules of this layer.
    pub fn rule(&self) -> &dyn Rule {
        match self {
            Layer::Linear(layer) => layer,
            Layer::Conv(layer) => layer,
            Layer::ConvTranspose(layer) => layer,
            Layer::BatchNorm(layer) => layer,
            Layer::LayerNorm(layer) => layer,
            Layer::GroupNorm(layer) => layer,
            Layer::Pool(layer) => layer,
            Layer::AdaptivePool(layer) => layer,
            Layer::Upsample(layer) => layer,
            Layer::Dropout(layer) => layer,
            Layer::Activation(layer) => layer,
            Layer::Softmax(layer) => layer,
            Layer::View(layer) => layer,
            Layer::Permute(layer) => layer,
            Layer::Concat(layer) => layer,
            Layer::Normalize(layer) => layer,
            Layer::Scale(layer) => layer,
            Layer::Parameter(layer) => layer,
            Layer::Arithmetic(layer) => layer,
            Layer::Affine(layer) => layer,
        }
    }
}

/// What a layer must say of itself for its memory to be planned.
pub trait Rule {
    /// The layer's name in the language.
    fn kind(&self) -> &'static str;

    /// The type of the output.
    ///
    /// # Errors
    /// One or two sentences for the user: what does not fit, both shapes, and the remedy.
    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String>;

    /// The parameters and buffers, in PyTorch's order. Only called where [`output`](Rule::output) succeeded.
    fn parameters(&self, _inputs: &[ValueType]) -> Vec<ParameterSpec> {
        Vec::new()
    }

    /// What the layer keeps and where it may write.
    fn memory(&self, inputs: &[ValueType], output: &ValueType) -> Memory;

    /// Multiply-adds of the forward pass for one sample, as published tables count them: products of matrices and
    /// convolutions only. `None` where they pass 64 bits.
    fn multiply_adds(&self, _inputs: &[ValueType], _output: &ValueType) -> Option<u64> {
        Some(0)
    }
}

/// A parameter or buffer of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSpec {
    /// PyTorch's name within the layer: `weight`, `bias`, `running_mean`, `running_var`. Empty: the member's own path.
    pub name: &'static str,
    /// Its shape, as PyTorch stores it.
    pub shape: Shape,
    /// Its initial distribution.
    pub init: Init,
    /// Whether it is trained; running statistics are not.
    pub trained: bool,
}

impl ParameterSpec {
    /// A trained parameter.
    pub fn trained(name: &'static str, shape: &[u64], init: Init) -> Self {
        ParameterSpec { name, shape: Shape::new(shape), init, trained: true }
    }

    /// A buffer: state that is not trained.
    pub fn buffer(name: &'static str, shape: &[u64], init: Init) -> Self {
        ParameterSpec { name, shape: Shape::new(shape), init, trained: false }
    }
}

/// An initial distribution. The defaults of the layers are PyTorch's (`reset_parameters` of each module).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// Every element is this.
    Constant(f64),
    /// Uniform in `[-bound, bound)`.
    Uniform {
        /// The bound.
        bound: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
}

impl Init {
    /// PyTorch's default for weights and biases of linear layers and convolutions: `kaiming_uniform_` with `a = sqrt(5)`,
    /// which is uniform within `1 / sqrt(fan_in)` (He et al. 2015, with PyTorch's choice of `a`).
    pub fn fan_in(fan_in: u64) -> Self {
        Init::Uniform { bound: 1.0 / (fan_in as f64).sqrt() }
    }
}

/// What happens to the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// A new tensor, counted among the activations.
    #[default]
    New,
    /// A tensor that layer tables do not count as new: activation functions, dropout, axes in another order.
    Uncounted,
    /// The input's own elements under another shape.
    View,
}

/// When backward reads the layer's inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepsInput {
    /// Never.
    #[default]
    Never,
    /// For the gradients of trained parameters only, as products do.
    ForParameters,
    /// Whenever there is a backward pass.
    Always,
    /// Each input for the gradient of the other, as a product of two values does.
    ForOther,
}

/// Something that a layer writes in forward for its backward alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// What it is: `mean`, `rstd`, `index`.
    pub name: &'static str,
    /// Its element type.
    pub dtype: DType,
    /// Its bytes.
    pub size: Size,
}

/// Scratch memory of a step, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Of the forward step.
    pub forward: Size,
    /// Of the step that computes the inputs' gradients, or all gradients at once.
    pub backward: Size,
    /// Of the step that computes the parameters' gradients, where that is a step of its own.
    pub backward_parameters: Size,
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace { forward: Size::ZERO, backward: Size::ZERO, backward_parameters: Size::ZERO }
    }
}

/// What a layer keeps from forward to backward, and where it may write in place. The default keeps nothing and writes
/// in place nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the output is.
    pub output: Output,
    /// Whether the output may overwrite an input of its size whose elements nobody needs any more.
    pub in_place: bool,
    /// When backward reads the inputs.
    pub keeps_input: KeepsInput,
    /// Whether backward reads the output.
    pub keeps_output: bool,
    /// What else forward leaves for backward.
    pub saved: Vec<Saved>,
    /// When the output is computed again, whether what is saved is written again as well; else it is kept from the first
    /// time, and read.
    pub saved_is_remade: bool,
    /// Whether an input's gradient may overwrite the output's gradient where nobody else needs that.
    pub gradient_in_place: bool,
    /// For each input, whether its gradient is the output's gradient unchanged. Empty: none.
    pub passes_gradient: Vec<bool>,
    /// Whether the parameters' gradients are a step of their own, before that of the inputs' gradients.
    pub separate_parameter_gradients: bool,
    /// Scratch memory.
    pub workspace: Workspace,
    /// Whether the layer does nothing outside of training: dropout.
    pub identity_in_inference: bool,
    /// Whether the steps can do with an input that exists in parts alone: tensors with some of its channels each.
    pub reads_parts: bool,
}

/// An axis counted from the front.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Option<usize> {
    let resolved = if axis < 0 { axis + rank as i64 } else { axis };
    (0..rank as i64).contains(&resolved).then_some(resolved as usize)
}

/// The greatest number that divides both.
pub(crate) fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// What to do about a number of groups that does not divide `channels`: the nearest ones that do.
pub(crate) fn groups_that_divide(groups: u64, channels: u64) -> String {
    let below = (1..groups.min(channels + 1)).rev().find(|groups| channels.is_multiple_of(*groups));
    let above = (groups..=channels).find(|groups| channels.is_multiple_of(*groups));
    let near: Vec<String> = below.into_iter().chain(above).map(|groups| format!("`groups = {groups}`")).collect();
    format!("{} divides them", near.join(" or "))
}

/// That a layer over the last `axes` axes, after the channels, does not suit its input, and why that may be.
pub(crate) fn no_image(kind: &str, axes: usize, input: &ValueType) -> String {
    let extents = &input.shape.0;
    let (form, other, reshaped) = match axes {
        1 => {
            ("[channels, length]", kind.replace("1d", "2d"), format!("reshape([1, {}])", extents.first().unwrap_or(&1)))
        }
        _ => ("[channels, height, width]", kind.replace("2d", "1d"), {
            let [height, width] = extents.first_chunk().copied().unwrap_or([28, 28]);
            format!("reshape([1, {height}, {width}])")
        }),
    };
    let has_other = find(&other).is_some() && other != kind;
    let help = match (axes, extents.len()) {
        (1, 3) if has_other => format!("use `{other}` for an image, or leave the batch out, which no shape has"),
        (2, 4) | (1, 3) => "leave the batch out: no shape has it".to_string(),
        (2, 2) if has_other => format!("one channel is an axis too: `{reshaped}` first; for a sequence, `{other}`"),
        (2, 2) | (1, 1) => format!("one channel is an axis too: `{reshaped}` first"),
        (2, 1) => "put it before `flatten`, or `reshape` to three axes first".to_string(),
        _ => "`reshape` or `permute` to such axes first".to_string(),
    };
    format!("`{kind}` needs an input of {form}, but its input is {input}\nhelp: {help}")
}

/// The only input, which must be `f32`.
pub(crate) fn one_float<'a>(kind: &str, inputs: &'a [ValueType]) -> Result<&'a ValueType, String> {
    let input = &inputs[0];
    if input.dtype == DType::F32 {
        return Ok(input);
    }
    let help = match input.dtype {
        DType::U8 => "put `normalize(mean = [0.0], std = [1.0])` before it, which makes floats of bytes",
        _ => "declare the input as f32: no layer of this version takes indices",
    };
    Err(format!("`{kind}` needs f32 values, but its input is {input}\nhelp: {help}"))
}
