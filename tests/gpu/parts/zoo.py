"""The models of the kit: as a module, a batch and a job's spec. Each has a size for GPUs and a small one for CPUs."""
import dataclasses
import importlib.util
import json
import os
from typing import Callable

import numpy
import torch
from torch import nn

import kit


def script(path):
    """A Python file of the repository."""
    where = importlib.util.spec_from_file_location(os.path.basename(path)[:-3] + str(abs(hash(path))), os.path.join(kit.SOURCE, path))
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.layers(x) + self.shortcut(x))


def resnet50(classes=1000):
    """25.6 million parameters (He et al., 2016; the stride is in the convolution of 3 x 3)."""
    stages, channels = [], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stages.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                       nn.MaxPool2d(3, 2, 1)), *stages,
                         nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes)))


def small_mlp():
    return nn.Sequential(nn.Sequential(nn.Linear(64, 256), nn.ReLU()), nn.Sequential(nn.Linear(256, 256), nn.ReLU()), nn.Linear(256, 10))


class Bert(nn.Module):
    """BERT's encoder with a classifier over the first token (Devlin et al., 2019), without dropout, whose masks differ."""

    def __init__(self, words=30522, tokens=128, width=768, layers=12, heads=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.pool = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(self.pool(self.encoder(self.norm(self.words(tokens) + self.places))[:, 0]))


@dataclasses.dataclass
class Model:
    make: Callable[[], nn.Module]
    inputs: dict  # name: shape of floats, or (shape, rows) of integers below rows
    batch: int
    classes: int  # 1: a yes or no by one logit
    rate: float = 0.05
    steps: int = 40  # of a timed round

    def batches(self, count):
        """Random inputs and labels for `count` batches, of a fixed seed."""
        random = numpy.random.default_rng(3)
        rows = count * self.batch
        data = {}
        for name, shape in self.inputs.items():
            if isinstance(shape, tuple):
                data[name] = random.integers(0, shape[1], [rows] + shape[0]).astype("<i8")
            else:
                data[name] = random.standard_normal([rows] + shape, dtype=numpy.float32)
        labels = random.integers(0, max(2, self.classes), rows).astype("<i8")
        labels[0] = max(2, self.classes) - 1  # the number of classes follows from the largest
        return data, labels

    def loss(self, logits, labels):
        if self.classes == 1:
            return nn.functional.binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
        return nn.functional.cross_entropy(logits, labels)


def models(on_gpu):
    """By name, the quickest first."""
    example = lambda name: script(f"examples/{name}/export.py")  # noqa: E731
    return {
        "lenet": Model(lambda: example("lenet").LeNet(), {"image": [1, 28, 28]}, 512 if on_gpu else 32, 10, steps=200 if on_gpu else 40),
        "mlp": Model(small_mlp, {"input": [64]}, 256 if on_gpu else 32, 10, steps=200 if on_gpu else 40),
        "two-tower": Model(lambda: example("two-tower").TwoTower(),
                           {"numbers": [4], "traits": ([4], 512), "terms": [2], "trades": ([4], 512)}, 4096 if on_gpu else 64, 1),
        "transformer": Model(lambda: example("transformer").Tokens(dropout=0.0), {"numbers": [6], "words": ([8], 1024)},
                             1024 if on_gpu else 32, 1),
        # With a larger rate their losses on random labels are chaotic.
        "resnet18": Model(script("tests/bench/peers/resnet18.py").make, {"input": [3, 32, 32]}, 256 if on_gpu else 4, 10, 0.001,
                          20 if on_gpu else 3),
        "bert": Model(Bert if on_gpu else lambda: Bert(1000, 16, 64, 2, 4),
                      {"tokens": ([128], 30522) if on_gpu else ([16], 1000)}, 32 if on_gpu else 4, 2, 0.01, 8),
        "resnet50": Model(resnet50 if on_gpu else lambda: resnet50(10), {"input": [3, 224, 224] if on_gpu else [3, 32, 32]},
                          64 if on_gpu else 4, 1000 if on_gpu else 10, 0.001, 10 if on_gpu else 3),
    }


def export(model, folder):
    """Writes the model and four batches to the folder; returns the module as it was exported, and the data."""
    torch.manual_seed(1)
    module = model.make().train()
    some = {name: torch.from_numpy(values[:2 if name else 0]) for name, values in model.batches(1)[0].items()}
    dimension = torch.export.Dim("batch", min=1)
    program = torch.export.export(module, tuple(some.values()), dynamic_shapes=tuple({0: dimension} for _ in some))
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    data, labels = model.batches(4)
    for name, values in data.items():
        numpy.save(os.path.join(folder, f"{name}.npy"), values)
    numpy.save(os.path.join(folder, "labels.npy"), labels)
    return module, data, labels


def write_spec(model, folder, batch=None):
    inputs = [{"name": name, "type": "int64" if isinstance(shape, tuple) else "float32",
               "shape": shape[0] if isinstance(shape, tuple) else shape} for name, shape in model.inputs.items()]
    spec = {
        "model": {"exported": {"uri": f"file://{folder}/model.pt2"}, "task": "binary" if model.classes == 1 else "multiClass"},
        "data": {"train": {"format": "npy", "files": {name: f"file://{folder}/{name}.npy" for name in model.inputs},
                           "labels": f"file://{folder}/labels.npy"}, "inputs": inputs},
        "training": {"batchSize": batch or model.batch, "microBatches": 1,
                     "optimizer": {"name": "sgd", "learningRate": model.rate}},
    }
    path = os.path.join(folder, "spec.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    return path
