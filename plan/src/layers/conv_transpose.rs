//! `conv_transpose2d`: the gradient of a convolution with respect to its input, as a layer (PyTorch's `ConvTranspose2d`).

use serde::{Deserialize, Serialize};

use super::conv::{check_groups, image, workspace};
use super::window::Window;
use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, Workspace, one_float};
use crate::arguments::{ArgumentError, Default, Definition, Kind, named, required};
use crate::shape::{Shape, ValueType};

/// How it is called.
pub static CONV_TRANSPOSE2D: Definition<Layer> = Definition {
    name: "conv_transpose2d",
    summary: "transposed convolution over the last two axes of [channels, height, width]",
    arguments: &[
        required("out_channels", Kind::Size),
        required("kernel", Kind::SizePair),
        named("stride", Kind::SizePair, Default::Int(1)),
        named("padding", Kind::CountPair, Default::Int(0)),
        named("output_padding", Kind::CountPair, Default::Int(0)),
        named("groups", Kind::Size, Default::Int(1)),
        named("bias", Kind::Bool, Default::Bool(true)),
        named("dilation", Kind::SizePair, Default::Int(1)),
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
        let output_padding = a.pair("output_padding");
        for (padding, (stride, dilation)) in output_padding.iter().zip(window.stride.iter().zip(&window.dilation)) {
            if padding >= stride.max(dilation) {
                let message = format!(
                    "`output_padding` = {padding} must be smaller than the stride or the dilation, which are {stride} and {dilation}"
                );
                return Err(ArgumentError::new("output_padding", message));
            }
        }
        let (out_channels, groups) = (a.size("out_channels"), a.size("groups"));
        check_groups(out_channels, groups)?;
        let bias = a.bool("bias");
        Ok(Layer::ConvTranspose(ConvTranspose { out_channels, window, output_padding, groups, bias }))
    },
};

/// A transposed convolution over two axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvTranspose {
    /// Channels of the output.
    pub out_channels: u64,
    /// The kernel's geometry, as that of the convolution whose gradient this is.
    pub window: Window,
    /// Rows and columns added at one side, to choose among the sizes that the convolution maps to one.
    pub output_padding: [u64; 2],
    /// Channels are split into this many groups.
    pub groups: u64,
    /// Whether a bias is added.
    pub bias: bool,
}

impl Rule for ConvTranspose {
    fn kind(&self) -> &'static str {
        "conv_transpose2d"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        let [channels, height, width] = image(self.kind(), 2, input)?;
        self.window.check()?;
        check_groups(self.out_channels, self.groups).map_err(|error| error.message)?;
        if !channels.is_multiple_of(self.groups) {
            let help = super::groups_that_divide(self.groups, super::greatest_divisor(channels, self.out_channels));
            return Err(format!(
                "`groups` = {} does not divide the input's {channels} channels\nhelp: {help}",
                self.groups
            ));
        }
        let mut shape = vec![self.out_channels];
        for (axis, extent) in [height, width].into_iter().enumerate() {
            // The inverse of the convolution's formula: (input - 1) stride - 2 padding + reach + output_padding.
            let grown = (extent - 1).checked_mul(self.window.stride[axis]);
            let full = grown.and_then(|g| g.checked_add(self.window.reach(axis) + self.output_padding[axis]));
            let full = full.ok_or("the output's extent passes 64 bits\nhelp: use a smaller `stride`")?;
            match full.checked_sub(2 * self.window.padding[axis]) {
                Some(extent) if extent > 0 => shape.push(extent),
                _ => {
                    return Err(format!(
                        "padding {} on either side leaves nothing of the output's extent {full}\nhelp: use a smaller `padding`",
                        self.window.padding[axis]
                    ));
                }
            }
        }
        Ok(ValueType { shape: Shape(shape), ..input.clone() })
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        let group = self.out_channels / self.groups;
        // PyTorch takes the fan-in from the weight's second axis, here the outputs of a group.
        let init = Init::fan_in(group.saturating_mul(self.window.taps()));
        let [height, width] = self.window.kernel;
        let mut parameters =
            vec![ParameterSpec::trained("weight", &[inputs[0].shape.0[0], group, height, width], init)];
        if self.bias {
            parameters.push(ParameterSpec::trained("bias", &[self.out_channels], init));
        }
        parameters
    }

    fn memory(&self, inputs: &[ValueType], _output: &ValueType) -> Memory {
        let channels = inputs[0].shape.0[0];
        let rows = (self.out_channels / self.groups).saturating_mul(self.window.taps());
        let positions = inputs[0].elements() / channels;
        let tiles = workspace(rows, channels / self.groups, positions);
        Memory {
            keeps_input: KeepsInput::ForParameters,
            separate_parameter_gradients: true,
            workspace: Workspace { forward: tiles, backward: tiles, backward_parameters: tiles },
            ..Memory::default()
        }
    }

    fn multiply_adds(&self, inputs: &[ValueType], _output: &ValueType) -> Option<u64> {
        let rows = (self.out_channels / self.groups).checked_mul(self.window.taps())?;
        inputs[0].elements().checked_mul(rows)
    }
}
