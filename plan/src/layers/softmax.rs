//! `softmax(axis = -1)`: exponentials over their sum along an axis (PyTorch's `Softmax`).

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Output, Rule, one_float, resolve_axis};
use crate::arguments::{Default, Definition, Kind, optional};
use crate::shape::ValueType;

/// How it is called.
pub static SOFTMAX: Definition<Layer> = Definition {
    name: "softmax",
    summary: "exponentials over their sum along an axis",
    arguments: &[optional("axis", Kind::Axis, Default::Int(-1))],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::Softmax(Softmax { axis: a.int("axis") })),
};

/// Softmax.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Softmax {
    /// The axis, of the shape without batch; negative ones count from the end.
    pub axis: i64,
}

impl Rule for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("softmax", inputs)?;
        match resolve_axis(self.axis, input.shape.rank()) {
            Some(_) => Ok(input.clone()),
            None => Err(format!(
                "`axis` = {} does not exist in {input}\nhelp: axes count from 0, without the batch",
                self.axis
            )),
        }
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory {
            output: Output::Uncounted,
            in_place: true,
            keeps_output: true,
            gradient_in_place: true,
            ..Memory::default()
        }
    }
}
