"""The language's layers, losses and optimizers in PyTorch's terms, networks as data, and cases: a network, its training,
and what PyTorch computes for it. `torch_references.py` says which cases there are.
"""


import copy
import json
import math
import pathlib
import zlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "references"

# The largest error, relative to the largest magnitude in the tensor, that counts as equal.
TOLERANCE = 1e-5


# The language's layers in PyTorch's terms.


def pair(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value, value)


class LayerNorm2d(nn.LayerNorm):
    """torchvision's `LayerNorm2d`."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Scale(nn.Module):
    """A learned factor per channel."""

    def __init__(self, channels, init=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), init))

    def forward(self, x):
        return x * self.weight.view(-1, *[1] * (x.dim() - 2))


class Normalize(nn.Module):
    """torchvision's `ToTensor` (for bytes) and `Normalize`."""

    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, x):
        shape = (-1, *[1] * (x.dim() - 2))
        scaled = x.to(torch.get_default_dtype()) / 255 if x.dtype == torch.uint8 else x
        return (scaled - torch.tensor(self.mean).view(shape)) / torch.tensor(self.std).view(shape)


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


class Value(nn.Module):
    """A learned tensor that is a value itself: one sample, which broadcasts over any batch."""

    def __init__(self, shape):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(shape))

    def forward(self):
        return self.value.unsqueeze(0)


def conv(module):
    def make(x, out_channels, kernel, **a):
        kernel = kernel if isinstance(kernel, int) else tuple(kernel)
        a = {name: tuple(value) if isinstance(value, list) else value for name, value in a.items()}
        return module(x[0].shape[1], out_channels, kernel, **a)

    return make


def pool(module):
    return lambda x, kernel, **a: module(kernel, **a)


def counting_batch(axis):
    """PyTorch's number of an axis: the language does not count the batch."""
    return axis + 1 if axis >= 0 else axis


def concat(x, axis=0):
    def cat(*values):
        samples = max(value.shape[0] for value in values)
        return torch.cat([v.expand(samples, *v.shape[1:]) for v in values], counting_batch(axis))

    return Apply(cat)


def arithmetic(operation):
    """Broadcasting within a sample, counted from the last axis; the batch is the first axis of both."""

    def apply(a, b):
        rank = max(a.dim(), b.dim())
        return operation(*(v.reshape(v.shape[0], *[1] * (rank - v.dim()), *v.shape[1:]) for v in (a, b)))

    return lambda x: Apply(apply)


def layer_norm(x, axes=1, **a):
    return nn.LayerNorm(x[0].shape[-axes:], **a)


LAYERS = {
    "linear": lambda x, out_features, bias=True: nn.Linear(x[0].shape[-1], out_features, bias),
    "conv1d": conv(nn.Conv1d),
    "conv2d": conv(nn.Conv2d),
    "conv_transpose2d": conv(nn.ConvTranspose2d),
    "batchnorm1d": lambda x, **a: nn.BatchNorm1d(x[0].shape[1], **a),
    "batchnorm2d": lambda x, **a: nn.BatchNorm2d(x[0].shape[1], **a),
    "layernorm": layer_norm,
    "layernorm2d": lambda x, **a: LayerNorm2d(x[0].shape[1], **a),
    "groupnorm": lambda x, groups, **a: nn.GroupNorm(groups, x[0].shape[1], **a),
    "maxpool2d": pool(nn.MaxPool2d),
    "avgpool2d": pool(nn.AvgPool2d),
    "adaptive_avgpool2d": lambda x, output_size: nn.AdaptiveAvgPool2d(output_size),
    "adaptive_maxpool2d": lambda x, output_size: nn.AdaptiveMaxPool2d(output_size),
    "upsample": lambda x, scale_factor: nn.Upsample(scale_factor=pair(scale_factor), mode="nearest"),
    "dropout": lambda x, p: nn.Dropout(p),
    "relu": lambda x: nn.ReLU(),
    "relu6": lambda x: nn.ReLU6(),
    "leaky_relu": lambda x, **a: nn.LeakyReLU(**a),
    "gelu": lambda x, **a: nn.GELU(**a),
    "silu": lambda x: nn.SiLU(),
    "sigmoid": lambda x: nn.Sigmoid(),
    "tanh": lambda x: nn.Tanh(),
    "softmax": lambda x, axis=-1: nn.Softmax(counting_batch(axis)),
    "flatten": lambda x, start_axis=0: nn.Flatten(start_axis + 1),
    "reshape": lambda x, shape: Apply(lambda v: v.reshape(v.shape[0], *shape)),
    "identity": lambda x: nn.Identity(),
    "permute": lambda x, axes: Apply(lambda v: v.permute(0, *map(counting_batch, axes))),
    "concat": concat,
    "normalize": lambda x, mean, std: Normalize(mean, std),
    "scale": lambda x, **a: Scale(x[0].shape[1], **a),
    "parameter": lambda x, shape: Value(shape),
    "add": arithmetic(torch.add),
    "sub": arithmetic(torch.sub),
    "mul": arithmetic(torch.mul),
    "affine": lambda x, mul, add: Apply(lambda a: mul * a + add),
}

