//! What memory tools are known to count wrong, from their public issues, and how it comes out here.

use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::schedule::{Class, Content};
use plimsoll::plan::strategy::Saving;
use plimsoll::{Network, network};

#[test]
fn tied_weights_count_once() {
    network! {
        #[train(batch = 2, optimizer = adam, loss = mse)]
        struct Tied(x: f32[16]) {
            up: linear(16, bias = false),
            relu,
            down: tied(up),
        }
    }
    // One weight of 16 x 16, its gradient and two moments; both layers' multiply-adds.
    assert_eq!(Tied::PARAMETERS, 256);
    assert_eq!(Tied::PARAMETER_BYTES, 1024);
    assert_eq!((Tied::GRADIENT_BYTES, Tied::OPTIMIZER_BYTES), (1024, 2048));
    // Forward twice, both weights' gradients, and one input gradient: the first layer's input needs none.
    assert_eq!(Tied::FLOPS, 2 * 2 * 256 * (2 + 2 + 1));
}

#[test]
fn a_layer_called_twice_has_its_parameters_once_and_its_outputs_twice() {
    network! {
        #[train(batch = 2, optimizer = sgd, loss = mse)]
        struct Twice(x: f32[16]) {
            fc: linear(16),
            fn forward(x) { x.fc().relu().fc().relu().fc() }
        }
    }
    assert_eq!(Twice::PARAMETERS, 16 * 16 + 16);
    assert_eq!(Twice::ACTIVATION_BYTES, 3 * 2 * 16 * 4);
    assert_eq!(Twice::LAYERS.iter().map(|row| row.parameters).collect::<Vec<_>>(), [0, 272, 0, 0, 0, 0]);
}

#[test]
fn activations_in_place_are_no_new_memory() {
    network! {
        #[infer(batch = 4)]
        struct InPlace(x: f32[1000]) { linear(1000), relu, dropout, sigmoid, tanh }
    }
    network! {
        #[infer(batch = 4)]
        struct Plain(x: f32[1000]) { linear(1000) }
    }
    assert_eq!(InPlace::INFERENCE_BYTES, Plain::INFERENCE_BYTES);
    assert_eq!(InPlace::ACTIVATION_BYTES, 4 * 1000 * 4);
}

#[test]
fn bytes_and_integers_count_as_what_they_are() {
    network! {
        #[train(batch = 10, optimizer = sgd, loss = cross_entropy)]
        struct Bytes(image: u8[3, 100, 100]) {
            normalize(mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]),
            flatten,
            linear(5),
        }
    }
    // An image of bytes is a quarter of one of floats; a class index takes four bytes.
    assert_eq!(Bytes::INPUT_BYTES, 10 * 30_000 + 10 * 4);
}

#[test]
fn sizes_of_images() {
    network! {
        #[infer(batch = 1)]
        struct Photo(image: f32[3, 500, 500]) { relu }
    }
    network! {
        #[infer(batch = 256)]
        struct Photos(image: f32[3, 100, 100]) { relu }
    }
    assert_eq!(Photo::INPUT_BYTES, 3_000_000);
    assert_eq!(Photos::INPUT_BYTES, 30_720_000);
}

