//! Every network of the zoo trains: one allocation of exactly the planned bytes, two steps, and in the second of them not a
//! single allocation by the whole process. At the declared batch the trainer is made, where its bytes are not too many, and
//! allocates `PEAK_BYTES`.
//!
//! Takes about a minute on two cores. `cargo test --test zoo_runs -- NAME` runs the networks whose names have NAME in them.

#[path = "../runtime/tests/counting/mod.rs"]
mod counting;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use counting::{ALLOCATIONS, Allocated};
use plimsoll::data::Random;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::shape::DType;
use plimsoll::{Cpu, Network, Slice, Trainer};

macro_rules! zoo {
    ($($file:literal $module:ident $network:ident;)*) => {
        $(#[path = $file] #[allow(dead_code)] mod $module;)*

        /// Name, network and the constant `PEAK_BYTES` of the declared batch.
        fn zoo() -> Vec<(&'static str, Graph, u64)> {
            vec![$((stringify!($module), <$module::$network as Network>::graph(), $module::$network::PEAK_BYTES),)*]
        }
    };
}

zoo! {
    "../examples/zoo/alexnet.rs" alexnet AlexNet;
    "../examples/zoo/vgg16.rs" vgg16 Vgg16;
    "../examples/zoo/vgg16_bn.rs" vgg16_bn Vgg16Bn;
    "../examples/zoo/vgg19.rs" vgg19 Vgg19;
    "../examples/zoo/resnet18.rs" resnet18 ResNet18;
    "../examples/zoo/resnet34.rs" resnet34 ResNet34;
    "../examples/zoo/resnet50.rs" resnet50 ResNet50;
    "../examples/zoo/resnet101.rs" resnet101 ResNet101;
    "../examples/zoo/resnet152.rs" resnet152 ResNet152;
    "../examples/zoo/mobilenet_v2.rs" mobilenet_v2 MobileNetV2;
    "../examples/zoo/densenet121.rs" densenet121 DenseNet121;
    "../examples/zoo/squeezenet1_0.rs" squeezenet1_0 SqueezeNet;
    "../examples/zoo/efficientnet_b0.rs" efficientnet_b0 EfficientNetB0;
    "../examples/zoo/convnext_tiny.rs" convnext_tiny ConvNextTiny;
    "../examples/zoo/cifar_mlp.rs" cifar_mlp CifarMlp;
    "../examples/zoo/lenet.rs" lenet LeNet;
    "../examples/zoo/unet.rs" unet UNet;
}

/// What all is that a trainer allocates beside its arena: the steps, their operands, and names. It does not grow with the
/// batch.
const BESIDE: u64 = 4 << 20;

/// The largest arena that is made: memory for any machine.
const LARGEST: u64 = 3_000_000_000;

/// A program of its own, without the test harness, whose thread would allocate meanwhile.
fn main() {
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut ran = 0;
    for (name, graph, peak_bytes) in zoo().into_iter().filter(|(name, ..)| name.contains(&wanted)) {
        if peak_bytes <= LARGEST {
            make(name, &graph, peak_bytes);
        }
        run(name, graph);
        ran += 1;
    }
    println!("{ran} networks train in exactly the planned bytes: {ran} passed, 0 failed");
}

/// Makes a trainer at the declared batch.
fn make(name: &str, graph: &Graph, peak_bytes: u64) {
    let plan = graph.plan().unwrap();
    let before = Allocated::so_far();
    let trainer = Trainer::<(), Cpu>::from_plan(&plan, Cpu::new(), 42).unwrap();
    Allocated::assert_one_arena(before, peak_bytes, BESIDE, name);
    assert_eq!(trainer.allocated_bytes(), peak_bytes, "{name}");
    println!("{name}: {peak_bytes} bytes at batch {}", graph.declared_batch());
}

fn run(name: &str, graph: Graph) {
    // Memory and time for any machine.
    let batch = 1;
    let plan = graph.batch(batch).plan().unwrap();
    let graph = &plan.graph;
    let mut random = Random::new(1);
    let mut floats =
        |elements| -> Vec<f32> { (0..elements).map(|_| random.below(1000) as f32 / 500.0 - 1.0).collect() };
    let inputs: Vec<Vec<f32>> = graph.inputs.iter().map(|input| floats(batch * input.value_type.elements())).collect();
    let slices: Vec<Slice> = inputs.iter().map(Slice::from).collect();
    let target = graph.target_type().unwrap();
    let elements = (batch * target.elements()) as usize;
    let (classes, values) = (vec![0; elements], vec![1.0f32; elements]);
    let targets = if target.dtype == DType::I32 { Slice::from(&classes) } else { Slice::from(&values) };

    let start = Instant::now();
    let before = Allocated::so_far();
    let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
    assert_eq!(trainer.allocated_bytes(), plan.peak_bytes(), "{name}");
    let first = trainer.step(&slices[..], targets).unwrap_or_else(|error| panic!("{name}: {error}"));
    Allocated::assert_one_arena(before, plan.peak_bytes(), BESIDE, name);
    let before = ALLOCATIONS.load(SeqCst);
    let second = trainer.step(&slices[..], targets);
    let allocations = ALLOCATIONS.load(SeqCst) - before;
    let second = second.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(allocations, 0, "{name}: the second step allocates");
    let (bytes, seconds) = (trainer.allocated_bytes(), start.elapsed().as_secs_f64());
    println!("{name}: {bytes} bytes, losses {first:.3} and {second:.3}, {seconds:.1} s");
}
