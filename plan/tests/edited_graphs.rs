//! A graph's fields are open, and a plan's bytes come from outside: what does not hold together is an error, never a panic.

mod common;

use plimsoll_plan::footprint::Footprint;
use plimsoll_plan::graph::{Graph, ParameterId, ValueId};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::placement::PlanError;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::shape::Shape;
use plimsoll_plan::validate::validate;
use proptest::prelude::*;

fn small() -> Graph {
    let mut chain = common::Chain::new("Small", &[3, 8, 8]);
    chain.push("conv2d", &[("out_channels", common::int(4)), ("kernel", common::int(3))]).push("batchnorm2d", &[]);
    chain.push("relu", &[]).push("maxpool2d", &[("kernel", common::int(2))]).push("flatten", &[]);
    chain.push("linear", &[("out_features", common::int(5))]);
    chain.train(2, common::momentum())
}

/// What is edited, and how.
type Edit = (&'static str, fn(&mut Graph));

#[test]
fn edits_that_break_a_graph() {
    let edits: Vec<Edit> = vec![
        ("an output that does not exist", |g| g.output = ValueId(1000)),
        ("an input that does not exist", |g| g.nodes[1].inputs[0] = ValueId(1000)),
        ("an input that comes later", |g| g.nodes[0].inputs[0] = ValueId(3)),
        ("no inputs of a node", |g| g.nodes[0].inputs.clear()),
        ("a parameter that does not exist", |g| g.nodes[0].parameters[0] = ParameterId(1000)),
        ("no parameters of a node", |g| g.nodes[0].parameters.clear()),
        ("a missing type", |g| drop(g.types.pop())),
        ("no inputs", |g| g.inputs.clear()),
        ("no nodes", |g| g.nodes.clear()),
        ("a type whose elements pass 64 bits", |g| g.types[1].shape = Shape(vec![u64::MAX, 3])),
        ("a type whose bytes pass 64 bits", |g| g.types[1].shape = Shape(vec![u64::MAX])),
        ("a parameter whose bytes pass 64 bits", |g| g.parameters[0].shape = Shape(vec![u64::MAX])),
        ("a parameter of another shape", |g| g.parameters[0].shape = Shape(vec![1])),
        ("a type of another shape", |g| g.types[1].shape = Shape(vec![5])),
        ("an input of zero", |g| g.inputs[0].value_type.shape = Shape(vec![0])),
        ("no accumulation", |g| g.training.as_mut().unwrap().accumulate = 0),
        ("a stride of zero", |g| {
            if let Layer::Conv(conv) = &mut g.nodes[0].layer {
                conv.window.stride = [0, 1];
            }
        }),
        ("a huge dilation", |g| {
            if let Layer::Conv(conv) = &mut g.nodes[0].layer {
                conv.window.dilation = [u64::MAX, 1];
            }
        }),
        ("no groups", |g| {
            if let Layer::Conv(conv) = &mut g.nodes[0].layer {
                conv.groups = 0;
            }
        }),
    ];
    for (what, edit) in edits {
        let mut graph = small();
        assert!(graph.plan().is_ok());
        edit(&mut graph);
        let error = graph.plan().expect_err(what);
        assert!(matches!(error, PlanError::Inconsistent(_)), "{what}: {error}");
    }
}

#[test]
fn batches_that_are_out_of_range() {
    for batch in [0, u64::MAX] {
        assert_eq!(small().batch(batch).plan().unwrap_err(), PlanError::Batch { batch });
        assert_eq!(small().infer_batch(batch).plan().unwrap_err(), PlanError::Batch { batch });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_give_an_error_or_a_valid_plan(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = small().plan().unwrap().to_bytes();
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len()));
        }
        if let Ok(plan) = Plan::from_bytes(&bytes) {
            prop_assert!(validate(&plan).is_ok());
            Footprint::new(&plan);
            plan.summary();
            plan.to_json();
        }
    }
}
