#!/usr/bin/env python3
"""Runs a job's whole life on real nodes: builds images, installs the chart, trains one job to its end and disturbs another.

  run.py [--keep] [--reuse] [--from STEP] [--until STEP] [--out FOLDER]

--keep leaves the cluster running; --reuse uses the cluster of an earlier run with --keep and installs nothing. --from and
--until choose the steps.
Exit status: 0 when every step passed; 1 when one failed, and then FOLDER has Events, objects and logs; 77 when this machine
does not allow nodes, when the cluster is not built, or when MEDLEY_CLUSTER_TEST is 0. With MEDLEY_CLUSTER_TEST=1 it runs on
a busy machine too, and a cluster that is not built is a failure. MEDLEY_TEST_PATIENCE multiplies the deadlines.
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import failures  # noqa: E402
import steps  # noqa: E402
import world  # noqa: E402
from job import NAMESPACE, Job  # noqa: E402
from kube import ApiError, Failure, Kube  # noqa: E402

STEPS = [steps.adult, steps.life, steps.price, steps.objective, steps.scale, steps.drain, steps.quota,
         failures.kill_trainer, failures.kill_server, failures.kill_coordinator, failures.kill_operator,
         failures.upgrade, failures.scheduler_down, failures.api_server_down, failures.suspend, failures.delete]


def say(line):
    print(line, flush=True)


def timed(name, work):
    start = time.monotonic()
    result = work()
    say(f"ok    {name:<18} {time.monotonic() - start:6.1f} s   {result if isinstance(result, str) else ''}")
    return result


def prepare(arguments):
    if arguments.reuse:
        return steps.World(Kube(world.STATE, f"{world.CACHE}/bin"), f"{world.STATE}/volumes/checkpoints")
    archives = timed("images", lambda: world.build_images(f"{world.ROOT}/build/cluster-images"))
    kube = timed("cluster", world.start_cluster)
    timed("load", lambda: world.run(f"{world.KUBERNETES}/load", *archives) and "loaded into every node")
    timed("install", lambda: world.install(kube, steps.PRICES))
    return steps.World(kube, world.make_volumes(kube))


def report(kube, folder):
    """Writes objects, Events and logs to the folder, to find out why a step or the installation failed."""
    os.makedirs(folder, exist_ok=True)
    commands = {
        "jobs.yaml": ["-n", NAMESPACE, "get", "mtj", "-o", "yaml"], "pods.txt": ["get", "pods", "-A", "-o", "wide"],
        "pods.yaml": ["-n", NAMESPACE, "get", "pods", "-o", "yaml"], "nodes.txt": ["describe", "nodes"],
        "events.txt": ["-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp"],
        "medley.txt": ["-n", world.SYSTEM, "describe", "pods"],
        "operator.log": ["-n", world.SYSTEM, "logs", "-l", "app.kubernetes.io/name=medley-operator", "--tail=2000"],
        "scheduler.log": ["-n", world.SYSTEM, "logs", "-l", "app.kubernetes.io/name=medley-scheduler", "--tail=500"],
        "workers.log": ["-n", NAMESPACE, "logs", "-l", "app.kubernetes.io/name=medley-worker", "--tail=300", "--prefix"]}
    for name, command in commands.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            try:
                f.write(kube.kubectl(*command, check=False, timeout=30))
            except OSError as error:
                f.write(str(error))
    say(f"      see {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [s.__name__ for s in STEPS]
    parser.add_argument("--check", action="store_true", help="only print why this machine cannot run it, if it cannot")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--from", dest="first", choices=names, default=names[0])
    parser.add_argument("--until", choices=names, default=names[-1])
    parser.add_argument("--out", default=f"{world.ROOT}/build/cluster-scenario")
    arguments = parser.parse_args()
    wanted = os.environ.get("MEDLEY_CLUSTER_TEST", "")
    refused = "MEDLEY_CLUSTER_TEST is 0" if wanted == "0" else world.refused()
    why = refused or world.missing() or world.occupied(wanted == "1")
    if why and not arguments.reuse:
        say(f"NOT RUN: the scenario on real nodes (a job's whole life): {why}")
        return 1 if wanted == "1" and not refused else 77
    if arguments.check:
        return 0
    code, w = 1, None
    try:
        w = prepare(arguments)
        chosen = STEPS[names.index(arguments.first):names.index(arguments.until) + 1]
        if arguments.reuse and arguments.first not in ("adult", "life"):
            w.life = Job(w.kube, "life", w.checkpoints)
        for step in chosen:
            name = step.__name__
            timed(name, lambda step=step: step(w))
        say(f"{len(chosen)} steps passed")
        code = 0
    except (Failure, ApiError, OSError) as error:
        say(f"FAIL  {name if w else 'preparation'}: {error}")
        if os.path.exists(f"{world.STATE}/kubeconfig"):
            report(Kube(world.STATE, f"{world.CACHE}/bin"), arguments.out)
    finally:
        if not arguments.keep:
            world.stop_cluster()
    return code


sys.exit(main())
