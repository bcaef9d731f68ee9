#!/usr/bin/env python3
"""Checks that docs/operate/metrics.md lists the metrics of the sources, and that names follow Prometheus' conventions."""
import os
import re
import subprocess
import sys

import metric_names

ROOT = metric_names.ROOT
FOLDERS = ("common/", "operator/", "scheduler-service/", "worker/", "cli/", "reproductions/")
LITERAL = re.compile(r'"((?:medley|controller_runtime|workqueue|rest_client|process|leader_election)_[a-z0-9_]+)"')
KINDS = ("counter", "gauge", "histogram", "summary")
# Prometheus' base units are seconds, bytes and ratios, without prefixes. Machines are sold "per_hour".
NOT_BASE = re.compile(r"_(ms|us|ns|millis|milliseconds|microseconds|nanoseconds|minutes|hours|days|kb|mb|gb|kib|mib|gib|"
                      r"kilobytes|megabytes|percent|cents)(_|$)")
MANY = {"uid", "pod", "member", "generation", "step", "id", "time", "message"}  # labels with an unbounded number of values
WITH_JOB = re.compile(r"^medley_job_")


def in_sources():
    """{name: the first file that names it}."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    found = {}
    for path in sorted(listed.stdout.splitlines()):
        full = os.path.join(ROOT, path)
        if not path.startswith(FOLDERS) or not path.endswith((".cc", ".h")) or not os.path.exists(full):
            continue
        with open(full, encoding="utf-8") as file:
            for line in file:
                if line.lstrip().startswith("//"):
                    continue
                for name in LITERAL.findall(line):
                    found.setdefault(name, path)
    return found


def naming(metric):
    problems = []
    if metric.kind not in KINDS:
        problems.append(f"{metric.kind} is not a type of metric")
    if (metric.kind == "counter") != metric.name.endswith("_total"):
        problems.append("counters, and only counters, must end in _total")
    if NOT_BASE.search(metric.name):
        problems.append("the unit must be a base unit (seconds, bytes, ratio)")
    if re.search(r"_(bucket|sum|count|info_total)$", metric.name):
        problems.append("the name ends like a part of a histogram")
    if metric.name.endswith("_timestamp_seconds") and metric.kind != "gauge":
        problems.append("a timestamp must be a gauge")
    for label in metric.labels:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", label) or label in ("le", "quantile"):
            problems.append(f"label {label}")
        if label in MANY:
            problems.append(f"label {label} has an unbounded number of values")
    if {"namespace", "job"} & metric.labels and not WITH_JOB.match(metric.name):
        problems.append("only medley_job_* may have job labels, because its series end with the job")
    if not metric.tells.strip():
        problems.append("the description is empty")
    return problems


def main():
    problems = []
    try:
        documented = metric_names.documented()
    except ValueError as error:
        print(error)
        return 1
    sources = in_sources()
    for name, path in sources.items():
        if name not in documented:
            problems.append(f"{path}: {name} is not in docs/operate/metrics.md")
    for name, metric in documented.items():
        if name not in sources:
            problems.append(f"docs/operate/metrics.md: {name}: no source file defines it")
        problems += [f"docs/operate/metrics.md: {name}: {problem}" for problem in naming(metric)]
    for problem in problems:
        print(problem)
    print(f"check_metrics: {len(documented)} metrics, {len(problems)} problems")
    return 1 if problems or not documented else 0


if __name__ == "__main__":
    sys.exit(main())
