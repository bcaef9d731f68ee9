"""What disturbs the jobs: a drain, the death of the operator's leader, and the death of a node."""
import os
import signal

import failures
import world
from job import NAMESPACE
from kube import CORE, MEDLEY, eventually
from objects import BROKEN, MESH
from sampler import UNITS

PATIENCE = 400  # seconds for a disturbance to find what it disturbs


def units_on(kube, machines, jobs):
    """{node: [names]} of the running units on the nodes of these kinds. `jobs`: of these jobs only; empty: of any."""
    nodes = [n["metadata"]["name"] for n in
             kube.items(f"{CORE}/nodes", labelSelector=f"medley.dev/resource-type in ({','.join(machines)})")]
    selector = UNITS + (f",medley.dev/job-name in ({','.join(jobs)})" if jobs else "")
    found = {}
    for namespace in (NAMESPACE, MESH):
        for pod in kube.items(f"{CORE}/namespaces/{namespace}/pods", labelSelector=selector):
            running = pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
            if running and pod["spec"].get("nodeName") in nodes:
                found.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
    return found


def busy_node(kube, machines, jobs=()):
    """A node of these kinds with running units, and their names. Waits for one."""
    of = f"a unit of {' or '.join(jobs)}" if jobs else "a unit"
    found = eventually(f"{of} runs on a node of type {' or '.join(machines)}", PATIENCE, lambda: units_on(kube, machines, jobs))
    return sorted(found.items())[0]


def broken_pool(kube):
    """Waits until the broken pool says, while jobs want its profile, that it cannot be measured."""
    def profiled():
        status = kube.get(f"{MEDLEY}/resourcepools/{BROKEN}").get("status", {})
        return next((c["message"] for c in status.get("conditions", [])
                     if c["type"] == "Profiled" and c["status"] == "False" and c["reason"] in ("ProfileFailed", "ProfilerFailed")), None)
    return "the broken pool says: " + eventually("the broken pool says that it is", PATIENCE, profiled)


def drain(kube, machines, jobs=()):
    """Cordons, drains and uncordons a node on which units run."""
    node, units = busy_node(kube, machines, jobs)
    kube.kubectl("cordon", node)
    kube.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=150s", timeout=200)
    kube.kubectl("uncordon", node)
    return f"{node} drained of {', '.join(units)}"


def kill_leader(kube):
    """Kills the process of the operator that leads. It cannot release its lease."""
    operators = kube.items(f"{CORE}/namespaces/{world.SYSTEM}/pods", labelSelector="app.kubernetes.io/name=medley-operator")
    holder = kube.get(failures.LEASE)["spec"]["holderIdentity"]
    leader = next(p for p in operators if p["metadata"]["name"] in holder)
    os.kill(failures.process_of(leader["metadata"]["name"]), signal.SIGKILL)
    return leader["metadata"]["name"]


def kill_node(kube, jobs=()):
    """Kills all processes of a node on which units run. Its Node object, and the objects of its pods, stay."""
    node, units = busy_node(kube, ["new-spot"], jobs)
    with open(f"{world.STATE}/pids/{node}", encoding="utf-8") as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)
    eventually(f"{node} is not ready", 180, lambda: any(
        c["type"] == "Ready" and c["status"] != "True" for c in kube.get(f"{CORE}/nodes/{node}")["status"]["conditions"]))
    return f"{node} with {', '.join(units)}"


def faults(asked=(), programs=()):
    """[(name, fault(kube))] in their order. A node is drained on which units of the jobs `asked` run, and one killed with units of
    the jobs `programs`; without any: of all jobs."""
    drained = ["new-reserved", "new-spot"] if asked else ["new-reserved"]
    return [("drain", lambda kube: drain(kube, drained, asked)), ("kill the leader", kill_leader),
            ("kill a node", lambda kube: kill_node(kube, programs))]
