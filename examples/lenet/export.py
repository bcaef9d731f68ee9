"""Exports the model of lenet.yaml: python export.py lenet.pt2 (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class LeNet(nn.Module):
    """For images of 28 x 28; ten logits."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(20, 50, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(50 * 4 * 4, 256), nn.ReLU(inplace=True))
        self.head = nn.Linear(256, 10)

    def forward(self, image):
        return self.head(self.hidden(self.second(self.first(image))))


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(LeNet().train(), (torch.randn(4, 1, 28, 28),), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])
