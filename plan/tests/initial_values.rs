//! Initial distributions against PyTorch's.
//!
//! `Linear.reset_parameters` and `_ConvNd.reset_parameters` (torch/nn/modules) call `kaiming_uniform_(weight, a = sqrt(5))`,
//! whose bound is `sqrt(6 / ((1 + a^2) fan_in)) = 1 / sqrt(fan_in)`, and draw the bias within the same bound.
//! `_calculate_fan_in_and_fan_out` (torch/nn/init.py) takes `fan_in = weight.size(1) * weight[0][0].numel()`. The second axis
//! of a weight is that of the inputs of a group, but of a transposed convolution, whose weight is [in, out / groups, h, w], that
//! of its outputs. The bounds below are what PyTorch 2.15 gives for these shapes, `fan_in ** -0.5` of that function.

mod common;

use common::{Chain, int, layer};
use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::Graph;
use plimsoll_plan::layers::Init;
use plimsoll_plan::optimizers::Optimizer;

/// A network of one layer.
fn alone(name: &str, arguments: &[(&str, Value)], input: &[u64]) -> Graph {
    let mut chain = Chain::new("Alone", input);
    chain.push(name, arguments);
    chain.train(4, Optimizer::by_name("sgd").unwrap())
}

fn size(height: i64, width: i64) -> Value {
    Value::List(vec![int(height), int(width)])
}

#[test]
fn weights_and_biases_are_uniform_within_pytorchs_bounds() {
    for (name, arguments, input, shape, bound) in [
        ("linear", vec![("out_features", int(40))], vec![300], vec![40, 300], 0.057735027),
        ("conv1d", vec![("out_channels", int(50)), ("kernel", int(5))], vec![6, 9], vec![50, 6, 5], 0.182574186),
        (
            "conv2d",
            vec![("out_channels", int(50)), ("kernel", size(3, 5))],
            vec![6, 9, 9],
            vec![50, 6, 3, 5],
            0.105409255,
        ),
        (
            "conv2d",
            vec![("out_channels", int(60)), ("kernel", int(3)), ("groups", int(4))],
            vec![12, 9, 9],
            vec![60, 3, 3, 3],
            0.192450090,
        ),
        (
            "conv2d",
            vec![("out_channels", int(64)), ("kernel", int(7)), ("groups", int(64))],
            vec![64, 9, 9],
            vec![64, 1, 7, 7],
            0.142857143,
        ),
        (
            "conv_transpose2d",
            vec![("out_channels", int(6)), ("kernel", size(3, 5))],
            vec![40, 9, 9],
            vec![40, 6, 3, 5],
            0.105409255,
        ),
        (
            "conv_transpose2d",
            vec![("out_channels", int(12)), ("kernel", int(3)), ("groups", int(4))],
            vec![40, 9, 9],
            vec![40, 3, 3, 3],
            0.192450090,
        ),
    ] {
        let graph = alone(name, &arguments, &input);
        let [weight, bias] = &graph.parameters[..] else { panic!("{name} has a weight and a bias") };
        assert_eq!(weight.shape.0, shape, "{name}");
        for parameter in [weight, bias] {
            let Init::Uniform { bound: found } = parameter.init else { panic!("{name}: {:?}", parameter.init) };
            assert!((found - bound).abs() < 1e-9, "{name} {}: {found}, not {bound}", parameter.path);
        }
    }
}

/// `_BatchNorm.reset_parameters`, `LayerNorm.reset_parameters` and `GroupNorm.reset_parameters`: ones and zeros.
#[test]
fn norms_begin_as_the_identity() {
    let expected = |path: &str| match path.rsplit('.').next().unwrap() {
        "weight" | "running_var" => Init::Constant(1.0),
        "bias" | "running_mean" => Init::Constant(0.0),
        other => panic!("what is `{other}`?"),
    };
    for (name, arguments, count) in [
        ("batchnorm2d", vec![], 4),
        ("layernorm", vec![], 2),
        ("layernorm2d", vec![], 2),
        ("groupnorm", vec![("groups", int(2))], 2),
    ] {
        let graph = alone(name, &arguments, &[6, 4, 4]);
        assert_eq!(graph.parameters.len(), count, "{name}");
        for parameter in &graph.parameters {
            assert_eq!(parameter.init, expected(&parameter.path), "{name}: {}", parameter.path);
        }
    }
    // PyTorch has no such layer; torchvision's `CNBlock` begins with the factor it is given.
    let graph = alone("scale", &[("init", Value::Float(1e-6))], &[6, 4, 4]);
    assert_eq!(graph.parameters[0].init, Init::Constant(1e-6));
    assert_eq!(layer("dropout", &[]).rule().parameters(&[]), []);
}
