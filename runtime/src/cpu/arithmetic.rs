//! `+ - *` between two values, with broadcasting.
//!
//! Where a value is repeated to the result's shape, its gradient is the sum over the repetitions.

use plimsoll_plan::layers::arithmetic::Arithmetic;
use plimsoll_plan::schedule::Role;

use super::broadcast::{Axes, Axis, elements};
use super::parallel;
use super::step::{Pair, Step};
use super::sums::{dot, sum};

/// `y = a op b`.
pub fn forward(layer: Arithmetic, step: &Step) {
    let bounds = step.bounds();
    match layer {
        Arithmetic::Add => apply(step, |a, b| bounds.at(a + b)),
        Arithmetic::Sub => apply(step, |a, b| bounds.at(a - b)),
        Arithmetic::Mul => apply(step, |a, b| bounds.at(a * b)),
    }
}

fn apply(step: &Step, f: impl Fn(f32, f32) -> f32 + Sync + Send) {
    let [a, b] = [Role::Input(0), Role::Input(1)];
    let axes = Axes::of(step.inputs(), step.output(), step.batch());
    let is_whole = |value: usize| axes.iter().all(|axis| axis.varies[value]);
    let in_place = [a, b].map(|role| step.in_place(role, Role::Output));
    if in_place == [true, true] {
        step.pair(a, Role::Output).par_map(|x| f(x, x));
    } else if in_place[0] || (is_whole(0) && !in_place[1]) {
        combine(step.pair(a, Role::Output), step.read(b), &axes, 1, f);
    } else if in_place[1] || is_whole(1) {
        combine(step.pair(b, Role::Output), step.read(a), &axes, 0, |b, a| f(a, b));
    } else {
        let y = step.write(Role::Output);
        combine(Pair::InPlace(y), step.read(a), &axes, 0, |_, a| a);
        combine(Pair::InPlace(y), step.read(b), &axes, 1, f);
    }
}

/// Puts `f(x, o)` in place of every `x` of the result's shape, where `o` is the element of value number `value`, here `other`,
/// at its place. On several threads.
fn combine(pair: Pair, other: &[f32], axes: &[Axis], value: usize, f: impl Fn(f32, f32) -> f32 + Sync + Send) {
    let [first, rest @ ..] = axes else { unreachable!("there is at least one axis") };
    match (rest, first.varies[value]) {
        ([], true) => pair.par_zip(other, f),
        ([], false) => {
            let o = other[0];
            pair.par_map(|x| f(x, o));
        }
        _ => {
            let size = pair.len() / first.extent;
            pair.chunks(size, |i, mut pair| combine_part(&mut pair, part(other, first, value, i), rest, value, &f));
        }
    }
}

/// [`combine`] on this thread.
fn combine_part(pair: &mut Pair, other: &[f32], axes: &[Axis], value: usize, f: &impl Fn(f32, f32) -> f32) {
    match axes {
        [] => unreachable!("there is at least one axis"),
        [axis] if axis.varies[value] => pair.zip(other, f),
        [_] => {
            let o = other[0];
            pair.map(|_, x| f(x, o));
        }
        [axis, rest @ ..] => {
            let size = pair.len() / axis.extent;
            for i in 0..axis.extent {
                let mut pair = pair.part(i * size..(i + 1) * size);
                combine_part(&mut pair, part(other, axis, value, i), rest, value, f);
            }
        }
    }
}

/// What of a value lies at place `i` of its first axis.
fn part<'a>(elements: &'a [f32], axis: &Axis, value: usize, i: usize) -> &'a [f32] {
    if !axis.varies[value] {
        return elements;
    }
    let size = elements.len() / axis.extent;
    &elements[i * size..(i + 1) * size]
}

