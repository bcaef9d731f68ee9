"""The steps of the test, in their order. Each takes the World, and raises Failure where Medley falls short."""
import re
import time
from dataclasses import dataclass

import yaml

import world
from job import NAMESPACE, PODS, Job, pools_of, units_of
from kube import CORE, Kube, Watch, eventually, require

OLD, NEW, RESERVED = ("old-1", "spot"), ("new-1", "spot"), ("new-1", "reserved")
PRICES = {OLD: 0.001, NEW: 0.50, RESERVED: 1.00}
AFTER = {OLD: 1.00, NEW: 0.01, RESERVED: 1.00}  # the old machines become dear
EASY_GOAL = 100  # samples/s: any plan reaches it, however busy this machine is


@dataclass
class World:
    kube: Kube
    checkpoints: str
    life: Job | None = None
    advised: int = 4  # trainers that the raised goal takes


def example():
    with open(f"{world.ROOT}/examples/cluster/adult.yaml", encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def adult(w):
    """kubectl apply of the example: planned, trained on real nodes, Complete, with the quality of the demo."""
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
    require(status["observed"]["samples"] == status["observed"]["samplesTotal"] == 14 * 32561, "not every sample trained once")
    eventually("its pods are cleaned up", 60, lambda: not [p for p in job.pods() if p["status"]["phase"] == "Running"])
    w.kube.kubectl("-n", NAMESPACE, "delete", "mtj", "adult", "--timeout=60s")
    return f"AUC {auc:.4f}, {status['plan']['summary']}, {len(status.get('rescales', []))} rescales"


def life(w):
    """A long job of the same kind starts; every later step disturbs it."""
    pools = [d for d in example() if d["kind"] == "ResourcePool"]
    w.kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pools))
    document = next(d for d in example() if d["kind"] == "TrainingJob")
    document["metadata"] = {"name": "life", "namespace": NAMESPACE}
    spec = document["spec"]
    spec["training"]["epochs"] = 100000
    spec["objective"] = {"minThroughput": EASY_GOAL, "maxUsdPerHour": "100"}
    spec["elasticity"] = {"minUnits": 1, "maxUnits": 1, "replan": {"minSaving": "10%", "cooldown": "1s"}}
    spec["runPolicy"] = {"backoffLimit": 20}
    # Its coordinator stays away from the nodes that will be drained; pools say where the others go.
    spec["template"] = {"spec": {"nodeSelector": {"medley.dev/resource-type": "old"}}}
    w.kube.call("POST", f"/apis/medley.dev/v1alpha1/namespaces/{NAMESPACE}/trainingjobs", document)
    w.life = Job(w.kube, "life", w.checkpoints)
    status = w.life.settled(600)
    require(pools_of(status) == {"old-spot"}, f"the cheapest is old-spot, the plan is {status['plan']['summary']}")
    w.life.advances(5)
    return status["plan"]["summary"]


def moved(w, before, watch, reason=None):
    """After a planned move from the status `before`: made before broken, nothing trained twice. The new status."""
    def there():
        status = w.life.status()
        require(status["plan"]["generation"] > before["plan"]["generation"], f"still generation {before['plan']['generation']}")
        require(status.get("lastRescale", {}).get("toGeneration") == status["plan"]["generation"], "the switch is not done")
        return status
    eventually("there is a new plan", 240, there)
    status = w.life.settled()
    last = status["lastRescale"]
    require(not last["recovery"] and last.get("lostSteps", 0) == 0, f"a planned move lost steps: {last}")
    require(reason is None or any(r["reason"] == reason for r in status["rescales"]), f"not {reason}: {last}")
    require(last["pauseSeconds"] < 10, f"training stood still for {last['pauseSeconds']} s")
    # Pods that were there before go only when the new ones run.
    created = watch.first(lambda kind, pod: kind == "ADDED" and new_member(pod, before))
    if created is not None:
        ready = watch.first(lambda kind, pod: new_member(pod, before) and pod["status"].get("phase") == "Running")
        gone = watch.first(lambda kind, pod: old_member(pod, before) and "deletionTimestamp" in pod["metadata"])
        require(ready is not None, "no new pod runs")
        require(gone is None or ready <= gone, "an old pod went before a new one ran")
    return status


def new_member(pod, before):
    generation = pod["metadata"]["labels"].get("medley.dev/generation")
    return generation is not None and int(generation) > before["plan"]["generation"]


def old_member(pod, before):
    generation = pod["metadata"]["labels"].get("medley.dev/generation")
    return generation is not None and int(generation) <= before["plan"]["generation"]


def price(w):
    """The price of the old machines jumps: a new plan on others, make before break."""
    before = w.life.status()
    with Watch(w.kube, PODS) as watch:
        start = time.monotonic()
        world.set_prices(w.kube, AFTER)
        status = moved(w, before, watch, "PriceChanged")
        took = time.monotonic() - start
    require(pools_of(status) == {"new-spot"}, f"the plan is {status['plan']['summary']}")
    w.life.advances()
    return f"{status['plan']['summary']} in force after {took:.0f} s, pause {status['lastRescale']['pauseSeconds']:.2f} s"


