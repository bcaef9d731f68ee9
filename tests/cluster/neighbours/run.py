#!/usr/bin/env python3
"""Ten jobs that compete for four scarce pools on real nodes, while nodes, a pool, and the operator fail.

  run.py [--keep] [--jobs N] [--epochs N] [--out FOLDER]

The jobs have three priorities. A fifth pool is broken. While the jobs run, a node is drained, the operator's leader is killed, and a node dies whose Node object stays. All jobs must be Complete,
each sample of each epoch trained exactly once, and no pool over its limit at any sampled moment (10 Hz).

Prints one line of JSON. Exit status and environment: as scenario/run.py.
"""
import argparse
import json
import os
import signal
import sys
import time

import yaml

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../scenario"]
import failures  # noqa: E402
import world  # noqa: E402
from job import NAMESPACE, Job  # noqa: E402
from kube import CORE, MEDLEY, ApiError, Failure, eventually, require  # noqa: E402
from sampler import Sampler  # noqa: E402

PRIORITIES = {"low": 10, "middle": 100, "high": 1000}
DRAINED, DEAD = "node4", "node3"  # of the types new-reserved and new-spot
PATIENCE = 2400  # seconds for all jobs


def say(line):
    print(line, file=sys.stderr, flush=True)


def example():
    with open(f"{world.ROOT}/examples/cluster/adult.yaml", encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def pool(name, machines, limit, cpu, memory="1Gi"):
    kind = {"old": ("old-1", "west", "spot"), "new-spot": ("new-1", "west", "spot"),
            "new-reserved": ("new-1", "east", "reserved")}[machines]
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": name},
            "spec": {"class": "CPU", "unit": {"resources": {"cpu": cpu, "memory": memory}}, "limit": limit,
                     "nodeSelector": {"medley.dev/resource-type": machines},
                     "price": {"offering": {"provider": "example", "region": kind[1], "instanceType": kind[0],
                                            "capacityType": kind[2]}}}}


POOLS = [pool("a", "old", 2, "300m"), pool("b", "new-spot", 3, "300m"), pool("c", "new-reserved", 2, "300m"),
         pool("d", "new-spot", 1, "200m"),
         pool("broken", "new-spot", 4, "100m", memory="16Mi")]  # its profiler runs out of memory


def job(index, epochs):
    document = next(d for d in example() if d["kind"] == "TrainingJob")
    document["metadata"] = {"name": f"n-{index}", "namespace": NAMESPACE}
    spec = document["spec"]
    spec["training"]["epochs"] = epochs
    spec["profiling"] = {"wait": "20s"}  # the broken pool takes longer
    spec["objective"] = {"minThroughput": 100, "maxUsdPerHour": "100"}
    spec["elasticity"] = {"minUnits": 1 + index % 2, "maxUnits": 2, "replan": {"minSaving": "10%", "cooldown": "5s"}}
    spec["resources"] = {}
    spec["runPolicy"] = {"backoffLimit": 3, "cleanPodPolicy": "All",
                         "schedulingPolicy": {"priorityClass": list(PRIORITIES)[index % 3]}}
    # Coordinators run beside Medley's own pods; the pools place the other members.
    spec["template"] = {"spec": {"nodeSelector": {"medley.dev/resource-type": "old"}}}
    return document


def create(kube, jobs, epochs):
    classes = [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
                "preemptionPolicy": "Never"} for name, value in PRIORITIES.items()]
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(classes + POOLS))
    for index in range(jobs):
        kube.call("POST", f"{MEDLEY}/namespaces/{NAMESPACE}/trainingjobs", job(index, epochs))


def running(all_jobs):
    return [j for j in all_jobs if j.is_true("Running")]


def complete(all_jobs):
    for each in all_jobs:
        failed = each.condition("Failed")
        if failed["status"] == "True":
            raise SystemExit(f"{each.name} failed: {failed['message']}")
    return [j for j in all_jobs if j.is_true("Complete")]


def drain(kube):
    kube.kubectl("cordon", DRAINED)
    kube.kubectl("drain", DRAINED, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=150s", timeout=200)
    kube.kubectl("uncordon", DRAINED)


def kill_leader(kube):
    operators = kube.items(f"{CORE}/namespaces/{world.SYSTEM}/pods", labelSelector="app.kubernetes.io/name=medley-operator")
    holder = kube.get(failures.LEASE)["spec"]["holderIdentity"]
    leader = next(p for p in operators if p["metadata"]["name"] in holder)
    os.kill(failures.process_of(leader["metadata"]["name"]), signal.SIGKILL)


def kill_node(kube):
    """Kills all processes of a node. Its Node object, and the objects of its pods, stay."""
    with open(f"{world.STATE}/pids/{DEAD}", encoding="utf-8") as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)
    eventually(f"{DEAD} is not ready", 180, lambda: any(
        c["type"] == "Ready" and c["status"] != "True" for c in kube.get(f"{CORE}/nodes/{DEAD}")["status"]["conditions"]))


