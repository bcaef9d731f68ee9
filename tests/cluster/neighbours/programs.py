"""Three jobs of programs, in images that have nothing of Medley, and what must be true of them at the end.

`ring` has two ranks in a Python image and saves when it is asked to. `counter` is one file, linked statically, in an image without a
libc, and runs in the namespace with injected sidecars. `rhythm` is the program of `ring` on one or two units; it cannot be asked to
save. Each saves every 50 steps too, and records each step that it trains.
"""
import json
import os

import world
from job import NAMESPACE
from kube import eventually, require
from objects import MESH

STEPS = 1600
EVERY = 50  # steps between two saves of its own
IN_FLIGHT = 5  # steps by which the program and the coordinator may disagree at each start
PYTHON, STATIC = "medley.local/python:1", "medley.local/counter:1"
CHECKPOINTS = "/checkpoints"  # in the pods
LOG = r"step (?P<step>\d+) loss (?P<loss>[\d.]+)"
SAVES_WHEN_ASKED = ("ring", "counter")


def build_images(out):
    """Archives of the two images. They have no shell, and nothing of Medley."""
    os.makedirs(out, exist_ok=True)
    python = os.path.realpath("/usr/bin/python3")
    library = f"/usr/lib/{os.path.basename(python)}"
    counter = f"{out}/counter"
    world.run(os.environ.get("CC", "cc"), "-O2", "-Wall", "-Werror", "-static", "-s", "-o", counter,
              f"{world.ROOT}/tests/cluster/neighbours/counter.c")
    images = {PYTHON: ["--ldd", f"{python}:/usr/bin/python3", f"{library}:{library}",
                       f"{world.ROOT}/tests/data/programs/ring.py:/program/ring.py"],
              STATIC: [f"{counter}:/counter"]}
    archives = []
    for tag, files in images.items():
        archives.append(f"{out}/{tag.split('/')[1].split(':')[0]}.tar")
        world.run(f"{world.KUBERNETES}/image/mkimage", "--tag", tag, "--out", archives[-1], *files)
    return archives


def folder(name):
    """Of what the program saves, in the pods."""
    return f"{CHECKPOINTS}/program-{name}"


def arguments(name, seconds):
    return [folder(name), str(STEPS), str(seconds), f"{folder(name)}/end"]


def job(name, program, pools, units, priority, namespace=NAMESPACE):
    saving = {"checkpoint": {"signal": "SIGUSR1", "deadline": "20s", "done": {"file": f"{folder(name)}/latest.json"}}}
    return {
        "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "program": {"samplesPerStep": 8, "steps": STEPS, "progress": {"log": LOG}, "scaling": {"units": units},
                        # The last step waits for the file `end`.
                        "hangTimeout": "20m", **(saving if name in SAVES_WHEN_ASKED else {}), **program},
            "checkpoint": {"interval": "5s", "volume": {"persistentVolumeClaim": {"claimName": "checkpoints"},
                                                        "mountPath": CHECKPOINTS}},
            "profiling": {"wait": "20s"},
            "objective": {"minimize": "Usd"},
            "resources": {"pools": pools},
            "elasticity": {"minUnits": units[0], "maxUnits": units[-1], "replan": {"minSaving": "10%", "cooldown": "5s"}},
            "runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "All", "schedulingPolicy": {"priorityClass": priority}},
            "template": {"spec": {"nodeSelector": {"medley.dev/resource-type": "old"}}}}}


def jobs():
    ring = ["python3", "/program/ring.py"]
    record = [f"{folder(name)}/record" for name in ("ring", "counter", "rhythm")]
    return [
        job("ring", {"image": PYTHON, "command": [*ring, *arguments("ring", 0.2), str(EVERY), record[0]]},
            ["b", "c"], [2], "high"),
        job("counter", {"image": STATIC, "command": ["/counter", *arguments("counter", 0.1), record[1]]},
            ["a", "b", "d"], [1], "middle", MESH),
        job("rhythm", {"image": PYTHON, "command": [*ring, *arguments("rhythm", 0.1), str(EVERY), record[2]]},
            ["b", "d"], [1, 2], "low")]


def here(checkpoints, name):
    """The folder of what the program saves, on this machine."""
    return f"{checkpoints}/program-{name}"


def let_end(checkpoints, names):
    for name in names:
        if not os.path.isdir(here(checkpoints, name)):  # it waits for units
            os.makedirs(here(checkpoints, name))
            os.chown(here(checkpoints, name), world.WORKERS_UID, world.WORKERS_UID)
        with open(f"{here(checkpoints, name)}/end", "w", encoding="utf-8"):
            pass


def loses_nothing(each, before):
    """Waits until the job trains after the drain of a node with its units, which is no later than its first switch after `before`."""
    switches = eventually(f"{each.name} reports a switch after the drain", 300, lambda: each.status().get("rescales", [])[before:])
    each.advances()
    require(not any(s.get("lostSteps", 0) for s in switches), f"steps of {each.name} were lost by a drain: {switches}")
    return f"{each.name} went on after {len(switches)} switch, {switches[-1]['pauseSeconds']:.1f} s without a step, none trained again"


def trained_again(checkpoints, name):
    """How often the program itself has trained a step that it had trained before; it may have skipped none."""
    with open(f"{here(checkpoints, name)}/record", encoding="utf-8") as file:
        trained = [int(line) for line in file]
    reached = 0
    for step in trained:
        require(step <= reached + 1, f"after step {reached} the program trained step {step}")
        reached = max(reached, step)
    require(reached == STEPS, f"the program has trained {reached} of {STEPS} steps")
    return len(trained) - STEPS


def check(each, checkpoints):
    """The state that the program keeps is whole, and the status says what was lost, as docs/use/programs.md does."""
    require([s["step"] for s in each.steps()] == list(range(1, STEPS + 1)), "the record of steps has gaps or duplicates")
    with open(f"{here(checkpoints, each.name)}/latest.json", encoding="utf-8") as file:
        state = json.load(file)
    require((state["step"], state["sum"]) == (STEPS, STEPS), f"each step counts once in what is saved, but that is {state}")
    switches = each.status().get("rescales", [])
    said, again = sum(s.get("lostSteps", 0) for s in switches), trained_again(checkpoints, each.name)
    slack = IN_FLIGHT * (len(switches) + 1)
    require(abs(said - again) <= slack, f"the status says {said} lost steps, the program has trained {again} again: {switches}")
    for switch in switches:
        lost = switch.get("lostSteps", 0)
        require(lost <= EVERY + IN_FLIGHT, f"more was lost than since the last save: {switch}")
        saved = each.name in SAVES_WHEN_ASKED and not switch["recovery"]
        require(lost == 0 or not saved, f"a move with notice lost steps, though the program saves when it is asked to: {switch}")
