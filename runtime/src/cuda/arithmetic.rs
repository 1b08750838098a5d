//! `+ - *` between two values, numbers, and what only moves elements: see `arithmetic.cu`.

use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};
use plimsoll_plan::layers::concat::Concat;
use plimsoll_plan::layers::permute::Permute;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::shape::ValueType;

use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::cpu::broadcast::{Axes, elements};
use crate::error::Error;

/// `MOST_AXES` in `arithmetic.cu`: as many as a shape of the language has, and the batch.
const MOST_AXES: usize = 17;

/// Axes along which two tensors are walked, innermost first.
#[derive(Clone, Copy)]
#[repr(C)]
struct Walk {
    count: u32,
    extent: [u32; MOST_AXES],
    /// How far apart neighbours lie in the first tensor, and in the second.
    apart: [[u32; MOST_AXES]; 2],
}

// SAFETY: `Axes` in `arithmetic.cu`.
unsafe impl Argument for Walk {}

impl Walk {
    fn new() -> Walk {
        Walk { count: 0, extent: [1; MOST_AXES], apart: [[0; MOST_AXES]; 2] }
    }

    /// Takes up the next axis outwards.
    fn push(&mut self, extent: usize, apart: [usize; 2]) {
        let i = self.count as usize;
        self.count += 1;
        self.extent[i] = extent as u32;
        (self.apart[0][i], self.apart[1][i]) = (apart[0] as u32, apart[1] as u32);
    }
}

/// How far apart neighbours along axis `i` lie in a tensor that has the axes for which `varies`: 0, where it has one
/// element for all of them.
fn apart(axes: &Axes, i: usize, varies: impl Fn(usize) -> bool) -> usize {
    let inner = (i + 1..axes.len()).filter(|&axis| varies(axis)).map(|axis| axes[axis].extent);
    if varies(i) { inner.product() } else { 0 }
}

/// The walk along those of the axes that are `wanted`, through two tensors of which each has the axes that it `varies` along.
fn walk(axes: &Axes, wanted: impl Fn(usize) -> bool, varies: [&dyn Fn(usize) -> bool; 2]) -> Walk {
    let mut walk = Walk::new();
    for i in (0..axes.len()).rev().filter(|&i| wanted(i)) {
        walk.push(axes[i].extent, varies.map(|varies| apart(axes, i, varies)));
    }
    walk
}

/// `y = a op b`.
pub fn forward(layer: Arithmetic, step: &Step) -> Result<(), Error> {
    let kernel = match layer {
        Arithmetic::Add => "add_forward",
        Arithmetic::Sub => "sub_forward",
        Arithmetic::Mul => "mul_forward",
    };
    let axes = Axes::of(step.inputs(), step.output(), step.batch() as usize);
    let walk = walk(&axes, |_| true, [&|i| axes[i].varies[0], &|i| axes[i].varies[1]]);
    let count = step.count(Role::Output);
    let [a, b, y] = [Role::Input(0), Role::Input(1), Role::Output].map(|role| step.at(role));
    step.launch(kernel, Grid::each(count), &[&a, &b, &y, &count, &walk])
}

/// `da = dy b` and `db = dy a` of a product; `dy` or `-dy` of a sum or difference.
pub fn backward(layer: Arithmetic, step: &Step) -> Result<(), Error> {
    let roles = [Role::InputGradient(0), Role::InputGradient(1)];
    if roles.iter().all(|role| step.has(*role)) && step.in_place(roles[0], roles[1]) {
        return square_backward(step);
    }
    // The gradient that takes the place of `dy` comes last.
    let wanted = [0, 1].into_iter().filter(|&value| step.has(roles[value]));
    let last = wanted.clone().find(|&value| step.in_place(Role::OutputGradient, roles[value]));
    for value in wanted.filter(|&value| Some(value) != last).chain(last) {
        let factor = if layer == Arithmetic::Sub && value == 1 { -1.0 } else { 1.0 };
        let other = match layer {
            Arithmetic::Mul => step.at(Role::Input(1 - value as u32)),
            _ => Pointer::NONE,
        };
        value_gradient(step, value, other, factor)?;
    }
    Ok(())
}

/// The gradient of value number `value`: `factor dy other`, summed over the repetitions.
fn value_gradient(step: &Step, value: usize, other: Pointer, factor: f32) -> Result<(), Error> {
    let axes = Axes::of(step.inputs(), step.output(), step.batch() as usize);
    let role = Role::InputGradient(value as u32);
    let (dy, to, count, adds) = (step.at(Role::OutputGradient), step.at(role), step.count(role), step.adds(role));
    let (own, others) = (|i: usize| axes[i].varies[value], |i: usize| axes[i].varies[1 - value]);
    // Where neither value varies, the result has one place.
    let all: &dyn Fn(usize) -> bool = &|_| true;
    if (0..axes.len()).all(own) {
        let walk = walk(&axes, |_| true, [all, &others]);
        let grid = Grid::each(count);
        return step.launch("whole_backward", grid, &[&dy, &other, &to, &count, &factor, &adds, &walk]);
    }
    let (kept, repeated) = (walk(&axes, own, [all, &others]), walk(&axes, |i| !own(i), [all, &others]));
    let repetitions = (elements_of_result(&axes) / elements(&axes, value)) as u32;
    // A block for each element where there is work for one.
    if repetitions >= 128 {
        let grid = Grid::groups(count, repetitions);
        let arguments: &[&dyn Argument] = &[&dy, &other, &to, &repetitions, &factor, &adds, &kept, &repeated];
        return step.launch("repeated_backward_by_block", grid, arguments);
    }
    let arguments: &[&dyn Argument] = &[&dy, &other, &to, &count, &repetitions, &factor, &adds, &kept, &repeated];
    step.launch("repeated_backward", Grid::each(count), arguments)
}

