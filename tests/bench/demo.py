#!/usr/bin/python3
"""What the demo promises, and what it reaches: runs of examples/adult.yaml, generation by generation.

  tests/bench/demo.py [--runs 5] [--kept-profiles] [--threads] [--out build/demo.json]

Each run measures its profiles again (unless --kept-profiles), plans, moves when a price jumps, and loses a trainer, as `./dev demo` does.
The figures are those that it prints at its end: what the plan of a generation promises (by the simulator), and what was measured. A
generation that trains for less than 5 s is not printed, and does not count.

build/bin/machine_speed works beside, with a tenth of a core. The error at equal speed is that of the promise times the speed of the
machine during the generation over that until training began, in which profiles were measured. The bar is for it: 10 % in each
generation. --threads also prints what each thread of each member took of the processor in a step.

Nothing else should run. Needs `./dev bench demo`, or the programs of `./dev programs` and machine_speed. About 90 s a run. Exit status: 0
if every run has figures and the largest error is at most 10 %. Runs that end otherwise than their scenario expects are named.
"""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

import machine_speed
import processors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BAR = 0.10
NUMBER = r"([\d,]+) samples/s"
THROUGHPUT = re.compile(rf"^throughput +generation (\d+): {NUMBER} expected, ([\d,]+) measured")
SIMULATOR = re.compile(rf"^simulator +generation (\d+): {NUMBER} predicted, ([\d,]+) measured")
STAGE = re.compile(r"^\s+(\d+|servers)\s+([\d-]*)\s+([a-z-]+)\s+(\d+)\s+[\d,-]+$")
PLAN = re.compile(r"plan of generation (\d+) from planner")


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def number(text):
    return float(text.replace(",", ""))


def read_steps(folder):
    """[(generation, monotonic seconds of its commit, samples)] of steps.jsonl, wherever it is in the run's folder."""
    offset = time.monotonic() - time.time()
    steps = []
    for path in glob.glob(os.path.join(folder, "**", "steps.jsonl"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for line in file:
                step = json.loads(line)
                if "step" in step and "unix_seconds" in step:
                    steps.append((step["generation"], step["unix_seconds"] + offset, step["count"]))
    return sorted(steps, key=lambda step: step[1])


class Sampler:
    """Processor time of all threads, each half second, until it is closed."""

    def __init__(self, pid):
        self.samples, self.over = [], threading.Event()
        self.thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)
        self.thread.start()

    def _sample(self, pid):
        while not self.over.wait(0.5):
            self.samples.append((time.monotonic(), processors.processor_seconds(pid)))

    def between(self, begin, end, steps):
        """{member: {name of a thread: milliseconds a step}} of the time between two moments in which `steps` were committed."""
        inside = [sample for sample in self.samples if begin <= sample[0] <= end]
        if len(inside) < 2 or steps <= 0:
            return {}
        part = (inside[-1][0] - inside[0][0]) / (end - begin)
        taken = {}
        for (member, name), seconds in processors.between(inside[0][1], inside[-1][1], lambda thread: (thread[0], thread[3])).items():
            milliseconds = 1e3 * seconds / steps / part
            if member != "other" and milliseconds >= 0.01:
                taken.setdefault(member, {})[name] = round(milliseconds, 3)
        return taken

    def close(self):
        self.over.set()
        self.thread.join()


def plans_of(lines):
    """{generation: ["0-1@new-spot x 1", ...]} as the run prints them."""
    plans, generation = {}, 0
    for line in lines:
        if found := PLAN.search(line):
            generation = int(found.group(1))
        elif (found := STAGE.match(line)) and generation:
            what, layers, pool, units = found.groups()
            plans.setdefault(generation, []).append(f"{what if what == 'servers' else layers}@{pool}x{units}")
    return plans


def run(options, index):
    """The rows of one run, one a generation, and its exit status."""
    folder = os.path.join(ROOT, "build/demo-bench", str(index))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [os.path.join(options.programs, "medley"), "run", os.path.join(ROOT, "examples/adult.yaml"), "--plain",
               "--folder", os.path.join(folder, "run"), "--export", os.path.join(folder, "model"), "--timeout", str(options.timeout)]
    if not options.kept_profiles:
        command.append("--measure")
    speed = machine_speed.Speed(os.path.join(options.programs, "machine_speed"))
    began, load = time.monotonic(), os.getloadavg()[0]
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                              env={**os.environ, "MEDLEY_CACHE": os.path.join(ROOT, "build/demo-bench/cache")}) as process:
            sampler = Sampler(process.pid) if options.threads else None
            status = process.wait()
        log.seek(0)
        lines = log.read().splitlines()
    if sampler:
        sampler.close()
    printed, plans = {}, plans_of(lines)
    for line in lines:  # the simulator's line follows the closed form's, and counts
        if found := THROUGHPUT.match(line) or SIMULATOR.match(line):
            printed[int(found.group(1))] = (number(found.group(2)), number(found.group(3)))
    steps, rows = read_steps(os.path.join(folder, "run")), []
    try:
        for generation, (promised, measured) in sorted(printed.items()):
            own = [step for step in steps if step[0] == generation]
            if len(own) < 3:
                raise RuntimeError(f"steps.jsonl has {len(own)} steps of generation {generation}")
            begin, end = own[0][1], own[-1][1]
            rows.append({"run": index, "generation": generation, "promised": promised, "measured": measured,
                         "bySteps": sum(step[2] for step in own[1:]) / (end - begin), "seconds": end - begin, "steps": len(own) - 1,
                         # Over 1: the machine is faster than it was until training began.
                         "faster": speed.seconds(began, steps[0][1]) / speed.seconds(begin, end),
                         "stages": plans.get(max((g for g in plans if g <= generation), default=0), []), "load": load,
                         "threads": sampler.between(begin, end, len(own) - 1) if sampler else {}})
    finally:
        speed.close()
    return rows, status


