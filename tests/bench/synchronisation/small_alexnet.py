"""Exports a small AlexNet for images of 3 x 32 x 32: python small_alexnet.py FILE.pt2 (PyTorch 2.9 or newer).

Its archive is not in the repository, so synchronisation_bench takes it as --archive FILE.pt2 --operations 6 --side 32 --channels 3.
"""
import sys

import torch
from torch import nn


class SmallAlexNet(nn.Module):
    """Five convolutions and three dense layers, as AlexNet, with a tenth of its channels."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.conv2 = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.conv345 = nn.Sequential(
            nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(48, 32, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.5), nn.Linear(32 * 4 * 4, 128), nn.ReLU(inplace=True),
            nn.Dropout(0.5), nn.Linear(128, 128), nn.ReLU(inplace=True))
        self.head = nn.Linear(128, 10)

    def forward(self, image):
        return self.head(self.dense(self.conv345(self.conv2(self.conv1(image)))))


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(SmallAlexNet().train(), (torch.randn(4, 3, 32, 32),), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])
