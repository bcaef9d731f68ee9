"""The pools and the jobs of the run: four scarce pools, a broken one, and jobs of three priorities."""
import yaml

import world
from job import NAMESPACE
from kube import MEDLEY
from mesh import NAMESPACE_LABEL

PRIORITIES = {"low": 10, "middle": 100, "high": 1000}
BROKEN = "broken"
MESH, IN_MESH = "mesh", 3  # the namespace with injected sidecars, and the index of its job
PRICES = {("old-1", "spot"): 0.01, ("new-1", "spot"): 0.02, ("new-1", "reserved"): 0.03}
OFFERINGS = {"old": ("old-1", "west", "spot"), "new-spot": ("new-1", "west", "spot"),
             "new-reserved": ("new-1", "east", "reserved")}


def pool(name, machines, limit, cpu, memory="1Gi"):
    machine, region, capacity = OFFERINGS[machines]
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": name},
            "spec": {"class": "CPU", "unit": {"resources": {"cpu": cpu, "memory": memory}}, "limit": limit,
                     "nodeSelector": {"medley.dev/resource-type": machines},
                     "price": {"offering": {"provider": "example", "region": region, "instanceType": machine,
                                            "capacityType": capacity}}}}


POOLS = [pool("a", "old", 2, "300m"), pool("b", "new-spot", 3, "300m"), pool("c", "new-reserved", 2, "300m"),
         pool("d", "new-spot", 1, "200m"),
         pool(BROKEN, "new-spot", 4, "100m", memory="16Mi")]  # its profiler runs out of memory


def priority(index):
    return list(PRIORITIES)[index % 3]


def namespace(index):
    return MESH if index == IN_MESH else NAMESPACE


def job(index, epochs):
    with open(f"{world.ROOT}/examples/cluster/adult.yaml", encoding="utf-8") as f:
        document = next(d for d in yaml.safe_load_all(f) if d and d["kind"] == "TrainingJob")
    document["metadata"] = {"name": f"n-{index}", "namespace": namespace(index)}
    spec = document["spec"]
    spec["training"]["epochs"] = epochs
    spec["profiling"] = {"wait": "20s"}  # the broken pool takes longer
    spec["objective"] = {"minThroughput": 100, "maxUsdPerHour": "100"}
    spec["elasticity"] = {"minUnits": 1 + index % 2, "maxUnits": 2, "replan": {"minSaving": "10%", "cooldown": "5s"}}
    spec["resources"] = {}
    spec["runPolicy"] = {"backoffLimit": 3, "cleanPodPolicy": "All",
                         "schedulingPolicy": {"priorityClass": priority(index)}}
    # Coordinators run beside Medley's own pods; the pools place the other members.
    spec["template"] = {"spec": {"nodeSelector": {"medley.dev/resource-type": "old"}}}
    return document


def create_pools(kube):
    classes = [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
                "preemptionPolicy": "Never"} for name, value in PRIORITIES.items()]
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(classes + POOLS))


def create_namespaces(kube):
    """Both namespaces with their volumes; returns the folder of checkpoints on this machine."""
    checkpoints = world.make_volumes(kube, NAMESPACE)
    world.make_volumes(kube, MESH)
    kube.patch(f"/api/v1/namespaces/{MESH}", {"metadata": {"labels": {NAMESPACE_LABEL: "enabled"}}})
    return checkpoints


def create_jobs(kube, documents):
    for document in documents:
        kube.call("POST", f"{MEDLEY}/namespaces/{document['metadata']['namespace']}/trainingjobs", document)
