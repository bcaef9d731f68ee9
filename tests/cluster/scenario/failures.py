"""The steps that kill processes, stop parts of the cluster, and suspend and delete the job."""
import glob
import os
import signal
import subprocess
import time

import steps
import world
from job import NAMESPACE, command
from kube import CORE, Failure, eventually, require

SAMPLES = 32561  # samples in the training file
GRACE = 30  # termination grace period of a job's pods, in seconds
LEASE = "/apis/coordination.k8s.io/v1/namespaces/medley-system/leases/medley-operator"


def recovered(job, before, member, uid):
    """Waits until a lost pod is replaced, the plan in force has all its pods and training goes on; returns a summary."""
    def replaced():
        pod = next((p for p in job.pods() if p["metadata"]["name"] == member), None)
        return pod is not None and pod["metadata"]["uid"] != uid and pod["status"].get("phase") == "Running"
    eventually(f"{member} is replaced", 180, replaced)
    known = len(before.get("rescales", []))
    switches = eventually("the status reports the recovery", 300, lambda: job.settled(300).get("rescales", [])[known:])
    job.advances()
    require(all(s["recovery"] for s in switches), f"a switch after the loss was not a recovery: {switches}")
    return (f"{len(switches)} switch, training was paused for {sum(s['pauseSeconds'] for s in switches):.1f} s, "
            f"{sum(s.get('lostSteps', 0) for s in switches)} steps trained again")


def replaced_without_loss(job, before, uid):
    """Waits until a trainer that was deleted with a grace period has been replaced; no step may be trained again."""
    wanted = sum(stage["units"] for stage in before["plan"]["stages"])

    def replaced():
        trainers = job.trainers()
        return len(trainers) == wanted and all(t["metadata"]["uid"] != uid for t in trainers)
    eventually("the deleted pod is replaced", 180, replaced)
    known = len(before.get("rescales", []))
    switches = eventually("the status reports the switch", 180, lambda: job.settled(300).get("rescales", [])[known:])
    job.advances()
    lost = sum(s.get("lostSteps", 0) for s in switches)
    require(lost == 0, f"after a deletion {lost} steps were trained again: {switches}")


def kill_trainer(w):
    """Kills a trainer: another pod replaces it and the job goes on training."""
    pod, before = w.life.trainers()[0], w.life.status()
    name = pod["metadata"]["name"]
    start = time.monotonic()
    w.life.kill(name)
    cost = recovered(w.life, before, name, pod["metadata"]["uid"])
    said = f"{name} was killed by signal 9"
    require(w.life.event("MemberFailed", said), f"no Event says that {said}")
    return f"{name} was replaced and training went on after {time.monotonic() - start:.0f} s; {cost}"


def kill_server(w):
    """Kills a parameter server: its replacement restores the checkpoint and the job goes on training."""
    servers, before = w.life.pods("server"), w.life.status()
    require(servers, f"the plan has no parameter server: {before['plan']['summary']}")
    name = servers[0]["metadata"]["name"]
    eventually("the job has a checkpoint", 120, lambda: w.life.status()["observed"].get("lastCheckpointStep", 0) > 0)
    start, step = time.monotonic(), w.life.step()
    w.life.kill(name)
    cost = recovered(w.life, before, name, servers[0]["metadata"]["uid"])
    eventually(f"training passes step {step}", 300, lambda: w.life.step() > step)
    return f"{name} was replaced and training passed step {step} after {time.monotonic() - start:.0f} s; {cost}"


def kill_coordinator(w):
    """Kills the coordinator: it restarts in its pod and reads its journal, and the members reconnect to it."""
    before, step = w.life.status(), w.life.step()
    start = time.monotonic()
    w.life.kill("life-coordinator")
    eventually("status.restarts counts the restart", 180,
               lambda: w.life.status().get("restarts", 0) > before.get("restarts", 0))
    w.life.settled(300)
    eventually(f"training passes step {step}", 300, lambda: w.life.step() > step)
    w.life.advances()
    return f"training passed step {step} after {time.monotonic() - start:.0f} s"


