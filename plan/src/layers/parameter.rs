//! `parameter(shape)`: a learned tensor that is itself a value in `forward` (PyTorch's `nn.Parameter`).

use serde::{Deserialize, Serialize};

use super::{Init, Layer, Memory, Output, ParameterSpec, Rule};
use crate::arguments::{ArgumentError, Default, Definition, Kind, optional, required};
use crate::shape::{DType, Shape, ValueType};

/// How it is called.
pub static PARAMETER: Definition<Layer> = Definition {
    name: "parameter",
    summary: "a learned tensor, the same for every sample, drawn from a normal distribution around `init`",
    arguments: &[
        required("shape", Kind::Dims),
        optional("init", Kind::NUMBER, Default::Float(0.0)),
        optional("std", Kind::NON_NEGATIVE, Default::Float(0.0)),
    ],
    inputs: 0..=0,
    has_parameters: true,
    build: |a| {
        let dims = a.ints("shape");
        if dims.contains(&-1) {
            return Err(ArgumentError::new("shape", "every extent of a `parameter` must be known: -1 is not"));
        }
        let shape = Shape(dims.into_iter().map(i64::unsigned_abs).collect());
        let (mean, std) = (a.float("init"), a.float("std"));
        let init = if std == 0.0 { Init::Constant(mean) } else { Init::Normal { mean, std } };
        Ok(Layer::Parameter(Parameter { shape, init }))
    },
};

/// A learned value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its shape.
    pub shape: Shape,
    /// Its initial distribution.
    pub init: Init,
}

impl Rule for Parameter {
    fn kind(&self) -> &'static str {
        "parameter"
    }

    fn output(&self, _inputs: &[ValueType]) -> Result<ValueType, String> {
        Ok(ValueType { dtype: DType::F32, shape: self.shape.clone(), batched: false })
    }

    fn parameters(&self, _inputs: &[ValueType]) -> Vec<ParameterSpec> {
        vec![ParameterSpec { name: "", shape: self.shape.clone(), init: self.init, trained: true }]
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { output: Output::View, ..Memory::default() }
    }
}
