"""The operator with the chart's own rights and nothing more, against a real API server that writes an audit log.

Every integration test of the operator (tests/integration/operator: profiling, planning, running, re-planning, suspension,
failures, ends) runs under the ServiceAccount of an installed release, and so does the program itself with the very flags of
its Deployment. Then the log is read: a 403 fails, and so does a rule of the chart that nobody used. The API server enforces
Pod Security `restricted` in every namespace, and asks for rights on owners as OpenShift does.
"""
import base64
import collections
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import harness
import yaml
from harness import (BIN, CHART, CONTROL_PLANE, NAMESPACE, TESTS, Cluster, container, need, run, running,
                     wait_for)

USER = f"system:serviceaccount:{NAMESPACE}:medley-operator"
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
         "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}]}
RESTRICTED = {
    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
    "plugins": [{"name": "PodSecurity", "configuration": {
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "restricted", "enforce-version": "latest"}}}]}
# Rules that an audit log cannot show, and why they are there.
UNSEEN = {
    ("medley.dev", "trainingjobs/finalizers", "update"):
        "asked by the admission plugin OwnerReferencesPermissionEnforcement, which is on here; without the rule creates get 403",
}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class RbacTest(unittest.TestCase):
    cluster = None
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="medley-rbac-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        for name, content in (("audit.yaml", AUDIT), ("admission.yaml", RESTRICTED)):
            with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
                yaml.safe_dump(content, file)
        # Without WatchList the operator lists and watches, as against an older API server: both verbs are used.
        cls.cluster = Cluster(
            f"--audit-policy-file={cls.folder}/audit.yaml", f"--audit-log-path={cls.folder}/audit.log",
            f"--admission-control-config-file={cls.folder}/admission.yaml",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--feature-gates=WatchList=false")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.make_namespace()
        # No replicas: their pods would never run here, and the garbage of tests is easier to see without them.
        cls.cluster.helm("install", "medley", CHART, "--namespace", NAMESPACE)
        cls.kubeconfig = cls.cluster.account_kubeconfig("medley-operator")

    def audit(self):
        with open(os.path.join(self.folder, "audit.log"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def rules(self):
        """{(group, resource, verb)} of every role that is bound to the operator's account."""
        found = set()
        for bindings, roles in (("clusterrolebindings", "clusterrole"), ("rolebindings", "role")):
            for binding in self.cluster.get(bindings, "--all-namespaces")["items"]:
                subjects = binding.get("subjects") or []
                if not any(s.get("name") == "medley-operator" and s.get("namespace") == NAMESPACE for s in subjects):
                    continue
                where = ["--namespace", binding["metadata"]["namespace"]] if roles == "role" else []
                for rule in self.cluster.get(*where, binding["roleRef"]["kind"].lower(), binding["roleRef"]["name"])["rules"]:
                    found |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                              for verb in rule["verbs"]}
        return found

    def files_of_release(self):
        """The Secrets of the release as files: {path in the pod: path here}, and the token's and certificate's own."""
        paths = {}
        for secret, mount in (("medley-scheduler-token", "scheduler-token"), ("medley-scheduler-tls", "scheduler-ca")):
            for key, data in self.cluster.get("--namespace", NAMESPACE, "secret", secret)["data"].items():
                here = os.path.join(self.folder, f"{mount}-{key}")
                with open(here, "wb") as file:
                    file.write(base64.b64decode(data))
                paths[f"/etc/medley/{mount}/{key}"] = here
        return paths

    def test_1_every_test_of_the_operator_passes_with_these_rights(self):
        done = subprocess.run(
            [os.path.join(TESTS, "operator_life_test"), "--gtest_filter=*Real", "--gtest_brief=1"], capture_output=True,
            text=True, check=False, timeout=600,
            env={**os.environ, "MEDLEY_TEST_KUBECONFIG": self.cluster.kubeconfig,
                 "MEDLEY_TEST_OPERATOR_KUBECONFIG": self.kubeconfig})
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-3000:])
        self.assertGreater(int(re.search(r"\[  PASSED  \] (\d+) test", done.stdout).group(1)), 20)

    def test_2_the_program_with_the_flags_of_its_deployment(self):
        self.cluster.apply_crds()
        self.cluster.make_namespace("jobs")
        paths = self.files_of_release()
        grpc, rest = free_port(), free_port()
        service = ["--grpc-listen", f"127.0.0.1:{grpc}", "--rest-listen", f"127.0.0.1:{rest}",
                   "--token-file", paths["/etc/medley/scheduler-token/token"],
                   "--tls-cert", paths["/etc/medley/scheduler-ca/tls.crt"],
                   "--tls-key", paths["/etc/medley/scheduler-ca/tls.key"]]
        deployment = self.cluster.get("--namespace", NAMESPACE, "deployment", "medley-operator")
        arguments = []
        for argument in container(deployment)["args"]:
            flag, _, value = argument.partition("=")
            here = {"--scheduler": f"localhost:{grpc}", "--http-address": "127.0.0.1"}
            value = here.get(flag, paths.get(value, value))
            if flag != "--http-port":
                arguments.append(f"{flag}={value}" if value else flag)
        reach = [a for a in arguments if a.startswith("--scheduler")]
        account = ["--kubeconfig", self.kubeconfig]

        with running(self.folder, "medley-scheduler", *service):
            # What `helm test` runs.
            said = run(os.path.join(BIN, "medley-operator"), "--check", *account, *reach).stdout
            self.assertIn("trainingjobs: readable", said)
            self.assertIn("revision", said)
            wrong = os.path.join(self.folder, "wrong-token")
            with open(wrong, "w", encoding="ascii") as file:
                file.write("x" * 48)
            refused = run(os.path.join(BIN, "medley-operator"), "--check", *account,
                          *[a if "token" not in a else f"--scheduler-token-file={wrong}" for a in reach], check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("token", refused.stderr)
            ports = [free_port(), free_port()]
            replicas = [[*account, *arguments, f"--http-port={port}"] for port in ports]
            with running(self.folder, "medley-operator", *replicas[0], log="first"):
                self.await_ready(ports[0])
                with running(self.folder, "medley-operator", *replicas[1], log="second"):
                    self.await_ready(ports[1])  # it does not lead yet
                    first = wait_for("a leader", self.leader)
                    self.live()
                self.assertEqual(self.leader(), first, "the end of a standby is nothing to the leader")
            self.assertEqual(self.leader(), "", "a leader that is told to stop gives its Lease back")

    def await_ready(self, port):
        def ready():
            return run("curl", "--silent", f"http://127.0.0.1:{port}/readyz", check=False).stdout == "ok\n"
        wait_for("the operator to be ready", ready)

    def leader(self):
        """Who holds the Lease; empty: nobody."""
        lease = self.cluster.get("--namespace", NAMESPACE, "lease", "medley-operator")
        return lease["spec"].get("holderIdentity", "") if lease else ""

    def live(self):
        """A job until its profiler has failed twice, which is one Event with a count; then its end."""
        self.cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"size": "big"}}})
        self.cluster.kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "--patch", json.dumps(
            {"status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "50"},
                        "conditions": [{"type": "Ready", "status": "True"}]}}))
        self.cluster.apply({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "cpu"},
                            "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}},
                                     "price": {"usdPerUnitHour": "0.04"}}})
        job = {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "adult", "namespace": "jobs"},
               "spec": {"model": {"name": "ctrdnn"}, "training": {"epochs": 1},
                        "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                                 "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}}}}
        self.cluster.apply(job)
        failed = set()

        def fail_profiler():
            pod = self.cluster.get("--namespace", "jobs", "pod", "adult-profile-cpu")
            if pod is None:
                return len(failed) >= 2
            uid = pod["metadata"]["uid"]
            if pod["metadata"].get("deletionTimestamp"):  # no kubelet lets go of it
                self.cluster.kubectl("--namespace", "jobs", "delete", "pod", "adult-profile-cpu", "--grace-period=0", "--force",
                                     "--ignore-not-found")
            elif uid not in failed and len(failed) < 2:
                failed.add(uid)
                ended = {"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                         "state": {"terminated": {"exitCode": 1}}}
                self.cluster.kubectl("--namespace", "jobs", "patch", "pod", "adult-profile-cpu", "--subresource=status",
                                     "--type=merge", "--patch",
                                     json.dumps({"status": {"phase": "Failed", "containerStatuses": [ended]}}))
            return False
        wait_for("two profilers that failed", fail_profiler)
        wait_for("one event of both", lambda: any(
            e["reason"] == "ProfilerFailed" and e.get("count") == 2
            for e in self.cluster.get("--namespace", "jobs", "events")["items"]))
        self.cluster.kubectl("--namespace", "jobs", "delete", "trainingjob", "adult", "--wait=false")

        def gone():
            pod = self.cluster.get("--namespace", "jobs", "pod", "adult-profile-cpu")
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self.cluster.kubectl("--namespace", "jobs", "delete", "pod", "adult-profile-cpu", "--grace-period=0", "--force",
                                     "--ignore-not-found")
            return self.cluster.get("--namespace", "jobs", "trainingjob", "adult") is None
        wait_for("the job to be gone", gone)

    def test_3_nothing_was_forbidden_and_no_rule_is_too_many(self):
        used, forbidden = collections.Counter(), []
        for event in self.audit():
            about = event.get("objectRef", {})
            resource = about.get("resource", "") + ("/" + about["subresource"] if "subresource" in about else "")
            used[(about.get("apiGroup", ""), resource, event["verb"])] += 1
            if event.get("responseStatus", {}).get("code") == 403:
                forbidden.append(f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message', '')}")
        self.assertEqual(forbidden, [], "requests of the operator that its role does not allow")
        rules = self.rules()
        self.assertGreater(len(rules), 20)
        print(f"\n{sum(used.values())} requests, {len(rules)} rules")
        for rule in sorted(rules):
            print(f"  {used.get(rule, 0):6} {rule[2]:8} {rule[1]}{'.' + rule[0] if rule[0] else ''}")
        unused = sorted(rule for rule in rules if rule not in used and rule not in UNSEEN)
        self.assertEqual(unused, [], "rules of charts/medley/templates/rbac.yaml that no request needed")
        self.assertLessEqual(set(UNSEEN), rules)


if __name__ == "__main__":
    need(*CONTROL_PLANE)
    harness.main()
