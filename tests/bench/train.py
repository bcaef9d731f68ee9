#!/usr/bin/python3
"""Trains a CTR-DNN on the two cores of this machine, in turn with peers: `./dev bench train`.

  tests/bench/train.py [--rounds 5] [--seconds 6] [--cases 512,1000,adam,figure12] [--layouts inside,server]

26 fields x 1,000,001 rows x 10, 13 numbers, MLP 400-400-400, float32, Criteo-shaped data. Cases: batches of 512 and of 1,000 for each
trainer with Adagrad; batches of 512 with Adam; and the smaller CTR-DNN of HeterPS's Figure 12 (MLP 400-400) with Adagrad.

Ours: a real job of two trainer processes that keep the rows (inside: the layout that the planner emits for two units) or with a
parameter server (server), with TLS, synchronous. Peers, from tests/bench/peers: PyTorch's DistributedDataParallel over gloo with two
processes (ddp), and after `./dev setup peers` the parameter servers of TensorFlow (tensorflow; with Adam on its dense path) and of Paddle
(paddle, which knows Adam and SGD for rows), each with two trainers and a server, asynchronous. What is absent is said.

OpenBLAS, on which Debian's PyTorch computes, gets the fastest kernels that it has for this machine, which are measured first. The rounds
are interleaved, so that other load meets all; the load average is printed with each. Prints medians, and the median of the ratios of a
round, also by the processor time of all processes (of DistributedDataParallel: of one of the two). Exit status: 0 if all bars of issue 47
are reached by what was measured.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA, CACHE = "build/bench/criteo.csv", "build/bench/criteo.npz"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LAYOUTS = {"inside": "--rows-in-trainers", "server": "--servers 1"}
PEERS = "tests/bench/peers"
DDP = f"/usr/bin/python3 {PEERS}/torch_ctrdnn.py"
FRAMEWORKS = {"tensorflow": f"build/wheels-peers/tensorflow/bin/python3 {PEERS}/tensorflow_ps.py",
              "paddle": f"build/wheels-peers/paddle/bin/python3 {PEERS}/paddle_ps.py"}
# case: set, batch of a trainer, optimizer, and the bar of each peer: how many times as fast the layout of the planner must be
CASES = {
    "512": ("criteo", 512, "adagrad", {"ddp": 1.6, "tensorflow": 1.6}),
    "1000": ("criteo", 1000, "adagrad", {"ddp": 1.45}),
    "adam": ("criteo", 512, "adam", {"tensorflow": 14.5, "paddle": 1.8}),
    "figure12": ("ctrdnn1", 512, "adagrad", {"tensorflow": None}),
}


def execute(command, environment=None):
    tests = {"MEDLEY_SOURCE_DIR": ROOT, "MEDLEY_BIN_DIR": os.path.join(ROOT, "build/bin")}
    done = subprocess.run(command.split(), cwd=ROOT, env={**os.environ, **ONE_THREAD, **tests, **(environment or {})}, capture_output=True,
                          text=True, timeout=900, check=False)
    if done.returncode != 0:
        tail = " | ".join((done.stdout + done.stderr).strip().splitlines()[-4:])
        sys.exit(f"train: {command}: exit status {done.returncode}: {tail}")
    return done.stdout


def ours(layout, case, seconds):
    shape, batch, optimizer, _ = CASES[case]
    found = json.loads(execute(f"build/bin/job_bench --set {shape} --data {os.path.join(ROOT, DATA)} --trainers 2 {LAYOUTS[layout]} "
                               f"--batch {batch} --optimizer {optimizer} --seconds {seconds}"))
    return found["samples_per_second"], 1 / found["processor_seconds_per_sample"]


def ddp(case, seconds, core):
    shape, batch, _, _ = CASES[case]
    text = execute(f"{DDP} --set {shape} --data {DATA} --cache {CACHE} --processes 2 --batch {batch} --seconds {seconds}",
                   {} if core is None else {"OPENBLAS_CORETYPE": core})
    return tuple(map(float, re.search(r"(\d+) samples/s wall, (\d+) samples per CPU second", text).groups()))


def parameter_servers(peer, case, seconds):
    shape, batch, optimizer, _ = CASES[case]
    optimizer = f" --optimizer {optimizer}" if peer == "tensorflow" else ""
    found = json.loads(execute(f"{FRAMEWORKS[peer]} --set {shape} --data {DATA} --cache {CACHE} --batch {batch} --seconds {seconds}"
                               f"{optimizer}").strip().splitlines()[-1])
    return found["samples_per_second"], 1 / found["processor_seconds_per_sample"]


def best_core_type(seconds):
    """OpenBLAS uses its oldest kernels on a processor that it does not know."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = file.read()
    candidates = [None] + (["SkylakeX"] if "avx512f" in flags else []) + (["Haswell"] if "avx2" in flags else [])
    rates = {each: ddp("512", seconds, each)[1] for each in candidates}
    best = max(rates, key=rates.get)
    print("OpenBLAS: " + ", ".join(f"{each or 'its own choice'} {rate:,.0f}" for each, rate in rates.items()) +
          f" samples in a second of processor time: {best or 'its own choice'}", flush=True)
    return best


