#!/usr/bin/env python3
"""Ten jobs that compete for four scarce pools on real nodes, while nodes, a pool, and the operator fail.

  run.py [--programs] [--keep] [--jobs N] [--epochs N] [--out FOLDER]

The jobs have three priorities. One is in a namespace in which a webhook injects sidecars. A fifth pool is broken. While the
jobs run, a node is drained, the operator's leader is killed, and a node dies whose Node object stays. All jobs must be
Complete, each sample of each epoch trained exactly once, no pool over its limit at any sampled moment (10 Hz), the bills
what was paid, and the pods deleted at the end.

--programs: two such jobs beside three of spec.program, whose images have nothing of Medley. The nodes that fail run units of
these. What the programs save must count each step once.

Prints a table. Exit status and environment: as scenario/run.py.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from datetime import datetime

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../scenario"]
import checks  # noqa: E402
import faults  # noqa: E402
import objects  # noqa: E402
import programs  # noqa: E402
import world  # noqa: E402
from job import NAMESPACE, Job  # noqa: E402
from kube import ApiError, Failure, eventually, require  # noqa: E402
from mesh import Mesh  # noqa: E402
from sampler import Sampler  # noqa: E402

# A dead node is noticed after 12 s instead of 50 s, and its pods are marked for deletion after 3 s more instead of 300 s.
os.environ["MEDLEY_CONTROLLER_MANAGER_ARGS"] = "--node-monitor-grace-period=12s --node-monitor-period=2s"
os.environ["MEDLEY_APISERVER_ARGS"] = ("--default-not-ready-toleration-seconds=3 "
                                       "--default-unreachable-toleration-seconds=3")
PATIENCE = 1200  # seconds for all jobs
PROGRESS = 20  # seconds between two lines about the jobs


class JobFailed(Exception):
    """A job is Failed: waiting any longer is of no use."""


def say(line):
    print(line, file=sys.stderr, flush=True)


def complete(all_jobs):
    for each in all_jobs:
        failed = each.condition("Failed")
        if failed["status"] == "True":
            raise JobFailed(f"{each.name} failed: {failed['message']}")
    return [j for j in all_jobs if j.is_true("Complete")]


def wait_for_all(all_jobs, start):
    said = [0.0]

    def all_complete():
        done = complete(all_jobs)
        if time.monotonic() - said[0] > PROGRESS:
            said[0] = time.monotonic()
            names = {phase: [j.name for j in all_jobs if j.status().get("phase") == phase] for phase in
                     sorted({j.status().get("phase", "") for j in all_jobs})}
            say(f"{said[0] - start:5.0f} s  {names}")
        return len(done) == len(all_jobs)
    eventually("all jobs are Complete", PATIENCE, all_complete, every=2)


def seconds_of(status):
    """From a job's start to its end, as text."""
    if "completionTime" not in status or "startTime" not in status:
        return "-"
    begin, end = (datetime.fromisoformat(status[key].replace("Z", "+00:00")) for key in ("startTime", "completionTime"))
    return f"{(end - begin).total_seconds():.0f}"


def samples_of(each):
    try:
        return sum(s["count"] for s in each.steps())
    except OSError:  # it has not started
        return 0


def table(all_jobs, sampler, mesh, done_to_them, seconds):
    print(f"{'job':<8}{'priority':<10}{'seconds':>8}{'samples':>9}{'switches':>10}{'recoveries':>12}{'restarts':>10}"
          f"{'lost':>6}{'useful':>8}  last plan")
    for each in all_jobs:
        job = each.get()
        status, priority = job.get("status", {}), job["spec"]["runPolicy"]["schedulingPolicy"]["priorityClass"]
        switches = status.get("rescales", [])
        print(f"{each.name:<8}{priority:<10}{seconds_of(status):>8}{samples_of(each):>9}{len(switches):>10}"
              f"{sum(1 for s in switches if s['recovery']):>12}{status.get('restarts', 0):>10}"
              f"{sum(s.get('lostSteps', 0) for s in switches):>6}{status.get('goodput', {}).get('share', 0):>8.0%}  "
              f"{status.get('plan', {}).get('summary', '-')}{' (sidecars)' if each.namespace == objects.MESH else ''}")
    print(f"\n{'pool':<8}{'limit':>8}{'most units':>12}{'samples over':>14}")
    for pool, limit in sampler.limits.items():
        print(f"{pool:<8}{limit:>8}{sampler.most.get(pool, 0):>12}{len(sampler.over.get(pool, [])):>14}")
    print(f"\n{sampler.samples} samples, {sampler.rate():.1f} a second, at most {sampler.longest:.2f} s apart, "
          f"{sampler.gaps} failed")
    for at, what in done_to_them:
        print(f"after {at:.0f} s: {what}")
    print(f"pods with injected sidecars: {json.dumps(mesh.injected)}")
    print(f"{sum(1 for j in all_jobs if j.is_true('Complete'))} of {len(all_jobs)} jobs Complete after {seconds:.0f} s", flush=True)


