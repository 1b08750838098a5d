//! What the kernels can't count: they have 32 bits for it, which no card of today's memory passes but in a single tensor.

use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::schedule::StepKind;
use plimsoll_plan::shape::ValueType;

use crate::error::Error;
use crate::program::{Instruction, Program};

/// Elements of a tensor, and places along an axis with its padding, are below this.
const MOST: u64 = 1 << 31;

/// Refuses a program with a tensor that is too large.
pub fn check(program: &Program) -> Result<(), Error> {
    for (index, instruction) in program.instructions.iter().enumerate() {
        let large = |bytes: usize| bytes as u64 / 4 >= MOST;
        let tensors = instruction.operands.iter().map(|operand| program.region(operand.buffer).bytes(program.batch));
        if tensors.max().is_some_and(large) || has_large_window(program, instruction) {
            let step = program.schedule.steps[index].describe(&program.graph);
            let step = format!("{step}: a tensor of 2^31 elements or more\nhelp: use a smaller batch");
            return Err(Error::Unsupported { device: "CUDA", step });
        }
    }
    Ok(())
}

fn has_large_window(program: &Program, instruction: &Instruction) -> bool {
    let StepKind::Forward { node } = instruction.kind else { return false };
    let (input, output) = (&instruction.inputs, &instruction.output);
    match &program.node(node).layer {
        Layer::Conv(layer) => passes(&layer.window, &input[0]),
        Layer::ConvTranspose(layer) => passes(&layer.window, output),
        Layer::Pool(layer) => passes(&layer.window, &input[0]),
        Layer::AdaptivePool(_) => {
            // Places of one are found from those of the other by their product.
            let axes = input[0].shape.0[1..].iter().zip(&output.shape.0[1..]);
            axes.into_iter().any(|(input, output)| (input + 1) * (output + 1) >= MOST)
        }
        _ => false,
    }
}

/// Whether places along an axis, with padding and beyond the last window, need more than 31 bits.
fn passes(window: &Window, image: &ValueType) -> bool {
    let extents = image.shape.0[1..].iter().rev().zip([1, 0]);
    extents
        .into_iter()
        .any(|(extent, axis)| extent + 2 * window.padding[axis] + window.reach(axis) + window.stride[axis] >= MOST)
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::graph::{Budget, GraphBuilder};
    use plimsoll_plan::layers::activation::Activation;
    use plimsoll_plan::layers::pool::AdaptivePool;
    use plimsoll_plan::shape::DType;

    use super::*;

    /// What is said of a network of one layer.
    fn checked(layer: Layer, shape: &[u64], batch: u64) -> Result<(), String> {
        let mut builder = GraphBuilder::new("Large");
        let x = builder.input("x", DType::F32, shape).unwrap();
        let y = builder.apply("", layer, &[x]).unwrap();
        let graph = builder.finish(y, None, Some(batch), Budget::default()).unwrap();
        check(&Program::inference(&graph.plan().unwrap())).map_err(|error| error.to_string())
    }

    #[test]
    fn tensors_are_counted_in_31_bits() {
        let relu = || Layer::Activation(Activation::Relu);
        assert_eq!(checked(relu(), &[1 << 20], (1 << 11) - 1), Ok(()));
        let error = checked(relu(), &[1 << 20], 1 << 11).unwrap_err();
        assert!(error.contains("the forward pass of `relu`") && error.contains("smaller batch"), "{error}");
    }

    #[test]
    fn places_of_adaptive_windows_are_counted_in_31_bits() {
        let pool = |width| Layer::AdaptivePool(AdaptivePool { max: false, size: [1, width] });
        assert_eq!(checked(pool(30_000), &[1, 1, 60_000], 1), Ok(()));
        assert!(checked(pool(50_000), &[1, 1, 60_000], 1).is_err());
    }
}
