#!/usr/bin/python3
"""Writes the models of operation_bench as TorchScript: real_models.py FOLDER [MODEL...]

Needs Debian's python3-torch. The models of TAPP, tapp-alexnet, tapp-vgg16 and tapp-inception_v3, are only written when
named, and need python3-torchvision.
"""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/resnet"))
from export import Block  # noqa: E402


def conv(channels, out, size, pool):
    layers = [nn.Conv2d(channels, out, size, padding=size // 2), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.MaxPool2d(2)) if pool else nn.Sequential(*layers)


def alexnet():
    """Five convolutions and three dense layers for images of 3 x 32 x 32: most of the work is in the first, most parameters in the last."""
    return nn.Sequential(
        conv(3, 32, 5, True), conv(32, 64, 3, True), conv(64, 96, 3, False), conv(96, 64, 3, False), conv(64, 64, 3, True),
        nn.Sequential(nn.Flatten(), nn.Linear(1024, 1024), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(inplace=True)),
        nn.Linear(1024, 10))


def resnet():
    """For images of 1 x 28 x 28."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True)),
        Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2), Block(128, 128, 1),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(128, 10)))


class Layer(nn.Module):
    """A layer of a Transformer encoder, for `tokens` tokens of `width` numbers."""

    def __init__(self, tokens, width, heads):
        super().__init__()
        self.tokens, self.heads, self.part = tokens, heads, width // heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.reshape(x.shape[0], self.tokens, self.heads, self.part).transpose(1, 2)

    def forward(self, x):
        y = self.before(x)
        weights = torch.softmax(self.split(self.query(y)) @ self.split(self.key(y)).transpose(2, 3) / self.part ** 0.5, 3)
        mixed = (weights @ self.split(self.value(y))).transpose(1, 2).reshape(x.shape[0], self.tokens, -1)
        x = x + self.out(mixed)
        return x + self.narrow(torch.relu(self.wide(self.between(x))))


class Transformer(nn.Module):
    """Six numbers as eight tokens; one logit."""

    def __init__(self, tokens=8, width=128, layers=4):
        super().__init__()
        self.tokens, self.width = tokens, width
        self.embedding = nn.Linear(6, tokens * width)
        self.encoder = nn.Sequential(*(Layer(tokens, width, 4) for _ in range(layers)))
        self.head = nn.Linear(width, 1)

    def forward(self, numbers):
        x = self.embedding(numbers).reshape(numbers.shape[0], self.tokens, self.width)
        return self.head(self.encoder(x).mean(1))


def tapp(name):
    """A model of torchvision for 10 classes, as a chain of its layers: an activation and a dropout belong to the layer before."""
    import torchvision
    if name == "inception_v3":
        model = torchvision.models.inception_v3(num_classes=10, aux_logits=False, init_weights=False)
        layers = list(model.children())
        layers.insert(-1, nn.Flatten())
    else:
        model = getattr(torchvision.models, name)(num_classes=10)
        layers = [*model.features, model.avgpool, nn.Flatten(), *model.classifier]
    chain = []
    for layer in layers:
        if chain and isinstance(layer, (nn.ReLU, nn.Dropout, nn.Flatten)):
            chain[-1].append(layer)
        else:
            chain.append(nn.Sequential(layer))
    return nn.Sequential(*chain)


GRAPHS = {"alexnet": alexnet, "resnet": resnet, "transformer": Transformer}
PIPELINES = {f"tapp-{name}": lambda name=name: tapp(name) for name in ("alexnet", "vgg16", "inception_v3")}


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for chosen in sys.argv[2:] or GRAPHS:
        torch.manual_seed(1)
        torch.jit.script((GRAPHS | PIPELINES)[chosen]().train()).save(os.path.join(sys.argv[1], chosen + ".pt"))