fn elements_of_result(axes: &Axes) -> usize {
    axes.iter().map(|axis| axis.extent).product()
}

/// `x x`, whose two inputs have one gradient.
fn square_backward(step: &Step) -> Result<(), Error> {
    let dx = Role::InputGradient(0);
    let (dy, x) = (step.at(Role::OutputGradient), step.at(Role::Input(0)));
    let count = step.count(dx);
    step.launch("square_backward", Grid::each(count), &[&dy, &x, &step.at(dx), &count, &step.adds(dx)])
}

/// `y = mul x + add`.
pub fn affine_forward(layer: &Affine, step: &Step) -> Result<(), Error> {
    affine(step, [Role::Input(0), Role::Output], [layer.mul as f32, layer.add as f32])
}

/// `dx = mul dy`.
pub fn affine_backward(layer: &Affine, step: &Step) -> Result<(), Error> {
    affine(step, [Role::OutputGradient, Role::InputGradient(0)], [layer.mul as f32, 0.0])
}

/// One gradient copied or added to another.
pub fn accumulate(step: &Step) -> Result<(), Error> {
    affine(step, [Role::OutputGradient, Role::InputGradient(0)], [1.0, 0.0])
}

fn affine(step: &Step, [from, to]: [Role; 2], [mul, add]: [f32; 2]) -> Result<(), Error> {
    if !step.has(to) {
        return Ok(());
    }
    let count = step.count(to);
    step.launch("affine", Grid::each(count), &[&step.at(from), &step.at(to), &count, &mul, &add, &step.adds(to)])
}

/// The axes in another order.
pub fn permute_forward(layer: &Permute, step: &Step) -> Result<(), Error> {
    permute(step, [Role::Input(0), Role::Output], &step.inputs()[0], |axis| layer.axes[axis])
}

/// The gradient with its axes back in order.
pub fn permute_backward(layer: &Permute, step: &Step) -> Result<(), Error> {
    let inverse = |axis| layer.axes.iter().position(|&from| from == axis).expect("every axis is named once");
    permute(step, [Role::OutputGradient, Role::InputGradient(0)], step.output(), inverse)
}

/// Axis `i` of a sample of `to` is axis `axes(i)` of a sample of `from`, which is of type `of`.
fn permute(step: &Step, [from, to]: [Role; 2], of: &ValueType, axes: impl Fn(usize) -> usize) -> Result<(), Error> {
    if !step.has(to) {
        return Ok(());
    }
    let extents = &of.shape.0;
    let mut walk = Walk::new();
    for axis in (0..extents.len()).rev().map(axes) {
        let apart = extents[axis + 1..].iter().product::<u64>() as usize;
        walk.push(extents[axis] as usize, [apart, 0]);
    }
    let count = step.count(to);
    let sample = of.elements() as usize;
    walk.push(count as usize / sample, [sample, 0]);
    step.launch("permute", Grid::each(count), &[&step.at(from), &step.at(to), &count, &step.adds(to), &walk])
}

/// Values side by side along an axis.
pub fn concat_forward(layer: &Concat, step: &Step) -> Result<(), Error> {
    let rows = rows(layer, step, Role::Output);
    for i in 0..step.parts().len() {
        let x = Role::Input(i as u32);
        let [before, own, width] = place(layer, step, i);
        let count = rows * own;
        let arguments: &[&dyn Argument] =
            &[&step.at(x), &step.at(Role::Output), &count, &step.count(x), &own, &width, &before];
        step.launch("concat_forward", Grid::each(count), arguments)?;
    }
    Ok(())
}

/// The input's part of every row of `dy`, summed over the batch where the input is the same for all samples.
pub fn concat_backward(layer: &Concat, step: &Step) -> Result<(), Error> {
    let rows = rows(layer, step, Role::OutputGradient);
    let role = |i: usize| Role::InputGradient(i as u32);
    for i in (0..step.parts().len()).filter(|&i| step.has(role(i))) {
        // A value that is concatenated with itself has one gradient: what comes later is added.
        let again = (0..i).any(|before| step.has(role(before)) && step.in_place(role(before), role(i)));
        let adds = if again { 1 } else { step.adds(role(i)) };
        let [before, own, width] = place(layer, step, i);
        let (dy, count) = (step.at(Role::OutputGradient), step.count(role(i)));
        let arguments: &[&dyn Argument] = &[&dy, &step.at(role(i)), &count, &rows, &own, &width, &before, &adds];
        step.launch("concat_backward", Grid::each(count), arguments)?;
    }
    Ok(())
}

/// Elements of a value from the axis on.
fn width(layer: &Concat, step: &Step, value: &ValueType) -> u32 {
    value.shape.0[layer.axis_of(step.output())..].iter().product::<u64>() as u32
}

/// Rows of the output, or of its gradient.
fn rows(layer: &Concat, step: &Step, output: Role) -> u32 {
    step.count(output) / width(layer, step, step.output())
}

/// Where input `i` lies in the rows of the output: the elements before it, its own, and all of them.
fn place(layer: &Concat, step: &Step, i: usize) -> [u32; 3] {
    let width = |value: &ValueType| width(layer, step, value);
    [step.parts()[..i].iter().map(width).sum(), width(&step.parts()[i]), width(step.output())]
}
