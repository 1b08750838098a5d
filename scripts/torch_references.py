"""Writes what PyTorch computes for small networks: outputs, losses, gradients and weights after a few training steps.

    python -m venv /tmp/venv
    /tmp/venv/bin/pip install torch safetensors
    /tmp/venv/bin/python scripts/torch_references.py

With `--check` it writes nothing, and compares PyTorch's gradients with finite differences in double precision.

tests/references/GROUP.json         the cases of a group: each a network, its loss, its optimizer and its batches
tests/references/GROUP.safetensors  the tensors of its cases

The groups are layers (each layer alone), losses, optimizers, networks, and large: tensors that are too large for a file,
whose inputs follow a formula and of whose results there are samples. A case's tensors are named
`CASE/WHAT[/NAME]`, where WHAT is one of

    input/NAME      the input batches: axes [batches, samples, ...]; so is `target`
    initial/NAME    a parameter or buffer before training
    output          the network's output for the first batch, in training
    inference       the same outside of training, where that differs
    loss            the loss of each batch
    input_gradient/NAME   the gradient of the first batch's loss with respect to an input
    gradient/NAME   the gradient of the first batch's loss with respect to a parameter
    after/NAME      a parameter or buffer after all batches
    trace/NAME      a parameter after each update (optimizers only)

Values and weights are drawn in single precision; everything is then computed in double precision and rounded once, so
that a reference is the true value. The same is computed in single precision as well, to know that the case is well
posed: PyTorch's own floats must pass the test that Plimsoll's have to pass. Each case is seeded by its own name.
"""

import sys

import torch

from torch_networks import Case, Net, check_gradients, write


def alone(name, layer, *shapes, batch=3, inputs=None, **arguments):
    """A layer alone, applied to inputs of these shapes, named x, y, z."""
    net = Net(**dict(zip("xyz", shapes)))
    net("layer", layer, *net.inputs, **arguments)
    return Case(f"{layer}/{name}", net, batch=batch, inputs=inputs)


def with_parameter(name, layer, shape, parameter, flip=False):
    """An operation on a value and a `parameter`."""
    net = Net(x=shape)
    operands = ["x", net("p", "parameter", shape=parameter)]
    net("", layer, *(reversed(operands) if flip else operands))
    return Case(f"{layer}/{name}", net)


def large_mean(shape):
    """Values far from zero beside their spread, where a careless variance loses its digits."""
    return 20 + torch.randn(shape)


def wide(shape):
    return 20 * torch.randn(shape)


def negative(shape):
    return -1 - torch.rand(shape)


def with_ties(shape):
    return torch.randint(0, 3, shape).float()


def starting_with(*first):
    """Numbers of which the first are these."""

    def values(shape):
        values = 2 * torch.randn(shape)
        values.view(-1)[: len(first)] = torch.tensor(first)
        return values

    return values


# The bends of activation functions and numbers on both sides of each; and numbers beside which all others vanish.
KINKS = starting_with(0.0, -0.0, 6.0, -6.0, 1e-8, -1e-8, 3.0, -3.0, 5.999, 6.001)
EXTREMES = starting_with(30.0, -30.0, 100.0, -100.0, 1000.0, -1000.0)


