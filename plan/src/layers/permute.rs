//! `permute(axes)`: the axes in another order, as a copy (PyTorch's `permute` followed by `contiguous`).

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Output, Rule, one_float};
use crate::arguments::{ArgumentError, Definition, Kind, required};
use crate::shape::{Shape, ValueType};

/// How it is called.
pub static PERMUTE: Definition<Layer> = Definition {
    name: "permute",
    summary: "the axes in another order; the batch stays first and is not counted",
    arguments: &[required("axes", Kind::Counts)],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| {
        let axes: Vec<usize> = a.ints("axes").into_iter().map(|axis| axis as usize).collect();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..axes.len()) {
            let message = format!("`axes` must name each axis from 0 to {} once", axes.len().saturating_sub(1));
            return Err(ArgumentError::new("axes", message));
        }
        Ok(Layer::Permute(Permute { axes }))
    },
};

/// A permutation of axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permute {
    /// Output axis `i` is input axis `axes[i]`.
    pub axes: Vec<usize>,
}

impl Rule for Permute {
    fn kind(&self) -> &'static str {
        "permute"
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = one_float("permute", inputs)?;
        if self.axes.len() != input.shape.rank() {
            let without_batch: Vec<usize> = self.axes.iter().filter_map(|axis| axis.checked_sub(1)).collect();
            let help = match self.axes.len() == input.shape.rank() + 1 && self.axes[0] == 0 {
                true => format!("leave the batch out: `permute({without_batch:?})`"),
                false => format!(
                    "name each of its axes once, from 0 to {}, without the batch",
                    input.shape.rank().max(1) - 1
                ),
            };
            return Err(format!(
                "`axes` names {} axes, but the input {input} has {}\nhelp: {help}",
                self.axes.len(),
                input.shape.rank()
            ));
        }
        let shape = self.axes.iter().map(|&axis| input.shape.0.get(axis).copied()).collect::<Option<Vec<u64>>>();
        let shape = Shape(shape.ok_or("`axes` must name each axis once")?);
        Ok(ValueType { shape, ..input.clone() })
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { output: Output::Uncounted, ..Memory::default() }
    }
}
