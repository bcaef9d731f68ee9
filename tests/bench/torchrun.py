#!/usr/bin/python3
"""The same script under plain torchrun and under Medley: how long it stands still, and which steps it trains again.

  tests/bench/torchrun.py [--rounds 3] [--only torchrun|medley] [--separate-stores] [--patience 180] [--out build/torchrun.json]

examples/programs/ddp-mnist on two machines, which are two agents of torchrun here, or two units of `medley run`. A rank is killed by
SIGKILL; one machine leaves, and for torchrun one joins later. torchrun (--nnodes 1:2, its defaults) loses the machine by SIGTERM to its
agent, as from a node that is drained, and not the one with the store where the ranks meet: without it all end. Under Medley the job
leaves two units for one because of a price. Both run in turns in each round. A pause is the time between two steps that rank 0 prints,
and steps are trained again if it prints them again.

With its defaults torchrun may hang after the kill, since the ranks meet at a store that has what they wrote before
(https://github.com/pytorch/pytorch/issues/135712); --separate-stores sets TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, which avoids that. A program
that has made no step after --patience seconds counts as hanging.

Needs `./dev setup programs` and `./dev programs`. Some minutes for each round. Other work on the machine makes both slower: a program
that starts Python and PyTorch needs 3 to 5 s of processor time for it.
"""
import argparse
import calendar
import glob
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(ROOT, "build/wheels-torch-2/bin")
SCRIPT = os.path.join(ROOT, "examples/programs/ddp-mnist/train.py")
STEPS, BATCH = 1200, 2048
KILL, LEAVE = 0.16, 0.4  # parts of all steps, under Medley
TORCHRUN_STEPS = 150  # before, between and after its events
EVENTS = ("a rank is killed", "a machine leaves", "a machine joins")
BOUND = 400  # seconds of a run
LINE = re.compile(r"step (\d+) loss")


def arguments(saved):
    return ["--data", os.path.join(ROOT, "examples/lenet"), "--checkpoints", saved, "--steps", str(STEPS), "--batch", str(BATCH)]