def layers():
    square = {"kernel": 3}
    yield alone("vector", "linear", [7], out_features=5)
    yield alone("no_bias", "linear", [7], out_features=5, bias=False)
    yield alone("matrix", "linear", [4, 6], out_features=3)
    yield alone("matrix_no_bias", "linear", [4, 6], out_features=9, bias=False)
    yield alone("three_axes", "linear", [2, 3, 5], out_features=4)
    yield alone("one_feature", "linear", [6], out_features=1)
    yield alone("one_sample", "linear", [33], out_features=17, batch=1)

    yield alone("plain", "conv1d", [4, 11], out_channels=3, **square)
    yield alone("stride_padding_dilation", "conv1d", [3, 17], out_channels=4, kernel=4, stride=3, padding=2, dilation=2)
    yield alone("groups", "conv1d", [4, 9], out_channels=6, kernel=2, groups=2, bias=False)
    yield alone("depthwise", "conv1d", [5, 8], out_channels=5, kernel=3, padding=1, groups=5)
    yield alone("pointwise", "conv1d", [4, 9], out_channels=6, kernel=1)

    yield alone("plain", "conv2d", [3, 7, 6], out_channels=4, **square)
    yield alone("no_bias", "conv2d", [3, 5, 6], out_channels=4, bias=False, **square)
    yield alone("stride", "conv2d", [3, 9, 8], out_channels=4, stride=2, **square)
    yield alone("padding", "conv2d", [3, 5, 4], out_channels=4, padding=1, **square)
    yield alone("dilation", "conv2d", [2, 9, 8], out_channels=3, dilation=2, padding=2, **square)
    yield alone(
        "by_axis", "conv2d", [2, 11, 12], out_channels=3,
        kernel=[3, 5], stride=[2, 1], padding=[1, 3], dilation=[1, 2],
    )
    yield alone("even_kernel", "conv2d", [2, 6, 6], out_channels=3, kernel=[2, 4], padding=[1, 2])
    yield alone("large_padding", "conv2d", [2, 3, 2], out_channels=3, kernel=5, padding=4, stride=3)
    yield alone("kernel_covers_input", "conv2d", [3, 4, 5], out_channels=6, kernel=[4, 5])
    yield alone("stem", "conv2d", [3, 13, 14], out_channels=4, kernel=7, stride=2, padding=3, bias=False, batch=2)
    yield alone("pointwise", "conv2d", [5, 4, 6], out_channels=7, kernel=1)
    yield alone("pointwise_no_bias", "conv2d", [5, 4, 3], out_channels=2, kernel=1, bias=False)
    yield alone("pointwise_stride", "conv2d", [4, 5, 6], out_channels=3, kernel=1, stride=2)
    yield alone("pointwise_padding", "conv2d", [4, 3, 3], out_channels=3, kernel=1, padding=1)
    yield alone("pointwise_groups", "conv2d", [4, 3, 5], out_channels=6, kernel=1, groups=2)
    yield alone("groups", "conv2d", [6, 6, 5], out_channels=4, groups=2, padding=1, **square)
    yield alone("three_groups_stride", "conv2d", [6, 7, 5], out_channels=9, groups=3, stride=[1, 2], **square)
    yield alone("depthwise", "conv2d", [5, 6, 7], out_channels=5, groups=5, padding=1, **square)
    yield alone("depthwise_stride_no_bias", "conv2d", [4, 7, 7], out_channels=4, groups=4, kernel=5, stride=2, padding=2, bias=False)
    yield alone("depthwise_dilation", "conv2d", [3, 8, 8], out_channels=3, groups=3, dilation=2, padding=1, **square)
    yield alone("depthwise_multiplier", "conv2d", [3, 6, 5], out_channels=6, groups=3, padding=1, **square)
    yield alone("one_sample", "conv2d", [3, 6, 5], out_channels=4, batch=1, **square)

    yield alone("double", "conv_transpose2d", [4, 3, 4], out_channels=3, kernel=2, stride=2)
    yield alone("plain", "conv_transpose2d", [3, 4, 3], out_channels=2, **square)
    yield alone("output_padding", "conv_transpose2d", [3, 4, 3], out_channels=2, stride=2, padding=1, output_padding=1, **square)
    yield alone("groups", "conv_transpose2d", [4, 3, 4], out_channels=6, stride=2, groups=2, **square)
    yield alone("depthwise", "conv_transpose2d", [4, 3, 4], out_channels=4, stride=2, padding=1, groups=4, kernel=4)
    yield alone("dilation", "conv_transpose2d", [2, 4, 3], out_channels=3, dilation=2, padding=1, **square)
    yield alone(
        "by_axis", "conv_transpose2d", [3, 4, 3], out_channels=2,
        kernel=[3, 2], stride=[2, 3], padding=[1, 0], output_padding=[0, 1], dilation=[1, 2], bias=False,
    )
    yield alone("pointwise", "conv_transpose2d", [4, 3, 5], out_channels=3, kernel=1)

    yield alone("vector", "batchnorm1d", [5], batch=6)
    yield alone("sequence", "batchnorm1d", [5, 7])
    yield alone("not_affine", "batchnorm1d", [4], batch=5, affine=False)
    yield alone("plain", "batchnorm2d", [4, 5, 3])
    yield alone("momentum_eps", "batchnorm2d", [3, 4, 3], momentum=0.3, eps=1e-2)
    yield alone("not_affine", "batchnorm2d", [3, 4, 3], affine=False)
    yield alone("one_sample", "batchnorm2d", [3, 4, 3], batch=1)
    yield alone("large_mean", "batchnorm2d", [3, 5, 4], inputs={"x": large_mean})

    yield alone("vector", "layernorm", [7])
    yield alone("rows", "layernorm", [3, 7])
    yield alone("two_axes", "layernorm", [3, 4, 5], axes=2)
    yield alone("all_axes", "layernorm", [2, 3, 4], axes=3)
    yield alone("no_bias", "layernorm", [3, 7], bias=False)
    yield alone("two_axes_no_bias", "layernorm", [2, 4, 5], axes=2, bias=False, eps=1e-3)
    yield alone("not_affine", "layernorm", [3, 9], elementwise_affine=False)
    yield alone("large_mean", "layernorm", [3, 9], inputs={"x": large_mean})
    yield alone("plain", "layernorm2d", [6, 4, 3])
    yield alone("eps", "layernorm2d", [5, 3, 4], eps=1e-1)

    yield alone("plain", "groupnorm", [6, 4, 3], groups=2)
    yield alone("one_group", "groupnorm", [4, 3, 5], groups=1)
    yield alone("group_per_channel", "groupnorm", [4, 3, 5], groups=4, eps=1e-2)
    yield alone("vector", "groupnorm", [9], groups=3)
    yield alone("sequence", "groupnorm", [4, 7], groups=2)
    yield alone("not_affine", "groupnorm", [6, 3, 3], groups=3, affine=False)
    yield alone("large_mean", "groupnorm", [4, 3, 5], groups=2, inputs={"x": large_mean})

    yield alone("plain", "maxpool2d", [3, 6, 7], kernel=2)
    yield alone("overlapping", "maxpool2d", [3, 8, 7], kernel=3, stride=2, padding=1)
    yield alone("stride_one", "maxpool2d", [2, 6, 5], kernel=3, stride=1, padding=1)
    yield alone("by_axis", "maxpool2d", [2, 7, 9], kernel=[2, 3], stride=[1, 2], padding=[1, 0])
    yield alone("dilation", "maxpool2d", [2, 9, 8], kernel=3, stride=2, padding=1, dilation=2)
    yield alone("ceil_mode", "maxpool2d", [2, 8, 7], kernel=3, stride=2, ceil_mode=True)
    yield alone("ceil_mode_padding", "maxpool2d", [2, 6, 8], kernel=2, stride=3, padding=1, ceil_mode=True)
    yield alone("ties", "maxpool2d", [3, 7, 7], kernel=3, stride=2, padding=1, inputs={"x": with_ties})
    yield alone("negative", "maxpool2d", [2, 5, 5], kernel=3, stride=2, padding=1, inputs={"x": negative})
    yield alone("large_window", "maxpool2d", [1, 20, 19], kernel=17, stride=2, batch=2)

    yield alone("plain", "avgpool2d", [3, 6, 7], kernel=2)
    yield alone("by_axis", "avgpool2d", [2, 7, 9], kernel=[2, 3], stride=[1, 2], padding=[1, 0])
    for ceil_mode in [False, True]:
        for count_include_pad in [False, True]:
            name = ("ceil_mode" if ceil_mode else "floor") + ("_with_pad" if count_include_pad else "_without_pad")
            yield alone(
                name, "avgpool2d", [2, 8, 6], kernel=3, stride=2, padding=1,
                ceil_mode=ceil_mode, count_include_pad=count_include_pad,
            )

    for pool in ["adaptive_avgpool2d", "adaptive_maxpool2d"]:
        yield alone("global", pool, [3, 5, 4], output_size=1)
        yield alone("not_dividing", pool, [2, 7, 5], output_size=[3, 2])
        yield alone("dividing", pool, [2, 6, 4], output_size=[3, 2])
        yield alone("growing", pool, [2, 3, 4], output_size=[5, 7])
        yield alone("same", pool, [2, 3, 4], output_size=[3, 4])
    yield alone("ties", "adaptive_maxpool2d", [2, 7, 7], output_size=3, inputs={"x": with_ties})

    yield alone("double", "upsample", [3, 4, 3], scale_factor=2)
    yield alone("by_axis", "upsample", [2, 3, 4], scale_factor=[3, 1])

    for layer in ["relu", "relu6", "leaky_relu", "gelu", "silu", "sigmoid", "tanh"]:
        yield alone("kinks", layer, [5, 7], inputs={"x": KINKS})
        yield alone("extremes", layer, [7], inputs={"x": EXTREMES})
    for name, slope in [("steep", 0.3), ("falling", -0.5), ("flat", 0.0)]:
        yield alone(name, "leaky_relu", [5, 7], inputs={"x": KINKS}, negative_slope=slope)
    yield alone("tanh", "gelu", [5, 7], inputs={"x": KINKS}, approximate="tanh")
    yield alone("tanh_extremes", "gelu", [7], inputs={"x": EXTREMES}, approximate="tanh")

    yield alone("vector", "softmax", [9])
    for name, axis in [("first_axis", 0), ("middle_axis", 1), ("last_axis", 2), ("axis_from_the_end", -2)]:
        yield alone(name, "softmax", [3, 4, 5], axis=axis)
    yield alone("wide", "softmax", [4, 6], inputs={"x": wide})

    yield alone("all", "flatten", [2, 3, 4])
    yield alone("from_axis", "flatten", [2, 3, 4], start_axis=1)
    yield alone("inferred", "reshape", [2, 3, 4], shape=[4, -1])
    yield alone("plain", "identity", [5])
    yield alone("channels_last", "permute", [2, 3, 4], axes=[1, 2, 0])
    yield alone("transpose", "permute", [5, 3], axes=[1, 0])
    yield alone("four_axes", "permute", [2, 3, 4, 2], axes=[3, 0, 2, 1])
    yield alone("same", "permute", [2, 3, 4], axes=[0, 1, 2])

    yield alone("channels", "concat", [2, 3, 2], [1, 3, 2], [4, 3, 2])
    yield alone("middle_axis", "concat", [2, 3, 2], [2, 1, 2], axis=1)
    yield alone("last_axis", "concat", [2, 3, 2], [2, 3, 1], [2, 3, 4], axis=-1)
    yield alone("one", "concat", [4])

    yield alone(
        "bytes", "normalize", [3, 4, 5], mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225],
        inputs={"x": "bytes"},
    )
    yield alone("floats", "normalize", [2, 3, 4], mean=[0.5, -1.0], std=[0.25, 3.0])
    yield alone("one_number", "normalize", [3, 4], mean=[0.5], std=[0.3])
    yield alone("image", "scale", [4, 3, 2])
    yield alone("vector", "scale", [5])

    for layer in ["add", "sub", "mul"]:
        yield alone("same_shape", layer, [2, 3, 4], [2, 3, 4])
        yield alone("last_axis", layer, [3, 4], [4])
        yield alone("per_channel", layer, [3, 4, 5], [3, 1, 1])
        yield alone("first_is_smaller", layer, [1, 4, 1], [3, 4, 5])
        yield alone("both_grow", layer, [3, 1, 4], [5, 1])
        yield alone("one_number", layer, [1], [2, 3])
        yield with_parameter("parameter", layer, [3, 4], [3, 4])
        yield with_parameter("parameter_first", layer, [3, 4], [4], flip=True)
        yield with_parameter("parameter_grows_value", layer, [4], [3, 1])
        yield with_parameter("parameter_per_channel", layer, [3, 2, 4], [3, 1, 1])
        net = Net(x=[3, 4])
        net("", layer, "x", "x")
        yield Case(f"{layer}/itself", net)
        net = Net(x=[3, 4])
        p = net("p", "parameter", shape=[3, 1])
        q = net("q", "parameter", shape=[4])
        net("", "add", net("", layer, p, q), "x")
        yield Case(f"{layer}/two_parameters", net)
    for name, mul, add in [("both", 2.5, -1.0), ("offset", 1.0, 3.0), ("negation", -1.0, 0.0), ("zero", 0.0, 2.0)]:
        yield alone(name, "affine", [3, 5], mul=mul, add=add)

    # Layers applied to a parameter alone: one sample whatever the batch.
    net = Net(x=[4, 5])
    p = net("p", "parameter", shape=[5, 3])
    normed = net("norm", "layernorm", net("", "permute", p, axes=[1, 0]))
    mixed = net("fc", "linear", net("", "softmax", normed, axis=1), out_features=5)
    net("", "mul", net("", "gelu", net("", "concat", mixed, net("q", "parameter", shape=[1, 5]))), "x")
    yield Case("parameter/chain", net)
    net = Net(x=[2, 3])
    net("", "concat", net("p", "parameter", shape=[4, 3]), "x", net("q", "parameter", shape=[1, 3]))
    yield Case("concat/parameters", net)


