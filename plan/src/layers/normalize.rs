//! `normalize(mean, std)`: `(x - mean) / std` per channel, on the device, so that images can travel as bytes.
//!
//! Bytes are first scaled to [0, 1], as torchvision's `ToTensor` does before its `Normalize`; floats are taken as they are.

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Rule};
use crate::arguments::{ArgumentError, Definition, Kind, required};
use crate::shape::{DType, ValueType};

/// How it is called.
pub static NORMALIZE: Definition<Layer> = Definition {
    name: "normalize",
    summary: "(x - mean) / std per channel; bytes are scaled to [0, 1] first",
    arguments: &[required("mean", Kind::Floats), required("std", Kind::Floats)],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| {
        let (mean, std) = (a.floats("mean"), a.floats("std"));
        if mean.len() != std.len() {
            let (means, stds) = (mean.len(), std.len());
            let message =
                format!("`mean` and `std` have {means} and {stds} numbers, but both need one for each channel");
            return Err(ArgumentError::new("std", message));
        }
        if let Some(wrong) = std.iter().find(|s| (1.0 / **s as f32).is_infinite() || **s <= 0.0) {
            return Err(ArgumentError::new("std", format!("`std` must be above zero, not {wrong}")));
        }
        Ok(Layer::Normalize(Normalize { mean, std }))
    },
};

/// Normalization by constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalize {
    /// What is subtracted: one number, or one for each channel (the first axis).
    pub mean: Vec<f64>,
    /// What is divided by.
    pub std: Vec<f64>,
}

impl Rule for Normalize {
    fn kind(&self) -> &'static str {
        "normalize"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = &inputs[0];
        if input.dtype == DType::I32 {
            return Err(format!(
                "`normalize` takes bytes or floats, but its input is {input}\nhelp: declare the input as u8 or f32"
            ));
        }
        let channels = input.shape.0.first().copied().unwrap_or(1);
        if self.mean.len() != 1 && self.mean.len() as u64 != channels {
            return Err(format!(
                "`mean` has {} numbers, but the input {input} has {channels} channel{}\nhelp: give one number, or one for each channel",
                self.mean.len(),
                if channels == 1 { "" } else { "s" }
            ));
        }
        Ok(ValueType { dtype: DType::F32, ..input.clone() })
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { gradient_in_place: true, ..Memory::default() }
    }
}
