"""Attacks on the API server of `medley run` and on its node, by another user of this machine or a web page."""
import base64
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import time

from cluster_jobs import wait_for
from measure import Row, Watched


class Api:
    """HTTP to the API server by hand, so that every header is this file's choice."""

    def __init__(self, cluster):
        with open(cluster.kubeconfig, encoding="utf-8") as file:
            config = json.load(file)
        cluster_entry = config["clusters"][0]["cluster"]
        scheme, self.host, port = re.match(r"(https?)://(.+):(\d+)$", cluster_entry["server"]).groups()
        self.port = int(port)
        self.tls = None
        if scheme == "https":
            authority = base64.b64decode(cluster_entry["certificate-authority-data"]).decode("ascii")
            self.tls = ssl.create_default_context(cadata=authority)
        self.token = config["users"][0]["user"].get("token", "")

    def connect(self, secure=True):
        """A connection; without `secure`, one that has not begun the TLS handshake."""
        raw = socket.create_connection((self.host, self.port), timeout=60)
        return self.tls.wrap_socket(raw, server_hostname=self.host) if self.tls and secure else raw

    def request(self, method, path, body="", token=None, **headers):
        """The code of the answer and its body. `token` None: the right one; "": none."""
        token = self.token if token is None else token
        fields = {"Host": f"{self.host}:{self.port}", "Connection": "close"}
        if token:
            fields["Authorization"] = "Bearer " + token
        if body:
            fields |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        with self.connect() as one:
            one.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n{body}".encode())
            answer = read_all(one)
        if not answer:
            return 0, ""
        return int(answer.split(b" ", 2)[1]), answer.split(b"\r\n\r\n", 1)[1].decode("utf-8", "replace")


def read_all(connection):
    answer = b""
    while True:
        try:
            piece = connection.recv(65536)
        except (ConnectionError, ssl.SSLError):
            return answer
        if not piece:
            return answer
        answer += piece


def pod(name, **container):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "worker", "image": "medley-worker", **container}]}}


PODS = "/api/v1/namespaces/default/pods"


def strangers(cluster, _):
    """Requests of someone who cannot read the kubeconfig, and those that a web page can make a browser send."""
    api = Api(cluster)
    body = json.dumps(pod("stranger"))
    for what, code, arguments in (
            ("a pod without a token", 401, {"token": ""}),
            ("a pod with a wrong token", 401, {"token": "wrong"}),
            ("a pod from a page of another site (Origin)", 403, {"Origin": "http://evil.example"}),
            ("a pod for another host (DNS rebinding)", 403, {"Host": "evil.example"}),
            ("a pod as a web form sends it (text/plain)", 415, {"Content_Type": "text/plain"})):
        got, _ = api.request("POST", PODS, body, **arguments)
        yield Row(what, f"HTTP {got}", got == code)
    for path in ("/version", "/apis", "/openapi/v2", "/api/v1/secrets?watch=1&timeoutSeconds=1"):
        got, _ = api.request("GET", path, token="")
        yield Row(f"GET {path} without a token", f"HTTP {got}", got == 401)


def modes(cluster, _):
    for what, path, most in (("kubeconfig", cluster.kubeconfig, 0o600), ("run folder", cluster.run, 0o700)):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        yield Row(f"other users read the {what}", f"its mode is {mode:04o}", mode & ~most == 0)


def compile_preloaded(folder, marker):
    """A library that leaves a file wherever it is loaded."""
    source = os.path.join(folder, "preloaded.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) '
                   f'{{ FILE* file = fopen("{marker}", "w"); if (file) fclose(file); }}\n')
    library = os.path.join(folder, "preloaded.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def pods_that_run_code(cluster, folder):
    """Pods that try to make the node run something else than Medley's program."""
    api = Api(cluster)
    marker = os.path.join(folder, "marker")
    library = compile_preloaded(folder, marker)
    attempts = {
        "preload": ("LD_PRELOAD in a pod's environment", {"env": [{"name": "LD_PRELOAD", "value": library}]}),
        "audit": ("LD_AUDIT in a pod's environment", {"env": [{"name": "LD_AUDIT", "value": library}]}),
        "shell": ("a pod whose command is a shell", {"command": ["/bin/sh", "-c", f"touch {marker}"]}),
        "image": ("a pod whose image is a path", {"image": "/bin/touch", "args": [marker]}),
    }
    for name, (what, container) in attempts.items():
        code, answer = api.request("POST", PODS, json.dumps(pod(name, **container)))
        outcome = f"HTTP {code}: {answer[:120]}"
        if code == 201:
            def ended(name=name):
                state = json.loads(api.request("GET", f"{PODS}/{name}")[1]).get("status", {})
                for each in state.get("containerStatuses", []):
                    for kind in ("terminated", "waiting"):
                        if kind in each.get("state", {}) and each["state"][kind].get("reason") != "ContainerCreating":
                            return each["state"][kind]
                return None
            state = wait_for(f"pod {name} has ended or is refused", ended)
            outcome = f"{state.get('reason')}: {state.get('message', '')}"[:160]
        ran = os.path.exists(marker)
        if ran:
            os.remove(marker)
        yield Row(what, ("the code ran; " if ran else "it did not run; ") + outcome, not ran)
        api.request("DELETE", f"{PODS}/{name}")


def connections(cluster, _):
    """Idle connections, many requests in one packet, and headers without an end."""
    api = Api(cluster)
    medley = cluster.processes.running["medley"].pid
    with Watched(medley) as watched:
        idle = [api.connect(secure=i % 2 == 0) for i in range(300)]
        started = time.monotonic()
        code, _ = api.request("GET", "/api/v1/namespaces")
        seconds = time.monotonic() - started
        for one in idle:
            one.close()
    yield watched.row("300 idle connections to the API server", f"the next client got HTTP {code} after {seconds:.1f} s",
                      code == 200 and seconds < 10)
    get = f"GET /api/v1/namespaces HTTP/1.1\r\nHost: {api.host}:{api.port}\r\nAuthorization: Bearer {api.token}\r\n"
    with api.connect() as one:
        one.sendall((get + "\r\n").encode() * 4 + (get + "Connection: close\r\n\r\n").encode())
        answers = read_all(one).count(b"HTTP/1.1 200 OK")
    yield Row("5 pipelined requests", f"{answers} answers", answers == 5)
    with Watched(medley) as watched:
        open_connections, refused = [], 0
        for _ in range(64):
            one = api.connect()
            open_connections.append(one)
            try:
                one.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * (8 << 20))
            except OSError:
                refused += 1
        for one in open_connections:
            one.close()
    yield watched.row("64 connections with headers of 8 MiB", f"{refused} ended while they sent", True)


ATTACKS = (strangers, modes, pods_that_run_code, connections)
