//! `flatten`, `reshape(dims)`, `identity`: the same elements under another shape, at no cost in memory or time.

use serde::{Deserialize, Serialize};

use super::{Layer, Memory, Output, Rule};
use crate::arguments::{ArgumentError, Default, Definition, Kind, named, required};
use crate::shape::{Shape, ValueType};

/// How `flatten` is called.
pub static FLATTEN: Definition<Layer> = Definition {
    name: "flatten",
    summary: "all axes of a sample as one, or those from `start_axis` on",
    arguments: &[named("start_axis", Kind::Count, Default::Int(0))],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| Ok(Layer::View(View::Flatten { start_axis: a.size("start_axis") })),
};

/// How `reshape` is called.
pub static RESHAPE: Definition<Layer> = Definition {
    name: "reshape",
    summary: "another shape of as many elements; one extent may be -1",
    arguments: &[required("shape", Kind::Dims)],
    inputs: 1..=1,
    has_parameters: false,
    build: |a| {
        let dims = a.ints("shape");
        if dims.iter().filter(|&&d| d == -1).count() > 1 {
            return Err(ArgumentError::new("shape", "only one extent may be -1"));
        }
        Ok(Layer::View(View::Reshape { dims }))
    },
};

/// How `identity` is called.
pub static IDENTITY: Definition<Layer> = Definition {
    name: "identity",
    summary: "its input",
    arguments: &[],
    inputs: 1..=1,
    has_parameters: false,
    build: |_| Ok(Layer::View(View::Identity)),
};

/// A change of shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The axes from `start_axis` on become one.
    Flatten {
        /// The first axis that is merged.
        start_axis: u64,
    },
    /// These extents, one of which may be -1.
    Reshape {
        /// The extents.
        dims: Vec<i64>,
    },
    /// The same shape.
    Identity,
}

impl Rule for View {
    fn kind(&self) -> &'static str {
        match self {
            View::Flatten { .. } => "flatten",
            View::Reshape { .. } => "reshape",
            View::Identity => "identity",
        }
    }

    fn output(&self, inputs: &[ValueType]) -> Result<ValueType, String> {
        let input = &inputs[0];
        let shape = match self {
            View::Identity => input.shape.clone(),
            View::Flatten { start_axis } => {
                let rank = input.shape.rank();
                let start = *start_axis as usize;
                if start > 0 && start >= rank {
                    return Err(format!(
                        "`start_axis` = {start} does not exist in {input}\nhelp: axes count from 0, without the batch: leave it out to flatten all"
                    ));
                }
                let merged = input.shape.0[start..].iter().product();
                Shape(input.shape.0[..start].iter().copied().chain([merged]).collect())
            }
            View::Reshape { dims } => reshape(dims, input)?,
        };
        Ok(ValueType { shape, ..input.clone() })
    }

    fn memory(&self, _inputs: &[ValueType], _output: &ValueType) -> Memory {
        Memory { output: Output::View, passes_gradient: vec![true], ..Memory::default() }
    }
}

fn reshape(dims: &[i64], input: &ValueType) -> Result<Shape, String> {
    let elements = input.elements();
    let known = dims.iter().filter(|&&d| d != -1).try_fold(1u64, |product, &d| product.checked_mul(d.unsigned_abs()));
    let wrong = || {
        let shape = Shape(dims.iter().map(|&d| d.unsigned_abs()).collect());
        let asked = known.map_or("more than 2^64".to_string(), |known| known.to_string());
        match dims.contains(&-1) {
            true => format!(
                "{input} has {elements} elements, which the other extents, {asked} in all, do not divide\nhelp: choose extents whose product is {elements}; the batch is not among them"
            ),
            false => {
                // An extent that could be left open.
                let others = |i: usize| shape.0.iter().enumerate().filter(move |(j, _)| *j != i);
                let open = (0..dims.len()).rev().find(|&i| {
                    let product = others(i).try_fold(1u64, |product, (_, extent)| product.checked_mul(*extent));
                    product.is_some_and(|product| elements.is_multiple_of(product))
                });
                let help = match open {
                    Some(open) => {
                        let shown = shape.0.iter().enumerate();
                        let shown = shown.map(|(i, extent)| if i == open { "-1".into() } else { extent.to_string() });
                        format!("`[{}]` would leave one extent open", shown.collect::<Vec<_>>().join(", "))
                    }
                    None => format!("choose extents whose product is {elements}; the batch is not among them"),
                };
                format!("{input} has {elements} elements and cannot become {shape}, which has {asked}\nhelp: {help}")
            }
        }
    };
    let known = known.ok_or_else(wrong)?;
    if dims.iter().filter(|&&d| d == -1).count() > 1 {
        return Err("only one extent of `reshape` may be -1".to_string());
    }
    let fits = if dims.contains(&-1) { elements.is_multiple_of(known) } else { elements == known };
    if !fits {
        return Err(wrong());
    }
    Ok(Shape(dims.iter().map(|&d| if d == -1 { elements / known } else { d.unsigned_abs() }).collect()))
}
