#!/usr/bin/env python3
"""Writes the TorchScript models of the tests: those of ../exported/make.py with the same weights, and some that are refused.

  make.py [FOLDER]        # default: this folder. Written with Debian's PyTorch 1.13; mlp-2.9.pt with 2.9.1 (make.py FOLDER new)
"""
import os
import shutil
import sys
import tempfile

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "exported"))
from make import SAMPLES, Adult, Conv, Mlp, Tied, Transformer, TwoInputs  # noqa: E402


class Branches(nn.Module):
    """Control flow over attributes and sizes, which can be followed."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 3)
        self.wide = False

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) if x.shape[1] == 4 else x
        if self.wide:
            x = x * 2
        total = x.new_zeros([x.size(0), 4])
        for i in range(2):
            total = total + x * float(i + 1)
        return self.head(total.view(x.size(0) * 2, 2).view(-1, 4))


class Data(nn.Module):
    """Control flow over data."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        return self.fc(x)


class Prints(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        print("hello")
        return self.fc(x)


class Counter(nn.Module):
    """A buffer that forward replaces, and reads again."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count = self.count + 1
        return self.fc(x * self.count)


class Lists(nn.Module):
    """A list that is changed by other means than append."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        parts = [x, x * 2]
        parts.insert(0, x * 3)
        return self.fc(parts[0])


class Mask(nn.Module):
    """As many rows as the data say."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 3)

    def forward(self, x):
        return self.fc(x[x > 0].unsqueeze(1))


class Fixed(nn.Module):
    """Traced, it holds the batch."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x.reshape(SAMPLES, 4))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    new = sys.argv[2:] == ["new"]
    torch.manual_seed(7)
    floats, images = torch.randn(SAMPLES, 4), torch.randn(SAMPLES, 1, 8, 8)
    words, tokens, few = (torch.randint(0, most, (SAMPLES, length)) for most, length in ((11, 5), (20, 6), (9, 3)))
    models = {"mlp": (Mlp(), (floats,)), "conv": (Conv(0.0), (images,)), "tied": (Tied(), (words,)),
              "transformer": (Transformer(), (tokens,)), "two-inputs": (TwoInputs(), (floats, few))}

    def save(model, name):
        with tempfile.TemporaryDirectory() as scratch:  # a file holds its own name
            torch.jit.save(model, os.path.join(scratch, "model.pt"))
            shutil.copyfile(os.path.join(scratch, "model.pt"), os.path.join(folder, name))

    if new:
        return save(torch.jit.script(models["mlp"][0].train()), "mlp-2.9.pt")
    for name, (model, inputs) in models.items():
        save(torch.jit.script(model.train()), f"{name}-scripted.pt")
        state = {key: value.clone() for key, value in model.state_dict().items()}
        traced = torch.jit.trace(model.train(), inputs, check_trace=False)
        traced.load_state_dict(state)  # tracing has run the model, which changes the statistics of batch norm
        save(traced, f"{name}-traced.pt")
    save(torch.jit.script(Adult().train()), "adult.pt")  # it is in examples/data
    save(torch.jit.script(Branches().train()), "branches.pt")
    save(torch.jit.script(Counter().train()), "counter.pt")
    save(torch.jit.script(Lists()), "lists.pt")
    save(torch.jit.script(Mask()), "mask.pt")
    save(torch.jit.script(Data()), "data.pt")
    save(torch.jit.script(Prints()), "prints.pt")
    save(torch.jit.trace(Fixed(), (floats,)), "fixed.pt")
    return None


if __name__ == "__main__":
    main()
