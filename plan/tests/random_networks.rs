//! Random networks: branches, shared members, several inputs, frozen members, every optimizer. Each plan must pass the
//! validator, keep to its bounds, survive being written and read back, and come out the same twice.

mod common;
#[path = "common/every_root.rs"]
mod every_root;

use common::{int, layer};
use every_root::every_root;
use plimsoll_plan::arguments::Value;
use plimsoll_plan::footprint::{Footprint, Peak};
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, LayerError, MemberId, Training, ValueId};
use plimsoll_plan::known::Known;
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};
use plimsoll_plan::lower::Facts;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::placement::Live;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::{self, Saving};
use plimsoll_plan::validate::validate;
use plimsoll_plan::what_if::largest_batch;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const OPTIMIZERS: [&str; 7] = ["sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "momentum"];

/// A random network is a list of random numbers, each read as a choice. Choices that do not fit are passed over.
#[derive(Clone, Debug)]
struct Recipe {
    choices: Vec<(u8, u8, u8)>,
    inputs: usize,
    batch: u64,
    inference_batch: Option<u64>,
    optimizer: usize,
    accumulate: u64,
    clip: bool,
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let choices = prop::collection::vec(any::<(u8, u8, u8)>(), 1..40);
    (choices, 1..3usize, 1..40u64, prop::option::of(1..60u64), 0..OPTIMIZERS.len(), 1..3u64, any::<bool>()).prop_map(
        |(choices, inputs, batch, inference_batch, optimizer, accumulate, clip)| Recipe {
            choices,
            inputs,
            batch,
            inference_batch,
            optimizer,
            accumulate,
            clip,
        },
    )
}

/// Layers that keep the shape [8, 6, 6].
fn same_shape(choice: u8) -> Layer {
    match choice % 16 {
        0 => layer("relu", &[]),
        1 => layer("gelu", &[]),
        2 => layer("sigmoid", &[]),
        3 => layer("dropout", &[]),
        4 => layer("batchnorm2d", &[]),
        5 => layer("groupnorm", &[("groups", int(2))]),
        6 => layer("layernorm2d", &[]),
        7 => layer("scale", &[]),
        8 => layer("conv2d", &[("out_channels", int(8)), ("kernel", int(3)), ("padding", int(1))]),
        9 => layer(
            "conv2d",
            &[("out_channels", int(8)), ("kernel", int(1)), ("groups", int(4)), ("bias", Value::Bool(false))],
        ),
        10 => layer("maxpool2d", &[("kernel", int(3)), ("stride", int(1)), ("padding", int(1))]),
        11 => layer("softmax", &[("axis", int(0))]),
        12 => layer("identity", &[]),
        13 => layer("layernorm", &[("axes", int(2))]),
        14 => layer("silu", &[]),
        _ => layer("linear", &[("out_features", int(6))]),
    }
}

/// Eight channels again of the 16 of a concat, which is read by a convolution, by a normalization, by another concat as well,
/// or by what needs it whole.
fn mixed(b: &mut GraphBuilder, n: usize, choice: u8, both: ValueId, x: ValueId) -> Result<ValueId, LayerError> {
    let conv = |kernel: i64| {
        let arguments = [("out_channels", int(8)), ("kernel", int(kernel)), ("padding", int(kernel / 2))];
        layer("conv2d", &arguments)
    };
    let mut read = |name: &str, layer: Layer, value: ValueId| {
        let member = b.member(&format!("{name}{n}"), layer, false);
        b.call(member, &[value])
    };
    match choice % 4 {
        0 => read("mix", conv(3), both),
        1 => {
            let normalized = read("norm", layer("batchnorm2d", &[]), both)?;
            let active = read("relu", layer("relu", &[]), normalized)?;
            read("mix", conv(1), active)
        }
        2 => {
            let first = read("mix", conv(1), both)?;
            let all = b.apply("again", layer("concat", &[]), &[both, first, x])?;
            let member = b.member(&format!("last{n}"), conv(1), false);
            b.call(member, &[all])
        }
        _ => {
            let active = read("relu", layer("relu", &[]), both)?;
            read("mix", conv(1), active)
        }
    }
}

fn build(recipe: &Recipe) -> Graph {
    let mut builder = GraphBuilder::new("Random");
    let mut values: Vec<ValueId> =
        (0..recipe.inputs).map(|i| builder.input(&format!("input{i}"), DType::F32, &[8, 6, 6]).unwrap()).collect();
    // Something to train, whatever is chosen later.
    let first = builder.member("first", same_shape(8), false);
    values.push(builder.call(first, &values[..1]).unwrap());
    let mut members: Vec<MemberId> = vec![first];
    let weight =
        builder.member("weight", layer("parameter", &[("shape", Value::List(vec![int(8), int(1), int(1)]))]), false);
    let weight = builder.call(weight, &[]).unwrap();
    let mut used = vec![false; values.len()];
    for (n, &(kind, a, b)) in recipe.choices.iter().enumerate() {
        let a = usize::from(a) % values.len();
        let b = usize::from(b) % values.len();
        let (x, y) = (values[a], values[b]);
        let output = match kind % 12 {
            0 => builder.apply("add", Layer::Arithmetic(Arithmetic::Add), &[x, y]),
            1 => builder.apply("sub", Layer::Arithmetic(Arithmetic::Sub), &[x, y]),
            2 => builder.apply("mul", Layer::Arithmetic(Arithmetic::Mul), &[x, y]),
            3 => builder.apply("affine", Layer::Affine(Affine { mul: 1.0, add: 0.5 }), &[x]),
            4 => builder.apply("scaled", Layer::Arithmetic(Arithmetic::Mul), &[x, weight]),
            5 => {
                let both = builder.apply("concat", layer("concat", &[]), &[x, y]).unwrap();
                mixed(&mut builder, n, kind / 12, both, x)
            }
            6 => builder.call(members[usize::from(kind) % members.len()], &[x]),
            _ => {
                let member = builder.member(&format!("member{n}"), same_shape(kind / 12), kind % 7 == 0);
                members.push(member);
                builder.call(member, &[x])
            }
        };
        used[a] = true;
        used[b] |= matches!(kind % 12, 0..=2 | 5);
        values.push(output.unwrap());
        used.push(false);
    }
    // Everything that is left unread is added up, so that all of it matters.
    let mut sum = *values.last().unwrap();
    for (i, &value) in values.iter().enumerate().take(values.len() - 1) {
        if !used[i] || i < recipe.inputs || i == recipe.inputs {
            sum = builder.apply("sum", Layer::Arithmetic(Arithmetic::Add), &[sum, value]).unwrap();
        }
    }
    let mut output = builder.apply("flatten", layer("flatten", &[]), &[sum]).unwrap();
    // Some end with many classes, whose logits are larger than anything before.
    if recipe.choices.len().is_multiple_of(3) {
        let head =
            builder.member("head", layer("linear", &[("out_features", int(3000))]), recipe.batch.is_multiple_of(5));
        output = builder.call(head, &[output]).unwrap();
    }
    let training = Training {
        batch: recipe.batch,
        optimizer: Optimizer::by_name(OPTIMIZERS[recipe.optimizer]).unwrap_or(common::momentum()),
        loss: common::cross_entropy(),
        accumulate: recipe.accumulate,
        clip_grad_norm: recipe.clip.then_some(1.0),
    };
    builder.finish(output, Some(training), recipe.inference_batch, Budget::default()).unwrap()
}

/// That the largest batch within a limit fits, and that one sample more does not.
fn check_largest_batch(recipe: &Recipe, limit: u64) -> Result<(), TestCaseError> {
    let graph = build(recipe);
    let batch = largest_batch(&graph.plan().unwrap(), limit);
    if batch > 0 {
        prop_assert!(graph.clone().batch(batch).plan().unwrap().peak_bytes() <= limit);
    }
    let next = graph.batch(batch + 1).plan().unwrap();
    // Where a placement misses the bound, a little more might have fitted.
    if next.peak_bytes() == next.lower_bound_bytes() {
        prop_assert!(next.peak_bytes() > limit);
    }
    Ok(())
}

/// A network that takes other steps with a sample more, and needs less than its own steps would say: only planning tells that
/// it fits.
#[test]
fn the_largest_batch_by_other_steps() {
    let choices = [
        (16, 7, 0),
        (92, 3, 0),
        (115, 31, 0),
        (223, 106, 0),
        (163, 0, 0),
        (113, 140, 31),
        (198, 125, 0),
        (18, 193, 0),
        (0, 227, 27),
        (73, 101, 212),
        (228, 0, 11),
        (228, 32, 10),
        (91, 93, 0),
        (252, 193, 54),
        (87, 173, 0),
        (43, 189, 0),
        (209, 152, 159),
        (199, 63, 0),
    ];
    let recipe = Recipe {
        choices: choices.into(),
        inputs: 1,
        batch: 17,
        inference_batch: None,
        optimizer: 1,
        accumulate: 1,
        clip: false,
    };
    check_largest_batch(&recipe, 31_000_000).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_are_valid_bounded_and_repeatable(recipe in recipes()) {
        let graph = build(&recipe);
        let plan = graph.plan().unwrap();
        validate(&plan).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert!(plan.peak_bytes() >= plan.lower_bound_bytes());
        prop_assert_eq!(&graph.plan().unwrap(), &plan);
        prop_assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    }

    /// With every saving wherever it is possible, whether or not it pays.
    #[test]
    fn thorough_plans_are_valid(recipe in recipes()) {
        let graph = build(&recipe);
        let in_place = Facts::new(&graph, true).with_concats_in_place(&graph);
        for facts in [Facts::new(&graph, true), in_place.clone(), in_place.slicing_the_loss(&graph)] {
            let strategy = strategy::Strategy::thorough(&graph, &facts);
            let plan = Plan::with_strategy(graph.clone(), strategy).unwrap();
            validate(&plan).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
            prop_assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
        }
    }

    /// An order that was tampered with is refused, or is another valid order; it never makes a plan that is wrong.
    #[test]
    fn tampered_orders_are_refused_or_valid(recipe in recipes(), a in any::<usize>(), b in any::<usize>(), how in 0..4u8) {
        let graph = build(&recipe);
        let facts = Facts::new(&graph, true).with_concats_in_place(&graph);
        let mut strategy = strategy::Strategy::thorough(&graph, &facts);
        let order = &mut strategy.order;
        let (a, b) = (a % order.len(), b % order.len());
        match how {
            0 => order.swap(a, b),
            1 => drop(order.remove(a)),
            2 => order.insert(a, order[b]),
            _ => order[a] = order[b],
        }
        if let Ok(plan) = Plan::with_strategy(graph, strategy) {
            validate(&plan).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        }
    }

    /// What is done to need less never needs more.
    #[test]
    fn savings_save(recipe in recipes()) {
        let graph = build(&recipe);
        let plain = graph.clone().without(&Saving::ALL).plan().unwrap();
        prop_assert!(graph.plan().unwrap().lower_bound_bytes() <= plain.lower_bound_bytes());
    }

    /// Whatever is computed again, the plan stays valid, and it fits where it says so.
    #[test]
    fn recomputation_is_valid_and_never_needs_more(recipe in recipes(), percent in 10..100u64) {
        let plain = build(&recipe).plan().unwrap();
        let placement = &plain.training.as_ref().unwrap().placement;
        let budget = placement.persistent_bytes + placement.transient_bytes() * percent / 100;
        let plan = build(&recipe).budget(budget).recompute().plan().unwrap();
        validate(&plan).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert!(plan.training.as_ref().unwrap().placement.length <= placement.length);
        prop_assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    }

    /// Networks that are no chains: in the memory that keeping every square root of the number of values takes, no more is
    /// computed again than with that.
    #[test]
    fn recomputation_is_never_worse_than_keeping_every_root(recipe in recipes()) {
        let graph = build(&recipe);
        let plain = graph.plan().unwrap();
        let plain = plain.training.as_ref().unwrap();
        let known = Plan::with_strategy(graph.clone(), every_root(&graph, &plain.strategy)).unwrap();
        validate(&known).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        let known = known.training.as_ref().unwrap();
        let plan = graph.clone().budget(known.placement.length).recompute().plan().unwrap();
        let ours = plan.training.as_ref().unwrap();
        let (length, cost) = (ours.placement.length, ours.compute(&graph));
        let (known_length, known_cost) = (known.placement.length, known.compute(&graph));
        let ways = format!("{length} bytes for {cost}, every root takes {known_length} for {known_cost}");
        prop_assert!(length <= known_length, "{ways}");
        prop_assert!(cost <= known_cost.max(plain.compute(&graph)), "{ways}");
    }

    #[test]
    fn the_classes_at_the_peak_add_up(recipe in recipes()) {
        let plan = build(&recipe).plan().unwrap();
        let peak = Peak::new(&plan);
        let classes: u64 = peak.classes.iter().map(|class| class.1).sum();
        prop_assert_eq!(classes + peak.alignment_bytes + peak.idle_bytes, plan.peak_bytes());
    }

    #[test]
    fn the_largest_batch_fits_and_the_next_does_not(recipe in recipes(), megabytes in 1..64u64) {
        check_largest_batch(&recipe, megabytes * 1_000_000)?;
    }

    #[test]
    fn what_is_known_of_other_batches_changes_no_plan(recipe in recipes(), batch in 1..80u64, megabytes in 1..8u64) {
        let recompute = |graph: Graph| graph.budget(megabytes * 1_000_000).recompute();
        let known = Known::default();
        let graphs = [build(&recipe), build(&recipe).batch(batch)];
        for graph in graphs.clone().into_iter().chain(graphs.map(recompute)) {
            let plan = Plan::new_with(graph.clone(), &known).unwrap();
            // The steps are those that its strategy lowers to.
            let training = plan.training.clone().unwrap();
            let lowered = Plan::with_strategy(graph.clone(), training.strategy).unwrap().training.unwrap();
            prop_assert_eq!(training.schedule, lowered.schedule);
            prop_assert_eq!(plan, graph.plan().unwrap());
        }
    }

    /// In the same steps, and so in plans without savings, whose steps do not depend on the batch. With savings another batch may
    /// be run by other steps, and which values are dropped is not the best choice there is.
    #[test]
    fn a_larger_batch_never_needs_less(recipe in recipes()) {
        let graph = build(&recipe);
        let bound = |graph: &Graph, batch: u64| graph.clone().batch(batch).plan().unwrap().lower_bound_bytes();
        let plain = graph.clone().without(&Saving::ALL);
        prop_assert!(bound(&plain, recipe.batch + 1) >= bound(&plain, recipe.batch));
        let schedule = graph.plan().unwrap().training.unwrap().schedule;
        let [less, more] = [0, 1].map(|more| Live::at(&schedule, recipe.batch + more).unwrap().0.most);
        prop_assert!(more >= less);
    }

    #[test]
    fn momentum_keeps_one_tensor_a_parameter_and_adam_two(recipe in recipes()) {
        let graph = build(&recipe);
        let state = |optimizer: Optimizer| {
            Footprint::new(&graph.clone().optimizer(optimizer).plan().unwrap()).optimizer_bytes
        };
        let parameters = graph.trainable_parameters() * 4;
        prop_assert_eq!(state(Optimizer::by_name("sgd").unwrap()), 0);
        prop_assert_eq!(state(common::momentum()), parameters);
        prop_assert_eq!(state(Optimizer::by_name("adam").unwrap()), 2 * parameters);
    }
}
