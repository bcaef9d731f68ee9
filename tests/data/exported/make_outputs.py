#!/usr/bin/env python3
"""Writes outputs.json: what eager PyTorch computes in evaluation with the models of make.py and nine tenths of their weights.

The samples are those of NAME.json. Written with PyTorch 2.11.
"""
import json
import os

import torch

import make

FOLDER = os.path.dirname(os.path.abspath(__file__))
MODELS = {"mlp": make.Mlp, "conv": lambda: make.Conv(0.5), "tied": make.Tied, "transformer": make.Transformer,
          "two-inputs": make.TwoInputs, "numbers": make.Numbers, "sparse": make.Sparse}


def main():
    result = {}
    for name, make_model in MODELS.items():
        with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as file:
            sample = json.load(file)
        program = torch.export.load(os.path.join(FOLDER, name + ".pt2"))
        model = make_model()
        model.load_state_dict(program.state_dict)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter *= 0.9
        inputs = []
        for node, given in zip(program.graph_signature.user_inputs, sample["inputs"]):
            meta = next(n for n in program.graph.nodes if n.name == node).meta["val"]
            values = torch.tensor(given["values"], dtype=torch.int64 if given["integers"] else torch.float32)
            inputs.append(values.reshape(-1, *meta.shape[1:]))
        with torch.no_grad():
            result[name] = [float(f"{value:.9g}") for value in model.eval()(*inputs).flatten().tolist()]
    with open(os.path.join(FOLDER, "outputs.json"), "w", encoding="utf-8") as out:
        json.dump(result, out)
        out.write("\n")


if __name__ == "__main__":
    main()
