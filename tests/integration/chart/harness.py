"""What the tests of this folder share: helm, kubectl, and a control plane for each test program.

Needs helm and a real control plane (./dev cluster build). Where they are not built, a test says so and exits with 77, which
ctest shows as skipped; with MEDLEY_CLUSTER_TEST=1 that is a failure, and with MEDLEY_CLUSTER_TEST=0 it is always skipped.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml  # Debian's python3-yaml

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
BIN = os.environ["MEDLEY_BIN_DIR"]
TESTS = os.path.join(os.path.dirname(BIN), "tests")
CHART = os.path.join(SOURCE, "charts/medley")
CLUSTER = os.path.join(SOURCE, "tests/cluster/kubernetes")
STATES = os.path.join(os.path.dirname(BIN), "clusters")  # ./dev stops the clusters that killed tests leave here
CACHE = os.environ.get("MEDLEY_CLUSTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "medley-cluster")
NAMESPACE = "medley-system"
KUBE_VERSION = "1.34.0"
PATIENCE = 60 * int(os.environ.get("MEDLEY_TEST_PATIENCE", "1"))  # seconds
SKIPPED = 77


def tool(name):
    cached = os.path.join(CACHE, "bin", name)
    return cached if os.access(cached, os.X_OK) else shutil.which(name)


def need(*tools):
    """Exits with the status of a skipped test if a tool is missing."""
    wanted = os.environ.get("MEDLEY_CLUSTER_TEST", "")
    missing = [name for name in tools if not tool(name)]
    if wanted == "0" or missing:
        why = "MEDLEY_CLUSTER_TEST is 0"
        if missing:
            why = f"{missing[0]} is not built. To build it (10 to 20 minutes): ./dev cluster build"
        print(f"NOT RUN: the chart's tests: {why}", file=sys.stderr)
        sys.exit(1 if wanted == "1" else SKIPPED)


CONTROL_PLANE = ("helm", "kubectl", "etcd", "etcdctl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def run(*command, stdin=None, check=True, env=None, timeout=300):
    """Runs a command to its end and returns it. If it fails, the test fails with its output."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout,
                          env={**os.environ, **(env or {})})
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def values_files():
    folder = os.path.join(HERE, "values")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def render(*arguments, check=True, namespace=NAMESPACE):
    """The output of `helm template` as (text, objects). With check=False, the failed process if it failed."""
    done = run(tool("helm"), "template", "medley", CHART, "--namespace", namespace, "--kube-version", KUBE_VERSION,
               *arguments, check=check)
    if not check and done.returncode != 0:
        return done
    return done.stdout, [o for o in yaml.safe_load_all(done.stdout) if o]


def find(objects, kind, name):
    for item in objects:
        if item["kind"] == kind and item["metadata"]["name"] == name:
            return item
    raise AssertionError(f"no {kind} {name} among {[(o['kind'], o['metadata']['name']) for o in objects]}")


def container(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]


def pod_specs(objects):
    """(name, pod spec) of every Deployment and Pod."""
    for item in objects:
        if item["kind"] == "Deployment":
            yield item["metadata"]["name"], item["spec"]["template"]["spec"]
        elif item["kind"] == "Pod":
            yield item["metadata"]["name"], item["spec"]


def wait_for(what, condition, patience=PATIENCE):
    """Calls `condition` until it returns a true value, and returns that."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.4)  # what is asked is often a kubectl, which takes a tenth of a second of a processor
    raise AssertionError(f"waited {patience} s for {what}, in vain")


class Cluster:
    """A control plane without nodes, for one test program. The options are flags of the API server."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="medley-chart-test-")
        os.makedirs(STATES, exist_ok=True)
        self.state = tempfile.mkdtemp(prefix="chart-", dir=STATES)
        self.env = {"MEDLEY_CLUSTER_STATE": self.state, "MEDLEY_APISERVER_ARGS": " ".join(options)}
        try:
            self.kubeconfig = run(os.path.join(CLUSTER, "up"), env=self.env).stdout.strip()
        except BaseException:
            self.close()
            raise
        self.env["KUBECONFIG"] = self.kubeconfig

    def close(self):
        run(os.path.join(CLUSTER, "down"), env=self.env)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments, **keywords):
        return run(tool("kubectl"), *arguments, env=self.env, **keywords)

    def helm(self, *arguments, **keywords):
        return run(tool("helm"), *arguments, env=self.env, **keywords)

    def get(self, *arguments):
        """The object, or None if it does not exist."""
        got = self.kubectl("get", *arguments, "--output", "json", "--ignore-not-found")
        return json.loads(got.stdout) if got.stdout.strip() else None

    def apply(self, item, *arguments, check=True):
        text = item if isinstance(item, str) else json.dumps(item)
        return self.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", *arguments, stdin=text,
                            check=check)

    def make_namespace(self, name=NAMESPACE, restricted=True):
        labels = {"pod-security.kubernetes.io/enforce": "restricted"} if restricted else {}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def apply_crds(self):
        self.kubectl("apply", "--server-side", "--filename", os.path.join(SOURCE, "deploy/crds"))
        self.await_kinds("trainingjobs.medley.dev", "resourcepools.medley.dev")

    def await_kinds(self, *names):
        """Waits until the CRDs are established. (kubectl wait fails on a CRD that has no conditions yet.)"""
        def established(name):
            conditions = (self.get("crd", name).get("status") or {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        for name in names:
            wait_for(f"{name} to be established", lambda name=name: established(name))

    def account_kubeconfig(self, account, namespace=NAMESPACE):
        """Writes a kubeconfig file with a token of the account, from a TokenRequest; returns its path."""
        token = self.kubectl("--namespace", namespace, "create", "token", account, "--duration", "1h").stdout.strip()
        config = json.loads(self.kubectl("config", "view", "--raw", "--output", "json").stdout)
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        path = os.path.join(self.folder, f"{account}.kubeconfig")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return path


class Program:
    """A program in the background, with its output in a file."""

    def __init__(self, folder, name, *arguments, log="", env=None):
        self.log_path = os.path.join(folder, (log or name) + ".log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen([os.path.join(BIN, name), *arguments], stdout=log, stderr=log,
                                            env={**os.environ, **(env or {})})

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def running(*arguments, **keywords):
    program = Program(*arguments, **keywords)
    try:
        yield program
    except BaseException:
        print(program.log()[-6000:])
        raise
    finally:
        program.close()


def main():
    unittest.main(verbosity=2)
