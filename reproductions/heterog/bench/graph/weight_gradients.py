#!/usr/bin/python3
"""How much earlier gradients of weights could be complete if those of inputs were separate operations (docs/graph-planning.md).

weight_gradients.py [FOLDER]     # examples/graphs. Needs python3-yaml. The forward pass and both gradients count as equal thirds.
"""
import glob
import gzip
import os
import sys

import yaml

for path in sorted(glob.glob(os.path.join(sys.argv[1] if len(sys.argv) > 1 else "examples/graphs", "*.yaml.gz"))):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        layers = yaml.load(file, Loader=yaml.CSafeLoader)["layers"]
    flops = [float(layer["attributes"].get("flops", 0)) for layer in layers]
    weights = [float(layer.get("weightBytes", 0)) for layer in layers]
    step = 3 * sum(flops)
    mean = sum(f * w for f, w in zip(flops, weights)) / sum(weights) / step
    most, name = max((f / step, layer["name"]) for f, w, layer in zip(flops, weights, layers) if w > 0)
    print(f"{os.path.basename(path):24} mean over the bytes {100 * mean:.1f} % of a step, at most {100 * most:.1f} % ({name})")