def losses():
    def case(name, loss, shape, inputs=None, targets=None, batch=4, ignored_class=None, **arguments):
        given = {"x": inputs} if inputs is not None else None
        return Case(
            f"{loss}/{name}", Net(x=shape), batch=batch, loss=loss, loss_arguments=arguments, inputs=given,
            targets=targets, ignored_class=ignored_class,
        )

    yield case("plain", "cross_entropy", [7])
    yield case("one_sample", "cross_entropy", [5], batch=1)
    yield case("label_smoothing", "cross_entropy", [7], label_smoothing=0.1)
    yield case("all_smooth", "cross_entropy", [5], label_smoothing=1.0)
    yield case("ignore_default", "cross_entropy", [5], batch=9, ignored_class=-100)
    yield case("ignore_index", "cross_entropy", [5], batch=9, ignored_class=2, ignore_index=2)
    yield case("ignore_and_smooth", "cross_entropy", [5], batch=9, ignored_class=1, ignore_index=1, label_smoothing=0.2)
    yield case("sequence", "cross_entropy", [4, 6])
    yield case("segmentation", "cross_entropy", [3, 4, 5])
    yield case("segmentation_ignore_and_smooth", "cross_entropy", [3, 4, 5], ignored_class=-100, label_smoothing=0.1)
    yield case("extreme", "cross_entropy", [6], inputs=lambda shape: 1000 * torch.randn(shape))
    yield case("extreme_smooth", "cross_entropy", [6], inputs=lambda shape: 1000 * torch.randn(shape), label_smoothing=0.1)
    yield case("offset", "cross_entropy", [6], inputs=lambda shape: 500 + torch.randn(shape))

    # After a layer that keeps its output for backward, the gradient can't take its place.
    for loss in ["cross_entropy", "mse", "bce_with_logits"]:
        net = Net(x=[4, 3])
        net("", "tanh", "x")
        yield Case(f"{loss}/after_tanh", net, loss=loss)

    # Targets at, just at, and beyond each bend: zero and beta.
    x = torch.tensor([[0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 0.25, -0.25, 3.0]]).repeat(2, 1)
    bends = {"inputs": x[None], "targets": torch.cat([torch.zeros(1, 10), torch.ones(1, 10)])[None], "batch": 2}
    for loss in ["mse", "l1", "smooth_l1"]:
        yield case("image", loss, [2, 3, 4])
        yield case("bends", loss, [10], **bends)
    for name, beta in [("beta_half", 0.5), ("beta_two", 2.0), ("beta_zero", 0.0)]:
        yield case(name, "smooth_l1", [3, 4], beta=beta)
        yield case(f"{name}_bends", "smooth_l1", [10], beta=beta, **bends)
    yield case("image", "bce_with_logits", [2, 3, 4])
    logits = torch.tensor([0.0, 1.0, -1.0, 30.0, -30.0, 100.0, -100.0, 1000.0, -1000.0]).repeat(3, 1)
    targets = torch.tensor([0.0, 1.0, 0.25]).view(3, 1).expand(3, 9)
    yield case("extreme", "bce_with_logits", [9], inputs=logits[None], targets=targets[None], batch=3)


