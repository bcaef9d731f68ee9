"""A client of the cluster's API server. The steps use kubectl where a user would, and HTTPS for the rest."""
import http.client
import json
import os
import ssl
import subprocess
import threading
import time
import urllib.parse

CORE = "/api/v1"
MEDLEY = "/apis/medley.dev/v1alpha1"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:500]}")
        self.status = status


class Failure(Exception):
    """A step did not have the expected outcome."""


class Kube:
    def __init__(self, state, binaries):
        self.state, self.kubeconfig, self.binaries = state, f"{state}/kubeconfig", binaries
        with open(f"{state}/env", encoding="utf-8") as f:
            values = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
        self.server = urllib.parse.urlparse(values["SERVER"])
        self.tls = ssl.create_default_context(cafile=f"{state}/pki/ca.crt")
        self.tls.load_cert_chain(f"{state}/pki/admin.crt", f"{state}/pki/admin.key")

    def open(self, timeout=20):
        return http.client.HTTPSConnection(self.server.hostname, self.server.port, context=self.tls, timeout=timeout)

    def call(self, method, path, body=None, kind="application/json"):
        connection = self.open()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(answer.status, text)
        return json.loads(text) if text[:1] in "{[" else text

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """The object, or None if it does not exist."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path, **selectors):
        query = "&".join(f"{k}={urllib.parse.quote(v)}" for k, v in selectors.items())
        return self.get(path + ("?" + query if query else ""))["items"]

    def patch(self, path, body):
        return self.call("PATCH", path, body, MERGE)

    def kubectl(self, *arguments, stdin=None, timeout=180, check=True):
        done = subprocess.run([f"{self.binaries}/kubectl", "--kubeconfig", self.kubeconfig, *arguments], input=stdin,
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise Failure(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout + done.stderr


class Watch:
    """Records the events of all objects below a path as [(seconds, type, object)], in a thread of its own."""

    def __init__(self, kube, path):
        self.kube, self.path, self.seen, self.done = kube, path, [], False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join(15)

    def _run(self):
        while not self.done:
            try:
                self._follow()
            except (OSError, ApiError, http.client.HTTPException, ValueError):
                time.sleep(0.5)  # the API server is unavailable

    def _follow(self):
        connection = self.kube.open(timeout=10)
        try:
            connection.request("GET", self.path + "?watch=true&timeoutSeconds=8")
            answer = connection.getresponse()
            while not self.done:
                line = answer.readline()
                if not line:
                    return
                event = json.loads(line)
                self.seen.append((time.monotonic(), event["type"], event["object"]))
        finally:
            connection.close()

    def first(self, wanted):
        """The time of the first event for which `wanted(type, object)` holds, or None."""
        return next((t for t, kind, thing in list(self.seen) if wanted(kind, thing)), None)


PATIENCE = float(os.environ.get("MEDLEY_TEST_PATIENCE", "1"))


def eventually(what, seconds, probe, every=0.4):
    """Calls probe() until it returns a true value, and returns that; an error counts as false. Failure at the deadline."""
    end, last = time.monotonic() + seconds * PATIENCE, None
    while True:
        try:
            value = probe()
            if value:
                return value
            last = value
        except (Failure, ApiError, OSError, http.client.HTTPException, KeyError, IndexError) as error:
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() > end:
            raise Failure(f"waited {seconds * PATIENCE:.0f} s until {what}, in vain. Last answer: {str(last)[:1500]}")
        time.sleep(every)


def require(condition, what):
    if not condition:
        raise Failure(what)
