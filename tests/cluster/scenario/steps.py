"""The steps of the scenario, in order. Each takes the World, and raises Failure when something is not as it must be."""
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass

import yaml

import world
from job import NAMESPACE, PODS, Job, pools_of, units_of
from kube import CORE, Failure, Kube, Watch, eventually, require

OLD, NEW, RESERVED = ("old-1", "spot"), ("new-1", "spot"), ("new-1", "reserved")
# First the old machines are cheap, then the new ones, by a factor of a hundred. So the cheapest plan is the expected one even
# if the load of this machine has changed since the profile, and the estimated speed of a plan is several times wrong.
PRICES = {OLD: 0.001, NEW: 5.00, RESERVED: 0.02}
AFTER = {OLD: 3.00, NEW: 0.01, RESERVED: 0.02}
EASY_GOAL = 100  # samples/s; any plan reaches it, however busy this machine is


@dataclass
class World:
    kube: Kube
    checkpoints: str
    life: Job | None = None
    goal: float = 0  # samples/s: more than one trainer reaches by the estimate
    advised: int = 4  # the number of trainers that it needs


def example():
    with open(f"{world.ROOT}/examples/cluster/adult.yaml", encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def adult(w):
    """Applies the example: it is planned, trained on real nodes and Complete, with the AUC of the demo."""
    w.kube.kubectl("-n", NAMESPACE, "apply", "-f", f"{world.ROOT}/examples/cluster/adult.yaml")
    job = Job(w.kube, "adult", w.checkpoints)
    eventually("adult is planned", 300, lambda: job.is_true("Planned"))

    def over():
        status = job.status()
        if job.condition("Failed", status)["status"] == "True":
            raise SystemExit(f"adult failed: {job.condition('Failed', status)['message']}")
        return status if job.condition("Complete", status)["status"] == "True" else None
    status = eventually("adult is Complete", 1500, over, every=2)
    auc = status["observed"]["metrics"]["auc"]
    require(auc >= 0.915, f"AUC {auc}")
    epochs = next(d for d in example() if d["kind"] == "TrainingJob")["spec"]["training"]["epochs"]
    require(status["observed"]["samples"] == status["observed"]["samplesTotal"] == epochs * 32561,
            f"observed.samples is not {epochs} epochs of every sample")
    download(w, auc)
    eventually("no pod of adult is running", 60, lambda: not [p for p in job.pods() if p["status"]["phase"] == "Running"])
    w.kube.kubectl("-n", NAMESPACE, "delete", "mtj", "adult", "--timeout=60s")
    return f"AUC {auc:.4f}, {status['plan']['summary']}, {len(status.get('rescales', []))} rescales"


def download(w, auc):
    """The finished model comes off its volume through a pod, complete."""
    medley = f"{os.environ.get('MEDLEY_BIN_DIR') or world.ROOT + '/build/bin'}/medley"
    with tempfile.TemporaryDirectory(prefix="medley-model-") as folder:
        world.run(medley, "download", "adult", f"{folder}/model", "--kubeconfig", w.kube.kubeconfig, "-n", NAMESPACE)
        scores = json.loads(world.run(medley, "evaluate", f"{folder}/model", f"{world.ROOT}/examples/data/adult.test.csv",
                                    "-o", "json"))
    require(abs(scores["auc"] - auc) < 1e-4, f"the downloaded model has AUC {scores['auc']}, the job said {auc}")
    left = [p["metadata"]["name"] for p in w.kube.items(PODS) if "-download-" in p["metadata"]["name"]]
    require(not left, f"medley download left {left}")


def life(w):
    """Starts a long job of the same kind. Every later step disturbs it."""
    pools = [d for d in example() if d["kind"] == "ResourcePool"]
    # The job trains there through most of the later steps, beside other tests.
    next(p for p in pools if p["metadata"]["name"] == "new-spot")["spec"]["unit"]["resources"]["cpu"] = "300m"
    next(p for p in pools if p["metadata"]["name"] == "new-reserved")["spec"]["limit"] = 1  # for the server
    w.kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pools))
    document = next(d for d in example() if d["kind"] == "TrainingJob")
    document["metadata"] = {"name": "life", "namespace": NAMESPACE}
    spec = document["spec"]
    spec["training"]["epochs"] = 100000
    spec["objective"] = {"minThroughput": EASY_GOAL, "maxUsdPerHour": "100"}
    spec["elasticity"] = {"minUnits": 1, "maxUnits": 1, "replan": {"minSaving": "10%", "cooldown": "1s"}}
    spec["runPolicy"] = {"backoffLimit": 20}
    spec["resources"]["serverPool"] = "new-reserved"  # its price does not change
    # The coordinator must not run on the nodes that are drained later; the pools place the other members.
    spec["template"] = {"spec": {"nodeSelector": {"medley.dev/resource-type": "old"}}}
    w.kube.call("POST", f"/apis/medley.dev/v1alpha1/namespaces/{NAMESPACE}/trainingjobs", document)
    w.life = Job(w.kube, "life", w.checkpoints)
    status = w.life.settled(600)
    require(pools_of(status) == {"old-spot"}, f"old-spot is the cheapest pool, but the plan is {status['plan']['summary']}")
    w.life.advances(5)
    return status["plan"]["summary"]


