//! `+ - *` in `forward`: between two values of broadcastable shapes, or a value and a number.

use serde::{Deserialize, Serialize};

use super::{KeepsInput, Memory, Output, Rule};
use crate::shape::{DType, Shape, ValueType};

/// An operation on two values, elementwise with broadcasting (NumPy's rules; the batch is an axis in front).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
}

/// `mul * x + add`: a value times a number, plus a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// The factor.
    pub mul: f64,
    /// The offset.
    pub add: f64,
}

/// The shape of an elementwise operation on two shapes: extents agree, or one is 1, counted from the last axis.
fn broadcast(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let extent = |shape: &Shape, i: usize| (i + shape.rank()).checked_sub(rank).map_or(1, |i| shape.0[i]);
    let extents = (0..rank).map(|i| match (extent(a, i), extent(b, i)) {
        (x, y) if x == y || y == 1 => Some(x),
        (1, y) => Some(y),
        _ => None,
    });
    extents.collect::<Option<Vec<u64>>>().map(Shape)
}

/// What would give a value of shape `from` the shape `to`, for the two cases that every residual network meets.
fn match_shapes(to: &Shape, from: &Shape) -> Option<String> {
    match (&to.0[..], &from.0[..]) {
        ([outer @ .., features], [other @ .., _]) if outer == other => {
            Some(format!("`linear({features})` makes {to} of {from}"))
        }
        (&[channels, height, width], &[other, from_height, from_width]) => {
            let stride = from_height.div_ceil(height);
            if from_height.div_ceil(stride) == height && from_width.div_ceil(stride) == width {
                let stride = if stride > 1 { format!(", stride = {stride}") } else { String::new() };
                return Some(format!("`conv2d({channels}, kernel = 1{stride})` makes {to} of {from}"));
            }
            (channels == other && from_height > height).then(|| {
                "a convolution with `padding` of half its kernel keeps height and width, such as `kernel = 3, padding = 1`"
                    .to_string()
            })
        }
        _ => None,
    }
}

impl Rule for Arithmetic {
    fn kind(&self) -> &'static str {
        match self {
            Arithmetic::Add => "add",
            Arithmetic::Sub => "sub",
            Arithmetic::Mul => "mul",
        }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let [a, b] = inputs else { unreachable!("the language gives an operator two values") };
        for value in inputs {
            if value.dtype != DType::F32 {
                return Err(format!("arithmetic needs f32 values, but one is {value}"));
            }
        }
        let Some(shape) = broadcast(&a.shape, &b.shape) else {
            let help = match_shapes(&a.shape, &b.shape)
                .or_else(|| match_shapes(&b.shape, &a.shape))
                .unwrap_or_else(|| "extents must be equal, or one of them 1, counted from the last axis".to_string());
            return Err(format!("the shapes {} and {} do not match\nhelp: {help}", a.shape, b.shape));
        };
        Ok(ValueType { dtype: DType::F32, shape, batched: a.batched || b.batched })
    }

    fn memory(&self, inputs: &[ValueType], output: &ValueType) -> Memory {
        let whole = |input: &ValueType| input == output;
        let passes_gradient = match self {
            Arithmetic::Add => inputs.iter().map(whole).collect(),
            Arithmetic::Sub => vec![whole(&inputs[0]), false],
            Arithmetic::Mul => vec![false, false],
        };
        Memory {
            in_place: true,
            keeps_input: if *self == Arithmetic::Mul { KeepsInput::ForOther } else { KeepsInput::Never },
            gradient_in_place: true,
            passes_gradient,
            ..Memory::default()
        }
    }
}

impl Rule for Affine {
    fn kind(&self) -> &'static str {
        "affine"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        super::one_float("arithmetic", inputs).cloned()
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory {
            output: Output::Uncounted,
            in_place: true,
            gradient_in_place: true,
            passes_gradient: vec![self.mul == 1.0],
            ..Memory::default()
        }
    }
}