def environment():
    return {**os.environ, "PATH": f"{PYTHON}:/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def processes(folder):
    """{rank: pid} of the script whose files are below the folder."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
            with open(path.replace("cmdline", "environ"), encoding="utf-8", errors="replace") as file:
                rank = re.search("(?:^|\0)RANK=(\\d+)", file.read())
        except OSError:
            continue
        if rank and SCRIPT in words and "torch.distributed.run" not in words and any(word.startswith(folder) for word in words):
            found[int(rank.group(1))] = int(path.split("/")[2])
    return found


class Timeline:
    """When rank 0 printed which step."""

    def __init__(self):
        self.seen = []  # (seconds, step)
        self.events = []  # seconds

    def add(self, seconds, step):
        self.seen.append((seconds, step))

    def step(self):
        return max((step for _, step in self.seen), default=0)

    def outcome(self):
        """For each event: (longest time between two steps until the next event, steps that were trained again)."""
        rows, seen = [], sorted(self.seen)
        for at, end in zip(self.events, self.events[1:] + [float("inf")]):
            around = [index for index in range(1, len(seen)) if at - 0.5 <= seen[index][0] and seen[index - 1][0] < end]
            worst = max(around, key=lambda index: seen[index][0] - seen[index - 1][0])
            (before, last), (after, first) = seen[worst - 1], seen[worst]
            rows.append((after - before, max(0, last - first + 1)))
        return rows


class Hangs(Exception):
    pass


def wait_for(condition, what, patience=None):
    end = time.monotonic() + (patience or BOUND)
    while not condition():
        if time.monotonic() > end:
            raise Hangs(what) if patience else RuntimeError(f"not in time: {what}")
        time.sleep(0.02)


def kill_rank(folder, timeline):
    wait_for(lambda: set(processes(folder)) == {0, 1}, "two ranks")
    timeline.events.append(time.time())
    os.kill(processes(folder)[1], signal.SIGKILL)


def is_open(port):
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def torchrun(folder, options, kills):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    timeline, agents = Timeline(), []
    variables = environment()
    if options.separate_stores:
        variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    log = open(os.path.join(folder, "torchrun.log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def follow(agent):
        for line in agent.stdout:
            log.write(line)
            if found := LINE.search(line):
                timeline.add(time.time(), int(found.group(1)))

    def start():
        command = ["python3", "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc_per_node", "1", "--max_restarts", "10",
                   "--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "bench", SCRIPT]
        agents.append(subprocess.Popen(  # pylint: disable=consider-using-with
            command + arguments(os.path.join(folder, "saved")), env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True))
        threading.Thread(target=follow, args=(agents[-1],), daemon=True).start()

    def goes_on():
        count = len(timeline.seen)
        wait_for(lambda: agents[0].poll() is not None or len(timeline.seen) >= count + TORCHRUN_STEPS, "steps after an event",
                 options.patience)
        if agents[0].poll() is not None:
            raise RuntimeError("the first agent has ended")

    try:
        start()
        wait_for(lambda: is_open(port), "the store of the first agent")
        start()
        wait_for(lambda: timeline.step() >= TORCHRUN_STEPS, "the first steps")
        if kills:
            kill_rank(folder, timeline)
            goes_on()
            return timeline.outcome()
        timeline.events.append(time.time())
        agents[1].send_signal(signal.SIGTERM)
        agents[1].wait(timeout=60)
        goes_on()
        timeline.events.append(time.time())
        start()
        wait_for(lambda: len(processes(folder)) == 2, "two ranks", options.patience)
        goes_on()
        return timeline.outcome()
    except Hangs:
        rows = timeline.outcome() if len(timeline.events) > 1 else []
        return rows[:len(timeline.events) - 1] + [(None, 0)]
    finally:
        for agent in agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGTERM)  # it ends its workers
                try:
                    agent.wait(timeout=40)
                except subprocess.TimeoutExpired:
                    agent.kill()
        log.close()


def with_torchrun(folder, options):
    """One run for the kill, and one for the machines that leave and join: after the first one may not go on."""
    os.makedirs(os.path.join(folder, "kill"))
    os.makedirs(os.path.join(folder, "machines"))
    rows = torchrun(os.path.join(folder, "kill"), options, True) + torchrun(os.path.join(folder, "machines"), options, False)
    return rows + [(None, 0)] * (len(EVENTS) - len(rows))


def manifest():
    documents = []
    for pool, limit in (("east", 2), ("west", 1)):
        documents.append({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
                          "metadata": {"name": pool, "annotations": {"run.medley.dev/simulate": "true"}},
                          "spec": {"class": "CPU", "unit": {"resources": {"cpu": "1", "memory": "3Gi"}}, "limit": limit,
                                   "nodeSelector": {"medley.dev/machine": pool},
                                   "price": {"offering": {"provider": "example", "region": pool, "instanceType": "small-1",
                                                          "capacityType": "spot"}}}})
    documents.append(
        {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
         "metadata": {"name": "bench", "annotations": {"run.medley.dev/scenario": "scenario.yaml"}},
         "spec": {"program": {"command": ["python3", SCRIPT, *arguments("/checkpoints/ddp")], "samplesPerStep": BATCH, "steps": STEPS,
                              "progress": {"log": r"step (?P<step>\d+) loss (?P<loss>[\d.]+)"},
                              "checkpoint": {"signal": "SIGUSR1", "deadline": "20s", "done": {"file": "/checkpoints/ddp/latest.pt"}},
                              "scaling": {"units": [1, 2]}},
                  "checkpoint": {"interval": "5s"}, "objective": {"fastest": True, "maxUsdPerHour": "0.5"},
                  "resources": {"pools": ["east", "west"]},
                  "elasticity": {"minUnits": 1, "maxUnits": 2, "replan": {"onPriceChange": True, "minSaving": "10%", "cooldown": "1s"}},
                  "runPolicy": {"cleanPodPolicy": "None"}}})
    return "\n---\n".join(json.dumps(document) for document in documents)


def prices(east):
    return "entries:\n" + "".join(f"- {{offering: {{provider: example, region: {region}, instanceType: small-1, capacityType: spot}}, "
                                  f"pricePerInstanceHour: {usd}}}\n" for region, usd in (("east", east), ("west", 0.2)))


class PodLogs:
    """Follows what members print, each line with the time at which it was printed."""

    def __init__(self, folder, timeline):
        self.pattern = os.path.join(folder, "run/node/pods/*/logs/worker/*.log")
        self.timeline, self.read = timeline, {}

    def look(self):
        for path in glob.glob(self.pattern):
            if "-profile-" in path:
                continue
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    file.seek(self.read.get(path, 0))
                    text = file.read()
            except OSError:
                continue
            whole = text[:text.rfind("\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(whole.encode())
            for line in whole.splitlines():
                found = re.match(r"(\S+?)\.(\d+)Z \[0\] step (\d+) loss", line)
                if found:
                    whole_seconds = time.strptime(found.group(1) + " UTC", "%Y-%m-%dT%H:%M:%S %Z")
                    self.timeline.add(calendar.timegm(whole_seconds) + float("0." + found.group(2)), int(found.group(3)))


def with_medley(folder, options):
    texts = {"job.yaml": manifest(), "prices.yaml": prices(0.05), "after.yaml": prices(1.6),
             "scenario.yaml": f"prices: prices.yaml\nsteps:\n- {{atPercent: {100 * LEAVE:.0f}, say: east is expensive, prices: after.yaml}}\n"}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    timeline = Timeline()
    logs, printed = PodLogs(folder, timeline), []
    with open(os.path.join(folder, "medley.log"), "w", encoding="utf-8") as log:
        run = subprocess.Popen(  # pylint: disable=consider-using-with
            [os.path.join(options.programs, "medley"), "run", "job.yaml", "--plain", "--folder", os.path.join(folder, "run"), "--export",
             os.path.join(folder, "exported")], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def follow():
            for line in run.stdout:
                log.write(line)
                printed.append(line)
                if re.search(r"PriceChanged: move", line):
                    timeline.events.append(time.time())

        threading.Thread(target=follow, daemon=True).start()

        def reached(steps):
            logs.look()
            if run.poll() is not None and timeline.step() < steps:
                raise RuntimeError("medley run ended:\n" + "".join(printed[-40:]))
            return timeline.step() >= steps

        try:
            wait_for(lambda: reached(KILL * STEPS), "steps before the kill")
            kill_rank(os.path.join(folder, "run"), timeline)
            wait_for(lambda: reached(STEPS), "the last step")
            run.wait(timeout=60)
        finally:
            if run.poll() is None:
                run.send_signal(signal.SIGINT)
                run.wait(timeout=60)
    if len(timeline.events) != 2:
        raise RuntimeError(f"expected a move after the kill, found {len(timeline.events) - 1}:\n" + "".join(printed[-40:]))
    return timeline.outcome()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("torchrun", "medley"))
    parser.add_argument("--separate-stores", action="store_true")
    parser.add_argument("--patience", type=float, default=180)
    parser.add_argument("--programs", default=os.path.join(ROOT, "build/bin"), help="folder of medley and what it starts")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/torchrun.json"))
    options = parser.parse_args()
    runs = {"torchrun": with_torchrun, "medley": with_medley}
    rows, failed = {name: [] for name in runs if options.only in (None, name)}, False
    for number in range(options.rounds):
        for name, outcomes in rows.items():
            folder = os.path.join(ROOT, "build/torchrun", f"{name}-{number}")
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            try:
                outcomes.append(runs[name](folder, options))
            except (RuntimeError, OSError, Hangs, subprocess.TimeoutExpired) as failure:
                print(f"torchrun: {name}: {failure}", file=sys.stderr, flush=True)
                failed = True
                continue
            for event, (pause, again) in zip(EVENTS, outcomes[-1]):
                words = f"hangs, more than {options.patience:.0f} s" if pause is None else f"stands still {pause:5.1f} s, trains {again:3} steps again"
                print(f"{name:9} {event:17} {words}; load {os.getloadavg()[0]:.0f}", flush=True)
    for event in range(len(EVENTS)):
        for name, outcomes in rows.items():
            happened = [run[event] for run in outcomes if event < len(run)]
            hangs = sum(pause is None for pause, _ in happened)
            if hangs:
                print(f"{EVENTS[event]:17} {name:9} hangs in {hangs} of {len(happened)} runs")
            if hangs < len(happened):
                pauses, again = zip(*(row for row in happened if row[0] is not None))
                print(f"{EVENTS[event]:17} {name:9} {statistics.median(pauses):5.1f} s ({min(pauses):.1f} to {max(pauses):.1f}), "
                      f"{statistics.median(again):.0f} steps again ({min(again)} to {max(again)})")
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
