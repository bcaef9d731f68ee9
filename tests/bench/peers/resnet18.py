"""ResNet-18 for images of 32 x 32, for models.py: python resnet18.py FILE.pt2 exports it (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + shortcut)


def make():
    """18 layers with 11.2 million parameters; a convolution of 3 x 3 first, as usual for small images; ten logits."""
    stages, channels = [], 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        stages.append(nn.Sequential(Block(channels, out, stride), Block(out, out, 1)))
        channels = out
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)), *stages,
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)))


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(make().train(), (torch.randn(4, 3, 32, 32),), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])
