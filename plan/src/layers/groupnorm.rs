//! `groupnorm`: normalization of each sample over groups of channels (Wu & He 2018; PyTorch's `GroupNorm`).

use serde::{Deserialize, Serialize};

use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, Saved, one_float};
use crate::arguments::{Default, Definition, Kind, named, required};
use crate::shape::{DType, Size, ValueType};

/// How it is called.
pub static GROUPNORM: Definition<Layer> = Definition {
    name: "groupnorm",
    summary: "normalization over groups of the first axis, the channels, of each sample",
    arguments: &[
        required("groups", Kind::Size),
        named("eps", Kind::NON_NEGATIVE, Default::Float(1e-5)),
        named("affine", Kind::Bool, Default::Bool(true)),
    ],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| {
        Ok(Layer::GroupNorm(GroupNorm { groups: a.size("groups"), eps: a.float("eps"), affine: a.bool("affine") }))
    },
};

/// Group normalization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupNorm {
    /// Channels are split into this many groups.
    pub groups: u64,
    /// Added to the variance.
    pub eps: f64,
    /// Whether a learned factor and offset per channel follow.
    pub affine: bool,
}

impl Rule for GroupNorm {
    fn kind(&self) -> &'static str {
        "groupnorm"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("groupnorm", inputs)?;
        let Some(&channels) = input.shape.0.first() else {
            return Err("`groupnorm` needs an axis of channels, but its input is one number a sample".into());
        };
        if !channels.is_multiple_of(self.groups) {
            let help = super::groups_that_divide(self.groups, channels);
            return Err(format!(
                "`groups` = {} does not divide the input's {channels} channels\nhelp: {help}",
                self.groups
            ));
        }
        Ok(input.clone())
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        if !self.affine {
            return Vec::new();
        }
        let channels = [inputs[0].shape.0[0]];
        vec![
            ParameterSpec::trained("weight", &channels, Init::Constant(1.0)),
            ParameterSpec::trained("bias", &channels, Init::Constant(0.0)),
        ]
    }

    fn memory(&self, inputs: &[ValueType], _output: &ValueType) -> Memory {
        let statistics = Size::per_batch(inputs[0].batched, self.groups * 4);
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
