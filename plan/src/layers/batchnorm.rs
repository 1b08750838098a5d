//! `batchnorm1d`, `batchnorm2d`: normalization over the batch and all axes but the channels (Ioffe & Szegedy 2015).

use serde::{Deserialize, Serialize};

use super::{Init, KeepsInput, Layer, Memory, ParameterSpec, Rule, Saved, Workspace, one_float};
use crate::arguments::{Argument, ArgumentError, Arguments, Default, Definition, Kind, named};
use crate::shape::{DType, Size, ValueType};

/// How `batchnorm1d` is called.
pub static BATCHNORM1D: Definition<Layer> = Definition {
    name: "batchnorm1d",
    summary: "batch normalization of [channels] or [channels, length]",
    arguments: ARGUMENTS,
    inputs: 1..=1,
    has_parameters: true,
    build: |a| build(a, 1),
};

/// How `batchnorm2d` is called.
pub static BATCHNORM2D: Definition<Layer> = Definition {
    name: "batchnorm2d",
    summary: "batch normalization of [channels, height, width]",
    arguments: ARGUMENTS,
    inputs: 1..=1,
    has_parameters: true,
    build: |a| build(a, 2),
};

const ARGUMENTS: &[Argument] = &[
    named("eps", Kind::NON_NEGATIVE, Default::Float(1e-5)),
    named("momentum", Kind::FRACTION, Default::Float(0.1)),
    named("affine", Kind::Bool, Default::Bool(true)),
];

fn build(a: &Arguments, axes: usize) -> Result<Layer, ArgumentError> {
    let (eps, momentum, affine) = (a.float("eps"), a.float("momentum"), a.bool("affine"));
    Ok(Layer::BatchNorm(BatchNorm { axes, eps, momentum, affine }))
}

/// Batch normalization. In training it uses the batch's mean and biased variance, and moves the running mean and
/// (unbiased) variance by `momentum` towards them; in inference it uses the running ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchNorm {
    /// 1 for `batchnorm1d`, 2 for `batchnorm2d`.
    pub axes: usize,
    /// Added to the variance.
    pub eps: f64,
    /// Weight of the new value in the running statistics.
    pub momentum: f64,
    /// Whether a learned factor and offset follow.
    pub affine: bool,
}

impl Rule for BatchNorm {
    fn kind(&self) -> &'static str {
        if self.axes == 1 { "batchnorm1d" } else { "batchnorm2d" }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float(self.kind(), inputs)?;
        if !input.batched {
            return Err(format!(
                "`{}` normalizes over the batch, but its input is computed from parameters alone",
                self.kind()
            ));
        }
        match (self.axes, input.shape.rank()) {
            (1, 1 | 2) | (2, 3) => Ok(input.clone()),
            (1, 3) => Err(format!(
                "`batchnorm1d` needs [channels] or [channels, length], but its input is {input}\nhelp: use `batchnorm2d`"
            )),
            (1, _) => Err(format!(
                "`batchnorm1d` needs [channels] or [channels, length], but its input is {input}\nhelp: `reshape` or `permute` to such axes first"
            )),
            (_, 1 | 2) => Err(format!(
                "`batchnorm2d` needs [channels, height, width], but its input is {input}\nhelp: use `batchnorm1d`"
            )),
            _ => Err(super::no_image("batchnorm2d", 2, input)),
        }
    }

    fn parameters(&self, inputs: &[ValueType]) -> Vec<ParameterSpec> {
        let channels = [inputs[0].shape.0[0]];
        let mut parameters = Vec::with_capacity(4);
        if self.affine {
            parameters.push(ParameterSpec::trained("weight", &channels, Init::Constant(1.0)));
            parameters.push(ParameterSpec::trained("bias", &channels, Init::Constant(0.0)));
        }
        parameters.push(ParameterSpec::buffer("running_mean", &channels, Init::Constant(0.0)));
        parameters.push(ParameterSpec::buffer("running_var", &channels, Init::Constant(1.0)));
        parameters
    }

    fn memory(&self, inputs: &[ValueType], _output: &ValueType) -> Memory {
        let statistics = Size::fixed(inputs[0].shape.0[0] * 4);
        Memory {
            // Only where the input is not kept, so never in a training step that learns through the layer.
            in_place: true,
            keeps_input: KeepsInput::Always,
            saved: vec![
                Saved { name: "mean", dtype: DType::F32, size: statistics },
                Saved { name: "rstd", dtype: DType::F32, size: statistics },
            ],
            gradient_in_place: true,
            // Both sums over a channel that the input's gradient needs, also where factor and offset are frozen.
            workspace: Workspace { backward: Size::fixed(inputs[0].shape.0[0] * 8), ..Workspace::default() },
            reads_parts: true,
            ..Memory::default()
        }
    }
}
