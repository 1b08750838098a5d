//! Logits that never exist as a whole, against sizes worked out by hand: GPT-2's vocabulary.

mod common;

use common::{Chain, int};
use plimsoll_plan::arguments::Value;
use plimsoll_plan::footprint::Footprint;
use plimsoll_plan::graph::Graph;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::lower::Facts;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::{Access, Role, Step, StepKind};
use plimsoll_plan::strategy::{Saving, Strategy};
use plimsoll_plan::validate::validate;

/// The vocabulary of GPT-2 (Radford et al. 2019).
const VOCABULARY: u64 = 50_257;
const BATCH: u64 = 64;

/// Two linear layers of 512 features to the vocabulary, without biases.
fn head(optimizer: Optimizer) -> Graph {
    let mut chain = Chain::new("Head", &[512]);
    for features in [512, VOCABULARY as i64] {
        chain.push("linear", &[("out_features", int(features)), ("bias", Value::Bool(false))]);
    }
    chain.train(BATCH, optimizer).infer_batch(1)
}

fn adam() -> Optimizer {
    Optimizer::by_name("adam").unwrap()
}

fn sliced(plan: &Plan) -> Option<&Step> {
    let steps = &plan.training.as_ref().unwrap().schedule.steps;
    steps.iter().find(|step| matches!(step.kind, StepKind::SlicedLoss { .. }))
}

/// A weight and its two moments.
const WEIGHTS: u64 = 512 * 4 * (512 + VOCABULARY);
/// The features of a batch.
const FEATURES: u64 = BATCH * 512 * 4;
/// 128 rows of the last weight are 256 KiB.
const SLICE: u64 = 128 * 512 * 4;

#[test]
fn the_vocabulary_of_gpt2() {
    let logits = BATCH * VOCABULARY * 4;
    assert_eq!(logits, 12_865_792);

    // Input, hidden features and their gradient; targets and the loss, 256 bytes each; a slice of the weight's gradient;
    // for each sample 128 logits and four numbers.
    let plan = head(adam()).plan().unwrap();
    assert_eq!(validate(&plan), Ok(()));
    assert_eq!(plan.peak_bytes(), 3 * WEIGHTS + 3 * FEATURES + 2 * 256 + SLICE + BATCH * (128 + 4) * 4);
    assert_eq!(plan.peak_bytes(), 312_614_400);
    let step = sliced(&plan).unwrap();
    assert_eq!(step.operand(Role::Parameter(0)).unwrap().access, Access::Update);
    assert!(step.buffer(Role::ParameterGradient(0)).is_none() && step.buffer(Role::State(1)).is_some());

    // With logits in place of the slices. Where the weight is updated by rows, the targets have been read.
    let whole = head(adam()).without(&[Saving::SlicedLoss]).plan().unwrap();
    assert!(sliced(&whole).is_none());
    assert_eq!(whole.peak_bytes(), 3 * WEIGHTS + 3 * FEATURES + 256 + SLICE + logits);
}

#[test]
fn what_it_costs() {
    let (first, last) = (512 * 512, 512 * VOCABULARY);
    // The first layer's input has no gradient.
    let product = |layers: u64| 2 * BATCH * layers;
    let whole = Footprint::new(&head(adam()).without(&[Saving::SlicedLoss]).plan().unwrap());
    assert_eq!((whole.flops, whole.recompute_flops), (product(2 * first + 3 * last), 0));
    let sliced = Footprint::new(&head(adam()).plan().unwrap());
    assert_eq!((sliced.flops, sliced.recompute_flops), (product(2 * first + 4 * last), product(last)));
}

