"""Watches a cluster ten times a second: how many units of each pool exist, against the pool's limit."""
import http.client
import json
import threading
import time

from job import PODS
from kube import MEDLEY

INTERVAL = 0.1  # seconds
UNITS = ("trainer", "server")


class Sampler:
    """Counts the pods of trainers and servers that hold a unit: all that have not ended, also while they terminate."""

    def __init__(self, kube):
        self.kube, self.over, self.most, self.samples, self.gaps, self.done = kube, [], {}, 0, 0, False
        self.limits = {p["metadata"]["name"]: p["spec"]["limit"] for p in kube.items(f"{MEDLEY}/resourcepools")}
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join(15)

    def _run(self):
        connection, due = None, time.monotonic()
        while not self.done:
            try:
                connection = connection or self.kube.open(timeout=5)
                connection.request("GET", PODS + "?resourceVersion=0")  # from the API server's cache, as controllers list
                self._count(json.loads(connection.getresponse().read())["items"])
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                connection, self.gaps = None, self.gaps + 1
            due = max(due + INTERVAL, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def _count(self, pods):
        held = {}
        for pod in pods:
            labels = pod["metadata"].get("labels", {})
            if labels.get("medley.dev/role") in UNITS and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                held.setdefault(labels.get("medley.dev/pool"), []).append(pod["metadata"]["name"])
        self.samples += 1
        for pool, names in held.items():
            self.most[pool] = max(self.most.get(pool, 0), len(names))
            if len(names) > self.limits[pool]:
                self.over.append((pool, sorted(names)))
