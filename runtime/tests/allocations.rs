//! Counts every allocation of the process: a trainer allocates its arena once, and a step nothing at all.

mod common;
mod counting;

use std::sync::atomic::Ordering::SeqCst;

use common::{Batch, network};
use counting::{ALLOCATIONS, Allocated};
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::order::Action;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::shape::DType;
use plimsoll_runtime::philox::{Purpose, Stream};
use plimsoll_runtime::{Cpu, Predictor, Trainer};

/// What all is that a trainer or predictor of these small networks allocates beside its arena: the steps, their operands, and
/// names. None of it grows with the batch.
const BESIDE: u64 = 1 << 17;

/// A program of its own, without the test harness, whose thread would allocate meanwhile.
fn main() {
    // Threads that end would allocate; so none does.
    let mut trainers = Vec::new();
    let numbers = Stream::new(4, Purpose::Shuffle, 0, 0);
    let mut momentum_gradients = 0;
    for case in 0..54u64 {
        let words = (0..4).flat_map(|block| numbers.words(case * 4 + block));
        let layers: Vec<u64> = words.map(|word| u64::from(word) << 32 | u64::from(word.rotate_left(7))).collect();
        let recipe = common::Recipe {
            layers,
            batch: 3,
            optimizer: case as usize % 9,
            loss: case as usize % 6,
            accumulate: 1 + case % 2,
            clip: (case / 9).is_multiple_of(3),
            smooth: true,
        };
        let plan = network(&recipe).plan().unwrap();
        momentum_gradients += u32::from(plan.training.as_ref().unwrap().strategy.momentum_gradients);
        check(&plan, &format!("case {case}"), &mut trainers);
    }
    assert!(momentum_gradients > 0);
    check(&recomputing(), "products that run again", &mut trainers);
    check(&sliced(), "a sliced loss", &mut trainers);
    println!("a step allocates nothing: 1 passed, 0 failed");
}

fn check(plan: &Plan, what: &str, trainers: &mut Vec<Trainer<(), Cpu>>) {
    let graph = &plan.graph;
    let (samples, evaluated) = (graph.declared_batch(), graph.inference_batch());
    let batch = Batch::new(graph, samples, 0);
    let (inputs, targets) = (batch.slices(), batch.targets(graph));
    let to_predict = Batch::new(graph, evaluated, 0);
    let to_predict = to_predict.slices();
    for threads in [1, 3] {
        let device = Cpu::with_threads(threads).unwrap();
        let before = Allocated::so_far();
        let mut trainer = Trainer::from_plan(plan, device, 7).unwrap();
        trainer.step(inputs.as_slice(), targets).unwrap();
        trainer.predict(to_predict.as_slice()).unwrap();
        Allocated::assert_one_arena(before, plan.peak_bytes(), BESIDE, what);
        let before = ALLOCATIONS.load(SeqCst);
        // More of them than the 63 after which a queue between threads would take its next block.
        for _ in 0..70 {
            trainer.step(inputs.as_slice(), targets).unwrap();
            trainer.predict(to_predict.as_slice()).unwrap();
        }
        let allocations = ALLOCATIONS.load(SeqCst) - before;
        assert_eq!(allocations, 0, "70 steps on {threads} threads allocate: {what}");
        trainers.push(trainer);
    }
    let before = Allocated::so_far();
    let mut predictor = Predictor::from_plan(plan, Cpu::with_threads(1).unwrap(), 7).unwrap();
    predictor.predict(to_predict.as_slice()).unwrap();
    Allocated::assert_one_arena(before, plan.inference_bytes(), BESIDE, what);
}

/// A chain of linear layers and activation functions, for classes.
fn chain(widths: &[u64], classes: u64, batch: u64, inference_batch: Option<u64>) -> Graph {
    let mut builder = GraphBuilder::new("Chain");
    let mut x = builder.input("x", DType::F32, &[widths[0]]).unwrap();
    for (i, &out_features) in widths[1..].iter().chain([&classes]).enumerate() {
        let linear = Layer::Linear(Linear { out_features, bias: true });
        let member = builder.member(&format!("fc{i}"), linear, false);
        if i > 0 {
            x = builder.apply("", Layer::Activation(Activation::Tanh), &[x]).unwrap();
        }
        x = builder.call(member, &[x]).unwrap();
    }
    let loss = Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: -100 };
    let training = Training { batch, optimizer: common::optimizer(2), loss, accumulate: 1, clip_grad_norm: None };
    builder.finish(x, Some(training), inference_batch, Budget::default()).unwrap()
}

/// A plan in half of its transient memory, in which products run twice.
fn recomputing() -> Plan {
    let graph = chain(&[16; 12], 3, 40, None);
    let plan = graph.plan().unwrap();
    let placement = &plan.training.as_ref().unwrap().placement;
    let budget = placement.persistent_bytes + placement.transient_bytes() / 2;
    let plan = graph.budget(budget).recompute().plan().unwrap();
    let order = &plan.training.as_ref().unwrap().strategy.order;
    let runs = order.iter().filter(|action| matches!(action, Action::Forward(_))).count();
    assert!(plan.peak_bytes() <= budget && runs > plan.graph.nodes.len(), "{runs} runs of layers");
    plan
}

/// A plan whose logits never exist as a whole.
fn sliced() -> Plan {
    let plan = chain(&[4, 8], 5000, 32, Some(1)).plan().unwrap();
    assert!(plan.training.as_ref().unwrap().strategy.sliced_loss);
    plan
}