def error_of(row):
    """At equal speed."""
    return row["measured"] / row["promised"] / row["faster"] - 1


def raw_error_of(row):
    return row["measured"] / row["promised"] - 1


def show(row):
    print(f"{row['run']:3} {row['generation']:10} {row['promised']:9,.0f} {row['measured']:9,.0f} {100 * raw_error_of(row):+6.1f} % "
          f"{100 * row['faster'] - 100:+6.1f} % {row['measured'] / row['faster']:13,.0f} {100 * error_of(row):+6.1f} % "
          f"{row['seconds']:7.1f}  {' '.join(row['stages'])}", flush=True)
    for member, names in sorted(row["threads"].items()):
        print(f"      {member}: {sum(names.values()):.2f} ms a step: "
              f"{', '.join(f'{name} {value:.2f}' for name, value in sorted(names.items(), key=lambda item: -item[1]))}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kept-profiles", action="store_true", help="use profiles that an earlier run of this bench has measured")
    parser.add_argument("--timeout", type=int, default=240, help="seconds of a run")
    parser.add_argument("--threads", action="store_true", help="print what each thread takes of the processor")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build/bin"), help="folder of medley and what it starts")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/demo.json"))
    options = parser.parse_args()
    rows, failed = [], []
    print("run generation  promised  measured    error   machine  at equal speed    error seconds  plan", flush=True)
    for index in range(1, options.runs + 1):
        try:
            found, status = run(options, index)
        except (RuntimeError, OSError, ValueError, KeyError) as failure:
            say(f"run {index}: {failure}")
            failed.append(index)
            continue
        if not found:
            failed.append(index)
        if status != 0 or not found:
            say(f"run {index} ended with status {status} and {len(found)} generations: build/demo-bench/{index}/log")
        for row in found:
            show(row)
        rows += found
    if not rows:
        sys.exit("demo: nothing was measured")
    errors, raw = ([abs(error(row)) for row in rows] for error in (error_of, raw_error_of))
    result = {"rows": rows, "failed": failed, "medianError": statistics.median(errors), "worstError": max(errors),
              "rawMedianError": statistics.median(raw), "rawWorstError": max(raw)}
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(f"{len(rows)} generations of {options.runs} runs, at equal speed: median error {100 * result['medianError']:.1f} %, worst "
          f"{100 * result['worstError']:.1f} % (bar {100 * BAR:.0f} %), as measured {100 * result['rawMedianError']:.1f} and "
          f"{100 * result['rawWorstError']:.1f} %{'; failed: ' + ', '.join(map(str, failed)) if failed else ''}")
    sys.exit(0 if result["worstError"] <= BAR and not failed else 1)


if __name__ == "__main__":
    main()
