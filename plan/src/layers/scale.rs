//! `scale(init = 1.0)`: a learned factor per channel (the "LayerScale" of Touvron et al. 2021).

use serde::{Deserialize, Serialize};

use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, one_float};
use crate::arguments::{Default, Definition, Kind, optional};
use crate::shape::ValueType;

/// How it is called.
pub static SCALE: Definition<Layer> = Definition {
    name: "scale",
    summary: "a learned factor for each channel, the first axis",
    arguments: &[optional("init", Kind::NUMBER, Default::Float(1.0))],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| Ok(Layer::Scale(Scale { init: a.float("init") })),
};

/// A learned factor per channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// The factors' initial value.
    pub init: f64,
}

impl Rule for Scale {
    fn kind(&self) -> &'static str {
        "scale"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("scale", inputs)?;
        if input.shape.rank() == 0 {
            return Err("`scale` needs an axis of channels, but its input is one number a sample".into());
        }
        Ok(input.clone())
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        vec![ParameterSpec::trained("weight", &inputs[0].shape.0[..1], Init::Constant(self.init))]
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { in_place: true, keeps_input: KeepsInput::ForParameters, gradient_in_place: true, ..Memory::default() }
    }
}