def disturb(kube, all_jobs):
    """Each of the failures, when at least one job is running."""
    steps = [("drain", drain), ("kill the leader", kill_leader), ("kill a node", kill_node)]
    for name, step in steps:
        eventually("jobs are running", 900, lambda: running(all_jobs) or len(complete(all_jobs)) == len(all_jobs), every=1)
        say(f"{name}; running: {', '.join(j.name for j in running(all_jobs))}; complete: {len(complete(all_jobs))}")
        step(kube)


def trained_once(each, epochs, samples):
    """Every sample of every epoch, the last one included."""
    finished = each.trained_once(samples)
    last = [s for s in each.steps() if s["data_epoch"] == each.steps()[-1]["data_epoch"]]
    require(finished == epochs - 1, f"{each.name}: {finished} epochs before the last, not {epochs - 1}")
    require(sum(s["count"] for s in last) == samples, f"{each.name}: the last epoch has not {samples} samples")


def measure(arguments):
    kube = world.start_cluster()
    world.run(f"{world.KUBERNETES}/load", *world.build_images(f"{world.ROOT}/build/cluster-images"))
    world.install(kube, {("old-1", "spot"): 0.01, ("new-1", "spot"): 0.02, ("new-1", "reserved"): 0.03})
    checkpoints = world.make_volumes(kube)
    start = time.monotonic()
    create(kube, arguments.jobs, arguments.epochs)
    all_jobs = [Job(kube, f"n-{i}", checkpoints) for i in range(arguments.jobs)]
    with Sampler(kube) as sampler:
        disturb(kube, all_jobs)
        eventually("all jobs are Complete", PATIENCE, lambda: len(complete(all_jobs)) == len(all_jobs), every=2)
    seconds = time.monotonic() - start
    for each in all_jobs:
        trained_once(each, arguments.epochs, failures.SAMPLES)
    broken = kube.get(f"{MEDLEY}/resourcepools/broken")
    profiled = next((c for c in broken["status"].get("conditions", []) if c["type"] == "Profiled"), {})
    require(profiled.get("status") == "False", f"the broken pool does not say that it is: {profiled}")
    out = {"jobs": len(all_jobs), "seconds": round(seconds, 1), "samplesOfPods": sampler.samples, "gaps": sampler.gaps,
           "samplesOverALimit": len(sampler.over), "mostUnits": sampler.most, "limits": sampler.limits,
           "restarts": {e.name: e.status().get("restarts", 0) for e in all_jobs}}
    require(not sampler.over, f"pools over their limit: {sampler.over[:5]}")
    print(json.dumps(out), flush=True)


def report(folder):
    os.makedirs(folder, exist_ok=True)
    kube = world.Kube(world.STATE, f"{world.CACHE}/bin")
    for name, command in {
            "jobs.yaml": ["-n", NAMESPACE, "get", "mtj", "-o", "yaml"], "pools.yaml": ["get", "resourcepools", "-o", "yaml"],
            "pods.yaml": ["-n", NAMESPACE, "get", "pods", "-o", "yaml"], "nodes.txt": ["describe", "nodes"],
            "events.txt": ["-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp"],
            "operator.log": ["-n", world.SYSTEM, "logs", "-l", "app.kubernetes.io/name=medley-operator", "--tail=5000",
                             "--prefix"],
            "workers.log": ["-n", NAMESPACE, "logs", "-l", "app.kubernetes.io/name=medley-worker", "--tail=300",
                            "--prefix", "--max-log-requests=100"]}.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            f.write(kube.kubectl(*command, check=False, timeout=60))
    say(f"see {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", default=f"{world.ROOT}/build/cluster-neighbours", help="folder for what explains a failure")
    arguments = parser.parse_args()
    wanted = os.environ.get("MEDLEY_CLUSTER_TEST", "")
    refused = "MEDLEY_CLUSTER_TEST is 0" if wanted == "0" else world.refused()
    why = refused or world.missing() or world.occupied(wanted == "1")
    if why:
        say(f"NOT RUN: ten jobs on scarce pools: {why}")
        return 1 if wanted == "1" and not refused else 77
    try:
        measure(arguments)
        return 0
    except (Failure, ApiError, OSError) as error:
        say(f"FAIL  {error}")
        report(arguments.out)
        return 1
    finally:
        if not arguments.keep:
            world.stop_cluster()


sys.exit(main())
