//! `y = x W^T + b`, `dW = dy^T x`, `db = sum dy`, `dx = dy W`.
//!
//! All axes but the last count as rows, those of the whole batch together.

use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::schedule::{Part, Role};

use super::narrow;
use super::optimizer;
use super::parallel;
use super::product::{DEPTH, Matrix, Start, Target, product, product_in_pieces};
use super::step::Step;

/// The outputs.
pub fn forward(layer: &Linear, step: &Step) {
    let (x, weight) = (step.read(Role::Input(0)), step.read(Role::Parameter(0)));
    let y = step.write(Role::Output);
    let outputs = layer.out_features as usize;
    let (rows, inputs) = (y.len() / outputs, weight.len() / outputs);
    let bias = layer.bias.then(|| step.read(Role::Parameter(1)));
    multiply(Matrix::rows(x, rows, inputs), Matrix::rows(weight, outputs, inputs), bias, y);
}

/// `y = x W^T + b`.
pub fn multiply(x: Matrix, weight: Matrix, bias: Option<&[f32]>, y: &mut [f32]) {
    let (rows, outputs) = (x.rows, weight.rows);
    if narrow::suits_transposed(rows, x.columns) {
        return narrow::by_transposed(&x, &weight, bias, y);
    }
    // The bias is laid down first, since it belongs to the columns.
    if let Some(bias) = bias {
        parallel::chunks(y, outputs, |_, row| row.copy_from_slice(bias));
    }
    let start = Start::adding(bias.is_some());
    if outputs < rows {
        product(Target::rows(y, outputs, start), &x, &weight.transposed());
    } else {
        // The other way round, since the right matrix is the one that is copied: y^T = W x^T.
        product(Target::columns(y, outputs, start), &weight, &x.transposed());
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
            let left = Matrix::rows(dy, rows, outputs).transposed();
            let right = Matrix::rows(step.read(Role::Input(0)), rows, inputs);
            let start = Start::adding(step.adds(Role::ParameterGradient(0)));
            if narrow::suits(rows) {
                narrow::outer(&left, &right, weight, start);
            } else {
                product(Target::rows(weight, inputs, start), &left, &right);
            }
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
        let start = Start::adding(step.adds(Role::InputGradient(0)));
        let (left, right) = (Matrix::rows(dy, rows, outputs), Matrix::rows(weight, outputs, inputs));
        if narrow::suits(rows) {
            narrow::by(&left, &right, dx, start);
        } else {
            product(Target::rows(dx, inputs, start), &left, &right);
        }
    }
}

/// The weight's gradient and its update: each piece is used for the update as soon as it is computed.
pub fn update_rows(layer: &Linear, step: &Step, node: usize) {
    let (dy, x) = (step.read::<f32>(Role::OutputGradient), step.read::<f32>(Role::Input(0)));
    let outputs = layer.out_features as usize;
    let samples = dy.len() / outputs;
    let (dy, x) = (Matrix::rows(dy, samples, outputs), Matrix::rows(x, samples, x.len() / samples));
    if samples > DEPTH {
        // The sums are not complete before the last block of samples, and need the tile's room meanwhile.
        return optimizer::update_rows(step, node, |rows, tile, _| {
            let left = Matrix { elements: &dy.elements[rows.start..], columns: rows.len(), ..dy }.transposed();
            product(Target::rows(tile, x.columns, Start::Zero), &left, &x);
        });
    }
    let (rule, weight) = optimizer::State::of(step).apart();
    let update = |gradient: &[f32], weight: [&mut [f32]; 4]| rule.apply(weight, (gradient, 1.0));
    if narrow::suits(samples) {
        narrow::outer_in_pieces(&dy.transposed(), &x, weight, update);
    } else {
        product_in_pieces(&dy.transposed(), &x, weight, update);
    }
}

/// Adds every row to `sums`. Columns are split among the threads, so that each sum runs in one order.
pub fn sum_rows(sums: &mut [f32], rows: &[f32]) {
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
