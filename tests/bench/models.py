#!/usr/bin/env python3
"""Compares the models of examples/ that come from PyTorch, and ResNet-18, with PyTorch itself:

./dev bench models [--new PYTHON] [--rounds 5] [--device cuda]

  gradients of step 1, losses of 20 and 100 steps   against the same archive in PyTorch 2.x (--new: a Python that has it)
  seconds of a step, one thread, interleaved        against eager PyTorch of the same LibTorch (Debian's python3-torch)
  an archive of 1 GB (--large)                      the time to read it, and the memory of a stage
  LeNet on MNIST, 5 epochs, 5 seeds (--mnist)       test accuracy, through `medley run`, and that of PyTorch

Exit status: 0 if every figure reaches its bar, else 1.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER = os.path.join(ROOT, "tests/bench/peers/torch_models.py")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
BATCH = 64
BATCHES = {"resnet18": 16}
RATES = {"resnet18": 0.001}  # with more, its losses on random labels are chaotic: threads alone change the second digit
TIMED_STEPS = {"resnet18": 10}
SHAPES = {
    "lenet": {"image": [1, 28, 28]},
    "resnet": {"input": [1, 28, 28]},
    "resnet18": {"input": [3, 32, 32]},
    "transformer": {"numbers": [6], "words": [8]},
    "two-tower": {"numbers": [4], "traits": [4], "terms": [2], "trades": [4]},
}
ROWS = {"transformer": 1024, "two-tower": 512}
failed = []


def run(command, **environment):
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **ONE_THREAD, **environment}, capture_output=True, text=True,
                          timeout=3000, check=False)
    if done.returncode:
        sys.exit(f"models: {' '.join(command)}: {done.stderr.strip()[-600:]}")
    return done.stdout


def show(what, figure, bar, holds):
    print(f"| {what} | {figure} | {bar} | {'yes' if holds else 'NO'} |", flush=True)
    if not holds:
        failed.append(what)


def batch_of(name):
    return BATCHES.get(name, BATCH)


def archive_of(name, folder, new):
    """That of the example; ResNet-18 is exported to the folder, once."""
    if name != "resnet18":
        return os.path.join(ROOT, "examples", name, name + ".pt2")
    archive = os.path.join(folder, name + ".pt2")
    if not os.path.exists(archive):
        run([new, os.path.join(ROOT, "tests/bench/peers/resnet18.py"), archive])
    return archive


def write_data(name, folder):
    """Random samples of a fixed seed, as NPY files."""
    random = numpy.random.default_rng(3)
    samples = 4 * batch_of(name)
    for key, shape in SHAPES[name].items():
        integers = key in ("words", "traits", "trades")
        values = random.integers(0, ROWS[name], [samples] + shape) if integers else random.standard_normal([samples] + shape)
        numpy.save(os.path.join(folder, f"{key}.npy"), values.astype("<i8" if integers else "<f4"))
    classes = 2 if name in ROWS else 10
    numpy.save(os.path.join(folder, "labels.npy"), random.integers(0, classes, samples).astype("<i8"))


def write_spec(name, folder, archive):
    inputs = [{"name": key, "type": "int64" if key in ("words", "traits", "trades") else "float32", "shape": shape}
              for key, shape in SHAPES[name].items()]
    spec = {
        "model": {"exported": {"uri": "file://" + archive}, "task": "binary" if name in ROWS else "multiClass"},
        "data": {"train": {"format": "npy", "files": {key: f"file://{folder}/{key}.npy" for key in SHAPES[name]},
                           "labels": f"file://{folder}/labels.npy"}, "inputs": inputs},
        "training": {"batchSize": batch_of(name), "microBatches": 1, "optimizer": {"name": "sgd", "learningRate": RATES.get(name, 0.05)}},
    }
    path = os.path.join(folder, "spec.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(spec, out)
    return path


def read_gradients(path):
    gradients = {}
    with open(path, "rb") as file:
        while line := file.readline():
            name, count = line.decode().split()
            gradients[name] = numpy.frombuffer(file.read(4 * int(count)), "<f4")
    return gradients


def largest(ours, theirs, steps):
    return max(abs(a - b) / abs(b) for a, b in zip(ours[:steps], theirs[:steps]))


def compare_values(name, folder, new, bench, device):
    archive = archive_of(name, folder, new)
    if name == "transformer":  # without dropout, whose masks differ
        archive = os.path.join(folder, "no-dropout.pt2")
        script = ("import sys, torch; sys.path.insert(0, 'examples/transformer'); import export; torch.manual_seed(1); "
                  "b = torch.export.Dim('batch', min=1); i = (torch.randn(4, 6), torch.randint(0, 1024, (4, 8))); "
                  "p = torch.export.export(export.Tokens(dropout=0.0).train(), i, dynamic_shapes=({0: b}, {0: b})); "
                  "torch.export.save(p, sys.argv[1])")
        run([new, "-c", script, archive])
    spec = write_spec(name, folder, archive)
    ours_file, theirs_file = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    ours = json.loads(run([bench, spec, "--device", device, "--steps", "100", "--gradients", ours_file]))
    peer = [new, PEER, name, folder, "--archive", archive, "--steps", "100", "--batch", str(batch_of(name)),
            "--device", device, "--rate", str(RATES.get(name, 0.05))]
    theirs = json.loads(run(peer + ["--gradients", theirs_file]))
    other = json.loads(run(peer + ["--threads", "2"], OMP_NUM_THREADS="2"))
    a, b = read_gradients(ours_file), read_gradients(theirs_file)
    if set(a) - set(b) or len(a) != len(b):
        sys.exit(f"models: {name}: other parameters: {sorted(set(a) ^ set(b))}")
    worst = max(float(numpy.linalg.norm(a[key] - b[key]) / max(1e-12, numpy.linalg.norm(b[key]))) for key in b)
    show(f"{name}: gradients of step 1, {len(b)} parameters, PyTorch {theirs['torch']}", f"{worst:.1e}", "1e-4", worst <= 1e-4)
    twenty, hundred = (largest(ours["losses"], theirs["losses"], steps) for steps in (20, 100))
    itself = largest(other["losses"], theirs["losses"], 100)
    show(f"{name}: losses of 20 steps", f"{twenty:.1e}", "1e-3", twenty <= 1e-3)
    show(f"{name}: losses of 100 steps; PyTorch from itself with 2 threads {itself:.1e}", f"{hundred:.1e}",
         "1e-3 or 3 x", hundred <= max(1e-3, 3 * itself))


def compare_seconds(name, folder, rounds, peer_python, bench, new, device):
    spec, steps = write_spec(name, folder, archive_of(name, folder, new)), str(TIMED_STEPS.get(name, 60))
    ratios, ours, theirs = [], [], []
    for _ in range(rounds):
        ours.append(json.loads(run([bench, spec, "--device", device, "--steps", steps]))["seconds"])
        peer = json.loads(run([peer_python, PEER, name, folder, "--steps", steps, "--batch", str(batch_of(name)),
                               "--device", device]))
        theirs.append(peer["seconds"])
        ratios.append(ours[-1] / theirs[-1])
    ratio = statistics.median(ratios)
    show(f"{name}: seconds of a step, PyTorch {peer['torch']}",
         f"{1e3 * statistics.median(ours):.2f} ms against {1e3 * statistics.median(theirs):.2f} ms: {ratio:.2f} "
         f"({min(ratios):.2f} to {max(ratios):.2f})", "1.05", ratio <= 1.05)


LARGE = """
import sys, torch
from torch import nn
torch.manual_seed(1)
model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(16)), nn.Linear(4096, 10))
batch = torch.export.Dim("batch", min=1)
torch.export.save(torch.export.export(model.train(), (torch.randn(4, 4096),), dynamic_shapes=({0: batch},)), sys.argv[1])
"""


def seconds_of(command, rounds=5):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def large(new, build):
    """An archive of 1.07 GB: reading it, and what a stage of a quarter of it holds."""
    bench = os.path.join(ROOT, build, "bin/exported_bench")
    with tempfile.TemporaryDirectory() as folder:
        archive, spec = os.path.join(folder, "large.pt2"), os.path.join(folder, "spec.json")
        run([new, "-c", LARGE, archive])
        with open(spec, "w", encoding="utf-8") as out:
            json.dump({"model": {"exported": {"uri": "file://" + archive}, "cut": {"depth": 1}, "task": "multiClass"},
                       "data": {"train": {"format": "npy", "files": {"input": "file:///none.npy"}, "labels": "file:///none.npy"},
                                "inputs": [{"name": "input", "type": "float32", "shape": [4096]}],
                                "schema": {"label": {"classes": [str(i) for i in range(10)]}}}}, out)
        cat = seconds_of(["cat", archive])
        read = seconds_of([os.path.join(ROOT, build, "bin/medley"), "model", "inspect", archive, "--depth", "1"])
        show(f"inspecting an archive of {os.path.getsize(archive) / 1e9:.2f} GB, warm", f"{read:.2f} s; cat {cat:.2f} s",
             "2 x cat", read <= 2 * cat)
        held = json.loads(run([bench, spec, "--hold", "4", "8"]))
        more = (held["resident"] - held["weights"]) / 2**20
        show(f"memory of a stage with {held['weights'] / 2**20:.0f} of {held['model'] / 2**20:.0f} MiB of weights",
             f"{held['resident'] / 2**20:.0f} MiB: its weights + {more:.0f} MiB", "+ 64 MiB", more <= 64)


def mnist(seeds, epochs, peer_python, build):
    with open(os.path.join(ROOT, "examples/lenet/lenet.yaml"), encoding="utf-8") as file:
        text = file.read()
    found, theirs = [], []
    for seed in range(1, seeds + 1):
        job = re.sub(r"epochs: \d+", f"epochs: {epochs}", re.sub(r"seed: \d+", f"seed: {seed}", text))
        job = job.replace("600m", '"1"').replace("learningRate: 0.001}",
                                                 f"learningRate: 0.001, schedule: {{kind: cosine, steps: {469 * epochs}}}}}")
        job = job.replace("path: ./..", "path: " + os.path.join(ROOT, "examples"))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as manifest:
            manifest.write(job)
            manifest.flush()
            output = run([os.path.join(ROOT, build, "bin/medley"), "run", manifest.name])
        found.append(float(re.findall(r"test accuracy\s+([\d.]+)", output)[-1]))
        theirs.append(float(run([peer_python, os.path.join(ROOT, "tests/bench/peers/torch_mnist.py"), str(seed), str(epochs)])))
        print(f"models: seed {seed}: accuracy {found[-1]}, of PyTorch {theirs[-1]}", file=sys.stderr, flush=True)
    middle = statistics.median(found)
    show(f"LeNet on MNIST, {epochs} epochs, {seeds} seeds", f"median {middle:.4f} ({min(found):.4f} to {max(found):.4f})",
         "0.989", middle >= 0.989)
    other = statistics.median(theirs)
    show("the same in PyTorch, with the same weights at first", f"median {other:.4f} ({min(theirs):.4f} to {max(theirs):.4f})",
         "within 0.002", abs(middle - other) <= 0.002)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", help="a Python with PyTorch 2.9 or newer and numpy; without it no values are compared")
    parser.add_argument("--build", default="build", help="the folder of the build; one with -DMEDLEY_TORCH needs --peer too")
    parser.add_argument("--peer", default="/usr/bin/python3", help="a Python whose LibTorch is that of the build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=list(SHAPES))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: a build of the preset cuda, and its PyTorch")
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--large", action="store_true", help="an archive of 1 GB; needs --new")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    bench = os.path.join(ROOT, args.build, "bin/exported_bench")
    print("| what | figure | bar | holds |\n|---|---|---|---|", flush=True)
    for name in args.models:
        if name == "resnet18" and not args.new:
            continue  # the message below says so
        with tempfile.TemporaryDirectory() as folder:
            write_data(name, folder)
            if args.new:
                compare_values(name, folder, args.new, bench, args.device)
            compare_seconds(name, folder, args.rounds, args.peer, bench, args.new, args.device)
    if not args.new:
        print("models: GRADIENTS AND LOSSES WERE NOT COMPARED, RESNET-18 NOT TIMED: give --new PYTHON, one that has PyTorch 2.9", file=sys.stderr)
    if args.large and args.new:
        large(args.new, args.build)
    if args.mnist:
        mnist(args.seeds, args.epochs, args.new or args.peer, args.build)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
