//! `conv1d` and `conv2d`: cross-correlation with a learned kernel (PyTorch's `Conv1d`, `Conv2d`).

use serde::{Deserialize, Serialize};

use super::window::Window;
use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, Workspace, groups_that_divide, no_image, one_float};
use crate::arguments::{Argument, ArgumentError, Arguments, Default, Definition, Kind, named, required};
use crate::shape::{Shape, Size, ValueType};

/// How `conv1d` is called.
pub static CONV1D: Definition<Layer> = Definition {
    name: "conv1d",
    summary: "convolution over the last axis of [channels, length]",
    arguments: &[
        required("out_channels", Kind::Size),
        required("kernel", Kind::Size),
        named("stride", Kind::Size, Default::Int(1)),
        named("padding", Kind::Count, Default::Int(0)),
        named("dilation", Kind::Size, Default::Int(1)),
        GROUPS,
        BIAS,
    ],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| {
        let window = Window {
            kernel: [1, a.size("kernel")],
            stride: [1, a.size("stride")],
            padding: [0, a.size("padding")],
            dilation: [1, a.size("dilation")],
        };
        build(a, 1, window)
    },
};

/// How `conv2d` is called.
pub static CONV2D: Definition<Layer> = Definition {
    name: "conv2d",
    summary: "convolution over the last two axes of [channels, height, width]",
    arguments: &[
        required("out_channels", Kind::Size),
        required("kernel", Kind::SizePair),
        named("stride", Kind::SizePair, Default::Int(1)),
        named("padding", Kind::CountPair, Default::Int(0)),
        named("dilation", Kind::SizePair, Default::Int(1)),
        GROUPS,
        BIAS,
    ],
    inputs: 1..=1,
    has_parameters: true,
    build: |a| {
        let window = Window {
            kernel: a.pair("kernel"),
            stride: a.pair("stride"),
            padding: a.pair("padding"),
            dilation: a.pair("dilation"),
        };
        build(a, 2, window)
    },
};

const GROUPS: Argument = named("groups", Kind::Size, Default::Int(1));
const BIAS: Argument = named("bias", Kind::Bool, Default::Bool(true));

fn build(a: &Arguments, axes: usize, window: Window) -> Result<Layer, ArgumentError> {
    let (out_channels, groups) = (a.size("out_channels"), a.size("groups"));
    check_groups(out_channels, groups)?;
    Ok(Layer::Conv(Conv { axes, out_channels, window, groups, bias: a.bool("bias") }))
}

/// Groups must divide the output channels; the input channels are checked once they are known.
pub(super) fn check_groups(out_channels: u64, groups: u64) -> Result<(), ArgumentError> {
    if out_channels.is_multiple_of(groups) {
        return Ok(());
    }
    let help = groups_that_divide(groups, out_channels);
    let message = format!("`groups` = {groups} does not divide out_channels = {out_channels}\nhelp: {help}");
    Err(ArgumentError::new("groups", message))
}

/// A convolution over one or two axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conv {
    /// How many axes the kernel slides over: 1 or 2.
    pub axes: usize,
    /// Channels of the output.
    pub out_channels: u64,
    /// The kernel's geometry; one-dimensional ones have a height of 1.
    pub window: Window,
    /// Channels are split into this many groups, each convolved alone.
    pub groups: u64,
    /// Whether a bias is added.
    pub bias: bool,
}

/// Channels, height and width of `[channels, length]` or `[channels, height, width]`.
pub(super) fn image(kind: &str, axes: usize, input: &ValueType) -> Result<[u64; 3], String> {
    match (axes, &input.shape.0[..]) {
        (1, &[channels, length]) => Ok([channels, 1, length]),
        (2, &[channels, height, width]) => Ok([channels, height, width]),
        _ => Err(no_image(kind, axes, input)),
    }
}

/// The workspace of a convolution computed by products over tiles of columns (Chellapilla et al. 2006, "im2col"): a tile
/// of columns and its product for as many positions as fit the limit. Small images of a whole batch share one tile.
///
/// The figure is the same for every device. A graphics card lays its columns out there; the CPU, which does so on its threads'
/// stacks, keeps there the partial sums of the kernel's gradient.
pub(super) fn workspace(rows: u64, products: u64, positions: u64) -> Size {
    /// Tiles for several threads, each within a second-level cache.
    const PREFERRED: u64 = 512 << 10;
    /// Where columns are long, still enough of them for an efficient product.
    const LEAST_COLUMNS: u64 = 128;
    let column = rows.saturating_add(products).saturating_mul(4);
    Size {
        fixed: 0,
        per_sample: column.saturating_mul(positions),
        limit: PREFERRED.max(column.saturating_mul(LEAST_COLUMNS)),
    }
}

impl Conv {
    /// Whether the columns are the input itself: a kernel of one tap that visits every position.
    pub fn is_pointwise(&self) -> bool {
        let Window { kernel, stride, padding, .. } = self.window;
        kernel == [1, 1] && stride == [1, 1] && padding == [0, 0]
    }

    fn in_channels(input: &ValueType) -> u64 {
        input.shape.0[0]
    }
}

impl Rule for Conv {
    fn kind(&self) -> &'static str {
        if self.axes == 1 { "conv1d" } else { "conv2d" }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        let [channels, height, width] = image(self.kind(), self.axes, input)?;
        check_groups(self.out_channels, self.groups).map_err(|error| error.message)?;
        if !channels.is_multiple_of(self.groups) {
            let help = groups_that_divide(self.groups, super::greatest_divisor(channels, self.out_channels));
            return Err(format!(
                "`groups` = {} does not divide the input's {channels} channels\nhelp: {help}",
                self.groups
            ));
        }
        let [height, width] = self.window.output([height, width])?;
        let shape =
            if self.axes == 1 { vec![self.out_channels, width] } else { vec![self.out_channels, height, width] };
        Ok(ValueType { shape: Shape(shape), ..input.clone() })
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        let group = Conv::in_channels(&inputs[0]) / self.groups;
        let init = Init::fan_in(group.saturating_mul(self.window.taps()));
        let shape = [self.out_channels, group, self.window.kernel[0], self.window.kernel[1]];
        let shape = if self.axes == 1 { vec![shape[0], shape[1], shape[3]] } else { shape.to_vec() };
        let mut parameters = vec![ParameterSpec::trained("weight", &shape, init)];
        if self.bias {
            parameters.push(ParameterSpec::trained("bias", &[self.out_channels], init));
        }
        parameters
    }

    fn memory(&self, inputs: &[ValueType], output: &ValueType) -> Memory {
        let group = Conv::in_channels(&inputs[0]) / self.groups;
        let rows = group.saturating_mul(self.window.taps());
        let positions = output.elements() / self.out_channels;
        let tiles = workspace(rows, self.out_channels / self.groups, positions);
        Memory {
            keeps_input: KeepsInput::ForParameters,
            separate_parameter_gradients: true,
            workspace: Workspace { forward: tiles, backward: tiles, backward_parameters: tiles },
            reads_parts: self.groups == 1,
            ..Memory::default()
        }
    }

    fn multiply_adds(&self, inputs: &[ValueType], output: &ValueType) -> Option<u64> {
        let group = Conv::in_channels(&inputs[0]) / self.groups;
        output.elements().checked_mul(group.checked_mul(self.window.taps())?)
    }
}
