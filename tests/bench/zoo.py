#!/usr/bin/env python3
"""Reads, cuts at depth 2 and trains for a step sixty models (zoo_models.py), and compares gradients with PyTorch's.

  zoo.py export FOLDER [NAME...]              with a Python that has PyTorch 2.9, torchvision, timm and transformers
  zoo.py compare FOLDER [--build build]       with any Python that has numpy

Prints a line a model: the largest deviation of a parameter's gradient (relative, by norm), or why it was refused.
Exit status: 0 if at least three quarters hold.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BAR = 1e-3
SHARE = 0.75


def export(folder, names):
    import torch
    import zoo_models
    torch.set_num_threads(1)
    for name in names or zoo_models.NAMES:
        place = os.path.join(folder, name.replace("/", "-"))
        os.makedirs(place, exist_ok=True)
        result = {"name": name}
        try:
            model, batch = zoo_models.make(name)
            dim = torch.export.Dim("batch", min=2, max=64)
            state = {key: value.clone() for key, value in model.state_dict().items()}
            program = torch.export.export(model, (batch,), dynamic_shapes=({0: dim},))
            model.load_state_dict(state)
            torch.export.save(program, os.path.join(place, "model.pt2"))
            out = model(batch)
            (out**2).mean().backward()
            with open(os.path.join(place, "gradients"), "wb") as file:
                for key, parameter in model.named_parameters():
                    if parameter.grad is None:
                        continue
                    values = parameter.grad.contiguous().numpy().astype("<f4")
                    file.write(f"{key} {values.size}\n".encode() + values.tobytes())
            integers = not batch.is_floating_point()
            numpy.save(os.path.join(place, "x.npy"), batch.numpy().astype("<i8" if integers else "<f4"))
            labels = numpy.zeros([4, out.shape[1]], "<f4")
            labels[0, 0] = 1e-30  # labels that are all equal are refused
            numpy.save(os.path.join(place, "labels.npy"), labels)
            spec = {"model": {"exported": {"uri": f"file://{place}/model.pt2"}, "cut": {"depth": 2}, "task": "regression"},
                    "data": {"train": {"format": "npy", "uri": f"file://{place}/x.npy", "labels": f"file://{place}/labels.npy"},
                             "inputs": [{"name": "x", "type": "int64" if integers else "float32", "shape": list(batch.shape[1:])}],
                             "schema": {"label": {"count": out.shape[1]}}},
                    "training": {"batchSize": 4, "microBatches": 1, "optimizer": {"name": "sgd", "learningRate": 0.01}}}
            with open(os.path.join(place, "spec.json"), "w", encoding="utf-8") as file:
                json.dump(spec, file)
        except Exception as error:  # whatever stops PyTorch's own export is its answer
            result["refused"] = f"PyTorch: {type(error).__name__}: {str(error).strip().splitlines()[0][:160] if str(error).strip() else ''}"
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


def compare(folder, build):
    good, all_models, environment = 0, 0, {**os.environ, "OMP_NUM_THREADS": "1"}
    for place in sorted(os.listdir(folder)):
        place = os.path.join(folder, place)
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
                ours, theirs = read_gradients(os.path.join(place, "ours")), read_gradients(os.path.join(place, "gradients"))
                size = max(float(numpy.linalg.norm(theirs[key])) for key in theirs)
                # Gradients that are zero but for rounding, as of a bias before batch norm, are compared with the largest.
                worst = max((float(numpy.linalg.norm(ours[key] - theirs[key])) /
                             max(float(numpy.linalg.norm(theirs[key])), 1e-5 * size) if key in ours else 1.0, key) for key in theirs)
                answer = f"{worst[0]:.1e} ({worst[1]})"
                good += worst[0] <= BAR
        print(f"{result['name']}: {answer}", flush=True)
    print(f"{good} of {all_models} within {BAR}")
    return 0 if good >= SHARE * all_models else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "compare"])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    if args.what == "export":
        return export(os.path.abspath(args.folder), args.names)
    return compare(os.path.abspath(args.folder), args.build)


if __name__ == "__main__":
    sys.exit(main())
