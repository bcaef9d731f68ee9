"""Shared by the tests in this folder: medley-scheduler as a process, HTTP over plain sockets, and schemas."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "browser"))
from waiting import PATIENCE, wait_for  # noqa: E402

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
PROGRAM = os.path.join(os.environ["MEDLEY_BIN_DIR"], "medley-scheduler")
PRICES = """entries:
- {resourceType: cpu, class: CPU, limit: 480, pricePerUnitHour: 0.04}
- {resourceType: v100, class: GPU, limit: 32, pricePerUnitHour: 2.42}
"""


class Scheduler:
    """A running service. Options are the program's, without --grpc-listen, --rest-listen and --port-file."""

    def __init__(self, *options, host="127.0.0.1", prices=PRICES):
        self.folder = tempfile.mkdtemp(prefix="medley-rest-test-")
        self.log_path = os.path.join(self.folder, "log")
        self.host = host
        ports = os.path.join(self.folder, "ports")
        arguments = [PROGRAM, "--grpc-listen", f"{host}:0", "--rest-listen", f"{host}:0", "--port-file", ports,
                     "--poll-seconds", "0.05", *options]
        if prices is not None:
            self.set_prices(prices)
            arguments += ["--prices", os.path.join(self.folder, "prices.yaml")]
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log)
        wait_for("ports", lambda: os.path.exists(ports) or self.process.poll() is not None)
        if not os.path.exists(ports):
            raise AssertionError(f"the service ended: {self.log()}")
        with open(ports, encoding="utf-8") as file:
            found = json.load(file)
        self.rest, self.grpc = found["rest"], found["grpc"]

    def set_prices(self, text):
        path = os.path.join(self.folder, "prices.yaml")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def close(self):
        """Shuts the service down in order and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)
        return status

    def metric(self, name):
        for line in request(self, "GET", "/metrics").text.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0


@contextlib.contextmanager
def running(*options, **keywords):
    scheduler = Scheduler(*options, **keywords)
    try:
        yield scheduler
    except BaseException:
        print(scheduler.log()[-6000:])
        raise
    finally:
        scheduler.close()


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, headers, body
        self.text = body.decode("utf-8", errors="strict")

    def json(self):
        return json.loads(self.text)


def request(scheduler, method, path, body=None, headers=None, context=None):
    """Sends one request on a new connection. `body`: text, or an object sent as JSON by default."""
    headers = dict(headers or {})
    if body is not None and not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    if context is not None:
        connection = http.client.HTTPSConnection(scheduler.host, scheduler.rest, timeout=PATIENCE, context=context)
    else:
        connection = http.client.HTTPConnection(scheduler.host, scheduler.rest, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def raw(scheduler):
    """A plain socket to the REST port."""
    return socket.create_connection((scheduler.host, scheduler.rest), timeout=PATIENCE)


def in_background(work):
    """Runs `work` in a thread and ignores errors of the connection; the test checks the results."""
    def quiet():
        with contextlib.suppress(OSError, http.client.HTTPException):
            work()
    thread = threading.Thread(target=quiet, daemon=True)
    thread.start()
    return thread


def make_certificates(folder, name="server", ca=None):
    """A CA and a certificate for 127.0.0.1 that it signed, by openssl; paths of (ca, certificate, key)."""
    def run(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    ca = ca or name + "-ca"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    if not os.path.exists(os.path.join(folder, ca + ".pem")):
        run("req", "-x509", *key, "-keyout", ca + ".key", "-out", ca + ".pem", "-days", "2", "-subj", f"/CN={ca}")
    run("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", f"/CN={name}")
    with open(os.path.join(folder, name + ".ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    run("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "2",
        "-extfile", name + ".ext", "-out", name + ".pem")
    return tuple(os.path.join(folder, file) for file in (ca + ".pem", name + ".pem", name + ".key"))


def trusting(ca, certificate=None, key=None):
    context = ssl.create_default_context(cafile=ca)
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def example(name="ctrdnn-16", **changes):
    """A request of examples/plan as an object."""
    import yaml  # Debian's python3-yaml
    with open(os.path.join(SOURCE, "examples/plan", name + ".yaml"), encoding="utf-8") as file:
        return {**yaml.safe_load(file), **changes}


class SchemaCase(unittest.TestCase):
    """Validates responses against the service's OpenAPI document."""
    scheduler = None
    document = None

    def check(self, method, path, answer):
        """Checks that the body of a response matches the document for this path and code."""
        operation = self.document["paths"][path.split("?")[0]][method.lower()]
        response = operation["responses"].get(str(answer.code))
        self.assertIsNotNone(response, f"{method} {path}: {answer.code} is not described: {answer.text}")
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        kind = answer.headers.get_content_type()
        self.assertIn(kind, response["content"])
        if kind == "application/json":
            schema = {**response["content"][kind]["schema"], "components": self.document["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer.json())

    def ask(self, method, path, body=None, headers=None, code=200):
        answer = request(self.scheduler, method, path, body, headers)
        self.assertEqual(answer.code, code, answer.text)
        if path.split("?")[0] in self.document["paths"] and method.lower() in self.document["paths"][path.split("?")[0]]:
            self.check(method, path, answer)
        return answer