LOSSES = {
    "cross_entropy": lambda **a: nn.CrossEntropyLoss(**a),
    "mse": lambda: nn.MSELoss(),
    "l1": lambda: nn.L1Loss(),
    "smooth_l1": lambda **a: nn.SmoothL1Loss(**a),
    "bce_with_logits": lambda: nn.BCEWithLogitsLoss(),
}


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023."""

    def __init__(self, parameters, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = (beta1 * m + (1 - beta1) * p.grad).sign()
                p.sub_(lr * (update + group["weight_decay"] * p))
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "lion": Lion,
}


# Networks as data, which the tests in Rust read as well.


class Net:
    """A network: calls of layers on named values. A path that is called again is the same member."""

    def __init__(self, **inputs):
        self.inputs = inputs
        self.calls = []
        self.output = next(iter(inputs))

    def __call__(self, path, layer, *inputs, frozen=False, **arguments):
        self.output = f"value{len(self.calls)}"
        call = {"path": path, "layer": layer, "inputs": inputs, "arguments": arguments, "output": self.output}
        self.calls.append(call | {"frozen": True} if frozen else call)
        return self.output


class Module(nn.Module):
    """A `Net` in PyTorch. Members are made at their first call, when the shapes are known."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.members = {}

    def forward(self, inputs):
        values = dict(inputs)
        for i, call in enumerate(self.net.calls):
            x = [values[name] for name in call["inputs"]]
            path = call["path"] or f"#{i}"
            if call["layer"] == "tied":
                weight = self.members[call["arguments"]["member"]].weight
                values[call["output"]] = F.linear(x[0], weight)
                continue
            if path not in self.members:
                self.members[path] = LAYERS[call["layer"]](x, **call["arguments"])
                self.members[path].requires_grad_(not call.get("frozen", False))
                self.add_module(f"member{len(self.members)}", self.members[path])
            values[call["output"]] = self.members[path](*x)
        return values[self.net.output]

    def state(self):
        """Parameters and buffers by their names in the language."""
        state = {}
        for path, member in self.members.items():
            for name, tensor in [*member.named_parameters(), *member.named_buffers()]:
                if name != "num_batches_tracked":
                    state[path if name == "value" else f"{path}.{name}"] = tensor
        return state


# Running a case.


def rounded(tensor):
    """The value in the default precision of the nearest single-precision number."""
    return tensor.float().to(torch.get_default_dtype())


