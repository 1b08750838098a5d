//! Activation functions: `relu`, `relu6`, `leaky_relu`, `gelu`, `silu`, `sigmoid`, `tanh`.
//!
//! Each keeps for backward what its derivative is cheapest in: the output where that suffices, so that it can work in
//! place, else the input.

use serde::{Deserialize, Serialize};

use super::{KeepsInput, Layer, Memory, Output, Rule, one_float};
use crate::arguments::{Argument, Default, Definition, Kind, optional};
use crate::shape::ValueType;

macro_rules! definition {
    ($name:ident, $word:literal, $summary:literal, $arguments:expr, $build:expr) => {
        #[doc = concat!("How `", $word, "` is called.")]
        pub static $name: Definition<Layer> = Definition {
            name: $word,
            summary: $summary,
            arguments: $arguments,
            inputs: 1..=1,
            has_parameters: false,
            build: |a| Ok(Layer::Activation($build(a))),
        };
    };
}

definition!(RELU, "relu", "max(x, 0)", &[], |_| Activation::Relu);
definition!(RELU6, "relu6", "min(max(x, 0), 6)", &[], |_| Activation::Relu6);
definition!(
    LEAKY_RELU,
    "leaky_relu",
    "x, or negative_slope x below zero",
    LEAKY_RELU_ARGUMENTS,
    |a: &crate::arguments::Arguments| { Activation::LeakyRelu { negative_slope: a.float("negative_slope") } }
);
definition!(
    GELU,
    "gelu",
    "x times the normal distribution function of x",
    GELU_ARGUMENTS,
    |a: &crate::arguments::Arguments| { Activation::Gelu { tanh: a.word("approximate") == "tanh" } }
);
definition!(SILU, "silu", "x sigmoid(x)", &[], |_| Activation::Silu);
definition!(SIGMOID, "sigmoid", "1 / (1 + exp(-x))", &[], |_| Activation::Sigmoid);
definition!(TANH, "tanh", "the hyperbolic tangent", &[], |_| Activation::Tanh);

const LEAKY_RELU_ARGUMENTS: &[Argument] = &[optional("negative_slope", Kind::NUMBER, Default::Float(0.01))];
const GELU_ARGUMENTS: &[Argument] = &[optional("approximate", Kind::Word(&["none", "tanh"]), Default::Word("none"))];

/// An activation function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` above zero, else `negative_slope * x`.
    LeakyRelu {
        /// The slope below zero.
        negative_slope: f64,
    },
    /// `x Phi(x)` (Hendrycks & Gimpel 2016).
    Gelu {
        /// By the approximation with tanh rather than erf.
        tanh: bool,
    },
    /// `x sigmoid(x)`.
    Silu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
}

impl Rule for Activation {
    fn kind(&self) -> &'static str {
        match self {
            Activation::Relu => "relu",
            Activation::Relu6 => "relu6",
            Activation::LeakyRelu { .. } => "leaky_relu",
            Activation::Gelu { .. } => "gelu",
            Activation::Silu => "silu",
            Activation::Sigmoid => "sigmoid",
            Activation::Tanh => "tanh",
        }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        one_float(self.kind(), inputs).cloned()
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        let from_output = match self {
            Activation::Relu | Activation::Relu6 | Activation::Sigmoid | Activation::Tanh => true,
            // The output has the input's sign only where the slope is positive.
            Activation::LeakyRelu { negative_slope } => *negative_slope > 0.0,
            Activation::Gelu { .. } | Activation::Silu => false,
        };
        Memory {
            output: Output::Uncounted,
            in_place: true,
            keeps_input: if from_output { KeepsInput::Never } else { KeepsInput::Always },
            keeps_output: from_output,
            gradient_in_place: true,
            ..Memory::default()
        }
    }
}