def moved(w, before, watch, reason=None):
    """Waits for the end of a planned move away from the status `before`, and returns the new status. New pods must run
    before old ones terminate, and no step may be trained again."""
    def switched():
        status = w.life.status()
        generation, old = status["plan"]["generation"], before["plan"]["generation"]
        require(generation > old, f"generation {old} is still in force")
        require(status.get("lastRescale", {}).get("toGeneration") == generation, "the switch is not finished")
        return status
    eventually("a new plan is in force", 240, switched)
    status = w.life.settled()
    last = status["lastRescale"]
    require(not last["recovery"] and last.get("lostSteps", 0) == 0,
            f"a planned move must not be a recovery or lose steps: {last}")
    require(reason is None or any(r["reason"] == reason for r in status["rescales"]),
            f"no rescale has the reason {reason}: {status['rescales']}")
    require(last["pauseSeconds"] < 10, f"training was paused for {last['pauseSeconds']} s, more than 10 s")
    # An old pod is deleted only after the new ones run.
    created = watch.first(lambda kind, pod: kind == "ADDED" and new_member(pod, before))
    if created is not None:
        ready = watch.first(lambda kind, pod: new_member(pod, before) and pod["status"].get("phase") == "Running")
        deleted = watch.first(lambda kind, pod: old_member(pod, before) and "deletionTimestamp" in pod["metadata"])
        require(ready is not None, "no new pod has run")
        require(deleted is None or ready <= deleted, "an old pod was deleted before a new one ran")
    return status


def new_member(pod, before):
    generation = pod["metadata"]["labels"].get("medley.dev/generation")
    return generation is not None and int(generation) > before["plan"]["generation"]


def old_member(pod, before):
    generation = pod["metadata"]["labels"].get("medley.dev/generation")
    return generation is not None and int(generation) <= before["plan"]["generation"]


def price(w):
    """Raises the price of the old machines: the job moves, and the new pods run before the old ones terminate."""
    before = w.life.status()
    with Watch(w.kube, PODS) as watch:
        start = time.monotonic()
        world.set_prices(w.kube, AFTER)
        status = moved(w, before, watch, "PriceChanged")
        took = time.monotonic() - start
    require(pools_of(status) == {"new-spot"}, f"the plan is {status['plan']['summary']}")
    w.life.advances()
    pause = status["lastRescale"]["pauseSeconds"]
    return f"{status['plan']['summary']} in force after {took:.0f} s; training was paused for {pause:.2f} s"


MOST = re.compile(r"reaches at most (\d+(?:\.\d+)?) samples/s with the other constraints")
TRAINERS = re.compile(r"needs (\d+) trainers in all, maxUnits is \d+: raise it to (\d+)")


def ask_for(w, goal, pattern):
    """Sets the goal; returns the match of `pattern` in an Event that says why no plan reaches it, or None if one does."""
    known = w.life.replans()
    w.life.patch({"objective": {"minThroughput": int(goal)}})
    new = eventually(f"an Event answers the goal {goal:.0f}", 120, lambda: w.life.replans(known))
    return next((m for m in map(pattern.search, new) if m), None)


def objective(w):
    """Edits the goal. For one that cannot be reached, an Event says what can be; for a little more than that, how many
    trainers it needs."""
    match = ask_for(w, 10_000_000, MOST)
    require(match, "no Event says how much of a goal of 10,000,000 samples/s can be reached")
    # The operator corrects the profile by what it measures, and both change with the load of this machine: so the goal at
    # which one trainer is too few can be several times what the first answer said.
    most, advice = float(match.group(1)), None
    w.goal = max(most, w.life.status()["observed"]["throughput"])  # which the job moves for
    for _ in range(10):
        w.goal *= 1.4
        advice = ask_for(w, w.goal, TRAINERS)
        if advice:
            break
    require(advice, "no Event says that a goal needs more than one trainer")
    w.advised = int(advice.group(2))
    status = w.life.settled()
    w.life.advances()
    require(units_of(status) == 1, f"maxUnits is 1, but the plan is {status['plan']['summary']}")
    return f"one trainer reaches {most:.0f} samples/s; {advice.group(0)}"


