#!/usr/bin/env python3
"""Writes recurrent.pt2, a model with an LSTM of two layers, a GRU of two layers and a cell, exported in training with dropout
between the layers, and recurrent.json: samples, and in `outputs` what eager PyTorch computes in evaluation with nine tenths of
the weights. Written with PyTorch 2.11; run ../without_paths.py on the model afterwards.
"""
import json
import os

import torch
from torch import nn

SAMPLES, STEPS, WIDTH = 6, 4, 3
FOLDER = os.path.dirname(os.path.abspath(__file__))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, 4, 2, dropout=0.5, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(8, 4, 2, dropout=0.5)
        self.cell = nn.LSTMCell(4, 4)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        y = self.lstm(x)[0]
        y = self.gru(y.transpose(0, 1))[0]
        hidden, memory = self.cell(y[0])
        return self.head(torch.cat([y[-1], hidden + memory], 1))


def main():
    torch.manual_seed(3)
    model = Recurrent()
    x = torch.randn(SAMPLES, STEPS, WIDTH)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(model.train(), (x,), dynamic_shapes=({0: batch},))
    torch.export.save(program, os.path.join(FOLDER, "recurrent.pt2"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.9
        outputs = model.eval()(x)
    sample = {"torch": torch.__version__.split("+")[0], "classes": 3, "labels": [i % 3 for i in range(SAMPLES)],
              "inputs": [{"integers": False, "values": [float(f"{v:.9g}") for v in x.flatten().tolist()]}],
              "outputs": [float(f"{v:.9g}") for v in outputs.flatten().tolist()]}
    with open(os.path.join(FOLDER, "recurrent.json"), "w", encoding="utf-8") as out:
        json.dump(sample, out)
        out.write("\n")


if __name__ == "__main__":
    main()
