"""Writes what torchvision says of the networks in examples/zoo: names, shapes, and sizes of activations.

    python -m venv /tmp/venv
    /tmp/venv/bin/pip install torch torchvision
    /tmp/venv/bin/python scripts/zoo_reference.py

It fetches no weights and runs on a CPU, or rather on none: on the `meta` device tensors have shapes and no values.

tests/references/zoo/NAME.csv        a network's state_dict, in order: name, shape, parameter or buffer
tests/references/zoo/activations.csv the values that the layers of each network put out for one image
"""

import csv
import pathlib

import torch
import torchvision
from torch import nn
from torch.overrides import TorchFunctionMode

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "references" / "zoo"

NETWORKS = [
    "alexnet", "vgg16", "vgg16_bn", "vgg19",
    "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "mobilenet_v2", "densenet121", "squeezenet1_0", "efficientnet_b0", "convnext_tiny",
]

# Modules whose output takes no memory of its own: it is the input again, changed in place or seen another way.
NOTHING_NEW = (
    nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Sigmoid,
    nn.Dropout, torchvision.ops.StochasticDepth,
    nn.Flatten, nn.Identity, torchvision.ops.Permute,
)

# Operations that a network may call as functions, without a module: the column that counts each of them.
FUNCTIONS = {
    "add": "add", "add_": "add", "__add__": "add", "__iadd__": "add",
    "mul": "mul", "__mul__": "mul",
    "cat": "concat",
    "adaptive_avg_pool2d": "pool",
}

HEADER = f"""\
# The values that the layers of a network put out for one image of 3x224x224 (torchvision {torchvision.__version__.split("+")[0]}).
# modules: what forward hooks see: the outputs of convolutions, linear layers, norms and pooling modules. Activation
#     functions, dropout, stochastic depth and views (flatten, permute, identity) are not counted.
# add, mul, concat, pool: what networks call as plain functions, which hooks do NOT see: residual sums; the products of
#     squeeze-and-excitation and of layer scale; concatenations of at least two tensors (DenseNet also "concatenates"
#     the one tensor that enters a dense block); average pooling without a module.
"""


def leaves(network):
    return [module for module in network.modules() if not list(module.children())]


class Activations(TorchFunctionMode):
    """Counts the output values of leaf modules, and of functions called outside of them."""

    def __init__(self, network):
        super().__init__()
        self.counts = dict.fromkeys(["modules", "add", "mul", "concat", "pool"], 0)
        self.within_a_leaf = False
        for module in leaves(network):
            module.register_forward_pre_hook(self.enter)
            module.register_forward_hook(self.leave)

    def enter(self, module, inputs):
        self.within_a_leaf = True

    def leave(self, module, inputs, output):
        self.within_a_leaf = False
        if not isinstance(module, NOTHING_NEW):
            self.counts["modules"] += output.numel()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        column = FUNCTIONS.get(getattr(function, "__name__", None))
        copies_one_tensor = column == "concat" and len(args[0]) == 1
        if column and not self.within_a_leaf and not copies_one_tensor:
            self.counts[column] += output.numel()
        return output


def write_state(name, network):
    trainable = dict(network.named_parameters())
    total = sum(parameter.numel() for parameter in trainable.values())
    with open(FOLDER / f"{name}.csv", "w", newline="") as file:
        file.write(f"# parameters: {total}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["name", "shape", "kind"])
        for key, tensor in network.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                shape = "x".join(str(size) for size in tensor.shape)
                rows.writerow([key, shape, "parameter" if key in trainable else "buffer"])
    return total


def activations(network):
    counter = Activations(network)
    with counter, torch.no_grad():
        network(torch.empty(1, 3, 224, 224))
    return counter.counts


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "activations.csv", "w", newline="") as file:
        file.write(HEADER)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["network", "modules", "add", "mul", "concat", "pool"])
        for name in NETWORKS:
            with torch.device("meta"):
                network = torchvision.models.get_model(name, weights=None).eval()
                total = write_state(name, network)
                counts = activations(network)
            rows.writerow([name, *counts.values()])
            print(f"{name:16} {total:>12,} parameters {counts['modules']:>12,} values")


if __name__ == "__main__":
    main()
