#!/usr/bin/env python3
"""Reads, cuts at depth 2 and trains for a step sixty models (zoo_models.py), and compares gradients with PyTorch's.

Batch norms over few small images amplify rounding: PyTorch's own float32 gradients differ from its float64 ones by more than the
bar for some models. So three times that is allowed, too.

  zoo.py export FOLDER [NAME...]              with a Python that has PyTorch 2.9, torchvision, timm and transformers
  zoo.py compare FOLDER [--build build]       with any Python that has numpy

Prints a line a model: the largest deviation of a parameter's gradient (relative, by norm) and PyTorch's own from float64, or why
it was refused.
Exit status: 0 if the share --least of them holds: three quarters, or for a build with another LibTorch nine tenths.
"""
import argparse
import copy
import json
import os
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BAR = 1e-3


def labels_of(out):
    import torch
    labels = torch.ones_like(out, dtype=torch.float32)
    labels[0, 0] = 2  # labels that are all equal are refused
    return labels


def gradients_of(model, batch):
    model.zero_grad()
    out = model(batch)
    ((out - labels_of(out).to(out.dtype)) ** 2).mean().backward()
    return out, {key: p.grad.contiguous().numpy().copy() for key, p in model.named_parameters() if p.grad is not None}


def deviation(ours, theirs):
    """The largest of all parameters, relative by norm. Gradients that are zero but for rounding, as of a bias before batch norm,
    are compared with the largest."""
    size = max(float(numpy.linalg.norm(each)) for each in theirs.values())
    return max((float(numpy.linalg.norm(ours[key] - theirs[key])) / max(float(numpy.linalg.norm(theirs[key])), 1e-5 * size)
                if key in ours else 1.0, key) for key in theirs)


def export_one(name, place):
    import torch
    import zoo_models
    model, batch = zoo_models.make(name)
    dim = torch.export.Dim("batch", min=2, max=64)
    state = copy.deepcopy(model.state_dict())
    if not os.path.exists(os.path.join(place, "model.pt2")):
        torch.export.save(torch.export.export(model, (batch,), dynamic_shapes=({0: dim},)), os.path.join(place, "model.pt2"))
    model.load_state_dict(state)
    out, single = gradients_of(model, batch)
    model.load_state_dict(state)
    _, double = gradients_of(model.double(), batch.double() if batch.is_floating_point() else batch)
    with open(os.path.join(place, "gradients"), "wb") as file:
        for key, values in single.items():
            file.write(f"{key} {values.size}\n".encode() + values.astype("<f4").tobytes())
    integers = not batch.is_floating_point()
    numpy.save(os.path.join(place, "x.npy"), batch.numpy().astype("<i8" if integers else "<f4"))
    numpy.save(os.path.join(place, "labels.npy"), labels_of(out).numpy().astype("<f4"))
    spec = {"model": {"exported": {"uri": f"file://{place}/model.pt2"}, "cut": {"depth": 2}, "task": "regression"},
            "data": {"train": {"format": "npy", "uri": f"file://{place}/x.npy", "labels": f"file://{place}/labels.npy"},
                     "inputs": [{"name": "x", "type": "int64" if integers else "float32", "shape": list(batch.shape[1:])}],
                     "schema": {"label": {"count": out.shape[1]}}},
            "training": {"batchSize": len(batch), "microBatches": 1, "optimizer": {"name": "sgd", "learningRate": 0.01}}}
    with open(os.path.join(place, "spec.json"), "w", encoding="utf-8") as file:
        json.dump(spec, file)
    return deviation(single, double)[0]


def export(folder, names):
    import torch
    import zoo_models
    torch.set_num_threads(1)
    for name in names or zoo_models.NAMES:
        place = os.path.join(folder, name.replace("/", "-"))
        os.makedirs(place, exist_ok=True)
        result = {"name": name}
        try:
            result["own"] = export_one(name, place)
        except Exception as error:  # whatever stops PyTorch's own export is its answer
            lines = str(error).strip().splitlines() or [""]
            result["refused"] = f"PyTorch: {type(error).__name__}: {lines[0][:160]}"
        with open(os.path.join(place, "result.json"), "w", encoding="utf-8") as file:
            json.dump(result, file)
        print(name, result.get("refused", "exported"), flush=True)


def read_gradients(path):
    gradients = {}
    with open(path, "rb") as file:
        while line := file.readline():
            name, count = line.decode().rsplit(" ", 1)
            gradients[name] = numpy.frombuffer(file.read(4 * int(count)), "<f4")
    return gradients


def compare(folder, build, least):
    good, close, all_models, environment = 0, 0, 0, {**os.environ, "OMP_NUM_THREADS": "1"}
    for place in sorted(os.listdir(folder)):
        place = os.path.join(folder, place)
        if not os.path.exists(os.path.join(place, "result.json")):
            sys.exit(f"zoo: {place} has not been exported to its end")
        with open(os.path.join(place, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        all_models += 1
        answer = result.get("refused")
        if answer is None:
            done = subprocess.run([os.path.join(ROOT, build, "bin/exported_bench"), os.path.join(place, "spec.json"), "--steps", "1",
                                   "--gradients", os.path.join(place, "ours")], capture_output=True, text=True, env=environment,
                                  check=False, timeout=300)
            if done.returncode:
                answer = done.stderr.strip()[-300:].replace("\n", " ") or f"exit status {done.returncode}"
            else:
                worst, key = deviation(read_gradients(os.path.join(place, "ours")),
                                       read_gradients(os.path.join(place, "gradients")))
                answer = f"{worst:.1e} ({key}); PyTorch {result['own']:.1e}"
                close += worst <= BAR
                good += worst <= max(BAR, 3 * result["own"])
        print(f"{result['name']}: {answer}", flush=True)
    print(f"{good} of {all_models} within {BAR} or three times PyTorch's own deviation; {close} within {BAR}")
    return 0 if good >= least * all_models else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "compare"])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default="build")
    parser.add_argument("--least", type=float, default=0.75)
    args = parser.parse_args()
    if args.what == "export":
        return export(os.path.abspath(args.folder), args.names)
    return compare(os.path.abspath(args.folder), args.build, args.least)


if __name__ == "__main__":
    sys.exit(main())