def identities(job):
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in job.pods()}


def process_of(pod):
    """The process ID, on this machine, of the operator in a pod."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as f:
                inside = f"HOSTNAME={pod}".encode() in f.read().split(b"\0")
            if inside and "medley-operator" in command(pid):
                return pid
        except OSError:
            continue
    raise Failure(f"pod {pod} has no process of the operator on this machine")


def kill_operator(w):
    """Kills the operator's leader: another replica becomes the leader, and the job's pods do not change."""
    operators = w.kube.items(f"{CORE}/namespaces/{world.SYSTEM}/pods",
                             labelSelector="app.kubernetes.io/name=medley-operator")
    lease = w.kube.get(LEASE)["spec"]
    leader = next(p for p in operators if p["metadata"]["name"] in lease["holderIdentity"])
    before, pods = w.life.status(), identities(w.life)
    start = time.monotonic()
    os.kill(process_of(leader["metadata"]["name"]), signal.SIGKILL)  # it cannot release the lease

    def other():
        spec = w.kube.get(LEASE)["spec"]
        return spec["holderIdentity"] not in (lease["holderIdentity"], "") and (
            spec["leaseTransitions"] > lease.get("leaseTransitions", 0))
    eventually("another replica is the leader", 60, other)
    took = time.monotonic() - start
    w.life.advances()
    eventually("the operator has all its replicas again", 180, lambda: world.available(w.kube, "medley-operator"))
    unchanged(w.life, before, pods)
    # The new leader acts: when a pod is deleted, its replacement is ready before the pod has terminated.
    pod = w.life.trainers()[0]
    w.kube.call("DELETE", f"{CORE}/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    replaced_without_loss(w.life, before, pod["metadata"]["uid"])
    return (f"another replica led after {took:.0f} s, same pods; "
            "after `kubectl delete pod` of a trainer no step was trained again")


def upgrade(w):
    """helm upgrade that restarts the operators and the scheduling service: the job goes on training with the same pods."""
    before, pods, step = w.life.status(), identities(w.life), w.life.step()
    holder = w.kube.get(LEASE)["spec"]["holderIdentity"]
    start = time.monotonic()
    world.chart(w.kube, "upgrade", steps.AFTER, "--set", "operator.resources.limits.memory=384Mi",
                "--set", "scheduler.resources.limits.memory=768Mi")
    took, trained = time.monotonic() - start, w.life.step() - step
    require(trained > 0, "no step was trained during the upgrade")
    # An operator that ends gives up its lease. On a busy machine it may be killed first; the lease then lasts 15 s.
    eventually(f"another operator than {holder} is the leader", 60,
               lambda: w.kube.get(LEASE)["spec"]["holderIdentity"] not in (holder, ""))
    w.life.advances()
    unchanged(w.life, before, pods)
    return f"rolled out after {took:.0f} s; {trained} steps were trained meanwhile; same pods"


def unchanged(job, before, pods):
    """The job has the same pods, generation and number of restarts as before."""
    after = identities(job)
    require(after == pods, f"the job's pods changed from {pods} to {after}")
    status = job.status()
    require(status["plan"]["generation"] == before["plan"]["generation"], "the generation changed")
    require(status.get("restarts", 0) == before.get("restarts", 0), "the job was restarted")


# Seconds without a part of the cluster: longer than a leader without it leads on (10 s) and its Lease lasts (15 s).
OUTAGE = 60 if os.environ.get("MEDLEY_SOAK") else 30


def scheduler_down(w):
    """Stops the scheduling service for a while: the job goes on by its plan. After that, it plans again."""
    path = f"/apis/apps/v1/namespaces/{world.SYSTEM}/deployments/medley-scheduler"
    replicas = w.kube.get(path)["spec"]["replicas"]
    before, pods = w.life.status(), identities(w.life)
    w.kube.patch(path, {"spec": {"replicas": 0}})
    end = time.monotonic() + OUTAGE
    while time.monotonic() < end:
        w.life.advances(2)
        time.sleep(1)
    unchanged(w.life, before, pods)
    require(w.life.is_true("Planned") and w.life.is_true("Running"),
            "the job must stay Planned and Running without the scheduling service")
    w.kube.patch(path, {"spec": {"replicas": replicas}})
    eventually("the scheduling service is available again", 120, lambda: world.available(w.kube, "medley-scheduler"))
    known = w.life.replans()
    w.life.patch({"objective": {"maxUsdPerHour": "99"}})
    eventually("the scheduling service considers a replan", 120, lambda: w.life.replans(known))
    w.life.settled()
    w.life.advances()
    return f"{OUTAGE} s without it changed nothing; after that it planned again"


def api_server_down(w):
    """Stops the API server for a while: training goes on, and afterwards the operator observes the same job again."""
    before, pods = w.life.status(), identities(w.life)
    component("stop", "apiserver")
    try:
        start, first = time.monotonic(), w.life.step()
        while time.monotonic() < start + OUTAGE:
            w.life.advances(2)
            time.sleep(1)
        trained = w.life.step() - first
    finally:
        component("start", "apiserver")
    eventually("the API server answers", 120, lambda: w.kube.get("/readyz") == "ok")
    status = w.life.settled(300)
    unchanged(w.life, before, pods)
    samples = status["observed"]["samples"]
    eventually("the operator observes the job again", 180, lambda: w.life.status()["observed"]["samples"] > samples)
    return f"{trained} steps were trained meanwhile; same pods, same generation"


def component(what, name):
    done = subprocess.run([f"{world.KUBERNETES}/component", what, name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr)


def suspend(w):
    """Suspends the job: it writes a checkpoint and deletes its pods. Resumes it: training goes on from that step."""
    w.life.patch({"runPolicy": {"suspend": True}})
    eventually("the condition Suspended is True", 180, lambda: w.life.is_true("Suspended"))
    eventually("the job has no pods", GRACE + 60, lambda: not w.life.pods())
    step = w.life.step()
    message = w.life.condition("Suspended")["message"]
    require(f"step {step}" in message, f"the checkpoint is not from the last step, {step}: {message}")
    w.life.patch({"runPolicy": {"suspend": False}})
    w.life.settled(300)
    w.life.advances()
    steps = [s["step"] for s in w.life.steps()]
    resumed = steps[steps.index(step) + 1]
    require(resumed == step + 1, f"the job was suspended after step {step} and resumed with step {resumed}")
    return f"{message}; it resumed with step {resumed}"


def delete(w):
    """Checks that every sample was trained once, then deletes the job; its objects are deleted within the grace period."""
    epochs = w.life.trained_once(SAMPLES)
    start = time.monotonic()
    w.kube.kubectl("-n", NAMESPACE, "delete", "mtj", "life", "--wait=false")
    kinds = {"pods": CORE, "services": CORE, "configmaps": CORE, "secrets": CORE,
             "networkpolicies": "/apis/networking.k8s.io/v1", "poddisruptionbudgets": "/apis/policy/v1"}

    def all_deleted():
        found = [w.life.name] if w.kube.find(w.life.path) else []
        for kind, group in kinds.items():
            for thing in w.kube.items(f"{group}/namespaces/{NAMESPACE}/{kind}"):
                labelled = thing["metadata"].get("labels", {}).get("medley.dev/job-name") == w.life.name
                owned = any(o["uid"] == w.life.uid for o in thing["metadata"].get("ownerReferences", []))
                if labelled or owned:
                    found.append(f"{kind}/{thing['metadata']['name']}")
        require(not found, f"these objects of the job still exist: {found}")
        return True
    eventually("every object of the job is deleted", GRACE + 15, all_deleted)
    took = time.monotonic() - start
    return f"{epochs} epochs, every sample trained exactly once in each; all objects deleted after {took:.0f} s"
