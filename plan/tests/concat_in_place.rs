//! Concats that are never made: by hand calculation, and where they have to be made.

mod common;

use common::{Chain, int, layer};
use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, ValueId};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::lower::Facts;
use plimsoll_plan::report::savings::Used;
use plimsoll_plan::schedule::Content;
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::{Saving, concat_in_place};

/// Two images of 1 MiB made of one, side by side, to a result of one channel.
fn two_images() -> Graph {
    let mut chain = Chain::new("TwoImages", &[4, 256, 256]);
    let image = chain.value;
    let left = chain.push("sigmoid", &[]).value;
    chain.value = image;
    let right = chain.push("tanh", &[]).value;
    chain.value = chain.builder.apply("both", layer("concat", &[]), &[left, right]).unwrap();
    chain.push("conv2d", &[("out_channels", int(1)), ("kernel", int(1))]);
    chain.builder.finish(chain.value, None, Some(1), Budget::default()).unwrap()
}

/// With a concat, it is there beside both images that it is made of. Without, the most is the input beside both; at the
/// convolution there are both, its result of 0.25 MiB and a workspace of 0.5 MiB. Weight and bias take 256 bytes each.
#[test]
fn a_concat_by_hand() {
    let parameters = 2 * 256;
    let whole = two_images().without(&[Saving::ConcatInPlace]).plan().unwrap();
    assert_eq!(whole.peak_bytes(), (4 << 20) + parameters);
    let parts = two_images().plan().unwrap();
    assert_eq!(parts.peak_bytes(), (3 << 20) + parameters);
    assert_eq!(parts.lower_bound_bytes(), parts.peak_bytes());
}

#[test]
fn a_concat_left_out_has_no_buffer() {
    let plan = common::side_by_side(2).plan().unwrap();
    let training = plan.training.as_ref().unwrap();
    // Value 3 is the concat: the image and two convolutions come before it.
    assert_eq!(training.schedule.parts[3], [ValueId(1), ValueId(2)]);
    let of_concat =
        |content: Content| matches!(content, Content::Value(ValueId(3)) | Content::ValueGradient(ValueId(3)));
    assert!(!training.schedule.buffers.iter().flat_map(|buffer| &buffer.holds).any(|held| of_concat(held.content)));
    // Eight channels of 8 x 8 for two samples.
    let used = Used { saving: Saving::ConcatInPlace, count: 1, bytes: 8 * 8 * 8 * 4 * 2 };
    assert!(plan.savings().contains(&used));
}

/// Which of the concats of a network are left out.
fn left_out(build: impl FnOnce(&mut GraphBuilder, ValueId) -> ValueId) -> Vec<bool> {
    let mut builder = GraphBuilder::new("Network");
    let x = builder.input("x", DType::F32, &[4, 6, 6]).unwrap();
    let output = build(&mut builder, x);
    let graph = builder.finish(output, None, Some(2), Budget::default()).unwrap();
    let parts = concat_in_place::parts(&graph, &Facts::new(&graph, false));
    let concats = (0..graph.nodes.len()).filter(|&node| matches!(graph.nodes[node].layer, Layer::Concat(_)));
    concats.map(|node| !parts[graph.value_of(node).index()].is_empty()).collect()
}

fn apply(builder: &mut GraphBuilder, name: &str, arguments: &[(&str, Value)], values: &[ValueId]) -> ValueId {
    let path = format!("{name}{}", values.iter().map(|value| value.0).sum::<u32>());
    let member = builder.member(&path, layer(name, arguments), false);
    builder.call(member, values).unwrap()
}

