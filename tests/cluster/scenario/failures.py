"""Steps that kill, stop and end things."""
import glob
import os
import signal
import subprocess
import time

import steps
import world
from job import NAMESPACE, command
from kube import CORE, Failure, eventually, require

SAMPLES = 32561  # of the training file
GRACE = 30  # seconds that a pod of a job has to leave
LEASE = "/apis/coordination.k8s.io/v1/namespaces/medley-system/leases/medley-operator"


def recovered(job, before, member, uid):
    """After a loss: another pod in its place, the plan in force with all its pods, and steps go on."""
    def replaced():
        pod = next((p for p in job.pods() if p["metadata"]["name"] == member), None)
        return pod is not None and pod["metadata"]["uid"] != uid and pod["status"].get("phase") == "Running"
    eventually(f"{member} is replaced", 180, replaced)
    known = len(before.get("rescales", []))
    switches = eventually("the recovery is told", 300, lambda: job.settled(300).get("rescales", [])[known:])
    job.advances()
    require(all(s["recovery"] for s in switches), f"not a recovery: {switches}")
    return (f"{len(switches)} switch, training stood still for {sum(s['pauseSeconds'] for s in switches):.1f} s, "
            f"{sum(s.get('lostSteps', 0) for s in switches)} steps trained again")


def left_in_time(job, before, uid):
    """After a deletion with notice: as many trainers, the deleted one gone, and no step trained again."""
    wanted = sum(stage["units"] for stage in before["plan"]["stages"])

    def replaced():
        trainers = job.trainers()
        return len(trainers) == wanted and all(t["metadata"]["uid"] != uid for t in trainers)
    eventually("the deleted pod is replaced", 180, replaced)
    known = len(before.get("rescales", []))
    switches = eventually("the switch is told", 180, lambda: job.settled(300).get("rescales", [])[known:])
    job.advances()
    lost = sum(s.get("lostSteps", 0) for s in switches)
    require(lost == 0, f"a deletion lost {lost} steps: {switches}")


def kill_trainer(w):
    """A trainer is killed: another takes its place, the job trains on."""
    pod, before = w.life.trainers()[0], w.life.status()
    name = pod["metadata"]["name"]
    start = time.monotonic()
    w.life.kill(name)
    cost = recovered(w.life, before, name, pod["metadata"]["uid"])
    require(w.life.told("MemberFailed", f"{name} was killed by signal 9"), "no Event says how a pod was lost")
    return f"{name} back and training after {time.monotonic() - start:.0f} s; {cost}"


def kill_server(w):
    """A parameter server is killed: back from the checkpoint, and the job with it."""
    servers, before = w.life.pods("server"), w.life.status()
    require(servers, f"the plan has no server: {before['plan']['summary']}")
    name = servers[0]["metadata"]["name"]
    eventually("there is a checkpoint", 120, lambda: w.life.status()["observed"].get("lastCheckpointStep", 0) > 0)
    start, step = time.monotonic(), w.life.step()
    w.life.kill(name)
    cost = recovered(w.life, before, name, servers[0]["metadata"]["uid"])
    eventually(f"training passes step {step}", 300, lambda: w.life.step() > step)
    return f"{name} back and past step {step} after {time.monotonic() - start:.0f} s; {cost}"


def kill_coordinator(w):
    """The coordinator is killed: restarted in place, it reads its journal, the members come back to it."""
    before, step = w.life.status(), w.life.step()
    start = time.monotonic()
    w.life.kill("life-coordinator")
    eventually("the restart is counted", 180, lambda: w.life.status().get("restarts", 0) > before.get("restarts", 0))
    w.life.settled(300)
    eventually(f"training passes step {step}", 300, lambda: w.life.step() > step)
    w.life.advances()
    return f"past step {step} again after {time.monotonic() - start:.0f} s"


def identities(job):
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in job.pods()}


