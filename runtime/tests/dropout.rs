//! Dropout has no reference: its mask is random. These are the properties that it must have.

use plimsoll_plan::graph::{Budget, GraphBuilder, Training};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::arithmetic::Arithmetic;
use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::layers::parameter::Parameter;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::{BufferId, Role, StepKind};
use plimsoll_plan::shape::{DType, Shape};
use plimsoll_runtime::element::{bytes_of, bytes_of_mut};
use plimsoll_runtime::{Arguments, Cpu, Device, Program};

/// Elements of a sample: several tasks of a thread.
const ELEMENTS: usize = 40_003;
const BATCH: usize = 3;

/// The outputs of `dropout(p)` for ones, and the gradients of its input for output gradients of ones. The planned batch
/// may be larger than the one that is run.
fn masks(p: f64, planned: usize, batch: usize, pass: u64, seed: u64) -> [Vec<f32>; 2] {
    let mut builder = GraphBuilder::new("Dropout");
    let shape = Shape::new(&[ELEMENTS as u64]);
    let input = builder.input("x", DType::F32, &shape.0).unwrap();
    let init = plimsoll_plan::layers::Init::Constant(0.0);
    let zero = builder.member("zero", Layer::Parameter(Parameter { shape, init }), false);
    let zero = builder.call(zero, &[]).unwrap();
    let sum = builder.apply("sum", Layer::Arithmetic(Arithmetic::Add), &[input, zero]).unwrap();
    let dropped = builder.apply("dropout", Layer::Dropout(Dropout { p }), &[sum]).unwrap();
    let training = Training {
        batch: planned as u64,
        optimizer: Optimizer::by_name("sgd").unwrap(),
        loss: Loss::Mse,
        accumulate: 1,
        clip_grad_norm: None,
    };
    let graph = builder.finish(dropped, Some(training), None, Budget::default()).unwrap();
    let plan = Plan::new(graph).unwrap();

    let mut device = Cpu::with_threads(3).unwrap();
    let mut program = device.prepare(Program::training(&plan).unwrap()).unwrap();
    let mut arena = device.allocate(plan.peak_bytes()).unwrap();
    let arguments = Arguments { batch, pass, update: 1, learning_rate: 0.0, seed };
    let ones = vec![1.0f32; batch * ELEMENTS];
    let offset = |program: &Program, buffer: BufferId| program.region(buffer).offset;
    device.upload(&mut arena, offset(program.as_ref(), program.as_ref().schedule.inputs[0]), bytes_of(&ones)).unwrap();
    let mut outputs = vec![0.0f32; batch * ELEMENTS];
    let mut gradients = outputs.clone();
    for step in 0..program.as_ref().instructions.len() {
        let instruction = program.as_ref().instructions[step].clone();
        let StepKind::Backward { node, .. } = instruction.kind else {
            if let (StepKind::Loss, Some(output)) = (instruction.kind, instruction.operand(Role::Input(0))) {
                let offset = offset(program.as_ref(), output.buffer);
                device.download(&arena, offset, bytes_of_mut(&mut outputs)).unwrap();
            }
            device.run(&mut program, &mut arena, step..step + 1, &arguments).unwrap();
            continue;
        };
        let gradient = offset(program.as_ref(), instruction.operand(Role::OutputGradient).unwrap().buffer);
        match program.as_ref().node(node).path.as_str() {
            "dropout" => device.upload(&mut arena, gradient, bytes_of(&ones)).unwrap(),
            _ => device.download(&arena, gradient, bytes_of_mut(&mut gradients)).unwrap(),
        }
        device.run(&mut program, &mut arena, step..step + 1, &arguments).unwrap();
    }
    [outputs, gradients]
}

fn zeros(values: &[f32]) -> f64 {
    values.iter().filter(|value| **value == 0.0).count() as f64 / values.len() as f64
}

#[test]
fn backward_has_the_mask_of_forward() {
    let [outputs, gradients] = masks(0.3, BATCH, BATCH, 0, 1);
    assert_eq!(outputs, gradients);
}

#[test]
fn elements_are_dropped_or_scaled_at_the_asked_rate() {
    for p in [0.1, 0.5, 0.9] {
        let [outputs, _] = masks(p, BATCH, BATCH, 0, 1);
        let scale = (1.0 / (1.0 - p)) as f32;
        assert!(outputs.iter().all(|&output| output == 0.0 || output == scale));
        // Five standard deviations of the share of zeros.
        let deviation = (p * (1.0 - p) / outputs.len() as f64).sqrt();
        assert!(
            (zeros(&outputs) - p).abs() < 5.0 * deviation,
            "{} of the elements are dropped, not {p}",
            zeros(&outputs)
        );
    }
}

#[test]
fn the_ends_of_the_range() {
    let [outputs, _] = masks(0.0, BATCH, BATCH, 0, 1);
    assert!(outputs.iter().all(|&output| output == 1.0));
    let [outputs, gradients] = masks(1.0, BATCH, BATCH, 0, 1);
    assert!(outputs.iter().chain(&gradients).all(|&value| value == 0.0));
}

#[test]
fn masks_are_independent_of_each_other() {
    let [first, _] = masks(0.5, BATCH, BATCH, 0, 1);
    for (pass, seed) in [(1, 1), (0, 2)] {
        let [other, _] = masks(0.5, BATCH, BATCH, pass, seed);
        let both = first.iter().zip(&other).filter(|(a, b)| a == b).count() as f64 / first.len() as f64;
        assert!((both - 0.5).abs() < 0.01, "{both} of the elements agree at pass {pass} and seed {seed}");
    }
    let (one, two) = first.split_at(ELEMENTS);
    let both = one.iter().zip(two).filter(|(a, b)| a == b).count() as f64 / one.len() as f64;
    assert!((both - 0.5).abs() < 0.02, "{both} of the elements of two samples agree");
}

#[test]
fn the_planned_batch_does_not_matter() {
    assert_eq!(masks(0.5, BATCH + 4, BATCH, 3, 1), masks(0.5, BATCH, BATCH, 3, 1));
}
