#!/usr/bin/python3
"""Trains a CTR-DNN on the two cores of this machine, in turn with peers: `./dev bench train`.

  tests/bench/train.py [--rounds 5] [--seconds 6] [--batches 512,1000] [--layouts inside,server]

26 fields x 1,000,001 rows x 10, 13 numbers, MLP 400-400-400, float32, Adagrad, Criteo-shaped data. Ours: a real job of two trainer
processes that keep the rows (inside: the layout that the planner emits for two units) or with a parameter server (server), with
TLS. Peers: PyTorch's DistributedDataParallel over gloo with two processes (tests/bench/peers/torch_ctrdnn.py), and where they are
installed TensorFlow's and Paddle's parameter servers; what is absent is said.

--batch is that of each trainer. The rounds are interleaved, so that other load meets all; the load average is printed with each. Prints
medians, and the median of the ratios of a round. Exit status: 0 if all bars of issue 47 are reached.
"""
import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = "build/bench/criteo.csv"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
BARS = {512: 1.6, 1000: 1.45}
LAYOUTS = {"inside": "--rows-in-trainers", "server": "--servers 1"}


def execute(command):
    tests = {"MEDLEY_SOURCE_DIR": ROOT, "MEDLEY_BIN_DIR": os.path.join(ROOT, "build/bin")}
    done = subprocess.run(command.split(), cwd=ROOT, env={**os.environ, **ONE_THREAD, **tests}, capture_output=True, text=True,
                          timeout=900, check=False)
    if done.returncode != 0:
        tail = " | ".join((done.stdout + done.stderr).strip().splitlines()[-4:])
        sys.exit(f"train: {command}: exit status {done.returncode}: {tail}")
    return done.stdout


def ours(layout, batch, seconds):
    found = json.loads(execute(f"build/bin/job_bench --set criteo --data {os.path.join(ROOT, DATA)} --trainers 2 {LAYOUTS[layout]} "
                               f"--batch {batch} --seconds {seconds}"))
    return found["samples_per_second"]


def ddp(batch, seconds):
    text = execute(f"{sys.executable} tests/bench/peers/torch_ctrdnn.py --set criteo --data {DATA} --cache build/bench/criteo.npz "
                   f"--processes 2 --batch {batch} --seconds {seconds}")
    return float(re.search(r"(\d+) samples/s wall", text)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--batches", default="512,1000")
    parser.add_argument("--layouts", default="inside,server")
    options = parser.parse_args()
    layouts = options.layouts.split(",")
    if not os.path.exists(os.path.join(ROOT, DATA)):
        execute(f"{sys.executable} tests/bench/generate_criteo.py {DATA}")
    for module, name in (("tensorflow", "TensorFlow"), ("paddle", "Paddle")):
        if importlib.util.find_spec(module) is None:
            print(f"{name} is not installed: it is not compared")
    reached = True
    for batch in map(int, options.batches.split(",")):
        rates = {name: [] for name in ("ddp", *layouts)}
        for _ in range(options.rounds):
            rates["ddp"].append(ddp(batch, options.seconds))
            for layout in layouts:
                rates[layout].append(ours(layout, batch, options.seconds))
            load = os.getloadavg()[0]
            print(f"batch {batch}, load {load:.1f}: " + ", ".join(f"{name} {each[-1]:,.0f}" for name, each in rates.items()) +
                  " samples/s", flush=True)
        for layout in layouts:
            ratios = [a / b for a, b in zip(rates[layout], rates["ddp"])]
            median, bar = statistics.median(ratios), BARS.get(batch)
            if layout == "inside" and bar is not None:
                reached = reached and median >= bar
            print(f"batch {batch}, {layout}: {statistics.median(rates[layout]):,.0f} samples/s, DistributedDataParallel "
                  f"{statistics.median(rates['ddp']):,.0f}: {median:.2f} times, {min(ratios):.2f} to {max(ratios):.2f}" +
                  (f"; the bar is {bar}" if layout == "inside" and bar is not None else ""))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
