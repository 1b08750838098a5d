"""The peak of one training step in PyTorch on a CPU, in bytes, for the networks of tests/peers.rs.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install torch torchvision
    /tmp/venv/bin/python scripts/torch_peak.py [NETWORK ...]

What is counted: the tensors that live from step to step (parameters, buffers, optimizer state, gradients that are kept, the
batch) and, on top of them, the most that PyTorch's allocator holds at once during a step, by the memory events of its
profiler. Neither the process nor the libraries are counted.

Each network is measured in several modes: as most programs write it; with the fused optimizer; with the optimizer run
inside the backward pass, parameter by parameter; and the last with images in the layout "channels last".
"""

import functools
import sys

import torch
import torchvision
from torch import nn


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet():
    convolutions = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    convolutions += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    dense = [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*convolutions, *dense)


ADAM = functools.partial(torch.optim.Adam, lr=1e-3)
MOMENTUM = functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9)

# Network, batch, how it is made, the image, classes, optimizer.
NETWORKS = [
    ("mlp", 4, mlp, (3, 32, 32), 10, ADAM),
    ("mlp", 64, mlp, (3, 32, 32), 10, ADAM),
    ("lenet", 64, lenet, (1, 28, 28), 10, MOMENTUM),
    ("resnet18", 64, torchvision.models.resnet18, (3, 32, 32), 1000, MOMENTUM),
    ("resnet50", 4, torchvision.models.resnet50, (3, 224, 224), 1000, MOMENTUM),
    ("vgg16", 4, torchvision.models.vgg16, (3, 224, 224), 1000, MOMENTUM),
]

# Name, whether the optimizer is fused, whether it runs within backward, whether the layout is channels last.
MODES = [
    ("plain", False, False, False),
    ("fused", True, False, False),
    ("in backward", False, True, False),
    ("fused, in backward", True, True, False),
    ("in backward, channels last", False, True, True),
]


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def training(model, optimizer_of, fused, in_backward):
    """A function that makes one step, and the optimizers."""
    parameters = list(model.parameters())
    make = functools.partial(optimizer_of, fused=True) if fused else optimizer_of
    loss_of = nn.CrossEntropyLoss()
    if not in_backward:
        optimizer = make(parameters)

        def step(x, y):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()

        return step, [optimizer]

    optimizers = {parameter: make([parameter]) for parameter in parameters}

    def update(parameter):
        optimizers[parameter].step()
        parameter.grad = None

    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(update)
    return lambda x, y: loss_of(model(x), y).backward(), list(optimizers.values())


def most_allocated(step):
    """The most bytes that one step allocates beyond what there was at its start."""
    # What the first profile of a process sees may begin late.
    for _ in range(2):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            step()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    held = most = 0
    for event in events:
        held += event.nbytes()
        most = max(most, held)
    return most


def peak(make, batch, image, classes, optimizer_of, fused, in_backward, channels_last):
    torch.manual_seed(0)
    model, x, y = make(), torch.randn(batch, *image), torch.randint(classes, (batch,))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    step, optimizers = training(model, optimizer_of, fused, in_backward)
    # The optimizer's state is there after the first step.
    for _ in range(2):
        step(x, y)
    states = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
    kept = [*model.parameters(), *model.buffers(), *filter(torch.is_tensor, states), x, y]
    kept += [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return size(kept) + most_allocated(lambda: step(x, y))


def main():
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}")
    for name, batch, *network in NETWORKS:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        for mode, *flags in MODES:
            print(f"{name} {batch}, {mode}: {peak(network[0], batch, *network[1:], *flags):,}", flush=True)


main()
