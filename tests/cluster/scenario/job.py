"""One TrainingJob: its status, pods, processes and Events, and the record of its training steps."""
import collections
import glob
import json
import os
import signal

from kube import CORE, MEDLEY, Failure, eventually, require

NAMESPACE = "train"
PODS = f"{CORE}/namespaces/{NAMESPACE}/pods"


class Job:
    def __init__(self, kube, name, checkpoints, namespace=NAMESPACE):
        self.kube, self.name, self.namespace = kube, name, namespace
        self.path = f"{MEDLEY}/namespaces/{namespace}/trainingjobs/{name}"
        self.uid = self.get()["metadata"]["uid"]
        self.folder = f"{checkpoints}/{namespace}-{name}-{self.uid}"

    def get(self):
        return self.kube.get(self.path)

    def status(self):
        return self.get().get("status", {})

    def patch(self, spec):
        return self.kube.patch(self.path, {"spec": spec})

    def condition(self, kind, status=None):
        """The condition `kind` of `status`, or of the job's current status."""
        for condition in (status or self.status()).get("conditions", []):
            if condition["type"] == kind:
                return condition
        return {"status": "Absent", "reason": "", "message": ""}

    def is_true(self, kind):
        return self.condition(kind)["status"] == "True"

    def pods(self, role=None):
        selector = f"medley.dev/job-name={self.name}" + (f",medley.dev/role={role}" if role else "")
        return self.kube.items(f"{CORE}/namespaces/{self.namespace}/pods", labelSelector=selector)

    def trainers(self):
        return [p for p in self.pods("trainer") if "deletionTimestamp" not in p["metadata"]]

    def events(self, reason=None):
        found = self.kube.items(f"{CORE}/namespaces/{self.namespace}/events", fieldSelector=f"involvedObject.uid={self.uid}")
        return [e for e in found if reason is None or e["reason"] == reason]

    def event(self, reason, part=""):
        """The message of an Event with that reason and that part of a message, or None."""
        return next((e["message"] for e in self.events(reason) if part in e["message"]), None)

    def replans(self, before=None):
        """{message: count} of the Events about replans; with an earlier answer as `before`, only those since then."""
        counts = collections.Counter()  # each leader writes Events of its own
        for event in self.events():
            if event["reason"].startswith("Replan"):
                counts[event["message"]] += event.get("count", 1)
        return counts if before is None else {m: n for m, n in counts.items() if n != before[m]}

    def steps(self):
        """The coordinator's record of its steps, without those that a rollback has undone."""
        kept = []
        with open(f"{self.folder}/steps.jsonl", encoding="utf-8") as f:
            for line in f:
                if not line.endswith("\n"):
                    break  # the coordinator is writing this line
                entry = json.loads(line)
                if "rollback_to" in entry:
                    while kept and kept[-1]["step"] > entry["rollback_to"]:
                        kept.pop()
                elif "step" in entry:
                    kept.append(entry)
        return kept

    def trained_once(self, samples):
        """Checks that every sample of every finished epoch was trained exactly once; returns the number of those epochs."""
        steps = self.steps()
        require([s["step"] for s in steps] == list(range(1, len(steps) + 1)), "the record of steps has gaps or duplicates")
        epochs = {}
        for s in steps:
            epochs.setdefault(s["data_epoch"], []).append((s["first"], s["count"]))
        finished = sorted(epochs)[:-1]
        for epoch in finished:
            reached = 0
            for first, count in sorted(epochs[epoch]):
                require(first == reached, f"epoch {epoch}: sample {reached} should follow, found {first}")
                reached = first + count
            require(reached == samples, f"epoch {epoch} ended after {reached} of {samples} samples")
        return len(finished)

    def step(self):
        return self.steps()[-1]["step"]

    def advances(self, steps=3, seconds=120):
        """Waits until so many more steps have been trained. Does not use the API server."""
        def last():
            try:
                return self.step()
            except (OSError, IndexError):
                return -1
        start = last()
        eventually(f"{self.name} trains {steps} steps after step {start}", seconds, lambda: last() >= start + steps)
        return start

    def settled(self, seconds=180):
        """Waits until the plan in the status is in force and all its pods are ready; returns the status."""
        def running():
            status = self.status()
            require(self.condition("PodsReady", status)["status"] == "True", self.condition("PodsReady", status)["message"])
            require(self.condition("Rescaling", status)["status"] != "True", "the job is rescaling")
            require(self.condition("Running", status)["status"] == "True", "the job is not running")
            require(not [p for p in self.pods() if "deletionTimestamp" in p["metadata"]], "some pods are still terminating")
            return status
        return eventually(f"{self.name} runs its plan", seconds, running)

    def pid(self, member):
        """The process ID of a member on this machine. Nodes are namespaces, so it has one here too."""
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as f:
                    env = f.read().split(b"\0")
            except OSError:
                continue
            role = "coordinator" if member.endswith("-coordinator") else None
            mine = f"MEDLEY_JOB_UID={self.uid}".encode() in env and f"MEDLEY_MEMBER={member}".encode() in env
            pid = int(path.split("/")[2])
            if mine and (role is None or f"--role={role}" in command(pid)):
                return pid
        raise Failure(f"{member} has no process on this machine")

    def kill(self, member):
        os.kill(self.pid(member), signal.SIGKILL)


def command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().decode(errors="replace")


def pools_of(status):
    """The pools of the trainers in the plan of a status."""
    return {stage["pool"] for stage in status["plan"]["stages"]}


def units_of(status):
    return sum(stage["units"] for stage in status["plan"]["stages"])
