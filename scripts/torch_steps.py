"""How long one training step takes in PyTorch, for the networks of benches/steps.rs.

    python3 scripts/torch_steps.py NETWORK BATCH THREADS [cpu | cuda]

Each network runs in the modes that are fast: the optimizer fused, and a network of convolutions both in the usual
layout and in "channels last". On processors of AMD's, MKL takes its slow path unless it is told that it may take the fast one;
where there is a C compiler, it is told. Prints a line for each mode: its name, the median and the minimum of a step in milliseconds,
with tabs between. Timed are the forward pass, the loss, the backward pass and the optimizer, the batch being there already.
"""

import functools
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# What MKL asks before it takes its fast path.
IS_INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }"


def take_the_fast_path():
    """Starts the program again with an answer to MKL's question, on processors that need it."""
    processors = pathlib.Path("/proc/cpuinfo")
    is_amd = processors.exists() and "AuthenticAMD" in processors.read_text()
    compiler = shutil.which("cc")
    if not is_amd or compiler is None or "MKL_ANSWERED" in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/intel.so"
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", library]
        subprocess.run(command, input=IS_INTEL, text=True, check=True)
        answered = dict(os.environ, LD_PRELOAD=library, MKL_ANSWERED="1")
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=answered).returncode)


take_the_fast_path()

import torch
import torchvision
from torch import nn

# A mode is timed for at least this many steps, and at least this long.
STEPS, SECONDS = 5, 2.0


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet():
    layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*layers)


def momentum(lr, weight_decay=0.0):
    return functools.partial(torch.optim.SGD, lr=lr, momentum=0.9, weight_decay=weight_decay, fused=True)


ADAM = functools.partial(torch.optim.Adam, lr=1e-3, fused=True)

# How it is made, the image, classes, optimizer, whether it has convolutions.
NETWORKS = {
    "mlp": (mlp, (3, 32, 32), 10, ADAM, False),
    "lenet": (lenet, (1, 28, 28), 10, momentum(0.01), True),
    "resnet18": (torchvision.models.resnet18, (3, 32, 32), 1000, momentum(0.01), True),
    "resnet50": (torchvision.models.resnet50, (3, 224, 224), 1000, momentum(0.1, 1e-4), True),
    "vgg16": (torchvision.models.vgg16, (3, 224, 224), 1000, momentum(0.01, 5e-4), True),
}


def times(step):
    """Of steps after the first two, in milliseconds."""
    for _ in range(2):
        step()
    measured = []
    begin = time.perf_counter()
    while len(measured) < STEPS or time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        step()
        measured.append((time.perf_counter() - start) * 1e3)
    return measured


def measure(make, batch, image, classes, optimizer_of, layout, device):
    torch.manual_seed(0)
    model = make().train().to(device, memory_format=layout)
    x, y = torch.randn(batch, *image).to(device, memory_format=layout), torch.randint(classes, (batch,), device=device)
    loss_of, optimizer = nn.CrossEntropyLoss(), optimizer_of(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return times(step)


def main():
    name, batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    torch.set_num_threads(threads)
    make, image, classes, optimizer, convolutions = NETWORKS[name]
    modes = [("fused", torch.contiguous_format)]
    if convolutions:
        modes.append(("fused, channels last", torch.channels_last))
    told = ", MKL told" if "MKL_ANSWERED" in os.environ else ""
    for mode, layout in modes:
        measured = measure(make, batch, image, classes, optimizer, layout, device)
        print(mode + told, statistics.median(measured), min(measured), sep="\t", flush=True)


main()
