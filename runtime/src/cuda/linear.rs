//! `y = x W^T + b`, `dW = dy^T x`, `db = sum dy`, `dx = dy W`.
//!
//! All axes but the last count as rows, those of the whole batch together.

use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::schedule::{Part, Role};

use super::channels::{Channels, add_bias, bias_gradient};
use super::optimizer;
use super::product::{Matrix, Product};
use super::step::Step;
use crate::error::Error;

/// The outputs.
pub fn forward(layer: &Linear, step: &Step) -> Result<(), Error> {
    let outputs = layer.out_features as u32;
    let rows = step.count(Role::Output) / outputs;
    let inputs = step.count(Role::Parameter(0)) / outputs;
    step.product(&Product {
        a: Matrix::rows(step.at(Role::Input(0)), inputs),
        b: Matrix::rows(step.at(Role::Parameter(0)), inputs).transposed(),
        c: Matrix::rows(step.at(Role::Output), outputs),
        rows,
        columns: outputs,
        depth: inputs,
        batches: 1,
        adds: false,
    })?;
    match layer.bias {
        true => add_bias(step, Channels { count: outputs, positions: 1 }),
        false => Ok(()),
    }
}

/// The gradients: of weight and bias, or of the input.
pub fn backward(layer: &Linear, step: &Step, part: Part) -> Result<(), Error> {
    let outputs = layer.out_features as u32;
    let rows = step.count(Role::OutputGradient) / outputs;
    let dy = Matrix::rows(step.at(Role::OutputGradient), outputs);
    let (dweight, dx) = (Role::ParameterGradient(0), Role::InputGradient(0));
    if part != Part::Inputs && step.has(dweight) {
        let inputs = step.count(dweight) / outputs;
        step.product(&Product {
            a: dy.transposed(),
            b: Matrix::rows(step.at(Role::Input(0)), inputs),
            c: Matrix::rows(step.at(dweight), inputs),
            rows: outputs,
            columns: inputs,
            depth: rows,
            batches: 1,
            adds: step.adds(dweight) != 0,
        })?;
    }
    if part != Part::Inputs {
        bias_gradient(step, Channels { count: outputs, positions: 1 })?;
    }
    if part != Part::Parameters && step.has(dx) {
        let inputs = step.count(Role::Parameter(0)) / outputs;
        step.product(&Product {
            a: dy,
            b: Matrix::rows(step.at(Role::Parameter(0)), inputs),
            c: Matrix::rows(step.at(dx), inputs),
            rows,
            columns: inputs,
            depth: outputs,
            batches: 1,
            adds: step.adds(dx) != 0,
        })?;
    }
    Ok(())
}

/// The weight's gradient and its update, a tile of rows at a time.
pub fn update_rows(layer: &Linear, step: &Step, node: usize) -> Result<(), Error> {
    let outputs = layer.out_features as u32;
    let depth = step.count(Role::OutputGradient) / outputs;
    let inputs = step.count(Role::Parameter(0)) / outputs;
    optimizer::update_rows(step, node, |rows, tile, _, _| {
        let dy = step.at(Role::OutputGradient).after(rows.start as usize);
        step.product(&Product {
            a: Matrix::rows(dy, outputs).transposed(),
            b: Matrix::rows(step.at(Role::Input(0)), inputs),
            c: Matrix::rows(tile, inputs),
            rows: rows.end - rows.start,
            columns: inputs,
            depth,
            batches: 1,
            adds: false,
        })
    })
}