def ratio(ours_by_round, peer_by_round):
    ratios = [a / b for a, b in zip(ours_by_round, peer_by_round)]
    return statistics.median(ratios), min(ratios), max(ratios)


def report(case, layouts, measured):
    """Prints the medians; returns whether all bars are reached. `measured`: by contender, (samples/s, samples in a second of processor
    time) of each round."""
    reached = True
    bars = CASES[case][3]
    rates, processor = ({name: [each[i] for each in rounds] for name, rounds in measured.items()} for i in range(2))
    print(f"{case}: " + ", ".join(f"{name} {statistics.median(each):,.0f}" for name, each in rates.items()) + " samples/s in the median")
    for layout in layouts:
        for peer in (name for name in rates if name not in LAYOUTS):
            median, least, most = ratio(rates[layout], rates[peer])
            bar = bars[peer] if layout == "inside" else None
            reached = reached and (bar is None or median >= bar)
            print(f"{case}, {layout} against {peer}: {median:.2f} times, {least:.2f} to {most:.2f}; by processor time "
                  f"{ratio(processor[layout], processor[peer])[0]:.2f}" +
                  (f"; the bar is {bar}: {'reached' if median >= bar else 'missed'}" if bar is not None else ""), flush=True)
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--layouts", default="inside,server")
    options = parser.parse_args()
    layouts = options.layouts.split(",")
    if not os.path.exists(os.path.join(ROOT, DATA)):
        execute(f"/usr/bin/python3 tests/bench/generate_criteo.py {DATA}")
    installed = {name for name, command in FRAMEWORKS.items() if os.path.exists(os.path.join(ROOT, command.split()[0]))}
    for name in sorted(set(FRAMEWORKS) - installed):
        print(f"{name} is not installed, so it is not compared: ./dev setup peers")
    core = best_core_type(max(2, options.seconds // 2))
    reached = True
    for case in options.cases.split(","):
        peers = [name for name in CASES[case][3] if name == "ddp" or name in installed]
        measured = {name: [] for name in (*peers, *layouts)}
        for _ in range(options.rounds):
            for peer in peers:
                measured[peer].append(ddp(case, options.seconds, core) if peer == "ddp" else
                                      parameter_servers(peer, case, options.seconds))
            for layout in layouts:
                measured[layout].append(ours(layout, case, options.seconds))
            print(f"{case}, load {os.getloadavg()[0]:.1f}: " + ", ".join(f"{name} {each[-1][0]:,.0f}" for name, each in measured.items()) +
                  " samples/s", flush=True)
        reached = report(case, layouts, measured) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
