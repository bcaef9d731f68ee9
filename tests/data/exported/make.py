#!/usr/bin/env python3
"""Writes the exported models of the tests, and what PyTorch computes with them.

  make.py [FOLDER]        # default: this folder. Written with PyTorch 2.9.1.

NAME.pt2: torch.export.save; NAME-2.7.pt2 and NAME-2.8.pt2: the same by older versions; NAME-eval.pt2: the same after eval(). NAME.json: a batch, its labels, and of a plain training loop the loss of each step, the
gradient of each parameter in the first step, and every buffer after it (cross-entropy, SGD, learning rate 0.1).
"""
import json
import os
import re
import sys

import torch
from torch import nn

SAMPLES, STEPS, RATE = 6, 5, 0.1


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Conv(nn.Module):
    """Batch norm, an operation in place, and dropout with probability `dropped`."""

    def __init__(self, dropped):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.dropout = nn.Dropout(dropped)
        self.head = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        return self.head(self.dropout(torch.flatten(self.features(x), 1)))


class Tied(nn.Module):
    """A parameter that two modules share, and a buffer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.middle = nn.Linear(6, 6)
        self.out = nn.Linear(6, 11, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, ids):
        return self.out(torch.tanh(self.middle(self.embedding(ids).mean(1) * self.scale)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.position = nn.Parameter(torch.randn(1, 6, 16) * 0.1)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, ids):
        return self.head(self.encoder(self.embedding(ids) + self.position).mean(1))


class TwoInputs(nn.Module):
    """A skip connection across the cut, a mask that follows from integers, and a frozen layer."""

    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 6)
        self.embedding = nn.Embedding(9, 6, padding_idx=0)
        self.frozen = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)

    def forward(self, x, ids):
        left = torch.relu(self.left(x))
        mask = (ids != 0).to(x.dtype).unsqueeze(-1)
        right = (self.embedding(ids) * mask).sum(1) / mask.sum(1).clamp(min=1.0)
        return self.head(torch.sigmoid(self.frozen(left * right)) + left)


class Numbers(nn.Module):
    """Numbers where operators take tensors: plain ones, and one that follows from the batch."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        ids = (x > 0).to(torch.int64) * 2 + 1
        y = (x + 2) * 0.5 - ids / 3
        return self.fc(y) * x.shape[0]


class Sparse(nn.Module):
    """Embeddings whose gradients are of rows."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(40, 2, sparse=True)
        self.bag = nn.EmbeddingBag(30, 4, mode="sum", sparse=True)
        self.head = nn.Linear(3 * 2 + 4, 3)

    def forward(self, ids, more):
        return self.head(torch.cat([self.rows(ids).flatten(1), self.bag(more)], 1))


class Adult(nn.Module):
    """For examples/data/adult.train.csv: 6 numbers and 8 categorical values, hashed into 512 rows; one logit."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 8)
        self.first = nn.Linear(6 + 8 * 8, 32)
        self.norm = nn.LayerNorm(32)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.1)) for _ in range(2))
        self.head = nn.Linear(32, 1)

    def forward(self, numbers, categories):
        x = torch.cat([numbers, self.embedding(categories).flatten(1)], 1)
        x = torch.relu(self.norm(self.first(x)))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Modes(nn.Module):
    """What behaves otherwise when it is trained."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.first(x))))[:, None]
        x = nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1 if self.training else 0.0)
        return self.head(x[:, 0])


def export(model, inputs, fixed=False):
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(model, inputs, dynamic_shapes=None if fixed else tuple({0: batch} for _ in inputs))
    for node in program.graph.nodes:  # names of files, without where they were
        if node.meta.get("stack_trace"):
            node.meta["stack_trace"] = re.sub(r'File ".*/', 'File "', node.meta["stack_trace"])
    return program


def save_small(program, path):
    """Without the lines of Python, which are most of a small archive."""
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, path)


def train(model, inputs, labels):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    result = {"losses": [], "gradients": {}, "buffers": {}}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(*inputs), labels)
        loss.backward()
        result["losses"].append(loss.item())
        if step == 0:
            result["gradients"] = {name: p.grad.to_dense().flatten().tolist() for name, p in model.named_parameters() if p.grad is not None}
            result["buffers"] = {name: b.flatten().tolist() for name, b in model.named_buffers()}
        optimizer.step()
    return result


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def write(folder, name, model, inputs, classes):
    if name == "conv":
        save_small(export(model.eval(), inputs), os.path.join(folder, name + "-eval.pt2"))
    model.train()
    save = save_small if name in ("sparse", "two-inputs") else torch.export.save
    save(export(model, inputs), os.path.join(folder, name + ".pt2"))
    labels = torch.randint(0, classes, (SAMPLES,))
    result = {"torch": torch.__version__.split("+")[0], "classes": classes, "labels": labels.tolist(),
              "inputs": [{"integers": not x.is_floating_point(), "values": x.flatten().tolist()} for x in inputs],
              **train(model, inputs, labels)}
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as out:
        json.dump(rounded(result), out)
        out.write("\n")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.manual_seed(7)
    torch.set_num_threads(1)
    floats, images = torch.randn(SAMPLES, 4), torch.randn(SAMPLES, 1, 8, 8)
    words, tokens, few = (torch.randint(0, most, (SAMPLES, length)) for most, length in ((11, 5), (20, 6), (9, 3)))
    models = {"mlp": (Mlp(), (floats,), 3), "conv": (Conv(0.0), (images,), 5), "tied": (Tied(), (words,), 11),
              "transformer": (Transformer(), (tokens,), 3), "two-inputs": (TwoInputs(), (floats, few), 3)}
    for name, (model, inputs, classes) in models.items():
        write(folder, name, model, inputs, classes)
    adult = (torch.randn(SAMPLES, 6), torch.randint(0, 512, (SAMPLES, 8)))
    torch.export.save(export(Adult().train(), adult), os.path.join(folder, "adult.pt2"))
    save_small(export(Conv(0.5).train(), (images,)), os.path.join(folder, "dropout.pt2"))
    save_small(export(Mlp(), (floats,), fixed=True), os.path.join(folder, "fixed.pt2"))
    torch.manual_seed(8)
    write(folder, "numbers", Numbers(), (floats,), 3)
    torch.manual_seed(10)
    # As many different numbers as fit, and some that occur twice.
    ids, more = (torch.randint(0, most, (SAMPLES, length)) for most, length in ((40, 3), (30, 4)))
    write(folder, "sparse", Sparse(), (ids, more), 3)
    torch.manual_seed(9)
    evaluated = export(Modes().eval(), (floats,))
    save_small(evaluated, os.path.join(folder, "modes-eval.pt2"))
    removed = evaluated.run_decompositions()
    save_small(removed, os.path.join(folder, "modes-removed.pt2"))
    norms = (torch.ops.aten._native_batch_norm_legit_no_training.default, torch.ops.aten._native_batch_norm_legit.default)
    save_small(removed.run_decompositions({norm: torch._decomp.decomposition_table[norm] for norm in norms}),
               os.path.join(folder, "modes-folded.pt2"))


if __name__ == "__main__":
    main()
