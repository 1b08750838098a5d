//! `upsample(scale)`: each element repeated, nearest neighbour (PyTorch's `Upsample(scale_factor, mode = "nearest")`).

use serde::{Deserialize, Serialize};

use super::conv::image;
use super::{Layer, Memory, Rule, one_float};
use crate::arguments::{Default, Definition, Kind, optional, required};
use crate::shape::{Shape, ValueType};

/// How it is called.
pub static UPSAMPLE: Definition<Layer> = Definition {
    name: "upsample",
    summary: "each element of [channels, height, width] repeated by whole factors",
    arguments: &[
        required("scale_factor", Kind::SizePair),
        optional("mode", Kind::Word(&["nearest"]), Default::Word("nearest")),
    ],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::Upsample(Upsample { scale: a.pair("scale_factor") })),
};

/// Nearest-neighbour upsampling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Upsample {
    /// Factors of height and width.
    pub scale: [u64; 2],
}

impl Rule for Upsample {
    fn kind(&self) -> &'static str {
        "upsample"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("upsample", inputs)?;
        let [channels, height, width] = image("upsample", 2, input)?;
        let scaled = (height.checked_mul(self.scale[0])).zip(width.checked_mul(self.scale[1]));
        let (height, width) = scaled.ok_or("the output's extent passes 64 bits\nhelp: use a smaller `scale_factor`")?;
        Ok(ValueType { shape: Shape(vec![channels, height, width]), ..input.clone() })
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory::default()
    }
}