#[test]
fn the_optimizers_state_is_there_from_the_first_step() {
    network! {
        #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
        struct CifarMlp(image: f32[3, 32, 32]) { flatten, linear(128), relu, linear(10) }
    }
    // 3072 x 128 + 128 + 128 x 10 + 10 = 394,634 parameters: 1.51 MiB, and Adam's two moments.
    assert_eq!(CifarMlp::PARAMETERS, 394_634);
    assert_eq!(CifarMlp::PARAMETER_BYTES, 1_578_536);
    assert_eq!(CifarMlp::OPTIMIZER_BYTES, 3_157_072);
    assert_eq!(CifarMlp::GRADIENT_BYTES, 1_578_536);
    assert_eq!(CifarMlp::ACTIVATION_BYTES, 4 * (128 + 10) * 4);
    assert_eq!(CifarMlp::INPUT_BYTES, 4 * 3072 * 4 + 4 * 4);
    let plan = &CifarMlp::PLAN;
    let training = plan.training.as_ref().unwrap();
    let states = training.schedule.buffers[..training.schedule.persistent]
        .iter()
        .zip(&training.placement.sizes)
        .filter(|(buffer, _)| matches!(buffer.holds[0].content, Content::OptimizerState(..)))
        .map(|(_, size)| size)
        .sum::<u64>();
    assert_eq!(states, CifarMlp::OPTIMIZER_BYTES);

    let with = |name: &str| {
        let optimizer = plimsoll::plan::optimizers::Optimizer::by_name(name).unwrap();
        Footprint::new(&CifarMlp::graph().optimizer(optimizer).plan().unwrap()).optimizer_bytes
    };
    assert_eq!(with("sgd"), 0);
    assert_eq!(with("lion"), 1_578_536);
    assert_eq!(with("adamw"), 3_157_072);
}

#[test]
fn evaluation_with_a_larger_batch_may_decide_the_peak() {
    network! {
        #[train(batch = 1, optimizer = adam, loss = cross_entropy)]
        #[infer(batch = 1000)]
        struct Evaluated(x: f32[1000]) { linear(100), relu, linear(10) }
    }
    let plan = &Evaluated::PLAN;
    let training = plan.training.as_ref().unwrap().placement.length;
    assert!(Evaluated::PEAK_BYTES > training);
    // Parameters and two moments stay; the batch alone is 4 MB.
    let parameters = Evaluated::PARAMETER_BYTES;
    assert!(Evaluated::PEAK_BYTES >= 3 * parameters + 4_000_000);
    const { assert!(Evaluated::INFERENCE_BYTES < Evaluated::PEAK_BYTES) };
}

#[test]
fn a_frozen_member_has_no_gradient_no_state_and_keeps_nothing() {
    network! {
        #[train(batch = 8, optimizer = adam, loss = cross_entropy)]
        struct Frozen(x: f32[64]) {
            #[freeze]
            backbone: [linear(64), relu, linear(64), gelu],
            head: linear(10),
        }
    }
    assert_eq!(Frozen::PARAMETERS, 64 * 10 + 10);
    assert_eq!(Frozen::PARAMETER_BYTES, 4 * (2 * (64 * 64 + 64) + 650));
    assert_eq!((Frozen::GRADIENT_BYTES, Frozen::OPTIMIZER_BYTES), (2600, 5200));
    // Only the head's input is kept.
    assert_eq!(Frozen::SAVED_BYTES, 8 * 64 * 4);
    let training = Frozen::PLAN.training.as_ref().unwrap();
    let gradients = training.schedule.buffers.iter().flat_map(|b| &b.holds);
    assert_eq!(gradients.filter(|h| matches!(h.content, Content::Gradient(_))).count(), 2);
}

#[test]
fn masks_indices_and_statistics_are_counted_in_their_own_sizes() {
    network! {
        #[train(batch = 2, optimizer = sgd, loss = cross_entropy)]
        struct Kept(image: f32[4, 8, 8]) {
            conv2d(4, kernel = 1),
            batchnorm2d,
            maxpool2d(2),
            dropout(0.3),
            flatten,
            linear(3),
        }
    }
    let saved = |kind: &str| Kept::LAYERS.iter().filter(|row| row.kind == kind).map(|row| row.saved_bytes).sum::<u64>();
    // Batch-norm keeps its input and two numbers a channel; pooling one byte for each of 2 x 4 x 4 x 4 maxima; dropout no
    // mask; the linear layer its input, which is dropout's output.
    assert_eq!(saved("conv2d"), 2 * 4 * 64 * 4);
    assert_eq!(saved("batchnorm2d"), 2 * 4 * 4);
    assert_eq!(saved("maxpool2d"), 2 * 4 * 16);
    assert_eq!(saved("dropout"), 2 * 4 * 16 * 4);
    assert_eq!(Kept::SAVED_BYTES, 2048 + 32 + 128 + 512);
}

