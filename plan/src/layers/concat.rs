//! `concat(a, b, ..., axis = 0)`: values side by side along an axis (PyTorch's `cat`).

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Rule, resolve_axis};
use crate::arguments::{Default, Definition, Kind, optional};
use crate::shape::{DType, ValueType};

/// How it is called.
pub static CONCAT: Definition<Layer> = Definition {
    name: "concat",
    summary: "values side by side along an axis; the batch is not counted, so that 0 means the channels",
    arguments: &[optional("axis", Kind::Axis, Default::Int(0))],
    inputs: 1..=usize::MAX,
    has_parameters: false,
    build: |a| Ok(Layer::Concat(Concat { axis: a.int("axis") })),
};

/// Concatenation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Concat {
    /// The axis, of the shape without batch; negative ones count from the end.
    pub axis: i64,
}

impl Concat {
    /// The axis counted from the front.
    pub fn axis_of(&self, output: &ValueType) -> usize {
        resolve_axis(self.axis, output.shape.rank()).expect("checked by `output`")
    }
}

impl Rule for Concat {
    fn kind(&self) -> &'static str {
        "concat"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let first = &inputs[0];
        let Some(axis) = resolve_axis(self.axis, first.shape.rank()) else {
            return Err(format!("axis {} does not exist in {first} (the batch is not counted)", self.axis));
        };
        let mut output = ValueType { batched: inputs.iter().any(|input| input.batched), ..first.clone() };
        output.shape.0[axis] = 0;
        for input in inputs {
            if input.dtype != DType::F32 {
                return Err(format!("`concat` needs f32 values, but one is {input}"));
            }
            let same = input.shape.rank() == first.shape.rank()
                && (0..first.shape.rank()).all(|i| i == axis || input.shape.0[i] == first.shape.0[i]);
            if !same {
                return Err(format!(
                    "`concat` along axis {axis} needs values that agree in all other axes, but they are {first} and {input}"
                ));
            }
            let total = output.shape.0[axis].checked_add(input.shape.0[axis]);
            output.shape.0[axis] = total.ok_or("the output's extent passes 64 bits")?;
        }
        Ok(output)
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory::default()
    }
}
