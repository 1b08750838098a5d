//! `dropout(p = 0.5)`: each element zeroed with probability p, the others scaled by `1 / (1 - p)` (Srivastava et al. 2014).
//!
//! The mask is not kept: a counter-based generator gives it again in backward. In inference the layer does nothing.

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Output, Rule, one_float};
use crate::arguments::{Default, Definition, Kind, optional};
use crate::shape::ValueType;

/// How it is called.
pub static DROPOUT: Definition<Layer> = Definition {
    name: "dropout",
    summary: "zeroes elements at random in training",
    arguments: &[optional("p", Kind::FRACTION, Default::Float(0.5))],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::Dropout(Dropout { p: a.float("p") })),
};

/// Dropout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dropout {
    /// The probability that an element is zeroed.
    pub p: f64,
}

impl Rule for Dropout {
    fn kind(&self) -> &'static str {
        "dropout"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        one_float("dropout", inputs).cloned()
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory {
            output: Output::Uncounted,
            in_place: true,
            gradient_in_place: true,
            identity_in_inference: true,
            ..Memory::default()
        }
    }
}
