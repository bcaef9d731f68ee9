"""A real Prometheus reads the metrics of each kind of process with its token, and nothing without. Needs Debian's prometheus and
kubernetes-client.

`medley run` gives the API server and a job. Further processes beside its own require tokens: an operator, a scheduling service,
and a coordinator with the environment of the job's own and, as in a pod, only the digest of the token.
"""
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
import yaml  # Debian's python3-yaml
from cluster import BIN, LOOPBACK, PROMETHEUS, Cluster, Prometheus, get, read, unused_port, wait_for, write
from live_test import job

TOKENS = {"operator": "token-of-the-operator-0001", "scheduler": "token-of-the-scheduler-0001", "jobs": "token-of-the-jobs-000001"}
POOL = """
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: local, annotations: {run.medley.dev/simulate: "true"}}
spec:
  class: CPU
  unit: {resources: {cpu: 200m, memory: 1Gi}, env: [{name: MEDLEY_PROFILE_TIME, value: 1s}]}
  limit: 4
  price: {usdPerUnitHour: "0.10"}
---
"""
OF_PROCESS = {"operator": "operator", "scheduler": "scheduler", "coordinator": "jobs"}


def status(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with LOOPBACK.open(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


class TokenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        first = job("small", {"maxUsdPerHour": "5"}, epochs=100000)
        cls.cluster = Cluster({"job.yaml": POOL + yaml.safe_dump(first)}, "job.yaml")
        cls.addClassCleanup(cls.cluster.close)
        cls.files = {name: write(os.path.join(cls.cluster.folder, name + ".token"), token + "\n") for name, token in TOKENS.items()}
        coordinator = wait_for("the job's coordinator", cls.coordinator_process)
        cls.addresses = {"operator": cls.start_operator(), "scheduler": cls.start_scheduler(),
                         "coordinator": cls.start_coordinator(coordinator)}

    @classmethod
    def coordinator_process(cls):
        cls.cluster.processes.alive("medley")
        if not os.path.exists(cls.cluster.kubeconfig):
            return None
        pods = cls.cluster.pods("small", "coordinator")
        return cls.cluster.process_of(pods[0]) if pods else None

    @classmethod
    def start_operator(cls):
        """It watches the same API server, for the jobs of a namespace without any."""
        cls.cluster.processes.start("operator", os.path.join(BIN, "medley-operator"), "--kubeconfig", cls.cluster.kubeconfig,
                                    "--namespace", "none", "--no-leader-elect", "--metrics-token-file", cls.files["operator"],
                                    "--worker-metrics-token-file", cls.files["jobs"])
        found = wait_for("the operator's port", lambda: cls.cluster.processes.alive("operator") and
                         re.search(r"http port (\d+)", cls.cluster.processes.log("operator")))
        return f"127.0.0.1:{found.group(1)}"

    @classmethod
    def start_scheduler(cls):
        ports = os.path.join(cls.cluster.folder, "ports")
        cls.cluster.processes.start("scheduler", os.path.join(BIN, "medley-scheduler"), "--grpc-listen", "127.0.0.1:0", "--rest-listen",
                                    "127.0.0.1:0", "--port-file", ports, "--token-file", cls.files["scheduler"])
        wait_for("the scheduling service", lambda: cls.cluster.processes.alive("scheduler") and read(ports))
        return f"127.0.0.1:{json.loads(read(ports))['rest']}"

    @classmethod
    def start_coordinator(cls, process):
        with open(f"/proc/{process}/environ", "rb") as file:
            environment = dict(entry.decode().split("=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
        port = unused_port()
        environment |= {"MEDLEY_METRICS_PORT": str(port), "MEDLEY_LISTEN_PORT": str(unused_port()), "MEDLEY_POD_IP": "127.0.0.1",
                        "MEDLEY_CHECKPOINT_DIR": "", "MEDLEY_COORDINATOR_TERM": "0",
                        "MEDLEY_METRICS_TOKEN_SHA256": hashlib.sha256(TOKENS["jobs"].encode()).hexdigest()}
        settings = [f"{name}={value}" for name, value in environment.items()]
        cls.cluster.processes.start("coordinator", shutil.which("env"), "-i", *settings, os.path.join(BIN, "medley-worker"),
                                    "--role=coordinator")
        address = f"127.0.0.1:{port}"

        def listens():
            cls.cluster.processes.alive("coordinator")
            try:
                return status(f"http://{address}/metrics")
            except OSError:
                return None

        wait_for("the coordinator's metrics", listens)
        return address

    def test_the_token_of_the_process_and_no_other_reads(self):
        for process, address in self.addresses.items():
            for name, token in [("none", None), *TOKENS.items()]:
                with self.subTest(process, token=name):
                    expected = 200 if name == OF_PROCESS[process] else 401
                    self.assertEqual(status(f"http://{address}/metrics", token), expected)

    def test_probes_need_none(self):
        for process in ("operator", "scheduler"):
            with self.subTest(process):
                self.assertEqual(status(f"http://{self.addresses[process]}/healthz"), 200)

    def test_prometheus_reads_with_the_token_and_nothing_without(self):
        folder = tempfile.mkdtemp(prefix="medley-token-test-", dir=self.cluster.folder)
        prometheus = Prometheus(self.cluster.processes, folder, "groups: []\n", scrapes=[
            {"job_name": f"{process}-{how}", "static_configs": [{"targets": [address]}], **credentials}
            for process, address in self.addresses.items()
            for how, credentials in (("with", {"authorization": {"credentials_file": self.files[OF_PROCESS[process]]}}),
                                     ("without", {}),
                                     ("wrong", {"authorization": {"credentials": "token-of-another-client"}}))])
        for process in self.addresses:
            with self.subTest(process):
                wait_for("a scrape with the token", lambda process=process: prometheus.now(f'up{{job="{process}-with"}} == 1'))
                self.assertTrue(prometheus.now(f'medley_build_info{{job="{process}-with"}}'))
                for how in ("without", "wrong"):
                    wait_for("a scrape", lambda process=process, how=how: prometheus.now(f'up{{job="{process}-{how}"}}'))
                    self.assertEqual(prometheus.now(f'max_over_time(up{{job="{process}-{how}"}}[1h]) == 1'), [])
                    self.assertEqual(prometheus.now(f'{{__name__=~"medley_.*", job="{process}-{how}"}}'), [])
        targets = json.loads(get(f"http://127.0.0.1:{prometheus.port}/api/v1/targets"))["data"]["activeTargets"]
        errors = {target["labels"]["job"]: target["lastError"] for target in targets}
        for process in self.addresses:
            self.assertIn("401", errors[f"{process}-without"])
            self.assertEqual(errors[f"{process}-with"], "")

    def test_a_file_without_a_token_starts_no_operator(self):
        empty = write(os.path.join(self.cluster.folder, "empty.token"), "\n")
        process = self.cluster.processes.start("open", os.path.join(BIN, "medley-operator"), "--kubeconfig", self.cluster.kubeconfig,
                                               "--no-leader-elect", "--metrics-token-file", empty)
        self.assertNotEqual(process.wait(60), 0)
        self.assertIn("contains no token", self.cluster.processes.log("open"))


if __name__ == "__main__":
    if not os.access(PROMETHEUS, os.X_OK):
        sys.exit(f"{PROMETHEUS} is missing: install Debian's package prometheus (./dev does). NOTHING WAS TESTED.")
    unittest.main(verbosity=1)
