#!/usr/bin/env python3
"""Writes TorchScript models that keep tensors in lists, tuples and dictionaries, and what eager PyTorch computes with them.

NAME-scripted.pt here, NAME.json in ../exported, as ../exported/make.py writes it. Written with Debian's PyTorch 1.13;
run ../without_paths.py on the models afterwards.
"""
import json
import os
from typing import Dict, List, Tuple

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, STEPS, RATE = 6, 5, 0.1


class Lstm(nn.Module):
    """An LSTM hands a list of its parameters to its operator."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, ids):
        out, _ = self.lstm(self.embedding(ids))
        return self.head(out[:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.gru = nn.GRU(6, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, ids):
        out, last = self.gru(self.embedding(ids))
        return self.head(out.mean(1) + last[0])


class Containers(nn.Module):
    scales: List[torch.Tensor]
    pair: Tuple[torch.Tensor, int]
    named: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("known", torch.tensor([1.0, 0.5, 2.0, 1.5]))
        self.scales = [torch.tensor([2.0, 1.0, 0.5, 1.0]), self.known]
        self.pair = (torch.tensor([0.1, 0.2, 0.3]), 2)
        self.named = {"first": torch.tensor([1.0, -1.0, 1.0, -1.0]), "second": torch.tensor([0.5, 0.5, 0.5, 0.5])}

    def forward(self, x):
        for scale in self.scales:
            x = x * scale
        if "first" in self.named:
            x = x + self.named["first"]
        for value in self.named.values():
            x = x - value * len(self.named)
        return self.fc(x) + self.pair[0] * self.pair[1]


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    words, floats = torch.randint(0, 20, (SAMPLES, 6)), torch.randn(SAMPLES, 4)
    for name, model, x in (("lstm", Lstm(), words), ("gru", Gru(), words), ("containers", Containers(), floats)):
        torch.jit.save(torch.jit.script(model.train()), os.path.join(HERE, name + "-scripted.pt"))
        labels = torch.randint(0, 3, (SAMPLES,))
        result = {"torch": "1.13", "classes": 3, "labels": labels.tolist(), "losses": [], "gradients": {},
                  "inputs": [{"integers": not x.is_floating_point(), "values": x.flatten().tolist()}], "buffers": {}}
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            result["losses"].append(float(f"{loss.item():.7g}"))
            if step == 0:
                result["gradients"] = {key: [float(f"{g:.7g}") for g in parameter.grad.flatten().tolist()]
                                       for key, parameter in model.named_parameters()}
            optimizer.step()
        with open(os.path.join(HERE, "..", "exported", name + ".json"), "w", encoding="utf-8") as out:
            json.dump(result, out)
            out.write("\n")


if __name__ == "__main__":
    main()
