"""Counts the units of each pool ten times a second, and compares them with the pools' limits."""
import http.client
import json
import threading
import time

from kube import CORE, MEDLEY

INTERVAL = 0.1  # seconds
UNITS = "medley.dev/role in (trainer,server)"
ENDED = ("Succeeded", "Failed")


class Sampler:
    """Counts, in a thread of its own, the pods of trainers and servers of all namespaces that exist and have not ended.

    A pod counts from the moment in which it is created, and while it terminates, on a dead node too.
    """

    def __init__(self, kube):
        self.kube, self.done = kube, False
        self.samples, self.gaps, self.longest = 0, 0, 0.0  # `longest`: seconds between two samples
        self.most, self.over = {}, {}  # by pool: the most units; [(seconds, names)] of the samples over its limit
        self.limits = {p["metadata"]["name"]: p["spec"]["limit"] for p in kube.items(f"{MEDLEY}/resourcepools")}
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.start = self.last = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join(15)

    def _run(self):
        # From the API server's cache, as controllers list.
        path = f"{CORE}/pods?resourceVersion=0&labelSelector={UNITS}".replace(" ", "%20")
        connection, due = None, self.start
        while not self.done:
            try:
                connection = connection or self.kube.open(timeout=5)
                connection.request("GET", path)
                self._count(json.loads(connection.getresponse().read())["items"])
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                connection, self.gaps = None, self.gaps + 1
            due = max(due + INTERVAL, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def _count(self, pods):
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now
        self.samples += 1
        held = {}
        for pod in pods:
            if pod["status"].get("phase") not in ENDED:
                held.setdefault(pod["metadata"]["labels"]["medley.dev/pool"], []).append(pod["metadata"]["name"])
        for pool, names in held.items():
            self.most[pool] = max(self.most.get(pool, 0), len(names))
            if len(names) > self.limits[pool]:
                self.over.setdefault(pool, []).append((round(now - self.start, 1), sorted(names)))

    def rate(self):
        """Samples per second."""
        return self.samples / max(self.last - self.start, INTERVAL)
