//! Normalization of each sample over its last axes (Ba et al. 2016). Over channels, see [`layernorm2d`](super::layernorm2d).

use plimsoll_plan::layers::layernorm::LayerNorm;
use plimsoll_plan::schedule::Role;

use super::moments::Moments;
use super::parallel::{self, CHUNK};
use super::step::Step;
use super::sums::{sum, sum_of2};

/// Elements that are normalized together, and how many such rows one task handles.
fn rows(layer: &LayerNorm, step: &Step) -> (usize, usize) {
    let width = layer.normalized(step.output()).iter().product::<u64>() as usize;
    (width, CHUNK.div_ceil(width))
}

/// The outputs.
pub fn forward(layer: &LayerNorm, step: &Step) {
    let (width, rows) = rows(layer, step);
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let bias = step.read_if::<f32>(Role::Parameter(1));
    let pair = step.pair(Role::Input(0), Role::Output);
    pair.chunks_saving(rows * width, step.saved_moments(rows), |_, mut pair, mut saved| {
        for row in 0..pair.len() / width {
            let mut pair = pair.part(row * width..(row + 1) * width);
            let moments = Moments::of(pair.from(), layer.eps);
            let line = moments.line(1.0, 0.0);
            pair.map(|_, x| line.at(x));
            if let Some(weight) = weight {
                pair.to().iter_mut().zip(weight).for_each(|(y, weight)| *y *= weight);
            }
            if let Some(bias) = bias {
                pair.to().iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
            }
            if let Some([mean, rstd]) = &mut saved {
                (mean[row], rstd[row]) = (moments.mean as f32, moments.rstd as f32);
            }
        }
    });
}

/// With `z = (x - mean) rstd`, `g = w dy`, and means over the row: `dw = sum dy z`, `db = sum dy`,
/// `dx = rstd (g - mean(g) - z mean(g z))`.
pub fn backward(layer: &LayerNorm, step: &Step) {
    let (width, rows) = rows(layer, step);
    let gradients = step.gradients();
    let x = step.read::<f32>(Role::Input(0));
    let (mean, rstd) = (step.read::<f32>(Role::Saved(0)), step.read::<f32>(Role::Saved(1)));
    if let Some(weight) = step.gradient(Role::ParameterGradient(0)) {
        sum_rows(weight, gradients.output(), |row, column, dy| {
            dy * (f64::from(x[row * width + column]) - f64::from(mean[row])) * f64::from(rstd[row])
        });
    }
    if let Some(bias) = step.gradient(Role::ParameterGradient(1)) {
        sum_rows(bias, gradients.output(), |_, _, dy| dy);
    }
    let weight = step.read_if::<f32>(Role::Parameter(0));
    let Some(dx) = gradients.input() else { return };
    dx.chunks(rows * width, |task, mut dx| {
        for part in 0..dx.len() / width {
            let row = task * rows + part;
            let x = &x[row * width..][..width];
            let center = f64::from(mean[row]);
            let mut dx = dx.part(part * width..(part + 1) * width);
            let dy = dx.from();
            let (offset, slope) = match weight {
                Some(weight) => {
                    let terms = dy.iter().zip(x).zip(weight).map(|((dy, x), w)| (f64::from(*dy) * f64::from(*w), x));
                    terms.fold((0.0, 0.0), |(g, gx), (term, x)| (g + term, gx + term * (f64::from(*x) - center)))
                }
                None => (sum(dy), sum_of2(dy, x, |dy, x| dy * (x - center))),
            };
            let (mean, rstd) = (mean[row], rstd[row]);
            let count = width as f64;
            let (offset, slope) = ((offset / count) as f32, (slope / count) as f32 * rstd * rstd);
            match weight {
                Some(weight) => {
                    dx.map(|i, dy| rstd * (weight[i] * dy - offset - (x[i] - mean) * slope));
                }
                None => dx.zip(x, |dy, x| rstd * (dy - offset - (x - mean) * slope)),
            }
        }
    });
}

/// Adds `f(row, column, dy)` of every row to `sums`. Columns are split among the threads, so that each sum runs in one order.
fn sum_rows(sums: &mut [f32], dy: &[f32], f: impl Fn(usize, usize, f64) -> f64 + Sync + Send) {
    const COLUMNS: usize = 64;
    let width = sums.len();
    parallel::chunks(sums, COLUMNS, |i, sums| {
        let first = i * COLUMNS;
        let mut totals = [0.0f64; COLUMNS];
        for (row, dy) in dy.chunks_exact(width).enumerate() {
            for (column, (total, dy)) in totals.iter_mut().zip(&dy[first..first + sums.len()]).enumerate() {
                *total += f(row, first + column, f64::from(*dy));
            }
        }
        sums.iter_mut().zip(&totals).for_each(|(sum, total)| *sum += *total as f32);
    });
}