def large():
    """Tensors of several times what one task of a thread handles, or one block of a loop."""

    def case(name, layer, *shapes, batch=3, inputs=None, **arguments):
        net = Net(**dict(zip("xyz", shapes)))
        net("layer", layer, *net.inputs, **arguments)
        return Case(f"{layer}/{name}", net, batch=batch, inputs=inputs, large=True)

    yield case("plain", "linear", [300], batch=70, out_features=150)
    yield case("plain", "conv1d", [9, 2000], out_channels=7, kernel=5, padding=2)
    yield case("plain", "conv2d", [17, 31, 29], out_channels=24, kernel=3, padding=1)
    yield case("pointwise", "conv2d", [70, 13, 17], out_channels=40, kernel=1, bias=False)
    yield case("depthwise", "conv2d", [70, 19, 17], out_channels=70, kernel=5, padding=2, groups=70)
    yield case("groups_stride", "conv2d", [24, 41, 33], out_channels=40, kernel=3, stride=2, groups=4)
    # Enough channels, maps and positions for Winograd's algorithm.
    yield case("many_channels", "conv2d", [68, 9, 10], batch=2, out_channels=34, kernel=3, padding=1)
    yield case("many_channels_groups", "conv2d", [64, 8, 11], batch=2, out_channels=70, kernel=3, groups=2, bias=False)
    yield case("plain", "conv_transpose2d", [24, 15, 17], out_channels=10, kernel=4, stride=2, padding=1)
    yield case("many_channels", "conv_transpose2d", [34, 9, 8], batch=2, out_channels=36, kernel=3, padding=1)
    yield case("vector", "batchnorm1d", [300], batch=70)
    yield case("plain", "batchnorm2d", [70, 17, 13], batch=4)
    yield case("rows", "layernorm", [300, 70])
    yield case("wide", "layernorm", [17001], batch=4)
    yield case("plain", "layernorm2d", [70, 13, 17], batch=4)
    yield case("plain", "groupnorm", [96, 13, 17], groups=8)
    yield case("plain", "maxpool2d", [30, 41, 39], kernel=3, stride=2, padding=1)
    yield case("plain", "avgpool2d", [30, 41, 39], kernel=3, stride=2, padding=1)
    yield case("plain", "adaptive_avgpool2d", [70, 23, 19], output_size=7)
    yield case("plain", "adaptive_maxpool2d", [70, 23, 19], output_size=7)
    yield case("plain", "upsample", [30, 13, 17], scale_factor=2)
    for layer in ["relu", "leaky_relu", "gelu", "tanh"]:
        yield case("plain", layer, [17001])
    yield case("first_axis", "softmax", [30, 17, 41], axis=0)
    yield case("last_axis", "softmax", [200, 90])
    yield case("plain", "permute", [60, 23, 17], axes=[1, 2, 0])
    yield case("plain", "concat", [30, 23, 17], [41, 23, 17])
    yield case("bytes", "normalize", [3, 90, 70], mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.4], inputs={"x": "bytes"})
    yield case("plain", "scale", [70, 13, 17])
    yield case("plain", "affine", [17001], mul=1.5, add=0.25)
    yield case("same_shape", "add", [17001], [17001])
    for layer in ["sub", "mul"]:
        yield case("same_shape", layer, [17001], [17001])
        yield case("per_channel", layer, [70, 13, 17], [70, 1, 1])
        yield case("last_axis", layer, [30, 500], [500])
        yield case("both_grow", layer, [150, 1], [120])
    for name, layer, shape in [("whole", "mul", [130, 90]), ("rows", "mul", [130, 1]), ("columns", "sub", [90])]:
        net = Net(x=[130, 90])
        net("", layer, "x", net("p", "parameter", shape=shape))
        yield Case(f"{layer}/parameter_{name}", net, large=True)
    net = Net(x=[40, 300])
    net("", "concat", net("p", "parameter", shape=[30, 300]), "x")
    yield Case("concat/parameter", net, large=True)

    yield Case("loss/cross_entropy", Net(x=[1000]), batch=40, loss="cross_entropy", large=True)
    smooth = {"label_smoothing": 0.1}
    yield Case("loss/segmentation", Net(x=[19, 31, 29]), loss="cross_entropy", loss_arguments=smooth, large=True)
    yield Case("loss/mse", Net(x=[17001]), large=True)
    for optimizer in ["sgd", "adamw"]:
        net = Net(x=[40, 500])
        net("", "mul", "x", net("p", "parameter", shape=[40, 500]))
        options = {"momentum": 0.9, "lr": 0.5} if optimizer == "sgd" else {"lr": 0.1, "eps": 1e-5}
        yield Case(
            f"optimizer/{optimizer}", net, batch=2, steps=2, optimizer=optimizer, optimizer_arguments=options,
            clip_grad_norm=0.005, large=True,
        )


