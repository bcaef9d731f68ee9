#!/usr/bin/env python3
"""Writes torch_optimizers.json beside it: five weights after each of 20 steps of PyTorch's optimizers (written with 2.9.1).

Weight i begins as (i - 2) / 4; its gradient in step t is sin(t + i) / 2 + the weight / 8.
"""
import json
import math
import os

import torch

VARIANTS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd, decay": (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.02}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "momentum, decay": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.02}),
    "nesterov, decay": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.02}),
    "adagrad, decay": (torch.optim.Adagrad, {"lr": 0.1, "weight_decay": 0.02}),
    "adagrad, accumulator": (torch.optim.Adagrad, {"lr": 0.1, "initial_accumulator_value": 0.1}),
    "adam, decay": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.02}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01}),
    "rmsprop, momentum, decay": (torch.optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "weight_decay": 0.02}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01}),
    "adamw, decay": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.3, "betas": (0.8, 0.95)}),
}


def main():
    out = {}
    for name, (kind, settings) in VARIANTS.items():
        weights = torch.tensor([(i - 2) / 4 for i in range(5)], requires_grad=True)
        optimizer = kind([weights], **settings)
        steps = []
        for step in range(1, 21):
            weights.grad = torch.tensor([math.sin(step + i) / 2 for i in range(5)]) + weights.detach() / 8
            optimizer.step()
            steps.append([float(f"{w:.8g}") for w in weights.tolist()])
        out[name] = steps
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_optimizers.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(steps)}" for name, steps in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()
