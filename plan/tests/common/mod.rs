//! Networks built call by call, for tests of the planner without the language.
#![allow(dead_code)] // Each test program uses a part.

use plimsoll_plan::arguments::{Arguments, Value};
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training, ValueId};
use plimsoll_plan::layers::arithmetic::Arithmetic;
use plimsoll_plan::layers::{self, Layer};
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::shape::DType;

/// A layer by its name in the language and some of its arguments.
pub fn layer(name: &str, arguments: &[(&str, Value)]) -> Layer {
    let definition = layers::find(name).unwrap_or_else(|| panic!("no layer `{name}`"));
    let given = definition
        .arguments
        .iter()
        .map(|a| arguments.iter().find(|(name, _)| *name == a.name).map(|(_, value)| value.clone()));
    let arguments = Arguments::check(definition.arguments, given.collect()).expect("arguments of the right kinds");
    (definition.build)(&arguments).expect("arguments that go together")
}

/// An integer.
pub fn int(v: i64) -> Value {
    Value::Int(v)
}

/// A chain in the making.
pub struct Chain {
    pub builder: GraphBuilder,
    pub value: ValueId,
    members: usize,
}

impl Chain {
    /// A network with one `f32` input.
    pub fn new(name: &str, shape: &[u64]) -> Chain {
        let mut builder = GraphBuilder::new(name);
        let value = builder.input("input", DType::F32, shape).expect("a shape within bounds");
        Chain { builder, value, members: 0 }
    }

    /// Applies a layer.
    pub fn push(&mut self, name: &str, arguments: &[(&str, Value)]) -> &mut Chain {
        let member = self.builder.member(&self.members.to_string(), layer(name, arguments), false);
        self.members += 1;
        self.value = self.builder.call(member, &[self.value]).expect("shapes that fit");
        self
    }

    /// The network, trained with the loss that suits its output.
    pub fn train(self, batch: u64, optimizer: Optimizer) -> Graph {
        let training = Training { batch, optimizer, loss: cross_entropy(), accumulate: 1, clip_grad_norm: None };
        self.builder.finish(self.value, Some(training), None, Budget::default()).expect("a network that trains")
    }
}

/// Two convolutions of a value side by side, and what reads them: a convolution, and a normalization with another one after it.
pub fn side_by_side(batch: u64) -> Graph {
    let mut chain = Chain::new("SideBySide", &[3, 8, 8]);
    let conv = |channels| [("out_channels", int(channels)), ("kernel", int(3)), ("padding", int(1))];
    let image = chain.value;
    let left = chain.push("conv2d", &conv(4)).value;
    chain.value = image;
    let right = chain.push("conv2d", &conv(4)).value;
    let both = chain.builder.apply("both", layer("concat", &[]), &[left, right]).expect("equal extents");
    chain.value = both;
    let first = chain.push("conv2d", &conv(5)).value;
    chain.value = both;
    let second = chain.push("batchnorm2d", &[]).push("conv2d", &conv(5)).value;
    let sum = Layer::Arithmetic(Arithmetic::Add);
    chain.value = chain.builder.apply("add", sum, &[first, second]).expect("equal shapes");
    chain.push("flatten", &[]).push("linear", &[("out_features", int(10))]);
    chain.train(batch, momentum())
}

/// Cross-entropy with its defaults.
pub fn cross_entropy() -> Loss {
    Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: -100 }
}

/// SGD with momentum 0.9.
pub fn momentum() -> Optimizer {
    Optimizer::Sgd { lr: 0.01, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false }
}

/// VGG-16 (Simonyan & Zisserman 2014, configuration D).
pub fn vgg16(batch: u64) -> Graph {
    let mut chain = Chain::new("Vgg16", &[3, 224, 224]);
    for (channels, convolutions) in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)] {
        for _ in 0..convolutions {
            let arguments = [("out_channels", int(channels)), ("kernel", int(3)), ("padding", int(1))];
            chain.push("conv2d", &arguments).push("relu", &[]);
        }
        chain.push("maxpool2d", &[("kernel", int(2))]);
    }
    chain.push("adaptive_avgpool2d", &[("output_size", int(7))]).push("flatten", &[]);
    for _ in 0..2 {
        chain.push("linear", &[("out_features", int(4096))]).push("relu", &[]).push("dropout", &[]);
    }
    chain.push("linear", &[("out_features", int(1000))]);
    chain.train(batch, momentum())
}

/// A chain of residual blocks with batch normalization, which computes much again where memory is short.
pub fn residual(batch: u64) -> Graph {
    let mut chain = Chain::new("Residual", &[3, 32, 32]);
    let convolution = [("out_channels", int(64)), ("kernel", int(3)), ("padding", int(1))];
    chain.push("conv2d", &convolution).push("batchnorm2d", &[]).push("relu", &[]);
    for _ in 0..4 {
        let input = chain.value;
        chain.push("conv2d", &convolution).push("batchnorm2d", &[]).push("relu", &[]);
        chain.push("conv2d", &convolution).push("batchnorm2d", &[]);
        let sum = Layer::Arithmetic(Arithmetic::Add);
        chain.value = chain.builder.apply("add", sum, &[chain.value, input]).expect("equal shapes");
        chain.push("relu", &[]);
    }
    chain.push("adaptive_avgpool2d", &[("output_size", int(1))]).push("flatten", &[]);
    chain.push("linear", &[("out_features", int(10))]);
    chain.train(batch, momentum())
}