def prepare(with_programs):
    images = f"{world.ROOT}/build/cluster-images"
    archives = world.build_images(images) + (programs.build_images(images) if with_programs else [])
    kube = world.start_cluster()
    world.run(f"{world.KUBERNETES}/load", *archives)
    # Without --max-profilers: units are small enough for all pools to be measured at once.
    world.chart(kube, "install", objects.PRICES, "--create-namespace", "--set-json",
                'operator.extraArgs=["--goal-window=3600", "--status-interval=2"]')
    return kube


def disturb(kube, ring, start, done_to_them):
    """`ring`: the job of programs.py; None: it does not run."""
    say(f"{time.monotonic() - start:5.0f} s  {faults.broken_pool(kube)}")
    for name, fault in faults.faults((ring.name,), (ring.name, "rhythm")) if ring else faults.faults():
        if ring:
            ring.advances(20, 400)
        before = len(ring.status().get("rescales", [])) if ring else 0
        what = fault(kube)
        if ring and name == "drain":
            what += "; " + programs.loses_nothing(ring, before)
        done_to_them.append((time.monotonic() - start, f"{name}: {what}"))
        say(f"{time.monotonic() - start:5.0f} s  {done_to_them[-1][1]}")


def measure(arguments):
    kube = prepare(arguments.programs)
    checkpoints = objects.create_namespaces(kube)
    with Mesh(kube, f"{world.STATE}/mesh") as mesh:
        objects.create_pools(kube)
        start, done_to_them = time.monotonic(), []
        of_programs = programs.jobs() if arguments.programs else []
        documents = [objects.job(index, arguments.epochs) for index in range(arguments.jobs)] + of_programs
        objects.create_jobs(kube, documents)
        all_jobs = [Job(kube, d["metadata"]["name"], checkpoints, d["metadata"]["namespace"]) for d in documents]
        with Sampler(kube) as sampler:
            violations = []
            try:
                disturb(kube, next((j for j in all_jobs if j.name == "ring"), None), start, done_to_them)
                programs.let_end(checkpoints, [d["metadata"]["name"] for d in of_programs])
                wait_for_all(all_jobs, start)
            except (Failure, JobFailed) as error:
                violations.append(str(error))
            seconds = time.monotonic() - start
            violations += checks.violations(kube, all_jobs, arguments.epochs, checkpoints, sampler, mesh)
        table(all_jobs, sampler, mesh, done_to_them, seconds)
    require(not violations, "\n      ".join(violations))


def report(folder):
    os.makedirs(folder, exist_ok=True)
    kube = world.Kube(world.STATE, f"{world.CACHE}/bin")
    jobs = "medley.dev/job-name"
    for name, command in {
            "jobs.yaml": ["get", "mtj", "-A", "-o", "yaml"], "pools.yaml": ["get", "resourcepools", "-o", "yaml"],
            "pods.yaml": ["get", "pods", "-A", "-l", jobs, "-o", "yaml"], "nodes.txt": ["describe", "nodes"],
            "events.txt": ["get", "events", "-A", "--sort-by=.lastTimestamp"],
            "operator.log": ["-n", world.SYSTEM, "logs", "-l", "app.kubernetes.io/name=medley-operator", "--tail=5000",
                             "--prefix"],
            **{f"workers-{n}.log": ["-n", n, "logs", "-l", "app.kubernetes.io/name=medley-worker", "-c", "worker", "--tail=300",
                                    "--prefix", "--max-log-requests=100"] for n in (NAMESPACE, objects.MESH)}}.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            try:
                f.write(kube.kubectl(*command, check=False, timeout=60))
            except subprocess.TimeoutExpired as error:  # a dead node has no logs
                f.write(str(error))
    say(f"see {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    parser.add_argument("--programs", action="store_true", help="three programs beside two jobs")
    parser.add_argument("--jobs", type=int, help="10, or 2 beside programs")
    parser.add_argument("--epochs", type=int, help="4, or 16 beside programs")
    parser.add_argument("--out", default=f"{world.ROOT}/build/cluster-neighbours", help="folder for what explains a failure")
    arguments = parser.parse_args()
    arguments.jobs = arguments.jobs or (2 if arguments.programs else 10)
    arguments.epochs = arguments.epochs or (16 if arguments.programs else 4)
    wanted = os.environ.get("MEDLEY_CLUSTER_TEST", "")
    refused = "MEDLEY_CLUSTER_TEST is 0" if wanted == "0" else world.refused()
    why = refused or world.missing() or world.occupied(wanted == "1")
    if why:
        say(f"NOT RUN: jobs on scarce pools of real nodes: {why}")
        return 1 if wanted == "1" and not refused else 77
    try:
        measure(arguments)
        return 0
    except (Failure, ApiError, JobFailed, OSError) as error:
        say(f"FAIL  {error}")
        report(arguments.out)
        return 1
    finally:
        if not arguments.keep:
            world.stop_cluster()


sys.exit(main())
