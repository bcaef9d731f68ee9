"""What must be true at the end of a run."""
import json

import failures
import programs
from kube import CORE, Failure, eventually, require

TOLERANCE = 0.01  # of a bill's sum


def trained_once(each, epochs):
    """Every sample of every epoch, the last one included."""
    samples = failures.SAMPLES
    finished = each.trained_once(samples)
    last = [s for s in each.steps() if s["data_epoch"] == each.steps()[-1]["data_epoch"]]
    require(finished == epochs - 1, f"{finished} epochs before the last, not {epochs - 1}")
    require(sum(s["count"] for s in last) == samples, f"the last epoch has not {samples} samples")


def bill_adds_up(each):
    """The categories are what was paid, in USD and in seconds of pools."""
    status = each.status()
    bill, spent = status["goodput"], float(status["cost"]["spentUsd"])
    require(bill["usd"].get("training"), f"nothing was paid for training: {bill['usd']}")
    usd = sum(float(amount) for amount in bill["usd"].values())
    require(abs(usd - spent) <= TOLERANCE * spent, f"the bill sums to {usd} USD, but {spent} were spent: {bill['usd']}")
    seconds = sum(bill["seconds"].values())
    pools = sum(sum(pool["seconds"].values()) for pool in bill["pools"])
    require(abs(seconds - pools) <= TOLERANCE * seconds, f"the bill has {seconds} unit-seconds, its pools {pools}")


def left_over(kube, all_jobs):
    """The pods of the jobs and of their profilers that still exist, but for those on a node that is not ready."""
    ready = {n["metadata"]["name"] for n in kube.items(f"{CORE}/nodes") if any(
        c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"])}
    return [p["metadata"]["name"] for j in all_jobs for p in j.pods() if p["spec"].get("nodeName") in ready | {None}]


def violations(kube, all_jobs, epochs, checkpoints, sampler, mesh):
    """What is not as it must be; the first violation of each kind."""
    found = []

    def hold(what, test):
        try:
            test()
        except (Failure, OSError, LookupError, ValueError) as error:
            found.append(f"{what}: {type(error).__name__ + ': ' if isinstance(error, LookupError) else ''}{error}")
    for each in all_jobs:
        if "program" in each.get()["spec"]:
            hold(each.name, lambda each=each: programs.check(each, checkpoints))
        else:
            hold(each.name, lambda each=each: trained_once(each, epochs))
        hold(f"the bill of {each.name}", lambda each=each: bill_adds_up(each))
    for pool, moments in sampler.over.items():
        found.append(f"pool {pool} was over its limit of {sampler.limits[pool]} in {len(moments)} samples: {moments[:3]}")
    for role in ("coordinator", "trainer", "profiler"):
        hold("sidecars", lambda role=role: require(mesh.injected[role], f"no {role} had any: {json.dumps(mesh.injected)}"))
    hold("pods", lambda: eventually("the jobs have no pods", 90, lambda: not left_over(kube, all_jobs) or
                                    require(False, f"{left_over(kube, all_jobs)}")))
    return found
