//! Pooling over (height, width): `maxpool2d`, `avgpool2d` and their adaptive forms, with PyTorch's rules.

use serde::{Deserialize, Serialize};

use super::conv::image;
use super::window::Window;
use super::{Layer, Memory, Output, Rule, Saved, one_float};
use crate::arguments::{Argument, ArgumentError, Arguments, Default, Definition, Kind, optional, required};
use crate::shape::{DType, Shape, Size, ValueType};

/// How `maxpool2d` is called.
pub static MAXPOOL2D: Definition<Layer> = Definition {
    name: "maxpool2d",
    summary: "the maximum of each window of [channels, height, width]",
    arguments: &[KERNEL, STRIDE, PADDING, optional("dilation", Kind::SizePair, Default::Int(1)), CEIL_MODE],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| build(a, Reduction::Max, a.pair("dilation")),
};

/// How `avgpool2d` is called.
pub static AVGPOOL2D: Definition<Layer> = Definition {
    name: "avgpool2d",
    summary: "the mean of each window of [channels, height, width]",
    arguments: &[KERNEL, STRIDE, PADDING, CEIL_MODE, optional("count_include_pad", Kind::Bool, Default::Bool(true))],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| build(a, Reduction::Mean { count_include_pad: a.bool("count_include_pad") }, [1, 1]),
};

/// How `adaptive_avgpool2d` is called.
pub static ADAPTIVE_AVGPOOL2D: Definition<Layer> = Definition {
    name: "adaptive_avgpool2d",
    summary: "means over windows chosen to give an output of this size",
    arguments: &[SIZE],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::AdaptivePool(AdaptivePool { max: false, size: a.pair("output_size") })),
};

/// How `adaptive_maxpool2d` is called.
pub static ADAPTIVE_MAXPOOL2D: Definition<Layer> = Definition {
    name: "adaptive_maxpool2d",
    summary: "maxima over windows chosen to give an output of this size",
    arguments: &[SIZE],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::AdaptivePool(AdaptivePool { max: true, size: a.pair("output_size") })),
};

const KERNEL: Argument = required("kernel", Kind::SizePair);
const STRIDE: Argument = optional("stride", Kind::SizePair, Default::SameAs("kernel"));
const PADDING: Argument = optional("padding", Kind::CountPair, Default::Int(0));
const CEIL_MODE: Argument = optional("ceil_mode", Kind::Bool, Default::Bool(false));
const SIZE: Argument = required("output_size", Kind::SizePair);

fn build(a: &Arguments, reduction: Reduction, dilation: [u64; 2]) -> Result<Layer, ArgumentError> {
    let window = Window { kernel: a.pair("kernel"), stride: a.pair("stride"), padding: a.pair("padding"), dilation };
    for axis in 0..2 {
        if window.padding[axis] > window.kernel[axis] / 2 {
            let message = format!(
                "`padding` = {} must be at most half of the kernel, which is {}",
                window.padding[axis], window.kernel[axis]
            );
            return Err(ArgumentError::new("padding", message));
        }
    }
    Ok(Layer::Pool(Pool { reduction, window, ceil_mode: a.bool("ceil_mode") }))
}

/// What becomes of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Its maximum.
    Max,
    /// Its mean.
    Mean {
        /// Whether padding counts among the elements that the sum is divided by.
        count_include_pad: bool,
    },
}

/// Pooling by a sliding window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Maximum or mean.
    pub reduction: Reduction,
    /// The window's geometry.
    pub window: Window,
    /// Whether the output's extent is rounded up.
    pub ceil_mode: bool,
}

/// Pooling to a given size: output `i` covers inputs from `floor(i n / m)` to `ceil((i + 1) n / m)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptivePool {
    /// Maximum or mean.
    pub max: bool,
    /// Height and width of the output.
    pub size: [u64; 2],
}

/// Where each maximum came from, as its place within the window: one byte for up to 256 taps.
fn index(output: &ValueType, taps: u64) -> Saved {
    let dtype = if taps <= 256 { DType::U8 } else { DType::I32 };
    Saved { name: "index", dtype, size: Size::per_batch(output.batched, output.elements() * dtype.bytes()) }
}

impl Rule for Pool {
    fn kind(&self) -> &'static str {
        match self.reduction {
            Reduction::Max => "maxpool2d",
            Reduction::Mean { .. } => "avgpool2d",
        }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        let [channels, height, width] = image(self.kind(), 2, input)?;
        let extent = [height, width];
        let [height, width] =
            if self.ceil_mode { self.window.output_ceil(extent)? } else { self.window.output(extent)? };
        Ok(ValueType { shape: Shape(vec![channels, height, width]), ..input.clone() })
    }

    fn memory(&self, _inputs: &[ValueType], output: &ValueType) -> Memory {
        match self.reduction {
            Reduction::Max => {
                let saved = vec![index(output, self.window.taps())];
                Memory { saved, saved_is_remade: true, reads_parts: true, ..Memory::default() }
            }
            Reduction::Mean { .. } => Memory { reads_parts: true, ..Memory::default() },
        }
    }
}

impl AdaptivePool {
    /// The most taps that a window has, along one axis.
    fn most_taps(input: u64, output: u64) -> u64 {
        // A window starts and ends within one element of an exact division.
        if input.is_multiple_of(output) { input / output } else { input / output + 2 }
    }
}

impl Rule for AdaptivePool {
    fn kind(&self) -> &'static str {
        if self.max { "adaptive_maxpool2d" } else { "adaptive_avgpool2d" }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        let [channels, ..] = image(self.kind(), 2, input)?;
        Ok(ValueType { shape: Shape(vec![channels, self.size[0], self.size[1]]), ..input.clone() })
    }

    fn memory(&self, inputs: &[ValueType], output: &ValueType) -> Memory {
        // Windows of one element each: the input itself, as VGG's pool to 7 x 7 is at 224 x 224.
        if inputs[0].shape == output.shape {
            return Memory { output: Output::View, passes_gradient: vec![true], ..Memory::default() };
        }
        if !self.max {
            return Memory { reads_parts: true, ..Memory::default() };
        }
        let extent = &inputs[0].shape.0[1..];
        let taps = |axis: usize| AdaptivePool::most_taps(extent[axis], self.size[axis]);
        let saved = vec![index(output, taps(0).saturating_mul(taps(1)))];
        Memory { saved, saved_is_remade: true, reads_parts: true, ..Memory::default() }
    }
}
