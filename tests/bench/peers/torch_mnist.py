"""The peer of `models.py --mnist`: trains LeNet of examples/lenet on MNIST in PyTorch with the settings of the job there.

  torch_mnist.py SEED EPOCHS

Prints the accuracy on the test images. The weights begin as in the archive; the seed orders the images.
"""
import gzip
import os
import sys

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_models import ROOT, load  # noqa: E402

BATCH = 128


def read(name):
    with gzip.open(os.path.join(ROOT, "examples/lenet", name)) as file:
        data = file.read()
    axes = data[3]
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(axes)]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * axes).reshape(sizes).copy())


def images(name):
    return ((read(name).float() / 255 - 0.1307) / 0.3081)[:, None]


def main():
    seed, epochs = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    inputs, labels = images("train-images-idx3-ubyte.gz"), read("train-labels-idx1-ubyte.gz").long()
    model = load("lenet", os.path.join(ROOT, "examples"))
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    steps = epochs * (-(-len(labels) // BATCH))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        found = model(images("t10k-images-idx3-ubyte.gz")).argmax(1)
    print(float((found == read("t10k-labels-idx1-ubyte.gz")).float().mean()))


main()
