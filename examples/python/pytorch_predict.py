#!/usr/bin/env python3
"""Predicts with an exported model in PyTorch: pytorch_predict.py EXPORT DATA.csv"""
import json
import sys

import medley_features
import numpy
import torch

export, data = sys.argv[1:]
model = json.load(open(f"{export}/model.json", encoding="utf-8"))
activations = {"none": lambda x: x, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
ids, numerics = (torch.from_numpy(array) for array in medley_features.read(export, data))
x, outputs = numerics, {}
for layer in model["layers"]:
    p = {name: torch.from_numpy(numpy.load(f"{export}/numpy/{parameter['tensor']}.npy"))
         for name, parameter in layer.get("parameters", {}).items()}
    if layer["kind"] == "Embedding":
        first = layer.get("firstField", 0)
        rows = p["table"][ids[:, first:first + layer.get("fields", ids.shape[1])]]
        x = rows.sum(1) if layer["combine"] == "sum" else rows.flatten(1)
        if layer.get("input") != "ids":
            x = torch.cat([x, numerics], 1)
    elif layer["kind"] == "FullyConnected":
        x = activations[layer["activation"]](x @ p["weight"] + p["bias"])
    elif layer["kind"] in ("Add", "Multiply"):
        a, b = (outputs[name] for name in layer["inputs"])
        x = a + b if layer["kind"] == "Add" else a * b
    outputs[layer["name"]] = x
task = model.get("task", "binary")
if task == "regression":
    x = model["label"]["mean"] + model["label"]["deviation"] * x
    x = torch.expm1(x) if model["label"].get("transform") == "log1p" else x
else:  # probabilities of label 1, of each class or of each label
    x = torch.softmax(x, 1) if task == "multiClass" else torch.sigmoid(x)
for row in x.tolist():
    print(*row, sep=",")