def process_of(pod):
    """The operator's process in a pod, seen from the machine."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as f:
                inside = f"HOSTNAME={pod}".encode() in f.read().split(b"\0")
            if inside and "medley-operator" in command(pid):
                return pid
        except OSError:
            continue
    raise Failure(f"{pod} has no process")


def kill_operator(w):
    """The operator's leader is killed: another leads, and no pod of the job notices."""
    operators = w.kube.items(f"{CORE}/namespaces/{world.SYSTEM}/pods",
                             labelSelector="app.kubernetes.io/name=medley-operator")
    lease = w.kube.get(LEASE)["spec"]
    leader = next(p for p in operators if p["metadata"]["name"] in lease["holderIdentity"])
    before, pods = w.life.status(), identities(w.life)
    start = time.monotonic()
    os.kill(process_of(leader["metadata"]["name"]), signal.SIGKILL)  # no chance to give the lease away

    def other():
        spec = w.kube.get(LEASE)["spec"]
        return spec["holderIdentity"] not in (lease["holderIdentity"], "") and (
            spec["leaseTransitions"] > lease.get("leaseTransitions", 0))
    eventually("another leads", 60, other)
    took = time.monotonic() - start
    w.life.advances()
    eventually("the operator is whole again", 180, lambda: world.available(w.kube, "medley-operator"))
    untouched(w.life, before, pods)
    # The new leader acts: for a pod that is deleted another is ready before it is gone.
    pod = w.life.trainers()[0]
    w.kube.call("DELETE", f"{CORE}/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    left_in_time(w.life, before, pod["metadata"]["uid"])
    return f"another led after {took:.0f} s, pods undisturbed; kubectl delete pod of a trainer: nothing trained again"


def upgrade(w):
    """helm upgrade that rolls both operators and the scheduling service: the job trains on with the same pods."""
    before, pods, step = w.life.status(), identities(w.life), w.life.step()
    holder = w.kube.get(LEASE)["spec"]["holderIdentity"]
    start = time.monotonic()
    world.chart(w.kube, "upgrade", steps.AFTER, "--set", "operator.resources.limits.memory=384Mi",
                "--set", "scheduler.resources.limits.memory=768Mi")
    took, trained = time.monotonic() - start, w.life.step() - step
    require(trained > 0, "training stood still through the upgrade")
    other = eventually("a new operator leads", 60, lambda: w.kube.get(LEASE)["spec"]["holderIdentity"])
    require(other != holder, f"{holder} still leads: the operators were not replaced")
    w.life.advances()
    untouched(w.life, before, pods)
    return f"rolled out after {took:.0f} s, {trained} steps trained meanwhile, same pods"


def untouched(job, before, pods):
    after = identities(job)
    require(after == pods, f"pods changed: {pods} -> {after}")
    status = job.status()
    require(status["plan"]["generation"] == before["plan"]["generation"], "the generation changed")
    require(status.get("restarts", 0) == before.get("restarts", 0), "the job was restarted")


def scheduler_away(w):
    """The scheduling service is away for a minute: the job runs on its plan; then it plans again."""
    path = f"/apis/apps/v1/namespaces/{world.SYSTEM}/deployments/medley-scheduler"
    replicas = w.kube.get(path)["spec"]["replicas"]
    before, pods = w.life.status(), identities(w.life)
    w.kube.patch(path, {"spec": {"replicas": 0}})
    end = time.monotonic() + 60
    while time.monotonic() < end:
        w.life.advances(2)
        time.sleep(1)
    untouched(w.life, before, pods)
    require(w.life.is_true("Planned") and w.life.is_true("Running"), "the job must not suffer")
    w.kube.patch(path, {"spec": {"replicas": replicas}})
    eventually("the scheduling service is back", 120, lambda: world.available(w.kube, "medley-scheduler"))
    told = w.life.replans()
    w.life.patch({"objective": {"maxUsdPerHour": "99"}})
    eventually("it plans again", 120, lambda: w.life.replans(told))
    w.life.settled()
    w.life.advances()
    return "a minute without it changed nothing; then it answered again"


def api_away(w):
    """The API server is stopped for a minute: training goes on; when it is back, so is everything."""
    before, pods = w.life.status(), identities(w.life)
    component("stop", "apiserver")
    try:
        start, first = time.monotonic(), w.life.step()
        while time.monotonic() < start + 60:
            w.life.advances(2)
            time.sleep(1)
        trained = w.life.step() - first
    finally:
        component("start", "apiserver")
    eventually("the API server answers", 120, lambda: w.kube.get("/readyz") == "ok")
    status = w.life.settled(300)
    untouched(w.life, before, pods)
    samples = status["observed"]["samples"]
    eventually("the operator sees the job again", 180, lambda: w.life.status()["observed"]["samples"] > samples)
    return f"{trained} steps trained meanwhile, same pods, same generation"


def component(what, name):
    done = subprocess.run([f"{world.KUBERNETES}/component", what, name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr)


def suspend(w):
    """suspend: checkpoint and no pods; resume: on from there."""
    w.life.patch({"runPolicy": {"suspend": True}})
    eventually("Suspended", 180, lambda: w.life.is_true("Suspended"))
    eventually("no pod is left", GRACE + 60, lambda: not w.life.pods())
    step = w.life.step()
    message = w.life.condition("Suspended")["message"]
    require(f"step {step}" in message, f"the checkpoint is not of the last step {step}: {message}")
    w.life.patch({"runPolicy": {"suspend": False}})
    w.life.settled(300)
    w.life.advances()
    steps = [s["step"] for s in w.life.steps()]
    resumed = steps[steps.index(step) + 1]
    require(resumed == step + 1, f"suspended after step {step}, resumed with {resumed}")
    return f"{message}; resumed at step {resumed}"


def delete(w):
    """Through all of it each sample was trained once. kubectl delete: everything is gone within the grace period."""
    epochs = w.life.trained_once(SAMPLES)
    start = time.monotonic()
    w.kube.kubectl("-n", NAMESPACE, "delete", "mtj", "life", "--wait=false")
    selector = f"medley.dev/job-name={w.life.name}"
    kinds = {"pods": CORE, "services": CORE, "configmaps": CORE, "secrets": CORE,
             "networkpolicies": "/apis/networking.k8s.io/v1", "poddisruptionbudgets": "/apis/policy/v1"}

    def left():
        found = [w.life.name] if w.kube.find(w.life.path) else []
        for kind, group in kinds.items():
            for thing in w.kube.items(f"{group}/namespaces/{NAMESPACE}/{kind}"):
                labelled = thing["metadata"].get("labels", {}).get("medley.dev/job-name") == w.life.name
                owned = any(o["uid"] == w.life.uid for o in thing["metadata"].get("ownerReferences", []))
                if labelled or owned:
                    found.append(f"{kind}/{thing['metadata']['name']}")
        require(not found, f"left ({selector}): {found}")
        return True
    eventually("nothing of it is left", GRACE + 15, left)
    return f"{epochs} epochs, each sample of each trained exactly once; all gone after {time.monotonic() - start:.0f} s"