/// Where the gradients are needed together, or go to the momentum, they are written there slice by slice.
#[test]
fn whole_gradients() {
    let plan = head(common::momentum()).plan().unwrap();
    let step = sliced(&plan).unwrap();
    assert_eq!(step.operand(Role::ParameterGradient(0)).unwrap().access, Access::Update);
    assert_eq!(step.operand(Role::Parameter(0)).unwrap().access, Access::Read);
    assert_eq!(plan.peak_bytes(), 2 * WEIGHTS + 3 * FEATURES + 2 * 256 + BATCH * (128 + 4) * 4);
    assert_eq!(validate(&plan), Ok(()));

    let accumulated = head(adam()).accumulate(4).plan().unwrap();
    let step = sliced(&accumulated).unwrap();
    assert_eq!(step.operand(Role::ParameterGradient(0)).unwrap().access, Access::Update);
    assert_eq!(validate(&accumulated), Ok(()));

    let mut clipped = head(adam());
    clipped.training.as_mut().unwrap().clip_grad_norm = Some(1.0);
    let clipped = clipped.plan().unwrap();
    // Both gradients exist at the end, when the logits would be gone: they don't set the peak.
    assert!(sliced(&clipped).is_some_and(|step| step.buffer(Role::ParameterGradient(0)).is_some()));
    assert_eq!(validate(&clipped), Ok(()));
}

/// A trainer evaluates with whole logits. Where that sets the peak, slices would save nothing.
#[test]
fn where_it_does_not_pay() {
    let evaluates_more = head(adam()).infer_batch(2 * BATCH).plan().unwrap();
    assert!(sliced(&evaluates_more).is_none());
    let mut few_classes = Chain::new("FewClasses", &[512]);
    few_classes.push("linear", &[("out_features", int(100))]);
    assert!(sliced(&few_classes.train(BATCH, adam()).plan().unwrap()).is_none());
}

/// Other losses, other last layers, and classes at several positions.
#[test]
fn where_it_is_not_possible() {
    let is_possible = |graph: &Graph| Facts::new(graph, true).slicing_the_loss(graph).sliced_head.is_some();
    assert!(is_possible(&head(adam())));
    let mut squares = head(adam());
    squares.training.as_mut().unwrap().loss = Loss::Mse;
    assert!(!is_possible(&squares));
    let chain = |shape: &[u64], layers: &[&str]| {
        let mut chain = Chain::new("Chain", shape);
        for layer in layers {
            chain.push(layer, if *layer == "linear" { &[("out_features", Value::Int(1000))] } else { &[] });
        }
        chain.train(BATCH, adam())
    };
    assert!(!is_possible(&chain(&[512], &["linear", "relu"])));
    assert!(!is_possible(&chain(&[10, 512], &["linear"])));
}

#[test]
fn a_strategy_that_slices_what_it_cant() {
    let mut chain = Chain::new("Chain", &[8]);
    chain.push("linear", &[("out_features", int(4))]).push("relu", &[]);
    let graph = chain.train(2, adam());
    let strategy = Strategy { sliced_loss: true, ..Strategy::plain(&Facts::new(&graph, true)) };
    let error = Plan::with_strategy(graph, strategy).unwrap_err().to_string();
    assert!(error.contains("can't be computed by slices"), "{error}");
}

/// The validator knows what a loss by slices reads and writes.
#[test]
fn damage_is_found() {
    let damaged = |damage: &dyn Fn(&mut Step)| {
        let mut plan = head(adam()).plan().unwrap();
        let steps = &mut plan.training.as_mut().unwrap().schedule.steps;
        damage(steps.iter_mut().find(|step| matches!(step.kind, StepKind::SlicedLoss { .. })).unwrap());
        validate(&plan).unwrap_err().to_string()
    };
    // The weight of the other layer; the batch in place of the features; another layer.
    let swap = |step: &mut Step, role: Role, change: i64| {
        let operand = step.operands.iter_mut().find(|operand| operand.role == role).unwrap();
        operand.buffer.0 = (i64::from(operand.buffer.0) + change) as u32;
    };
    let weight = damaged(&|step| swap(step, Role::Parameter(0), -1));
    assert!(weight.contains("needs Parameter(1)"), "{weight}");
    let state = damaged(&|step| swap(step, Role::State(0), 1));
    assert!(state.contains("needs State(1, 0)"), "{state}");
    let other = damaged(&|step| step.kind = StepKind::SlicedLoss { node: 0 });
    assert!(other.contains("is no loss of logits"), "{other}");

    let mut accumulating = head(adam()).plan().unwrap();
    accumulating.graph.training.as_mut().unwrap().accumulate = 2;
    let early = validate(&accumulating).unwrap_err().to_string();
    assert!(early.contains("updates a weight too early"), "{early}");
}
