//! `layernorm`: normalization of each sample over its last axes (Ba et al. 2016; PyTorch's `LayerNorm`), and
//! `layernorm2d`: at each position of an image over its channels (Liu et al. 2022; torchvision's `LayerNorm2d`).

use serde::{Deserialize, Serialize};

use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, Saved, one_float};
use crate::arguments::{Default, Definition, Kind, named};
use crate::shape::{DType, Size, ValueType};

/// How it is called. PyTorch's `normalized_shape` is inferred: the last `axes` extents of the input.
pub static LAYERNORM: Definition<Layer> = Definition {
    name: "layernorm",
    summary: "normalization over the last axes of each sample",
    arguments: &[
        named("eps", Kind::NON_NEGATIVE, Default::Float(1e-5)),
        named("axes", Kind::Size, Default::Int(1)),
        named("elementwise_affine", Kind::Bool, Default::Bool(true)),
        named("bias", Kind::Bool, Default::Bool(true)),
    ],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| {
        let affine = a.bool("elementwise_affine");
        let bias = affine && a.bool("bias");
        let over = Over::LastAxes(a.size("axes"));
        Ok(Layer::LayerNorm(LayerNorm { over, eps: a.float("eps"), affine, bias }))
    },
};

/// How `layernorm2d` is called.
pub static LAYERNORM2D: Definition<Layer> = Definition {
    name: "layernorm2d",
    summary: "normalization over the channels at each position of [channels, height, width]",
    arguments: &[named("eps", Kind::NON_NEGATIVE, Default::Float(1e-5))],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| Ok(Layer::LayerNorm(LayerNorm { over: Over::Channels, eps: a.float("eps"), affine: true, bias: true })),
};

/// What layer normalization runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// This many of the last axes.
    LastAxes(u64),
    /// The first of three axes, at each position of the others.
    Channels,
}

/// Layer normalization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerNorm {
    /// Which axes are normalized over.
    pub over: Over,
    /// Added to the variance.
    pub eps: f64,
    /// Whether a learned factor follows.
    pub affine: bool,
    /// Whether a learned offset follows.
    pub bias: bool,
}

impl LayerNorm {
    /// The extents that are normalized over.
    pub fn normalized<'a>(&self, input: &'a ValueType) -> &'a [u64] {
        match self.over {
            Over::LastAxes(axes) => &input.shape.0[input.shape.rank() - axes as usize..],
            Over::Channels => &input.shape.0[..1],
        }
    }
}

impl Rule for LayerNorm {
    fn kind(&self) -> &'static str {
        match self.over {
            Over::LastAxes(_) => "layernorm",
            Over::Channels => "layernorm2d",
        }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        match self.over {
            Over::LastAxes(axes) if axes > input.shape.rank() as u64 => {
                Err(format!("`layernorm` over the last {axes} axes needs as many, but its input is {input}"))
            }
            Over::Channels if input.shape.rank() != 3 => Err(super::no_image("layernorm2d", 2, input)),
            _ => Ok(input.clone()),
        }
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        let shape = self.normalized(&inputs[0]);
        let mut parameters = Vec::with_capacity(2);
        if self.affine {
            parameters.push(ParameterSpec::trained("weight", shape, Init::Constant(1.0)));
        }
        if self.bias {
            parameters.push(ParameterSpec::trained("bias", shape, Init::Constant(0.0)));
        }
        parameters
    }

    fn memory(&self, inputs: &[ValueType], _output: &ValueType) -> Memory {
        let input = &inputs[0];
        let rows = input.elements() / self.normalized(input).iter().product::<u64>();
        let statistics = Size::per_batch(input.batched, rows * 4);
        Memory {
            // Only where the input is not kept, so never in a training step that learns through the layer.
            in_place: true,
            keeps_input: KeepsInput::Always,
            saved_is_remade: true,
            saved: vec![
                Saved { name: "mean", dtype: DType::F32, size: statistics },
                Saved { name: "rstd", dtype: DType::F32, size: statistics },
            ],
            gradient_in_place: true,
            ..Memory::default()
        }
    }
}