def grow(w, generation):
    """Scales up with kubectl to the advised number of trainers. Since the advice the operator may have found that trainers are
    faster or slower than estimated: then it says that one is enough, that more are needed, or that none reach the goal, and
    the goal or the number follows."""
    known, replicas = w.life.replans(), w.advised
    w.kube.kubectl("-n", NAMESPACE, "scale", "mtj/life", f"--replicas={replicas}")
    for _ in range(12):
        def answer(known=known):
            changed = w.life.status()["plan"]["generation"] > generation
            return ["a new plan: move ("] if changed else list(w.life.replans(known))
        answers = eventually(f"the operator answers {replicas} trainers and the goal {w.goal:.0f}", 120, answer)
        if any(": move (" in text for text in answers):
            return
        known, advice = w.life.replans(), next(filter(None, map(TRAINERS.search, answers)), None)
        if advice:
            replicas = int(advice.group(2))
            w.kube.kubectl("-n", NAMESPACE, "scale", "mtj/life", f"--replicas={replicas}")
            continue
        enough = any(": stay (" in text for text in answers)
        require(enough or any(map(MOST.search, answers)), f"neither a plan nor advice, but {answers}")
        w.goal *= 1.4 if enough else 0.8
        w.life.patch({"objective": {"minThroughput": int(w.goal)}})
    raise Failure(f"no goal up to {w.goal:.0f} samples/s made the job grow")


def scale(w):
    """Scales up with kubectl, then down to one trainer with the old goal."""
    before = w.life.status()
    with Watch(w.kube, PODS) as watch:
        grow(w, before["plan"]["generation"])
        up = moved(w, before, watch)
    require(units_of(up) >= 2, f"the plan after scaling up is {up['plan']['summary']}")
    require(up["replicas"] == units_of(up), f"status.replicas is {up['replicas']}")
    w.life.advances()
    with Watch(w.kube, PODS) as watch:
        w.life.patch({"objective": {"minThroughput": EASY_GOAL}})
        w.kube.kubectl("-n", NAMESPACE, "scale", "mtj/life", "--replicas=1")

        def down():
            status = w.life.status()
            return status if units_of(status) == 1 else None
        eventually("one trainer is planned", 120, down)
        down = moved(w, up, watch)
    require(down["replicas"] == 1 and units_of(down) == 1, f"the plan after scaling down is {down['plan']['summary']}")
    w.life.advances()
    return f"{up['plan']['summary']}; then {down['plan']['summary']}"


def drain(w):
    """Cordons and drains the trainer's node: the trainer moves to another node, and no step is trained again."""
    pod = w.life.trainers()[0]
    node, step = pod["spec"]["nodeName"], w.life.step()
    before = len(w.life.status().get("rescales", []))
    w.kube.kubectl("cordon", node)
    w.kube.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=150s", timeout=200)

    def elsewhere():
        trainers = w.life.trainers()
        require(trainers and all(t["spec"].get("nodeName") not in (None, node) for t in trainers),
                "a trainer is still on the drained node")
        return trainers[0]["spec"]["nodeName"]
    other = eventually("the trainer is on another node", 180, elsewhere)
    switches = eventually("the status reports the switch", 180, lambda: w.life.settled().get("rescales", [])[before:])
    w.life.advances()
    w.kube.kubectl("uncordon", node)
    lost = sum(s.get("lostSteps", 0) for s in switches)
    # The operator sees the cordon, so another trainer is ready before the evicted one's grace period ends.
    require(lost == 0, f"after a drain {lost} steps were trained again: {switches}")
    return f"{node} -> {other} after step {step}, {len(switches)} switch, no step trained again"


def quota(w):
    """Lowers a ResourceQuota below what runs: no pod is killed, and the job says what it waits for. Raises it: the job has
    all its pods again."""
    path = f"{CORE}/namespaces/{NAMESPACE}/resourcequotas"
    trainer = w.life.trainers()[0]
    used = sum(cpus(c["resources"].get("requests", {}).get("cpu", "0"))
               for p in w.life.pods() for c in p["spec"]["containers"])
    w.kube.call("POST", path, {"metadata": {"name": "share"}, "spec": {"hard": {"requests.cpu": str(used + 4)}}})
    w.life.advances()
    # Less than runs.
    w.kube.patch(f"{path}/share", {"spec": {"hard": {"requests.cpu": "100m"}}})
    eventually("the quota's status has the new limit", 60,
               lambda: w.kube.get(f"{path}/share")["status"]["hard"]["requests.cpu"] == "100m")
    w.life.advances(5)
    require(w.life.trainers()[0]["metadata"]["uid"] == trainer["metadata"]["uid"], "the quota ended a running pod")
    # The quota forbids the replacement of a lost pod; the job says so and waits.
    w.life.kill(trainer["metadata"]["name"])
    eventually("an Event names the quota", 180,
               lambda: w.life.event("FailedCreatePod", "exceeded quota") or w.life.event("ReplanInfeasible", "quota"))
    require(not w.life.is_true("Failed"), "a quota must not fail the job")
    w.kube.patch(f"{path}/share", {"spec": {"hard": {"requests.cpu": str(used + 4)}}})
    w.life.settled(300)
    w.life.advances()
    w.kube.call("DELETE", f"{path}/share")
    return "lowered: the pods stayed, and a lost trainer waited with an Event that says why; raised: it was replaced"


def cpus(text):
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
