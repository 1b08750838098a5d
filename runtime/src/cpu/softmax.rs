//! Exponentials over their sum along an axis.
//!
//! The largest element is subtracted first, so that no exponential overflows.

use plimsoll_plan::layers::softmax::Softmax;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::shape::ValueType;

use super::step::{Pair, Step};
use super::sums::{dot, sum};

/// The elements along the axis lie `inner` apart; `block` elements hold `inner` such lines, side by side.
struct Lines {
    inner: usize,
    block: usize,
}

impl Lines {
    fn of(layer: &Softmax, value: &ValueType) -> Lines {
        let extents = &value.shape.0;
        let axis = if layer.axis < 0 { layer.axis + extents.len() as i64 } else { layer.axis } as usize;
        let inner = extents[axis + 1..].iter().product::<u64>() as usize;
        Lines { inner, block: inner * extents[axis] as usize }
    }
}

/// How many lines are handled side by side where they are not contiguous.
const WIDTH: usize = 64;

/// The outputs.
pub fn forward(layer: &Softmax, step: &Step) {
    let Lines { inner, block } = Lines::of(layer, step.output());
    step.pair(Role::Input(0), Role::Output).chunks(block, |_, pair| {
        let y = pair.copied();
        if inner == 1 { softmax_line(y) } else { (0..inner).step_by(WIDTH).for_each(|i| softmax_lines(y, inner, i)) }
    });
}

fn softmax_line(y: &mut [f32]) {
    let largest = y.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    y.iter_mut().for_each(|y| *y = (*y - largest).exp());
    let factor = 1.0 / sum(y);
    y.iter_mut().for_each(|y| *y = (f64::from(*y) * factor) as f32);
}

/// Up to [`WIDTH`] lines of a block, from `first` on.
fn softmax_lines(y: &mut [f32], inner: usize, first: usize) {
    let width = WIDTH.min(inner - first);
    let (mut largest, mut sums) = ([f32::NEG_INFINITY; WIDTH], [0.0f64; WIDTH]);
    for y in y.chunks_exact(inner) {
        largest.iter_mut().zip(&y[first..first + width]).for_each(|(largest, y)| *largest = largest.max(*y));
    }
    for y in y.chunks_exact_mut(inner) {
        for ((y, largest), sum) in y[first..first + width].iter_mut().zip(&largest).zip(&mut sums) {
            *y = (*y - largest).exp();
            *sum += f64::from(*y);
        }
    }
    for y in y.chunks_exact_mut(inner) {
        y[first..first + width].iter_mut().zip(&sums).for_each(|(y, sum)| *y = (f64::from(*y) / sum) as f32);
    }
}

/// `dx = y (dy - sum dy y)`.
pub fn backward(layer: &Softmax, step: &Step) {
    let Lines { inner, block } = Lines::of(layer, step.output());
    let Some(gradient) = step.gradient_pair(0) else { return };
    let y = step.read::<f32>(Role::Output);
    gradient.chunks(block, |i, mut pair| {
        let y = &y[i * block..][..block];
        if inner == 1 {
            let product = dot(pair.from(), y) as f32;
            pair.zip(y, |dy, y| y * (dy - product));
        } else {
            (0..inner).step_by(WIDTH).for_each(|first| lines_backward(&mut pair, y, inner, first));
        }
    });
}

fn lines_backward(pair: &mut Pair, y: &[f32], inner: usize, first: usize) {
    let width = WIDTH.min(inner - first);
    let mut products = [0.0f64; WIDTH];
    for (dy, y) in pair.from().chunks_exact(inner).zip(y.chunks_exact(inner)) {
        for ((product, dy), y) in products.iter_mut().zip(&dy[first..first + width]).zip(&y[first..]) {
            *product += f64::from(*dy) * f64::from(*y);
        }
    }
    for start in (first..y.len()).step_by(inner) {
        let y = &y[start..start + width];
        pair.part(start..start + width).map(|i, dy| y[i] * (dy - products[i] as f32));
    }
}
