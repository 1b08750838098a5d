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

/// Whether two values agree in all axes but one.
fn agree(a: &ValueType, b: &ValueType, axis: usize) -> bool {
    a.shape.rank() == b.shape.rank() && (0..a.shape.rank()).all(|i| i == axis || a.shape.0[i] == b.shape.0[i])
}

impl Rule for Concat {
    fn kind(&self) -> &'static str {
        "concat"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let first = &inputs[0];
        let Some(axis) = resolve_axis(self.axis, first.shape.rank()) else {
            return Err(format!(
                "`axis` = {} does not exist in {first}\nhelp: axes count from 0, without the batch",
                self.axis
            ));
        };
        let mut output = ValueType { batched: inputs.iter().any(|input| input.batched), ..first.clone() };
        output.shape.0[axis] = 0;
        for input in inputs {
            if input.dtype != DType::F32 {
                return Err(format!("`concat` needs f32 values, but one is {input}"));
            }
            if !agree(first, input, axis) {
                let help = match (0..first.shape.rank()).find(|&other| inputs.iter().all(|i| agree(first, i, other))) {
                    Some(other) => format!("`axis = {other}` would do: axes count from 0, without the batch"),
                    None if first.shape.rank() == 3 && axis == 0 => {
                        "a convolution with `padding` of half its kernel keeps height and width, such as `kernel = 3, padding = 1`"
                            .to_string()
                    }
                    None => "give the layers before it outputs that agree".to_string(),
                };
                return Err(format!(
                    "`concat` along axis {axis} needs values that agree in all other axes, but they are {first} and {input}\nhelp: {help}"
                ));
            }
            let total = output.shape.0[axis].checked_add(input.shape.0[axis]);
            output.shape.0[axis] = total.ok_or("the output's extent passes 64 bits")?;
        }
        Ok(output)
    }

    fn memory(&self, _inputs: &[ValueType], output: &ValueType) -> Memory {
        // Channels beside channels: the parts of an input are then inputs like the others.
        Memory { reads_parts: self.axis_of(output) == 0, ..Memory::default() }
    }
}
