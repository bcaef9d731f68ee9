"""The cluster that the attacks meet: `medley run --keep` on this machine, with one job that trains until the end."""
import json
import os
import random
import sys
import tempfile

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "integration", "observability"))
from cluster import Cluster, read, wait_for  # pylint: disable=wrong-import-position
from measure import Row  # pylint: disable=wrong-import-position

POOL = {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
        "metadata": {"name": "local", "annotations": {"run.medley.dev/simulate": "true"}},
        "spec": {"class": "CPU", "limit": 24, "price": {"usdPerUnitHour": "0.10"},
                 "unit": {"resources": {"cpu": "100m", "memory": "1Gi"}, "env": [{"name": "MEDLEY_PROFILE_TIME", "value": "1s"}]}}}
ROWS = 4000
VICTIM = "victim"


def write_data(path, rows=ROWS, seed=7):
    """A table with a label, two columns of text and a number."""
    random_numbers = random.Random(seed)
    lines = []
    for _ in range(rows):
        device = random_numbers.choice(["phone", "laptop"])
        bought = int(random_numbers.random() < (0.7 if device == "phone" else 0.2))
        lines.append(f"{bought},{random_numbers.choice(['DE', 'FR', 'IT', 'ES'])},{device},{random_numbers.randint(18, 77)}\n")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def job(name, folder, epochs, **spec):
    """A job that reads FOLDER/train.csv, with two trainers and a parameter server."""
    data = {"uri": "file:///data/train.csv", "format": "csv"}
    checkpoint = {"interval": "2s", "keep": 3,
                  "volume": {"persistentVolumeClaim": {"claimName": "checkpoints-" + name}, "mountPath": "/checkpoints"}}
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"},
            "spec": {"model": {"name": "ctrdnn", "parameters": {"embeddingDim": 4, "embeddingRows": 1024, "hidden": [16]}},
                     "data": {"train": data, "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]},
                              "volume": {"hostPath": {"path": folder}, "mountPath": "/data"}},
                     "training": {"epochs": epochs, "batchSize": 200, "microBatches": 1},
                     "planner": {"name": "exact", "timeBudget": "1s"},
                     "resources": {"pools": ["local"], "serverPool": "local"},
                     "elasticity": {"minUnits": 2, "maxUnits": 3},
                     "checkpoint": checkpoint, "runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "All"}, **spec}}


def start():
    """Starts the cluster. Its own job is small and complete before the first attack."""
    folder = tempfile.mkdtemp(prefix="medley-attack-data-")
    write_data(os.path.join(folder, "train.csv"))
    objects = [POOL, job("first", folder, 1)]
    cluster = Cluster({"job.yaml": "\n---\n".join(json.dumps(each) for each in objects)}, "job.yaml")
    return cluster, folder


def start_victim(cluster, folder):
    """Starts the job `victim`, which trains while the attacks run, slowly: what it computes is nothing that they test."""
    def is_complete():
        cluster.processes.alive("medley")
        if not os.path.exists(cluster.kubeconfig):
            return False
        try:
            return cluster.phase("first") == "Complete"
        except (AssertionError, OSError):
            return False  # the API server or the job is not there yet

    wait_for("the first job is complete", is_complete)
    cluster.apply(job(VICTIM, folder, 1000000))
    wait_for("the victim trains", lambda: samples(cluster, VICTIM) > 0)
    limit_trainers(cluster, VICTIM, "=30m")


def limit_trainers(cluster, name, cpu):
    """Gives the trainers that the job has now another limit: `=40m`, or `-` for that of their pool."""
    cluster.kubectl("annotate", "--overwrite", "pods", "-l", f"medley.dev/job-name={name},medley.dev/role=trainer",
                    "run.medley.dev/cpu" + cpu)


def slow_down(cluster, name):
    """Lets the job train slowly as soon as it trains, so that it needs few epochs to outlast what happens to it."""
    wait_for(f"{name} trains", lambda: samples(cluster, name) > 0)
    limit_trainers(cluster, name, "=40m")


def samples(cluster, name):
    return int(cluster.job(name).get("status", {}).get("observed", {}).get("samples", 0))


def survivors(cluster):
    """After all attacks: the processes that ran before run still, and the victim trains on without a restart."""
    cluster.processes.alive("medley")
    for program in ("medley-operator", "medley-scheduler"):
        yield Row(f"{program} after all attacks", "runs" if cluster.children(program) else "has ended",
                  bool(cluster.children(program)))
    before = samples(cluster, VICTIM)
    wait_for("the victim trains on", lambda: samples(cluster, VICTIM) > before)
    restarts = cluster.job(VICTIM)["status"].get("restarts", 0)
    yield Row("the job that trained meanwhile", f"trains on, {restarts} restarts", restarts == 0)


def condition(cluster, name, kind):
    for each in cluster.job(name).get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each
    return {}