/// `da = dy b` and `db = dy a` of a product; `dy` or `-dy` of a sum or difference.
pub fn backward(layer: Arithmetic, step: &Step) {
    let axes = Axes::of(step.inputs(), step.output(), step.batch());
    let roles = [Role::InputGradient(0), Role::InputGradient(1)];
    if roles.iter().all(|role| step.has(*role)) && step.in_place(roles[0], roles[1]) {
        return square_backward(step);
    }
    let other = |value: usize| (layer == Arithmetic::Mul).then(|| step.read(Role::Input(1 - value as u32)));
    let sign = |value: usize| if layer == Arithmetic::Sub && value == 1 { -1.0 } else { 1.0 };
    let whole = |pair: Pair, value: usize| match other(value) {
        Some(other) => combine(pair, other, &axes, 1 - value, |dy, o| dy * o),
        None => pair.par_map(|dy| sign(value) * dy),
    };
    // The gradient that takes the place of `dy` comes last.
    let wanted = [0, 1].into_iter().filter(|&value| step.has(roles[value]));
    let last = wanted.clone().find(|&value| step.in_place(Role::OutputGradient, roles[value]));
    let last_pair = last.map(|value| step.pair(Role::OutputGradient, roles[value]));
    let dy = last_pair.as_ref().map_or_else(|| step.read(Role::OutputGradient), Pair::from);
    for value in wanted.filter(|&value| Some(value) != last) {
        if axes.iter().all(|axis| axis.varies[value]) {
            let adds = step.adds(roles[value]);
            whole(Pair::Apart { from: dy, to: step.write(roles[value]), adds }, value);
        } else if let Some(gradient) = step.gradient(roles[value]) {
            reduce(gradient, dy, other(value), sign(value), &axes, value);
        }
    }
    if let (Some(pair), Some(value)) = (last_pair, last) {
        whole(pair, value);
    }
}

/// `x x`, whose two inputs have one gradient.
fn square_backward(step: &Step) {
    let (dy, x) = (step.read::<f32>(Role::OutputGradient), step.read::<f32>(Role::Input(0)));
    let adds = step.adds(Role::InputGradient(0));
    let to = step.write(Role::InputGradient(0));
    Pair::Apart { from: dy, to, adds }.par_zip(x, |dy, x| 2.0 * dy * x);
}

/// How many sums run side by side.
const BLOCK: usize = 64;

/// Adds to the gradient of value number `value` the sums of `sign dy o` over its repetitions, where `o` are the elements of
/// the other value, or 1 without them. Every sum runs in one order, whatever the number of threads.
fn reduce(gradient: &mut [f32], dy: &[f32], other: Option<&[f32]>, sign: f32, axes: &[Axis], value: usize) {
    // Neighbours in the gradient are neighbours in `dy` along the last axis only.
    let last = axes[axes.len() - 1];
    let run = if last.varies[value] { last.extent } else { 1 };
    let size = if run == gradient.len() { BLOCK } else { run };
    parallel::chunks(gradient, size, |i, gradient| {
        for (block, gradient) in gradient.chunks_mut(BLOCK).enumerate() {
            let mut sums = [0.0f64; BLOCK];
            let sums = &mut sums[..gradient.len()];
            add_repetitions(sums, i * size + block * BLOCK, dy, other, axes, value);
            gradient.iter_mut().zip(&*sums).for_each(|(gradient, sum)| *gradient += sign * *sum as f32);
        }
    });
}

/// Adds `dy o` of all repetitions of some neighbouring elements of the value, the first of which is `start`.
fn add_repetitions(sums: &mut [f64], start: usize, dy: &[f32], other: Option<&[f32]>, axes: &[Axis], value: usize) {
    let [axis, rest @ ..] = axes else { unreachable!("there is at least one axis") };
    let other_at = |i| other.map(|other| part(other, axis, 1 - value, i));
    if !rest.is_empty() {
        let size = dy.len() / axis.extent;
        let mut add = |i: usize, start| {
            add_repetitions(sums, start, &dy[i * size..(i + 1) * size], other_at(i), rest, value);
        };
        if axis.varies[value] {
            let inner = elements(rest, value);
            add(start / inner, start % inner);
        } else {
            (0..axis.extent).for_each(|i| add(i, start));
        }
        return;
    }
    let other_varies = axis.varies[1 - value];
    if !axis.varies[value] {
        sums[0] += match other {
            None => sum(dy),
            Some(other) if other_varies => dot(dy, other),
            Some(other) => sum(dy) * f64::from(other[0]),
        };
        return;
    }
    let dy = &dy[start..start + sums.len()];
    match other {
        None => sums.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += f64::from(*dy)),
        Some(other) if other_varies => {
            let terms = dy.iter().zip(&other[start..]);
            sums.iter_mut().zip(terms).for_each(|(sum, (dy, o))| *sum += f64::from(*dy) * f64::from(*o));
        }
        Some(other) => {
            let o = f64::from(other[0]);
            sums.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += f64::from(*dy) * o);
        }
    }
}
