//! `linear(out_features, bias = true)`: `y = x W^T + b` over the last axis (PyTorch's `Linear`).

use serde::{Deserialize, Serialize};

use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, one_float};
use crate::arguments::{Default, Definition, Kind, optional, required};
use crate::shape::{Shape, ValueType};

/// How it is called.
pub static LINEAR: Definition<Layer> = Definition {
    name: "linear",
    summary: "y = x W^T + b over the last axis",
    arguments: &[required("out_features", Kind::Size), optional("bias", Kind::Bool, Default::Bool(true))],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| Ok(Layer::Linear(Linear { out_features: a.size("out_features"), bias: a.bool("bias") })),
};

/// A linear layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Linear {
    /// Extent of the output's last axis.
    pub out_features: u64,
    /// Whether a bias is added.
    pub bias: bool,
}

/// The last extent, which the weight contracts.
fn in_features(input: &ValueType) -> u64 {
    input.shape.0[input.shape.rank() - 1]
}

impl Rule for Linear {
    fn kind(&self) -> &'static str {
        "linear"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("linear", inputs)?;
        let Some((_, outer)) = input.shape.0.split_last() else {
            return Err("`linear` needs at least one axis, but its input is one number a sample".into());
        };
        let shape = outer.iter().copied().chain([self.out_features]).collect();
        Ok(ValueType { shape: Shape(shape), ..input.clone() })
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        let fan_in = in_features(&inputs[0]);
        let init = Init::fan_in(fan_in);
        let mut parameters = vec![ParameterSpec::trained("weight", &[self.out_features, fan_in], init)];
        if self.bias {
            parameters.push(ParameterSpec::trained("bias", &[self.out_features], init));
        }
        parameters
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { keeps_input: KeepsInput::ForParameters, separate_parameter_gradients: true, ..Memory::default() }
    }

    fn multiply_adds(&self, inputs: &[ValueType], output: &ValueType) -> Option<u64> {
        output.elements().checked_mul(in_features(&inputs[0]))
    }
}
