#!/usr/bin/python3
"""What plans promise, and what they reach: jobs that the operator plans from profiles alone, run for real by `medley run`.

  tests/bench/prediction.py [--seconds 25] [--case NAME]... [--rounds 1] [--kept-profiles] [--threads] [--out build/prediction.json]

12 jobs: three models, with and without parameter servers, 4 and 16 micro-batches, pools of one to three units of a fifth to a
third of a core each. Each asks for nearly all that its pools reach, so that plans have one to three stages of one to four
units. A profiler measures each pool; the operator plans; after a warm-up the samples of --seconds are counted. The figure
that a plan promises is its simulatedThroughput; the closed form's throughput is shown beside it.

A virtual machine is faster or slower from minute to minute, whatever runs on it. So build/bin/machine_speed works beside each job,
with a tenth of a core. The error at equal speed is that of the promise times the speed during the measurement over that while
profiles were measured; the bars are for it. The error as measured is printed too.

Nothing else should run. Where the busiest unit of a pipeline used less than about 95 % of its quota, other work took it; the load
of one minute is shown too. Needs `./dev programs` (medley, medley-operator, medley-scheduler, medley-worker) and writable cgroups. About 75 s a job
with its profiles, 14 minutes in all. Exit status: 0 if the median error is at most 5 % and the largest at most 10 %.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import machine_speed
import processors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEDIAN, WORST = 0.05, 0.10
NUMERIC = {"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]}
CATEGORICAL = {**NUMERIC, "categorical": [1, 3, 5, 6, 7, 8, 9, 13], "numericBuckets": 32}
MODELS = {
    "ctrdnn": ({"name": "ctrdnn", "parameters": {"embeddingDim": 32, "embeddingRows": 65536, "hidden": [320, 320, 320]}},
               CATEGORICAL, 1024),
    "mlp": ({"name": "mlp", "parameters": {"hidden": [512, 512, 512]}}, NUMERIC, 512),
    "residual": ({"name": "residual", "parameters": {"hidden": [384, 384, 384, 384]}}, NUMERIC, 512),
}
CORES = {"a": "250m", "b": "200m", "c": "300m", "ps": "200m"}
USD = {"a": "0.25", "b": "0.20", "c": "0.32", "ps": "0.01"}
# Name: model, units by pool, micro-batches, percent of what the pools reach. Models with tables have servers on pool ps.
CASES = {
    "ctrdnn-1": ("ctrdnn", {"a": 1}, 4, 80),
    "ctrdnn-2": ("ctrdnn", {"a": 2}, 4, 90),
    "ctrdnn-ab": ("ctrdnn", {"a": 1, "b": 1}, 4, 95),
    "ctrdnn-ab16": ("ctrdnn", {"a": 1, "b": 1}, 16, 95),
    "ctrdnn-abc16": ("ctrdnn", {"a": 1, "b": 1, "c": 1}, 16, 95),
    "mlp-1": ("mlp", {"a": 1}, 4, 80),
    "mlp-2x16": ("mlp", {"a": 2}, 16, 90),
    "mlp-ab": ("mlp", {"a": 1, "b": 1}, 4, 95),
    "mlp-abc16": ("mlp", {"a": 1, "b": 1, "c": 1}, 16, 95),
    "residual-3": ("residual", {"a": 3}, 4, 90),
    "residual-ab16": ("residual", {"a": 1, "b": 2}, 16, 95),
    "residual-aabb": ("residual", {"a": 2, "b": 2}, 4, 95),
}


def say(text):
    print(f"prediction: {text}", file=sys.stderr, flush=True)


def manifest(case):
    model, units, micros, percent = CASES[case]
    spec, schema, batch = MODELS[model]
    tables = schema is CATEGORICAL
    documents = []
    for pool, limit in {**units, **({"ps": 1} if tables else {})}.items():
        documents.append({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": pool},
                          "spec": {"class": "CPU", "unit": {"resources": {"cpu": CORES[pool], "memory": "1Gi"}},
                                   "nodeSelector": {"medley.dev/machine": pool}, "limit": limit,
                                   "price": {"usdPerUnitHour": USD[pool]}}})
        documents[-1]["metadata"]["annotations"] = {"run.medley.dev/simulate": "true"}
    resources = {"pools": list(units)}
    if tables:
        resources = {"pools": [*units, "ps"], "serverPool": "ps"}
    documents.append({
        "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": "bench", "annotations": {"run.medley.dev/scenario": "scenario.yaml"}},
        "spec": {"model": spec,
                 "data": {"train": {"uri": "file:///data/adult.train.csv", "format": "csv"}, "schema": schema,
                          "volume": {"hostPath": {"path": os.path.join(ROOT, "examples/data")}, "mountPath": "/data"}},
                 "training": {"epochs": 100000, "batchSize": batch, "microBatches": micros, "seed": 1,
                              "optimizer": {"name": "adagrad", "learningRate": 0.005}},
                 "objective": {"minThroughput": 1000}, "planner": {"name": "exact", "timeBudget": "2s"},
                 "resources": resources,
                 "elasticity": {"minUnits": 1, "maxUnits": sum(units.values()), "replan": {"onPriceChange": False}}}})
    return "\n---\n".join(json.dumps(document) for document in documents), f"goalPercent: {percent}\n"


def cores_of(pool):
    return int(CORES[pool].removesuffix("m")) / 1000


def plan_of(address):
    """The job's plan, from the status that the page of the run shows."""
    with urllib.request.urlopen(address + "api/jobs/default/bench", timeout=5) as answer:
        return json.load(answer)["status"].get("plan", {})


