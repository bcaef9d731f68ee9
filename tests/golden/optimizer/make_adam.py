#!/usr/bin/env python3
"""Writes adam.json: weights after some steps of torch.optim.Adam and torch.optim.SparseAdam, for optimizer_test.

The gradients are exact fractions, so the test computes the same ones. Needs PyTorch (Debian: python3-torch).
"""
import json
import pathlib

import torch

ROWS, COLUMNS, RATE, BETA1 = 8, 5, 0.01, 0.85


def start():
    values = [((i * 5 % 11) - 5) / 8 for i in range(ROWS * COLUMNS)]
    return torch.tensor(values, dtype=torch.float32).reshape(ROWS, COLUMNS).requires_grad_()


def gradient(step):
    values = [(((i * 7 + step * 13) % 17) - 8) / 16 for i in range(ROWS * COLUMNS)]
    return torch.tensor(values, dtype=torch.float32).reshape(ROWS, COLUMNS)


def train(kind, make):
    weights = start()
    optimizer = make([weights], lr=RATE, betas=(BETA1, 0.999), eps=1e-8)
    result = {}
    for step in range(1, 51):
        weights.grad = gradient(step)
        if kind == "sparse":
            touched = [row for row in range(ROWS) if (row + step) % 3 == 0]
            weights.grad = torch.sparse_coo_tensor([touched], gradient(step)[touched], (ROWS, COLUMNS))
        optimizer.step()
        if step in (1, 2, 10, 50):
            result[str(step)] = [round(float(x), 9) for x in weights.detach().flatten()]
    return result


out = {"rows": ROWS, "columns": COLUMNS, "learning_rate": RATE, "beta1": BETA1, "torch": torch.__version__,
       "dense": train("dense", torch.optim.Adam), "sparse": train("sparse", torch.optim.SparseAdam)}
pathlib.Path(__file__).with_name("adam.json").write_text(json.dumps(out, indent=1) + "\n")
