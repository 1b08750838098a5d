//! `y = x W^T + b`, `dW = dy^T x`, `db = sum dy`, `dx = dy W`.
//!
//! All axes but the last count as rows, those of the whole batch together.

use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::schedule::{Part, Role};

use super::optimizer::State;
use super::parallel;
use super::product::{Left, Matrix, Target, product};
use super::step::Step;

/// The outputs.
pub fn forward(layer: &Linear, step: &Step) {
    let (x, weight) = (step.read(Role::Input(0)), step.read(Role::Parameter(0)));
    let y = step.write(Role::Output);
    let outputs = layer.out_features as usize;
    let (rows, inputs) = (y.len() / outputs, weight.len() / outputs);
    if layer.bias {
        let bias = step.read(Role::Parameter(1));
        parallel::chunks(y, outputs, |_, row| row.copy_from_slice(bias));
    }
    if outputs < rows {
        let right = Matrix { elements: weight, columns: outputs, row: 1, column: inputs };
        product(Target::rows(y, outputs), Left::rows(x, rows, inputs), &right, layer.bias);
    } else {
        // The other way round, since the right matrix is the one that is copied: y^T = W x^T.
        let right = Matrix { elements: x, columns: rows, row: 1, column: inputs };
        let target = Target { elements: y, row: 1, column: outputs, width: rows, group: 0 };
        product(target, Left::rows(weight, outputs, inputs), &right, layer.bias);
    }
}

/// The gradients: of weight and bias, or of the input.
pub fn backward(layer: &Linear, step: &Step, part: Part) {
    let dy = step.read(Role::OutputGradient);
    let outputs = layer.out_features as usize;
    let rows = dy.len() / outputs;
    if part != Part::Inputs {
        if let Some(weight) = step.write_if(Role::ParameterGradient(0)) {
            let inputs = weight.len() / outputs;
            let left = Left { row: 1, column: outputs, ..Left::rows(dy, outputs, rows) };
            let right = Matrix { elements: step.read(Role::Input(0)), columns: inputs, row: inputs, column: 1 };
            product(Target::rows(weight, inputs), left, &right, step.adds(Role::ParameterGradient(0)));
        }
        if let Some(bias) = step.gradient(Role::ParameterGradient(1)) {
            sum_rows(bias, dy);
        }
    }
    if part != Part::Parameters
        && let Some(dx) = step.write_if(Role::InputGradient(0))
    {
        let weight = step.read(Role::Parameter(0));
        let inputs = weight.len() / outputs;
        let right = Matrix { elements: weight, columns: inputs, row: inputs, column: 1 };
        product(Target::rows(dx, inputs), Left::rows(dy, rows, outputs), &right, step.adds(Role::InputGradient(0)));
    }
}

/// The weight's gradient and its update, as many rows at a time as the workspace holds.
pub fn update_rows(layer: &Linear, step: &Step) {
    let (dy, x) = (step.read::<f32>(Role::OutputGradient), step.read(Role::Input(0)));
    let tile = step.write::<f32>(Role::Workspace);
    let mut state = State::of(step);
    let outputs = layer.out_features as usize;
    let (rows, inputs) = (dy.len() / outputs, state.len() / outputs);
    let right = Matrix { elements: x, columns: inputs, row: inputs, column: 1 };
    let most = tile.len() / inputs;
    for first in (0..outputs).step_by(most) {
        let count = most.min(outputs - first);
        let tile = &mut tile[..count * inputs];
        let left = Left { row: 1, column: outputs, ..Left::rows(&dy[first..], count, rows) };
        product(Target::rows(tile, inputs), left, &right, false);
        state.update(first * inputs, (tile, 1.0));
    }
}

/// Adds every row to `sums`. Columns are split among the threads, so that each sum runs in one order.
fn sum_rows(sums: &mut [f32], rows: &[f32]) {
    const COLUMNS: usize = 64;
    let width = sums.len();
    parallel::chunks(sums, COLUMNS, |i, sums| {
        let first = i * COLUMNS;
        for row in rows.chunks_exact(width) {
            let row = &row[first..first + sums.len()];
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    });
}