class Run:
    """One `medley run`, whose samples are counted for a while. `texts`: its manifest and scenario, if not those of CASES."""

    def __init__(self, case, options, texts=None):
        self.folder = os.path.join(ROOT, "build/prediction", case)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        job, scenario = texts or manifest(case)
        for name, text in (("job.yaml", job), ("scenario.yaml", scenario)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        command = [os.path.join(options.programs, "medley"), "run", "job.yaml", "-o", "json", "--plain",
                   "--folder", os.path.join(self.folder, "run"), "--export", os.path.join(self.folder, "model"),
                   "--timeout", "240"]
        if not options.kept_profiles:
            command.append("--measure")
        cache = os.path.join(ROOT, "build/prediction/cache")
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True,
            env={**os.environ, "MEDLEY_CACHE": cache, "MEDLEY_SHARE_MEMORY": "0", "OMP_NUM_THREADS": "1"})
        self.seconds = options.seconds
        self.speed = machine_speed.Speed(os.path.join(options.programs, "machine_speed"))
        self.began = time.monotonic()

    def measure(self):
        """{"promised", "closedForm", "measured", "stages", ...}, or an exception that says what is missing."""
        address, plan, points, before, text = "", None, [], None, []
        watchdog = threading.Timer(260, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                text.append(line)
                event = json.loads(line)
                if event["event"] == "address" and "page" in event["name"]:
                    address = re.match(r"https?://[^/]+/[^/#]+/", event["address"]).group(0)
                if event["event"] == "result":
                    raise RuntimeError(f"the run ended: {event.get('error') or event}")
                if event["event"] != "progress" or not event["samples"]:
                    continue
                now = time.monotonic()
                if plan is None:
                    plan = plan_of(address)
                    started = now
                if now - started < 6:  # the first steps are slower
                    continue
                if before is None:
                    before = processors.processor_seconds(self.process.pid)
                    measuring = now
                if not points or event["samples"] > points[-1][1]:
                    points.append((event["seconds"], event["samples"]))
                if points[-1][0] - points[0][0] < self.seconds:
                    continue
                after = processors.processor_seconds(self.process.pid)
                latest = plan_of(address)
                if latest.get("generation") != plan.get("generation"):
                    raise RuntimeError("the plan changed during the measurement")
                row = self.outcome(plan, points, before, after)
                # Over 1: the machine is faster than it was while profiles were measured.
                row["faster"] = self.speed.seconds(self.began, started) / self.speed.seconds(measuring, time.monotonic())
                return row
            raise RuntimeError("the run printed no result: " + "".join(text[-3:]))
        finally:
            watchdog.cancel()
            self.stop()

    def outcome(self, plan, points, before, after, cores=cores_of):
        wall = points[-1][0] - points[0][0]
        members = {name: value / wall for name, value in processors.between(before, after, lambda thread: thread[0]).items()}
        measured = (points[-1][1] - points[0][1]) / wall
        threads = {}
        for (member, name), value in processors.between(before, after, lambda thread: (thread[0], thread[3])).items():
            if member != "other" and value / wall > 1e-4:
                threads.setdefault(member, {})[name] = value / wall / measured
        # A member is named after its job, role or stage, pool and number.
        used = [value / cores(name.split("-")[2]) for name, value in members.items() if re.match(r"bench-\d+-", name)]
        return {"promised": plan.get("simulatedThroughput", plan["throughput"]), "closedForm": plan["throughput"],
                "measured": measured, "load": os.getloadavg()[0],
                "stages": [f"{s['layers']}@{s['pool']}x{s['units']}" for s in plan["stages"]],
                "servers": plan.get("servers", 0), "mostOfAQuota": max(used, default=0),
                "coresOfMembers": {name: round(value, 3) for name, value in members.items() if name != "other"},
                "processorSecondsOfASample": threads}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        self.speed.close()
        self.log.close()


def error_of(row, figure="promised"):
    """At equal speed."""
    return row["measured"] / row[figure] / row["faster"] - 1


def raw_error_of(row):
    return row["measured"] / row["promised"] - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=25, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=1, help="of each job; the median counts")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="all unless given")
    parser.add_argument("--kept-profiles", action="store_true",
                        help="use profiles that an earlier run has measured; the speed of the machine then is unknown")
    parser.add_argument("--threads", action="store_true", help="print what each thread takes of the processor")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build/bin"), help="folder of medley and what it starts")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/prediction.json"))
    options = parser.parse_args()
    rows, failed = [], []
    for case in options.case or CASES:
        runs = []
        for _ in range(options.rounds):
            try:
                runs.append(Run(case, options).measure())
            except (RuntimeError, OSError, KeyError, ValueError) as failure:
                say(f"{case}: {failure}")
        if not runs:
            failed.append(case)
            continue
        row = sorted(runs, key=error_of)[len(runs) // 2]
        row = {"case": case, "microBatches": CASES[case][2], **row}
        rows.append(row)
        say(f"{case:14} {len(row['stages'])} stages, {row['servers']} servers: promised {row['promised']:8.0f}, closed form "
            f"{row['closedForm']:8.0f}, measured {row['measured']:8.0f} ({100 * raw_error_of(row):+.1f} %, at equal speed "
            f"{100 * error_of(row):+.1f} %, closed form {100 * error_of(row, 'closedForm'):+.1f} %; machine {100 * row['faster'] - 100:+.1f} % faster), busiest unit at {100 * row['mostOfAQuota']:.0f} % of its quota, load {row['load']:.1f}; "
            f"{' '.join(row['stages'])}")
        say(f"  cores: {row['coresOfMembers']}")
        for member, names in sorted(row["processorSecondsOfASample"].items()) if options.threads else []:
            step = {name: 1e3 * MODELS[CASES[case][0]][2] * value for name, value in names.items()}
            say(f"  {member}: {sum(step.values()):.2f} ms a step: "
                f"{', '.join(f'{name} {value:.2f}' for name, value in sorted(step.items(), key=lambda item: -item[1]))}")
    if not rows:
        sys.exit("prediction: nothing was measured")
    errors = sorted(abs(error_of(row)) for row in rows)
    raw = sorted(abs(raw_error_of(row)) for row in rows)
    result = {"rows": rows, "failed": failed, "medianError": statistics.median(errors), "worstError": errors[-1],
              "rawMedianError": statistics.median(raw), "rawWorstError": raw[-1]}
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    reached = result["medianError"] <= MEDIAN and result["worstError"] <= WORST and not failed
    print(f"{len(rows)} plans, at equal speed: median error {100 * result['medianError']:.1f} % (bar {100 * MEDIAN:.0f} %), worst "
          f"{100 * result['worstError']:.1f} % (bar {100 * WORST:.0f} %), as measured {100 * statistics.median(raw):.1f} and {100 * raw[-1]:.1f} %, of the closed form "
          f"{100 * statistics.median(abs(error_of(row, 'closedForm')) for row in rows):.1f} % in the median"
          f"{'; failed: ' + ', '.join(failed) if failed else ''}")
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
