"""Exports the model of resnet.yaml: python export.py resnet.pt2 (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions with batch norm, beside a shortcut."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def make():
    """For images of any size; ten logits."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2), Block(32, 32, 1),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)))


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(make().train(), (torch.randn(4, 1, 28, 28),), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])