#[test]
fn unused_gradients_are_not_computed() {
    network! {
        #[train(batch = 2, optimizer = sgd, loss = mse)]
        struct First(x: f32[32]) { linear(32), relu, linear(8) }
    }
    // The batch needs no gradient, so the first layer has no product for it.
    assert_eq!(First::FLOPS, 2 * 2 * (2 * 32 * 32 + 3 * 32 * 8));
    let classes = First::PLAN.training.as_ref().unwrap().schedule.buffers.iter().flat_map(|b| &b.holds);
    let graph = First::graph();
    let of_inputs = classes
        .filter(|h| h.content.class(&graph) == Class::ActivationGradient && h.content.name(&graph).starts_with('x'));
    assert_eq!(of_inputs.count(), 0);
}

#[test]
fn convolutions_have_their_workspace_in_the_plan() {
    network! {
        #[infer(batch = 2)]
        struct Conv(image: f32[16, 32, 32]) { conv2d(32, kernel = 3, padding = 1) }
    }
    const { assert!(Conv::WORKSPACE_BYTES > 0) };
    // Columns of 16 x 9 values and their products of 32: short ones, so tiles of half a mebibyte.
    assert_eq!(Conv::WORKSPACE_BYTES, 512 << 10);
    let whole = 2 * (16 * 9 + 32) * 32 * 32 * 4;
    assert!(Conv::WORKSPACE_BYTES <= whole);
    let input_and_output = (2 * 16 * 32 * 32 + 2 * 32 * 32 * 32) * 4;
    let parameters = (32 * 16 * 9 + 32) * 4;
    assert_eq!(Conv::INFERENCE_BYTES, input_and_output + parameters + 128 + Conv::WORKSPACE_BYTES);
}

network! {
    #[infer(batch = 256)]
    struct InPlace(x: f32[1024]) { linear(2048), relu }
}

/// The activation function writes over what it reads: the most is live while the linear layer has its input beside its
/// output, and no second output of 2 MiB ever is.
#[test]
fn an_activation_function_in_place() {
    let parameters = (2048 * 1024 + 2048) * 4;
    let (input, output) = (256 * 1024 * 4, 256 * 2048 * 4);
    assert_eq!(InPlace::INFERENCE_BYTES, parameters + input + output);
}

network! {
    #[infer(batch = 256)]
    struct Branches(x: f32[64]) {
        wide1: linear(512), narrow1: linear(4), wide2: linear(512), narrow2: linear(4),
        fn forward(x) {
            let a = x.wide1();
            let b = x.wide2();
            a.narrow1() + b.narrow2()
        }
    }
}

/// Two branches, each wide in its middle: one after the other they need one wide value at a time, as declared two.
#[test]
fn the_order_of_steps() {
    let parameters = 2 * ((64 * 512 + 512) * 4 + 4 * 512 * 4 + 256);
    let (x, wide, narrow) = (256 * 64 * 4, 256 * 512 * 4, 256 * 4 * 4);
    // In the second wide layer: its input, its output, and what is left of the first branch.
    assert_eq!(Branches::INFERENCE_BYTES, parameters + x + wide + narrow);
    let as_declared = Branches::graph().without(&[Saving::StepOrder]).plan().unwrap();
    assert_eq!(as_declared.inference_bytes(), parameters + x + 2 * wide);
}

mod normalized {
    use super::network;

    network! {
        #[train(batch = 4096, optimizer = sgd, loss = mse)]
        #[without(row_tiles)]
        pub struct Cheap(x: f32[512]) {
            [[linear(512, bias = false), batchnorm1d, relu]; 4], linear(1, bias = false),
        }
    }

    network! {
        #[train(batch = 4096, optimizer = sgd, loss = mse)]
        #[without(row_tiles, cheap_recomputation)]
        pub struct Kept(x: f32[512]) {
            [[linear(512, bias = false), batchnorm1d, relu]; 4], linear(1, bias = false),
        }
    }

