//! Activations that are done with the layer before them, which saves a pass over memory.
//!
//! Where relu or relu6 writes in place what a layer has just written, and that layer has a way to clamp its outputs as it writes them,
//! one kernel does both steps. The values are the same, bit by bit.

use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::schedule::{Role, StepKind};

use super::vector::wide;
use crate::program::{Instruction, Program};

/// What outputs are clamped to. NaN stays NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    low: f32,
    high: f32,
}

impl Bounds {
    /// All numbers stay as they are.
    pub const NONE: Bounds = Bounds { low: f32::NEG_INFINITY, high: f32::INFINITY };

    /// The activation function as bounds, if it is no more than that.
    pub fn of(activation: &Activation) -> Option<Bounds> {
        match activation {
            Activation::Relu => Some(Bounds { low: 0.0, ..Bounds::NONE }),
            Activation::Relu6 => Some(Bounds { low: 0.0, high: 6.0 }),
            _ => None,
        }
    }

    /// Clamps what was written a moment ago.
    pub fn clamp(self, elements: &mut [f32]) {
        if self != Bounds::NONE {
            wide(|| elements.iter_mut().for_each(|x| *x = self.at(*x)));
        }
    }

    /// A number within the bounds.
    #[inline(always)]
    pub fn at(self, x: f32) -> f32 {
        // As in PyTorch, NaN stays NaN: `max` and `min` would drop it.
        let x = if x < self.low { self.low } else { x };
        if x > self.high { self.high } else { x }
    }
}

/// Of each instruction, the bounds of the activation that comes after it and can be done with it.
pub fn activations_after(program: &Program) -> Vec<Option<Bounds>> {
    let after = |pair: &[Instruction]| bounds_after(program, &pair[0], &pair[1]);
    program.instructions.windows(2).map(after).chain([None]).collect()
}

fn bounds_after(program: &Program, step: &Instruction, next: &Instruction) -> Option<Bounds> {
    let Layer::Activation(activation) = layer(program, next)? else { return None };
    let written = step.operand(Role::Output)?.buffer;
    let is_written = |role| next.operand(role).is_some_and(|operand| operand.buffer == written);
    let can = is_written(Role::Input(0)) && is_written(Role::Output) && clamps(layer(program, step)?);
    if can { Bounds::of(activation) } else { None }
}

/// The layer whose outputs a step computes.
fn layer<'a>(program: &'a Program, step: &Instruction) -> Option<&'a Layer> {
    match step.kind {
        StepKind::Forward { node } | StepKind::Recompute { node } => Some(&program.node(node).layer),
        _ => None,
    }
}

/// Whether the layer's kernel asks for [`bounds`](super::step::Step::bounds).
fn clamps(layer: &Layer) -> bool {
    matches!(layer, Layer::Conv(_) | Layer::BatchNorm(_) | Layer::Arithmetic(_) | Layer::Affine(_))
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::graph::{Budget, GraphBuilder};
    use plimsoll_plan::layers::arithmetic::Affine;
    use plimsoll_plan::layers::linear::Linear;
    use plimsoll_plan::layers::scale::Scale;
    use plimsoll_plan::shape::DType;

    use super::*;

    #[test]
    fn what_is_no_number_stays() {
        let relu6 = Bounds::of(&Activation::Relu6).unwrap();
        assert_eq!([-1.0, 0.0, 2.5, 6.0, 7.0, f32::INFINITY].map(|x| relu6.at(x)), [0.0, 0.0, 2.5, 6.0, 6.0, 6.0]);
        assert!(relu6.at(f32::NAN).is_nan() && Bounds::NONE.at(f32::NAN).is_nan());
        assert_eq!([f32::NEG_INFINITY, -0.0].map(|x| Bounds::NONE.at(x).to_bits()), [0xff80_0000, 0x8000_0000]);
    }

    /// Only an activation in place that comes right after a layer that clamps.
    #[test]
    fn which_activations() {
        let mut builder = GraphBuilder::new("Chain");
        let mut x = builder.input("x", DType::F32, &[4]).unwrap();
        let affine = || Layer::Affine(Affine { mul: 2.0, add: 1.0 });
        let activation = Layer::Activation;
        for (name, layer) in [
            ("a", affine()),
            ("b", activation(Activation::Relu)),
            ("c", affine()),
            ("d", activation(Activation::Tanh)),
            ("e", Layer::Linear(Linear { out_features: 5, bias: true })),
            ("f", activation(Activation::Relu)),
            ("g", affine()),
            ("h", Layer::Scale(Scale { init: 1.0 })),
            ("i", activation(Activation::Relu6)),
            ("j", affine()),
            ("k", activation(Activation::Relu6)),
        ] {
            let member = builder.member(name, layer, false);
            x = builder.call(member, &[x]).unwrap();
        }
        let plan = builder.finish(x, None, None, Budget::default()).unwrap().batch(1).plan().unwrap();
        let after = activations_after(&Program::inference(&plan));
        let found: Vec<usize> = (0..after.len()).filter(|step| after[*step].is_some()).collect();
        assert_eq!(found, [0, 9]);
    }
}