#[test]
fn who_reads_a_concat_decides() {
    let conv = |groups| [("out_channels", int(2)), ("kernel", int(1)), ("groups", int(groups))];
    let read = |name: &'static str, arguments: &[(&'static str, Value)]| {
        let arguments = arguments.to_vec();
        left_out(move |b, x| {
            let y = apply(b, "tanh", &[], &[x]);
            let both = apply(b, "concat", &[], &[x, y]);
            let read = apply(b, name, &arguments, &[both]);
            apply(b, "relu", &[], &[read])
        })
    };
    assert_eq!(read("conv2d", &conv(1)), [true]);
    assert_eq!(read("batchnorm2d", &[]), [true]);
    assert_eq!(read("conv2d", &conv(2)), [false], "its groups cut across parts");
    assert_eq!(read("relu", &[]), [false]);
    assert_eq!(read("flatten", &[]), [false], "a view is of something");
    assert_eq!(left_out(|b, x| apply(b, "concat", &[], &[x, x])), [false], "the output, and twice the same");
    let by_rows = |b: &mut GraphBuilder, x| {
        let both = apply(b, "concat", &[("axis", int(1))], &[x, x]);
        apply(b, "batchnorm2d", &[], &[both])
    };
    assert_eq!(left_out(by_rows), [false], "rows of each channel");
    let with_parameter = |b: &mut GraphBuilder, x| {
        let shape = Value::List(vec![int(1), int(6), int(6)]);
        let learned = b.member("learned", layer("parameter", &[("shape", shape)]), false);
        let learned = b.call(learned, &[]).unwrap();
        let both = apply(b, "concat", &[], &[x, learned]);
        apply(b, "batchnorm2d", &[], &[both])
    };
    assert_eq!(left_out(with_parameter), [false], "one for all samples");
}

#[test]
fn a_concat_of_concats_has_all_parts() {
    let blocks = |b: &mut GraphBuilder, x| {
        let mut all = x;
        for _ in 0..3 {
            let normalized = apply(b, "batchnorm2d", &[], &[all]);
            let new = apply(b, "conv2d", &[("out_channels", int(1)), ("kernel", int(1))], &[normalized]);
            all = apply(b, "concat", &[], &[all, new]);
        }
        apply(b, "batchnorm2d", &[], &[all])
    };
    assert_eq!(left_out(blocks), [true; 3]);
    // A concat that is made may be one of concats that are not.
    let ending = |b: &mut GraphBuilder, x| {
        let y = apply(b, "tanh", &[], &[x]);
        let inner = apply(b, "concat", &[], &[x, y]);
        let z = apply(b, "batchnorm2d", &[], &[inner]);
        apply(b, "concat", &[], &[inner, z])
    };
    assert_eq!(left_out(ending), [true, false]);
    // What a concat has already is joined as a whole.
    let again = |b: &mut GraphBuilder, x| {
        let y = apply(b, "tanh", &[], &[x]);
        let inner = apply(b, "concat", &[], &[x, y]);
        let outer = apply(b, "concat", &[], &[inner, x]);
        apply(b, "batchnorm2d", &[], &[outer])
    };
    assert_eq!(left_out(again), [false, false]);
}

/// The gradient of `x` is `(a + b) + c` with the concat: the terms of its two readers first, then that of what comes before
/// it. What comes between or after would change the order.
#[test]
fn sums_of_gradients_keep_their_order() {
    let conv = [("out_channels", int(8)), ("kernel", int(1))];
    let network = |early: bool| {
        left_out(|b, x| {
            let y = apply(b, "tanh", &[], &[x]);
            let mut other = y;
            if early {
                other = apply(b, "sigmoid", &[], &[x]);
            }
            let both = apply(b, "concat", &[], &[x, y]);
            let first = apply(b, "conv2d", &conv, &[both]);
            let second = apply(b, "batchnorm2d", &[], &[both]);
            if !early {
                other = apply(b, "sigmoid", &[], &[x]);
            }
            let mixed = apply(b, "conv2d", &conv, &[other]);
            let sum = apply_sum(b, first, second);
            apply_sum(b, sum, mixed)
        })
    };
    assert_eq!(network(true), [true]);
    assert_eq!(network(false), [false]);
}

fn apply_sum(b: &mut GraphBuilder, x: ValueId, y: ValueId) -> ValueId {
    b.apply("", Layer::Arithmetic(plimsoll_plan::layers::arithmetic::Arithmetic::Add), &[x, y]).unwrap()
}
