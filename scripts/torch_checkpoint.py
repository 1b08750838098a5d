"""Checkpoints from PyTorch and back.

    python -m venv /tmp/venv
    /tmp/venv/bin/pip install torch safetensors
    /tmp/venv/bin/python scripts/torch_checkpoint.py

writes a small network after a few steps of training, and what it then gives for some inputs, to
runtime/tests/references/checkpoint. The test `checkpoints` loads them.

    python scripts/torch_checkpoint.py strict|resume FILE NUMBERS

is how that test asks whether PyTorch loads a file. NUMBERS has a line of inputs and a line of expected outputs. `strict`
is for `save_weights`: the file must be the network's state_dict. `resume` is for `save`, whose names with a slash PyTorch
is to leave aside.
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, load_model, save_file
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "runtime" / "tests" / "references" / "checkpoint"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.fc = nn.Linear(48, 5)

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).relu().flatten(1))


def make():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        x, t = torch.randn(4, 1, 6, 6), torch.randint(5, (4,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), t).backward()
        optimizer.step()
    net.eval()
    x = torch.randn(4, 1, 6, 6)
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), FOLDER / "net.safetensors", metadata={"format": "pt"})
    save_file({"inputs": x, "outputs": net(x).detach()}, FOLDER / "outputs.safetensors")


def check(mode, file, numbers):
    net = Net().eval()
    if mode == "strict":
        load_model(net, file, strict=True)
        net.load_state_dict(load_file(file), strict=True)
        assert net.norm.num_batches_tracked == 3
    else:
        missing, unexpected = net.load_state_dict(load_file(file), strict=False)
        assert not missing and unexpected, (missing, unexpected)
        assert all(name.startswith("plimsoll/") for name in unexpected), unexpected
    inputs, outputs = (torch.tensor([float(x) for x in line.split()]) for line in open(numbers))
    found = net(inputs.reshape(-1, 1, 6, 6)).flatten()
    assert torch.allclose(found, outputs, rtol=1e-5, atol=1e-6), (found, outputs)


if sys.argv[1:]:
    check(*sys.argv[1:])
else:
    make()