def optimizers():
    def case(name, optimizer, **arguments):
        net = Net(x=[3, 4])
        net("", "mul", "x", net("p", "parameter", shape=[3, 4]))
        return Case(
            f"{optimizer}/{name}", net, batch=2, steps=5, optimizer=optimizer, optimizer_arguments=arguments, trace=True,
        )

    yield case("default", "sgd")
    yield case("lr", "sgd", lr=0.5)
    yield case("weight_decay", "sgd", lr=0.5, weight_decay=0.1)
    yield case("momentum", "sgd", lr=0.5, momentum=0.9)
    yield case("dampening", "sgd", lr=0.5, momentum=0.9, dampening=0.3)
    yield case("nesterov", "sgd", lr=0.5, momentum=0.8, nesterov=True, weight_decay=0.1)
    for adam in ["adam", "adamw"]:
        yield case("default", adam)
        yield case("options", adam, lr=0.1, betas=[0.8, 0.95], eps=1e-3)
        yield case("weight_decay", adam, lr=0.1, weight_decay=0.2)
        yield case("beta_zero", adam, lr=0.1, betas=[0.0, 0.9])
    yield case("default", "rmsprop")
    yield case("options", "rmsprop", lr=0.1, alpha=0.8, eps=1e-2, weight_decay=0.1)
    yield case("momentum", "rmsprop", lr=0.05, momentum=0.9)
    yield case("centered", "rmsprop", lr=0.05, centered=True)
    yield case("centered_momentum", "rmsprop", lr=0.05, centered=True, momentum=0.5, weight_decay=0.1)
    yield case("default", "adagrad")
    yield case("options", "adagrad", lr=0.5, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, eps=1e-3)
    yield case("default", "lion")
    yield case("options", "lion", lr=0.05, betas=[0.8, 0.9], weight_decay=0.5)