MOST = re.compile(r"reaches at most (\d+(?:\.\d+)?) samples/s with the other constraints")
TRAINERS = re.compile(r"needs (\d+) trainers in all, maxUnits is 1: raise it to (\d+)")


def ask_for(w, goal, pattern):
    """Sets the goal; the match in the Event that says why no plan reaches it, None when one does."""
    told = w.life.replans()
    w.life.patch({"objective": {"minThroughput": int(goal)}})
    new = eventually(f"the goal {goal:.0f} gets an answer", 120, lambda: w.life.replans(told))
    return next((m for m in map(pattern.search, new) if m), None)


def objective(w):
    """The goal is edited: out of reach, it says what is in reach; a bit more than that, how many trainers it takes."""
    match = ask_for(w, 10_000_000, MOST)
    require(match, "a goal of 10,000,000 samples/s is in reach")
    most, advice = float(match.group(1)), None
    for factor in (1.4, 2, 3):  # what was measured changes with the load of this machine
        advice = ask_for(w, most * factor, TRAINERS)
        if advice:
            break
    require(advice, "no goal needs more than one trainer")
    w.advised = int(advice.group(2))
    status = w.life.settled()
    w.life.advances()
    require(units_of(status) == 1, f"maxUnits is 1, the plan is {status['plan']['summary']}")
    return f"one trainer reaches {most:.0f} samples/s; {advice.group(0)}"


def scale(w):
    """kubectl scale to what was advised: the goal is in reach; down again, with the old goal: one trainer."""
    before = w.life.status()
    with Watch(w.kube, PODS) as watch:
        w.kube.kubectl("-n", NAMESPACE, "scale", "mtj/life", f"--replicas={w.advised}")
        up = moved(w, before, watch)
    require(units_of(up) >= 2, f"the plan is {up['plan']['summary']}")
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
    require(down["replicas"] == 1 and units_of(down) == 1, f"the plan is {down['plan']['summary']}")
    w.life.advances()
    return f"{up['plan']['summary']}; then {down['plan']['summary']}"


def drain(w):
    """kubectl cordon and drain of the trainer's node: it leaves in good order, and goes on elsewhere."""
    pod = w.life.trainers()[0]
    node, step = pod["spec"]["nodeName"], w.life.step()
    before = len(w.life.status().get("rescales", []))
    w.kube.kubectl("cordon", node)
    w.kube.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=150s", timeout=200)

    def elsewhere():
        trainers = w.life.trainers()
        require(trainers and all(t["spec"].get("nodeName") not in (None, node) for t in trainers), "no other node yet")
        return trainers[0]["spec"]["nodeName"]
    other = eventually("the trainer is on another node", 180, elsewhere)
    switches = eventually("the switch is told", 180, lambda: w.life.settled().get("rescales", [])[before:])
    w.life.advances()
    w.kube.kubectl("uncordon", node)
    lost = sum(s.get("lostSteps", 0) for s in switches)
    # Told by the cordon, the operator has another trainer ready before the evicted one's grace is over.
    require(lost == 0, f"a drain lost {lost} steps: {switches}")
    return f"{node} -> {other} after step {step}, {len(switches)} switch, nothing trained again"


def quota(w):
    """A ResourceQuota lowered below what runs: said, and nothing is killed; raised: whole again."""
    path = f"{CORE}/namespaces/{NAMESPACE}/resourcequotas"
    trainer = w.life.trainers()[0]
    used = sum(cpus(c["resources"].get("requests", {}).get("cpu", "0"))
               for p in w.life.pods() for c in p["spec"]["containers"])
    w.kube.call("POST", path, {"metadata": {"name": "share"}, "spec": {"hard": {"requests.cpu": str(used + 4)}}})
    w.life.advances()
    w.kube.patch(f"{path}/share", {"spec": {"hard": {"requests.cpu": "600m"}}})  # coordinator and server only
    eventually("the quota is counted", 60, lambda: w.kube.get(f"{path}/share")["status"]["hard"]["requests.cpu"] == "600m")
    w.life.advances(5)
    require(w.life.trainers()[0]["metadata"]["uid"] == trainer["metadata"]["uid"], "a quota must not end a running pod")
    # What the quota forbids cannot come back; the job says so and waits.
    w.life.kill(trainer["metadata"]["name"])
    eventually("the job says what stands in the way", 180,
               lambda: w.life.told("FailedCreatePod", "exceeded quota") or w.life.told("ReplanInfeasible", "quota"))
    require(not w.life.is_true("Failed"), "a quota must not fail the job")
    w.kube.patch(f"{path}/share", {"spec": {"hard": {"requests.cpu": str(used + 4)}}})
    w.life.settled(300)
    w.life.advances()
    w.kube.call("DELETE", f"{path}/share")
    return "lowered: goes on, a lost trainer waits and says why; raised: whole again"


def cpus(text):
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
