//! The losses, with PyTorch's names, defaults and targets. Each is a mean over the batch.

use serde::{Deserialize, Serialize};

use crate::arguments::{Default, Definition, Kind, optional};
use crate::shape::{DType, Shape, ValueType};

/// Every loss that the language knows.
pub static DEFINITIONS: &[&Definition<Loss>] = &[&CROSS_ENTROPY, &MSE, &L1, &SMOOTH_L1, &BCE_WITH_LOGITS];

/// The loss of that name.
pub fn find(name: &str) -> Option<&'static Definition<Loss>> {
    DEFINITIONS.iter().copied().find(|d| d.name == name)
}

/// How `cross_entropy` is called.
pub static CROSS_ENTROPY: Definition<Loss> = Definition {
    name: "cross_entropy",
    summary: "negative logarithm of the softmax at the target class; targets are class indices",
    arguments: &[
        optional("label_smoothing", Kind::FRACTION, Default::Float(0.0)),
        optional("ignore_index", Kind::Axis, Default::Int(-100)),
    ],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| {
        let ignore_index = i32::try_from(a.int("ignore_index")).expect("arguments stay within i32");
        Ok(Loss::CrossEntropy { label_smoothing: a.float("label_smoothing"), ignore_index })
    },
};

/// How `mse` is called.
pub static MSE: Definition<Loss> = Definition {
    name: "mse",
    summary: "mean of the squared error",
    arguments: &[],
    inputs: 1..=1,
    has_parameters: false,
    build: |_| Ok(Loss::Mse),
};

/// How `l1` is called.
pub static L1: Definition<Loss> = Definition {
    name: "l1",
    summary: "mean of the absolute error",
    arguments: &[],
    inputs: 1..=1,
    has_parameters: false,
    build: |_| Ok(Loss::L1),
};

/// How `smooth_l1` is called.
pub static SMOOTH_L1: Definition<Loss> = Definition {
    name: "smooth_l1",
    summary: "squared error below `beta`, absolute error above (Girshick 2015)",
    arguments: &[optional("beta", Kind::NON_NEGATIVE, Default::Float(1.0))],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Loss::SmoothL1 { beta: a.float("beta") }),
};

/// How `bce_with_logits` is called.
pub static BCE_WITH_LOGITS: Definition<Loss> = Definition {
    name: "bce_with_logits",
    summary: "binary cross-entropy of the sigmoid; targets are probabilities",
    arguments: &[],
    inputs: 1..=1,
    has_parameters: false,
    build: |_| Ok(Loss::BceWithLogits),
};

/// A loss with its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// See [`CROSS_ENTROPY`].
    CrossEntropy {
        /// The share of the target that is spread evenly over all classes.
        label_smoothing: f64,
        /// Targets of this class count neither in the loss nor in the mean.
        ignore_index: i32,
    },
    /// See [`MSE`].
    Mse,
    /// See [`L1`].
    L1,
    /// See [`SMOOTH_L1`].
    SmoothL1 {
        /// Where the square ends.
        beta: f64,
    },
    /// See [`BCE_WITH_LOGITS`].
    BceWithLogits,
}

impl Loss {
    /// Its name in the language.
    pub fn name(&self) -> &'static str {
        match self {
            Loss::CrossEntropy { .. } => "cross_entropy",
            Loss::Mse => "mse",
            Loss::L1 => "l1",
            Loss::SmoothL1 { .. } => "smooth_l1",
            Loss::BceWithLogits => "bce_with_logits",
        }
    }

    /// The type of the targets for an output. For cross-entropy over `[classes, ...]`: one class index per position of
    /// the other axes.
    ///
    /// # Errors
    /// Where the output has no axis of classes.
    pub fn target(&self, output: &ValueType) -> Result<ValueType, String> {
        match self {
            Loss::CrossEntropy { .. } => match output.shape.0.split_first() {
                Some((_, positions)) => {
                    Ok(ValueType { dtype: DType::I32, shape: Shape::new(positions), batched: true })
                }
                None => Err(format!(
                    "`cross_entropy` needs an output of [classes], but it is {output}\nhelp: end the network with `linear(10)`, for ten classes"
                )),
            },
            _ => Ok(output.clone()),
        }
    }
}