class Numbers:
    """Where the numbers of a case come from: PyTorch's generator, or, for large tensors, a formula that the tests know too."""

    def __init__(self, name, by_formula):
        self.by_formula = by_formula
        self.formulas = {}
        torch.manual_seed(zlib.crc32(name.encode()))

    def around(self, name, shape, offset=0.0, scale=1.0):
        """Numbers around `offset`: normal ones, or uniform ones within `scale` of it."""
        if not self.by_formula:
            return rounded(offset + scale * torch.randn(shape))
        seed = zlib.crc32(name.encode())
        self.formulas[name] = {"seed": seed, "offset": offset, "scale": scale}
        return rounded(offset + scale * (hashed(seed, shape) // 2**8 / 2**23 - 1))

    def below(self, name, shape, count):
        """Integers from 0 to below `count`."""
        if not self.by_formula:
            return torch.randint(count, shape)
        seed = zlib.crc32(name.encode())
        self.formulas[name] = {"seed": seed, "count": count}
        return hashed(seed, shape) % count


def hashed(seed, shape):
    """A 32-bit hash of each element's index: the finalizer of MurmurHash3."""
    mask = 0xFFFFFFFF
    x = (torch.arange(math.prod(shape)) + seed) & mask
    x = ((x ^ x >> 16) * 0x85EBCA6B) & mask
    x = ((x ^ x >> 13) * 0xC2B2AE35) & mask
    return (x ^ x >> 16).reshape(shape)


def draw_state(module, numbers):
    """Weights that hide nothing: not the ones and zeros that norms and running statistics start from."""
    for name, tensor in module.state().items():
        kind = name.rpartition(".")[2]
        offset = {"running_var": 1.0, "weight": 1.0 if tensor.dim() == 1 else 0.0}.get(kind, 0.0)
        is_matrix = kind == "weight" and tensor.dim() > 1
        scale = tensor[0].numel() ** -0.5 if is_matrix else 0.1 if kind == "running_var" else 0.3
        tensor.data.copy_(numbers.around(f"initial/{name}", tensor.shape, offset, scale))


def targets_for(loss, ignored_class, batches, shape, numbers):
    """Random targets for outputs of a shape, the samples first."""
    if loss == "cross_entropy":
        targets = numbers.below("target", (batches, shape[0], *shape[2:]), shape[1])
        if ignored_class is not None:
            targets[torch.rand(targets.shape) < 0.3] = ignored_class
        return targets
    if loss == "bce_with_logits":
        return rounded(torch.rand(batches, *shape))
    return numbers.around("target", (batches, *shape))


class Case:
    """A network with its training: what a test in Rust reads, and what it must compute."""

    def __init__(
        self, name, net, batch=3, steps=1, loss="mse", loss_arguments=None, optimizer="sgd", optimizer_arguments=None,
        accumulate=1, clip_grad_norm=None, inputs=None, targets=None, ignored_class=None, trace=False, large=False,
    ):
        self.name, self.net, self.batch, self.trace = name, net, batch, trace
        self.loss, self.loss_arguments = loss, loss_arguments or {}
        self.optimizer, self.optimizer_arguments = optimizer, optimizer_arguments or {"lr": 0.1}
        self.steps, self.accumulate, self.clip_grad_norm = steps, accumulate, clip_grad_norm
        self.numbers = numbers = Numbers(name, large)
        batches = steps * accumulate
        self.inputs = {}
        for input, shape in net.inputs.items():
            shape = (batches, batch, *shape)
            given = (inputs or {}).get(input)
            if given is None:
                self.inputs[input] = numbers.around(f"input/{input}", shape)
            elif given == "bytes":
                self.inputs[input] = numbers.below(f"input/{input}", shape, 256).to(torch.uint8)
            else:
                self.inputs[input] = rounded(given if isinstance(given, torch.Tensor) else given(shape))
        module = Module(net)
        output = module(self.samples(0))
        draw_state(module, numbers)
        self.initial = copy.deepcopy(module.eval())
        self.targets = targets
        if targets is None:
            self.targets = targets_for(loss, ignored_class, batches, output.shape, numbers)

    def samples(self, batch):
        def convert(tensor):
            return tensor if tensor.dtype == torch.uint8 else tensor.to(torch.get_default_dtype())

        return {name: convert(tensor[batch]).clone() for name, tensor in self.inputs.items()}

    def description(self):
        dtypes = {torch.uint8: "u8"}
        return {
            "name": self.name,
            "batch": self.batch,
            "inputs": [
                {"name": name, "dtype": dtypes.get(self.inputs[name].dtype, "f32"), "shape": shape}
                for name, shape in self.net.inputs.items()
            ],
            "calls": self.net.calls,
            "output": self.net.output,
            "loss": {"name": self.loss, "arguments": self.loss_arguments},
            "optimizer": {"name": self.optimizer, "arguments": self.optimizer_arguments},
            "steps": self.steps,
            "accumulate": self.accumulate,
            "clip_grad_norm": self.clip_grad_norm,
            "formulas": self.numbers.formulas,
        }

    def given(self):
        """The tensors that the test reads and feeds; those that have a formula it makes itself."""
        tensors = {f"input/{name}": tensor for name, tensor in self.inputs.items()}
        tensors["target"] = self.targets
        tensors |= {f"initial/{name}": tensor for name, tensor in self.initial.state().items()}
        return {name: tensor for name, tensor in tensors.items() if name not in self.numbers.formulas}

    def expected(self, dtype):
        """The tensors that the test compares, computed in a precision."""
        torch.set_default_dtype(dtype)
        module = copy.deepcopy(self.initial).to(dtype)
        expected = {}
        with torch.no_grad():
            inference = module.eval()(self.samples(0))
        module.train()
        state = module.state()
        trained = {name: tensor for name, tensor in state.items() if tensor.requires_grad}
        optimizer = OPTIMIZERS[self.optimizer](trained.values(), **self.optimizer_arguments) if trained else None
        loss_of = LOSSES[self.loss](**self.loss_arguments)
        losses = []
        for batch in range(self.steps * self.accumulate):
            samples = self.samples(batch)
            for sample in samples.values():
                sample.requires_grad_(sample.is_floating_point())
            output = module(samples)
            target = self.targets[batch]
            loss = loss_of(output, target.to(dtype) if target.is_floating_point() else target)
            losses.append(loss.detach())
            if loss.requires_grad:
                (loss / self.accumulate).backward()
            if batch == 0:
                expected["output"] = output.detach()
                # The gradients of inputs are for single layers: a network of several needs them within.
                for name, sample in samples.items():
                    if sample.grad is not None and self.steps == 1:
                        expected[f"input_gradient/{name}"] = sample.grad
                if self.accumulate == 1:
                    for name, parameter in trained.items():
                        expected[f"gradient/{name}"] = parameter.grad.clone()
            if (batch + 1) % self.accumulate == 0 and optimizer:
                if self.clip_grad_norm:
                    nn.utils.clip_grad_norm_(trained.values(), self.clip_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
                if self.trace:
                    for name, parameter in trained.items():
                        expected.setdefault(f"trace/{name}", []).append(parameter.detach().clone())
        if not torch.equal(inference, expected["output"]):
            expected["inference"] = inference
        expected["loss"] = torch.stack(losses)
        if self.steps > 1 or any(not isinstance(tensor, nn.Parameter) for tensor in state.values()):
            expected |= {f"after/{name}": tensor.detach() for name, tensor in state.items()}
        torch.set_default_dtype(torch.float64)
        return {k: torch.stack(v) if isinstance(v, list) else v for k, v in expected.items()}


# The distance of finite differences in double precision: the cube root of its roundoff, where rounding and curvature are
# about as large (Press et al. 2007, "Numerical Recipes", section 5.7).
STEP = 6e-6

# Of a tensor about so many elements are checked.
CHECKED = 400


def check_gradients(case):
    """PyTorch's gradients of a case's first loss against differences of that loss, element by element.

    A gradient must lie between the slopes to the left and to the right, which enclose the derivative within `h` times the
    second one. It may lie outside by the third one times `h^2 / 6`, for which 10 is taken, and by rounding: a sum of n terms
    errs by up to `n 2^-53` of it (Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1), and a slope by
    twice that over h. For n the number of elements is taken.

    Slopes that differ by more than a second derivative of 100 makes are those of a bend: of relu at zero, or of a maximum among
    equals, where the gradient is a convention. Returns how many elements were checked, and how many lie on bends.
    """
    expected = case.expected(torch.float64)
    module = copy.deepcopy(case.initial).train()
    samples, target = case.samples(0), case.targets[0]
    target = target.to(torch.float64) if target.is_floating_point() else target
    loss_of = LOSSES[case.loss](**case.loss_arguments)
    tensors = {f"gradient/{name}": tensor.data for name, tensor in module.state().items()}
    tensors |= {f"input_gradient/{name}": tensor for name, tensor in samples.items()}
    checked, bends = 0, 0
    with torch.no_grad():
        output = module(samples)
        here = loss_of(output, target).item()
        terms = max(tensor.numel() for tensor in [output, *samples.values()])
        tolerance = 2 * terms * 2**-53 * abs(here) / STEP + 10 * STEP**2 / 6
        for name in sorted(tensors.keys() & expected.keys()):
            values, gradient = tensors[name].view(-1), expected[name].reshape(-1)
            for i in range(0, values.numel(), max(1, values.numel() // CHECKED)):
                value, slopes = values[i].item(), []
                for moved in (value - STEP, value + STEP):
                    values[i] = moved
                    slopes.append((loss_of(module(samples), target).item() - here) / (moved - value))
                values[i] = value
                if abs(slopes[1] - slopes[0]) > 100 * STEP:
                    bends += 1
                    continue
                found = gradient[i].item()
                assert min(slopes) - tolerance <= found <= max(slopes) + tolerance, (
                    f"{case.name}/{name}[{i}]: {found}, but the loss has the slopes {slopes}, to {tolerance:.1e}"
                )
                checked += 1
    return checked, bends


def error(got, expected):
    """The largest error, relative to the largest magnitude."""
    largest = expected.abs().max().item()
    worst = (got.double() - expected).abs().max().item()
    return worst / largest if largest > 0 else worst


def sampled(tensor):
    """Some elements of a large tensor, in every place of rows, planes and blocks: a prime number apart."""
    apart = next(prime for prime in [1, 11, 29, 61, 127, 251, 509] if tensor.numel() <= 700 * prime)
    return tensor.flatten()[::apart]


def write(group, cases):
    tensors, worst = {}, (0.0, "")
    for case in cases:
        expected = case.expected(torch.float64)
        for name, single in case.expected(torch.float32).items():
            worst = max(worst, (error(single, expected[name]), f"{case.name}/{name}"))
            assert error(single, expected[name]) < TOLERANCE, f"{case.name}/{name}: {error(single, expected[name]):.1e}"
        if case.numbers.by_formula:
            expected = {name: sampled(tensor) for name, tensor in expected.items()}
        for name, tensor in (case.given() | expected).items():
            dtype = {torch.uint8: torch.uint8, torch.int64: torch.int32}.get(tensor.dtype, torch.float32)
            tensors[f"{case.name}/{name}"] = tensor.detach().to(dtype).contiguous().clone()
    assert len({case.name for case in cases}) == len(cases), "two cases have one name"
    lines = ",\n".join(json.dumps(case.description()) for case in cases)
    (FOLDER / f"{group}.json").write_text(f"[\n{lines}\n]\n")
    save_file(tensors, FOLDER / f"{group}.safetensors")
    size = (FOLDER / f"{group}.safetensors").stat().st_size
    print(f"{group}: {len(cases)} cases, {size} bytes; PyTorch's single precision errs by {worst[0]:.1e} at {worst[1]}")