    network! {
        #[train(batch = 4096, optimizer = sgd, loss = mse)]
        #[without(row_tiles)]
        pub struct Narrow(x: f32[256]) {
            [[linear(256, bias = false), batchnorm1d, relu]; 4], linear(1, bias = false),
        }
    }
}

/// Four blocks, of which each keeps the input of its normalization and the output of its activation function; the second is
/// cheap to make of the first.
#[test]
fn cheap_values_are_computed_again() {
    // A sample's value of 512 floats, and what persists: weights, and four numbers a channel.
    let value = |features: u64| 4096 * features * 4;
    let persistent = |features: u64| 4 * (features * features * 4 + 4 * features * 4) + features * 4;
    let (v, loss, statistics) = (value(512), 256, 2 * 512 * 4);
    // Everything is kept. The peak is where the gradient of the last block's output comes into being: beside it the batch,
    // two values a block, the statistics, the gradients of the last layer's output and weight, and the loss.
    let kept = (1 + 8 + 1) * v + 4 * statistics + 4096 * 4 + 512 * 4 + loss;
    assert_eq!(normalized::Kept::PEAK_BYTES, persistent(512) + kept);
    // The peak is in the backward pass of the fourth linear layer: the batch, three inputs of normalizations, the layer's
    // own input, made again, and two gradients; then its weight's gradient, the statistics and the loss.
    let cheap = (1 + 3 + 1 + 2) * v + 512 * 512 * 4 + 3 * statistics + loss;
    assert_eq!(normalized::Cheap::PEAK_BYTES, persistent(512) + cheap);
    assert_eq!(normalized::Cheap::RECOMPUTE_FLOPS, 0);
}

/// A normalization with its activation function costs 128 operations a feature: two layers that each move two values of four
/// bytes, at eight operations a byte. A linear layer costs 2 F + 64. A step takes three times its forward pass, so that for
/// four blocks one percent of it is 0.03 * 4 * (2 F + 192) a feature: with 512 features 146, more than 128; with 256 it is 84.
#[test]
fn what_costs_more_than_a_hundredth_of_the_step_is_kept() {
    let (v, statistics) = (4096 * 256 * 4, 2 * 256 * 4);
    let persistent = 4 * (256 * 256 * 4 + 4 * 256 * 4) + 256 * 4;
    assert_eq!(normalized::Narrow::PEAK_BYTES, persistent + 10 * v + 4 * statistics + 4096 * 4 + 256 * 4 + 256);
}

network! {
    #[train(batch = 1024, optimizer = sgd, loss = mse)]
    #[without(row_tiles)]
    struct Residual(x: f32[512]) {
        fc1: linear(512), fc2: linear(512),
        fn forward(x) {
            let h = x.fc1();
            h + h.fc2()
        }
    }
}

/// The sum takes the place of its second term, and its gradient that of the sum: it passes to both terms unchanged, and there
/// is one copy only where the second layer adds to it.
#[test]
fn a_residual_sum_in_place() {
    let (v, weight) = (1024 * 512 * 4, 512 * 512 * 4);
    let parameters = 2 * (weight + 512 * 4);
    // Input and output of a layer; without a sum in place there were three values.
    assert_eq!(Residual::INFERENCE_BYTES, parameters + 2 * v);
    // The loss: the batch and its targets, the second layer's input, the output that becomes its gradient. Later the batch,
    // the gradient, its copy and a weight's gradient are less.
    assert_eq!(Residual::PEAK_BYTES, parameters + 4 * v + 256);
    // Elsewhere the sum has a buffer of its own, beside its two terms, and so does the loss's gradient, beside the output.
    let plan = Residual::graph().without(&[Saving::RowTiles, Saving::InPlace]).plan().unwrap();
    assert_eq!(plan.inference_bytes(), parameters + 3 * v);
    assert_eq!(plan.peak_bytes(), parameters + 5 * v + 256);
    assert!(plan.savings().is_empty(), "{:?}", plan.savings());
}
