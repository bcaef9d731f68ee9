#!/usr/bin/env python3
"""Predicts with an exported model in PyTorch: pytorch_predict.py EXPORT DATA.csv"""
import json
import sys

import medley_features
import numpy
import torch



def vectors(layer, inputs, p):
    """The outputs of a layer whose kind docs/use/model.md lists, from those of its inputs: samples x numbers each."""
    kind = layer["kind"]
    if kind == "Numerics":
        return numerics
    if kind == "Concat":
        return torch.cat(inputs, 1)
    if kind == "Add":
        return sum(inputs)
    if kind == "Multiply":
        return inputs[0] * inputs[1]
    if kind == "Cross":
        return inputs[0] * (inputs[-1] @ p["weight"] + p["bias"]) + inputs[-1]
    all_of = [x.reshape(len(x), -1, layer.get("dim", x.shape[1])) for x in inputs]
    if kind == "Slice":
        first, taken = layer.get("first", 0), layer["outputs"] // all_of[0].shape[1]
        return all_of[0][:, :, first:first + taken].flatten(1)
    if kind == "Match":
        return (all_of[0] @ all_of[1].transpose(1, 2)).flatten(1)
    if kind == "InnerProduct":
        return (all_of[0] * all_of[1]).sum(2)
    if kind == "Cosine":
        return torch.cosine_similarity(all_of[0], all_of[1], 2)
    joined = torch.cat(all_of, 1)
    if kind == "Pool":
        return {"sum": joined.sum(1), "mean": joined.mean(1), "max": joined.max(1).values}[layer["combine"]]
    if kind == "FactorizationMachine":
        return ((joined.sum(1) ** 2 - (joined ** 2).sum(1)).sum(1, keepdim=True)) / 2
    if kind == "Interaction":
        rows, columns = torch.tril_indices(joined.shape[1], joined.shape[1], -1)
        return (joined @ joined.transpose(1, 2))[:, rows, columns]
    sys.exit(f"layer {layer['name']}: this program does not know the kind {kind}")


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
        x = activations[layer["activation"]]((outputs[layer["inputs"][0]] if "inputs" in layer else x) @ p["weight"] + p["bias"])
    elif layer["kind"] != "Loss":
        x = vectors(layer, [outputs[name] for name in layer.get("inputs", [])], p)
    outputs[layer["name"]] = x
loss = model["layers"][-1]
x = outputs[loss["inputs"][0]] if "inputs" in loss else x
task = model.get("task", "binary")
if task == "regression":
    x = model["label"]["mean"] + model["label"]["deviation"] * x
    x = torch.expm1(x) if model["label"].get("transform") == "log1p" else x
else:  # probabilities of label 1, of each class or of each label
    x = torch.softmax(x, 1) if task == "multiClass" else torch.sigmoid(x)
for row in x.tolist():
    print(*row, sep=",")