def networks():
    net = Net(image=[1, 6, 6])
    h = net("", "flatten", "image")
    h = net("", "relu", net("fc1", "linear", h, out_features=20))
    h = net("", "tanh", net("fc2", "linear", h, out_features=12))
    net("fc3", "linear", h, out_features=5)
    adam = {"lr": 1e-2}
    yield Case(
        "mlp", net, batch=6, steps=5, loss="cross_entropy", optimizer="adam", optimizer_arguments=adam,
        loss_arguments={"label_smoothing": 0.1},
    )
    # Gradients near zero would make Adam's first steps a matter of rounding; clipping and accumulation use SGD.
    sgd = {"lr": 0.2, "momentum": 0.9}
    for name, options in [
        ("mlp_clip", {"clip_grad_norm": 0.1}),
        ("mlp_clip_not_reached", {"clip_grad_norm": 100.0}),
        ("mlp_accumulate", {"accumulate": 3}),
        ("mlp_accumulate_clip", {"accumulate": 2, "clip_grad_norm": 0.2}),
    ]:
        net = Net(x=[8])
        h = net("", "silu", net("fc1", "linear", "x", out_features=10))
        net("fc2", "linear", h, out_features=4)
        yield Case(
            name, net, batch=4, steps=5, loss="cross_entropy", optimizer="sgd", optimizer_arguments=sgd, **options,
        )

    net = Net(image=[3, 8, 8])
    h = net("bn1", "batchnorm2d", net("conv1", "conv2d", "image", out_channels=8, kernel=3, padding=1, bias=False))
    h = net("", "relu", h)
    for block, channels, stride in [("layer1.0", 8, 1), ("layer2.0", 12, 2)]:
        x = h
        h = net(f"{block}.conv1", "conv2d", x, out_channels=channels, kernel=3, stride=stride, padding=1, bias=False)
        h = net("", "relu", net(f"{block}.bn1", "batchnorm2d", h))
        h = net("", "dropout", h, p=0.0)
        h = net(f"{block}.conv2", "conv2d", h, out_channels=channels, kernel=3, padding=1, bias=False)
        h = net(f"{block}.bn2", "batchnorm2d", h)
        if stride > 1:
            x = net(f"{block}.downsample.0", "conv2d", x, out_channels=channels, kernel=1, stride=stride, bias=False)
            x = net(f"{block}.downsample.1", "batchnorm2d", x)
        h = net("", "relu", net("", "add", h, x))
    h = net("", "flatten", net("avgpool", "adaptive_avgpool2d", h, output_size=1))
    net("fc", "linear", h, out_features=5)
    sgd = {"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4}
    yield Case("residual", net, batch=6, steps=5, loss="cross_entropy", optimizer="sgd", optimizer_arguments=sgd)

    net = Net(image=[2, 8, 6])
    down = net("down", "conv2d", "image", out_channels=8, kernel=3, stride=2, padding=1)
    h = net("", "gelu", net("norm1", "groupnorm", down, groups=4))
    h = net("middle", "conv2d", h, out_channels=8, kernel=3, padding=1, groups=2)
    h = net("", "silu", net("norm2", "groupnorm", h, groups=2))
    h = net("up", "conv_transpose2d", h, out_channels=4, kernel=4, stride=2, padding=1, groups=2)
    skip = net("", "upsample", net("", "maxpool2d", "image", kernel=2), scale_factor=2)
    h = net("", "concat", h, skip, "image")
    net("head", "conv2d", h, out_channels=3, kernel=1)
    yield Case(
        "segmentation", net, batch=3, steps=5, loss="cross_entropy", ignored_class=-100,
        optimizer="adamw", optimizer_arguments={"lr": 1e-2, "eps": 1e-4},
    )

    net = Net(x=[6])
    h = net("", "tanh", net("layer", "linear", "x", out_features=6))
    h = net("", "tanh", net("layer", "linear", h, out_features=6))
    net("", "add", net("layer", "linear", h, out_features=6), "x")
    sgd = {"lr": 0.1, "momentum": 0.9, "nesterov": True}
    yield Case("shared", net, batch=5, steps=5, optimizer="sgd", optimizer_arguments=sgd)

    net = Net(x=[7])
    h = net("embed", "linear", "x", out_features=9)
    h = net("", "sigmoid", net("fc", "linear", h, out_features=7))
    net("out", "tied", h, member="embed")
    yield Case(
        "tied", net, batch=5, steps=5, loss="bce_with_logits", optimizer="rmsprop",
        optimizer_arguments={"lr": 1e-2, "eps": 1e-4},
    )

    net = Net(x=[4, 6])
    p = net("position", "parameter", shape=[4, 6])
    gate = net("gate", "parameter", shape=[1])
    h = net("norm", "layernorm", net("", "add", "x", p))
    h = net("", "mul", net("", "sigmoid", gate), net("fc1", "linear", h, out_features=6))
    h = net("", "add", "x", net("scale", "scale", h, init=0.1))
    h = net("", "permute", net("", "affine", h, mul=0.5, add=0.25), axes=[1, 0])
    net("fc2", "linear", net("", "leaky_relu", h), out_features=2)
    yield Case(
        "parameters", net, batch=3, steps=5, loss="smooth_l1", optimizer="adagrad",
        optimizer_arguments={"lr": 0.05, "initial_accumulator_value": 0.1}, clip_grad_norm=0.5,
    )

    net = Net(image=[3, 7, 7], extra=[5])
    stem = net("", "relu6", net("stem", "conv2d", "image", out_channels=6, kernel=3, padding=1))
    a = net("a", "conv2d", stem, out_channels=4, kernel=1)
    b = net("b", "conv2d", stem, out_channels=6, kernel=3, padding=1, groups=6)
    c = net("", "avgpool2d", stem, kernel=3, stride=1, padding=1)
    h = net("norm", "layernorm2d", net("", "concat", a, b, c))
    h = net("", "flatten", net("", "adaptive_avgpool2d", net("", "gelu", h, approximate="tanh"), output_size=2))
    h = net("", "concat", h, "extra")
    net("fc", "linear", h, out_features=3)
    yield Case(
        "branches", net, batch=4, steps=5, loss="cross_entropy", optimizer="lion",
        optimizer_arguments={"lr": 1e-3, "weight_decay": 0.1},
    )

    net = Net(image=[3, 6, 6])
    h = net("features.0", "conv2d", "image", out_channels=6, kernel=3, frozen=True)
    h = net("", "relu", net("features.1", "batchnorm2d", h, frozen=True))
    h = net("head.0", "conv2d", h, out_channels=4, kernel=3, bias=False)
    h = net("head.1", "batchnorm2d", h, frozen=True)
    net("fc", "linear", net("", "flatten", net("", "relu", h)), out_features=3)
    yield Case(
        "frozen", net, batch=4, steps=5, loss="cross_entropy", optimizer="sgd", optimizer_arguments={"lr": 0.05},
    )


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    groups = {"layers": layers, "large": large, "losses": losses, "optimizers": optimizers, "networks": networks}
    for name, cases in groups.items():
        cases = list(cases())
        if "--check" in sys.argv:
            checked, bends = map(sum, zip(*map(check_gradients, cases)))
            print(f"{name}: {checked} elements of gradients are the slopes of the loss; {bends} lie on its bends")
        else:
            write(name, cases)
