#!/usr/bin/python3
"""What plans of a program promise after profiling, and what they reach: the DDP example on 2 pools x 3 numbers of units, run for
real by `medley run`.

  tests/bench/programs.py [--seconds 20] [--case east-2]... [--naive] [--out build/programs.json]

A profiler runs the program on one unit of a pool, and the processes of so many units on it as the plan will have of that pool (ADR 107);
after a warm-up the samples of --seconds are counted. --naive: only on one unit, so that k units are taken to be k times as fast.
Other work on the machine changes the times of both, but hardly the processor time that a step takes of a unit. It is shown too, as the
profiler has counted it and as the ranks used it.

Nothing else should run: units are parts of the cores of this machine. Needs `./dev programs`, PyTorch and writable cgroups. About a
minute and a half a case. Exit status: 0 if each error is at most 10 %.
"""
import argparse
import glob
import json
import os
import sys

import prediction

WORST = 0.10
BATCH = 256
POOLS = {"east": ("250m", "0.10"), "west": ("150m", "0.05")}
SIZES = (1, 2, 4)
CASES = {f"{pool}-{units}": (pool, units) for pool in POOLS for units in SIZES}


def texts(case, naive):
    pool, units = CASES[case]
    cores, usd = POOLS[pool]
    script = os.path.join(prediction.ROOT, "examples/programs/ddp-mnist/train.py")
    steps = 1000000
    documents = [
        {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
         "metadata": {"name": pool, "annotations": {"run.medley.dev/simulate": "true"}},
         "spec": {"class": "CPU", "unit": {"resources": {"cpu": cores, "memory": "3Gi"}},
                  "nodeSelector": {"medley.dev/machine": pool}, "limit": units, "price": {"usdPerUnitHour": usd}}},
        {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
         "metadata": {"name": "bench", "annotations": {"run.medley.dev/scenario": "scenario.yaml"}},
         "spec": {"program": {"command": ["/usr/bin/python3", script, "--data", os.path.join(prediction.ROOT, "examples/lenet"),
                                          "--checkpoints", "/checkpoints/ddp", "--steps", str(steps)],
                              "samplesPerStep": BATCH, "steps": steps,
                              "progress": {"log": r"step (?P<step>\d+) loss (?P<loss>[\d.]+)"},
                              "checkpoint": {"signal": "SIGUSR1", "deadline": "20s", "done": {"file": "/checkpoints/ddp/latest.pt"}},
                              "scaling": {"units": [units], "measure": not naive}},
                  "checkpoint": {"interval": "1h"}, "objective": {"minimize": "Usd"}, "resources": {"pools": [pool]},
                  "elasticity": {"minUnits": units, "maxUnits": units, "replan": {"onPriceChange": False}}}}]
    return "\n---\n".join(json.dumps(document) for document in documents), "steps: []\n"


def counted(case, units):
    """Processor seconds that a step takes of each unit, by the profiler; None: it has not measured so many units."""
    for path in glob.glob(os.path.join(prediction.ROOT, "build/prediction/program-" + case, "run/node/pods/*-profile-*/logs/worker/*.log")):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [json.loads(line.split(" ", 1)[1]) for line in file if '"processor_seconds"' in line]
        for line in lines:
            if int(line.get("units", "1")) == units:
                return float(line["processor_seconds"]) / units
    return None


def is_rank(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return "ddp-mnist/train.py" in file.read()
    except OSError:
        return False


class Run(prediction.Run):
    def outcome(self, plan, points, before, after, cores=lambda pool: int(POOLS[pool][0].removesuffix("m")) / 1000):
        ranks = {key for key in before if key in after and is_rank(key[1])}
        seconds = sum(after[key] - before[key] for key in ranks)
        steps = (points[-1][1] - points[0][1]) / BATCH
        return {"used": seconds / steps / max(1, len({key[1] for key in ranks})), **super().outcome(plan, points, before, after, cores)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="all unless given")
    parser.add_argument("--naive", action="store_true", help="measure one unit only")
    parser.add_argument("--programs", default=os.path.join(prediction.ROOT, "build/bin"), help="folder of medley and what it starts")
    parser.add_argument("--out", default=os.path.join(prediction.ROOT, "build/programs.json"))
    parser.set_defaults(kept_profiles=False)
    options = parser.parse_args()
    rows, failed = [], []
    for case in options.case or CASES:
        try:
            row = Run("program-" + case, options, texts(case, options.naive)).measure()
        except (RuntimeError, OSError, KeyError, ValueError) as failure:
            print(f"programs: {case}: {failure}", file=sys.stderr, flush=True)
            failed.append(case)
            continue
        pool, units = CASES[case]
        rows.append({"pool": pool, "units": units, **{name: row[name] for name in ("promised", "measured", "load")}})
        rows[-1].update(used=row["used"], counted=counted(case, units))
        words = "the profiler has left it out" if rows[-1]["counted"] is None else f"{1000 * rows[-1]['counted']:.1f} ms counted"
        print(f"{pool} x {units}: promised {row['promised']:7.0f} samples/s, measured {row['measured']:7.0f} "
              f"({100 * prediction.error_of(row):+.1f} %), load {row['load']:.1f}; processor time a step and unit: {words}, "
              f"{1000 * row['used']:.1f} ms used", flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    worst = max((abs(prediction.error_of(row)) for row in rows), default=1)
    print(f"largest error {100 * worst:.1f} % of {len(rows)} cases (bar: {100 * WORST:.0f} %)")
    return 1 if failed or worst > WORST else 0


if __name__ == "__main__":
    sys.exit(main())
