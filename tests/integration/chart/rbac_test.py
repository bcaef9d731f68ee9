"""The operator with the chart's own rights and nothing more, against a real API server that writes an audit log.

The integration tests of a job's life (tests/integration/operator: profiling, planning, running, re-planning, suspension,
failures, ends, and every object beside the pods) run under the ServiceAccount of an installed release, and so does the
program itself with the very flags of its Deployment. Then the log is read: a 403 fails, and so does a rule of the chart that
nobody used. The API server enforces Pod Security `restricted` in every namespace, and asks for rights on owners as OpenShift
does.
"""
import base64
import collections
import contextlib
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
SOLO = "system:serviceaccount:medley-solo:solo-medley-operator"  # the account of a release for one namespace
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
         "rules": [{"level": "Metadata", "users": [USER, SOLO]}, {"level": "None"}]}
RESTRICTED = {
    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
    "plugins": [{"name": "PodSecurity", "configuration": {
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "restricted", "enforce-version": "latest"}}}]}
# Rules that the audit log cannot show, and the reason for each. test_4 shows that each one is needed.
UNSEEN = {
    ("medley.dev", "trainingjobs/finalizers", "update"):
        "the admission plugin OwnerReferencesPermissionEnforcement requires it of the creator of an object that a job owns",
}
POD = "adult-profile-cpu"  # the job's profiler
STRANGER = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": "jobs"},
    "spec": {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
             "containers": [{"name": "c", "image": "i", "securityContext": {
                 "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}


@contextlib.contextmanager
def refusing_port():
    """A port that refuses connections until the end of the block: it is bound, and nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield found.getsockname()[1]


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
        # Without WatchList the operator uses both list and watch, as it does with an older API server.
        cls.cluster = Cluster(
            f"--audit-policy-file={cls.folder}/audit.yaml", f"--audit-log-path={cls.folder}/audit.log",
            f"--admission-control-config-file={cls.folder}/admission.yaml",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--feature-gates=WatchList=false")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.make_namespace()
        # There are no nodes, so the pods of the release never run.
        cls.cluster.helm("install", "medley", CHART, "--namespace", NAMESPACE, "--set", "operator.recommend=true")
        cls.kubeconfig = cls.cluster.account_kubeconfig("medley-operator")
        cls.paths = cls.files_of_release()
        # The pod of `helm test`.
        hooks = yaml.safe_load_all(cls.cluster.helm("get", "hooks", "medley", "--namespace", NAMESPACE).stdout)
        cls.check_pod = next(o for o in hooks if o and o["kind"] == "Pod")

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

    @classmethod
    def files_of_release(cls):
        """Writes the Secrets of the release to files; returns {path in the pod: path here}."""
        paths = {}
        for secret, mount in (("medley-scheduler-token", "scheduler-token"), ("medley-scheduler-ca", "scheduler-ca")):
            for key, data in cls.cluster.get("--namespace", NAMESPACE, "secret", secret)["data"].items():
                here = os.path.join(cls.folder, f"{mount}-{key}")
                with open(here, "wb") as file:
                    file.write(base64.b64decode(data))
                paths[f"/etc/medley/{mount}/{key}"] = here
        return paths

    def test_1_the_life_of_jobs_with_these_rights(self):
        # The other suites need no rights that these do not.
        for test, cases, least in (("operator_life_test", "*LifeTest*Real:*ObjectsTest*Real:*ReplanTest*Real", 20),
                                   ("operator_recommender_test", "*Real", 8)):
            done = subprocess.run(
                [os.path.join(TESTS, test), "--gtest_brief=1", f"--gtest_filter={cases}"], capture_output=True, text=True, check=False,
                timeout=600, env={**os.environ, "MEDLEY_TEST_KUBECONFIG": self.cluster.kubeconfig,
                                  "MEDLEY_TEST_OPERATOR_KUBECONFIG": self.kubeconfig})
            self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-3000:])
            self.assertGreater(int(re.search(r"\[  PASSED  \] (\d+) test", done.stdout).group(1)), least)

    def test_2_the_programs_with_the_flags_of_their_pods(self):
        with self.world("jobs"), self.scheduler():
            self.cluster.apply(STRANGER)
            flags = self.flags("medley-operator")
            self.check_says(0, "operator has no leader", "--check-operator")
            with contextlib.ExitStack() as first:
                port = self.port(first.enter_context(running(self.folder, "medley-operator", *flags, log="first")))
                leader = wait_for("a leader", self.leader)
                self.fail_profilers()
                with running(self.folder, "medley-operator", *flags, log="second") as second:
                    self.port(second)  # it is ready although it does not lead yet
                    self.checks(port)
                    self.assertEqual(self.leader(), leader)
                    first.close()
                    # The new leader reads the job before it acts on its cache, since the old one may have written last.
                    wait_for("the other to lead", lambda: self.leader() not in ("", leader))
                    self.delete_job("jobs")
            self.assertEqual(self.leader(), "", "a leader that is stopped releases its Lease")

    def test_3_one_namespace_and_the_rights_of_it(self):
        self.cluster.make_namespace("medley-solo")
        self.cluster.make_namespace("team-a")
        self.cluster.helm("install", "solo", CHART, "--namespace", "medley-solo", "--set",
                          "watchNamespace=team-a,priorityClass.create=false,rbac.aggregate=false")
        account = self.cluster.account_kubeconfig("solo-medley-operator", "medley-solo")
        with self.world("team-a"), self.scheduler():
            with running(self.folder, "medley-operator",
                         *self.flags("solo-medley-operator", "medley-solo", account), log="solo") as program:
                self.port(program)
                wait_for("a profiler", lambda: self.profiler("team-a"))
                wait_for("the pool's status", lambda: self.cluster.get("resourcepool", "cpu").get("status"))
                self.delete_job("team-a")

    def test_4_rules_that_no_log_shows_are_needed(self):
        """For each rule of UNSEEN: with it the API server accepts the request, and without it refuses it."""
        for name, rules in (("with", [{"apiGroups": ["medley.dev"], "resources": ["trainingjobs/finalizers"],
                                       "verbs": ["update"]}]), ("without", [])):
            self.cluster.apply({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}, *rules]})
            self.cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={name}")
        owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "owned", "namespace": "default", "ownerReferences": [{
                "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "name": "adult", "uid": "1",
                "controller": True, "blockOwnerDeletion": True}]}}
        said = [self.cluster.kubectl("create", "--as", name, "--filename", "-", "--dry-run=server",
                                     stdin=json.dumps(owned), check=False) for name in ("with", "without")]
        self.assertEqual(said[0].returncode, 0, said[0].stderr)
        self.assertIn("cannot set blockOwnerDeletion", said[1].stderr)

    def test_5_nothing_was_forbidden_and_no_rule_is_too_many(self):
        used, forbidden, seen = collections.Counter(), [], set()
        for event in self.audit():
            about, code = event.get("objectRef", {}), event.get("responseStatus", {}).get("code")
            resource = about.get("resource", "") + ("/" + about["subresource"] if "subresource" in about else "")
            seen.add(event["user"]["username"])
            if event["user"]["username"] == USER:
                used[(about.get("apiGroup", ""), resource, event["verb"])] += 1
                # Applying an object that does not exist creates it, and the API server requires both rights.
                if event["verb"] == "patch" and code == 201:
                    used[(about.get("apiGroup", ""), resource, "create")] += 1
            if code == 403:
                forbidden.append(f"{event['user']['username']} {event['verb']} {event['requestURI']}: "
                                 f"{event['responseStatus'].get('message', '')}")
        self.assertEqual(seen, {USER, SOLO})
        self.assertEqual(forbidden, [], "the operator made these requests, which its role does not allow")
        rules = self.rules()
        self.assertGreater(len(rules), 20)
        print(f"\n{sum(used.values())} requests, {len(rules)} rules")
        for rule in sorted(rules):
            print(f"  {used.get(rule, 0):6} {rule[2]:8} {rule[1]}{'.' + rule[0] if rule[0] else ''}"
                  f"{': ' + UNSEEN[rule] if rule in UNSEEN else ''}")
        unused = sorted(rule for rule in rules if rule not in used and rule not in UNSEEN)
        self.assertEqual(unused, [], "no request needed these rules of charts/medley/templates/rbac.yaml")
        self.assertLessEqual(set(UNSEEN), rules, "UNSEEN has rules that the chart does not grant")
        self.assertEqual(sorted(rule for rule in UNSEEN if rule in used), [], "the audit log has these rules of UNSEEN")

    def test_6_admission_keeps_to_objects_of_jobs(self):
        """The role allows changes of every ConfigMap and Service; the policy allows only those of Medley's own."""
        self.cluster.make_namespace("jobs")
        own = {"app.kubernetes.io/managed-by": "medley-operator"}
        for name, more in (("theirs", {}), ("labelled", {"labels": own})):
            self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
                                "metadata": {"name": name, "namespace": "jobs", **more}, "data": {"a": "1"}})
            allowed = name != "theirs"
            for verb in (("replace", "--filename", "-"), ("delete", "configmap", name, "--wait=false")):
                with self.subTest(name=name, verb=verb[0]):
                    now = self.cluster.get("--namespace", "jobs", "configmap", name)
                    done = self.cluster.kubectl(
                        f"--as={USER}", "--namespace", "jobs", *verb, check=False,
                        stdin=json.dumps({**now, "data": {"a": "2"}}) if verb[0] == "replace" else None)
                    self.assertEqual(done.returncode == 0, allowed, done.stdout + done.stderr)
                    if not allowed:
                        self.assertIn("may change and delete only objects that it has created", done.stderr)
        theirs = self.cluster.get("--namespace", "jobs", "configmap", "theirs")
        self.assertEqual(theirs["data"], {"a": "1"})

    def test_6_admission_keeps_to_pods_of_jobs(self):
        """A token of the operator creates no pod of its own and none with power over the node, and no other Secret."""
        self.cluster.make_namespace("jobs")
        owner = {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "name": "adult", "uid": "1", "controller": True}
        container = {"name": "c", "image": "i", "securityContext": {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}

        def pod(metadata=None, **spec):
            return {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": "made", "namespace": "jobs", "ownerReferences": [owner], **(metadata or {})},
                    "spec": {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                             "automountServiceAccountToken": False, "containers": [container], **spec}}

        def secret(kind, owners=(owner,), namespace="jobs"):
            return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {
                "name": "made", "namespace": namespace, "ownerReferences": list(owners),
                "annotations": {"kubernetes.io/service-account.name": "default"}}}

        token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
        privileged = {**container, "securityContext": {"privileged": True}}
        # The namespace would refuse most of them too, so it must not: what counts is the policy.
        self.cluster.kubectl("label", "namespace", "jobs", "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
        self.addCleanup(self.cluster.kubectl, "label", "namespace", "jobs", "pod-security.kubernetes.io/enforce-")
        cases = [
            ("of a job", pod(), ""),
            ("of nobody", pod({"ownerReferences": []}), "may create only pods that a TrainingJob controls"),
            ("owned, not controlled", pod({"ownerReferences": [{**owner, "controller": False}]}), "that a TrainingJob controls"),
            ("of a ReplicaSet", pod({"ownerReferences": [{**owner, "apiVersion": "apps/v1", "kind": "ReplicaSet"}]}),
             "that a TrainingJob controls"),
            ("of another TrainingJob kind", pod({"ownerReferences": [{**owner, "apiVersion": "other.dev/v1"}]}),
             "that a TrainingJob controls"),
            ("network", pod(hostNetwork=True), "rbac.pods.hostNamespaces"),
            ("processes", pod(hostPID=True), "rbac.pods.hostNamespaces"),
            ("ipc", pod(hostIPC=True), "rbac.pods.hostNamespaces"),
            ("files", pod(volumes=[{"name": "h", "hostPath": {"path": "/"}}]), "rbac.pods.hostPath"),
            ("privileged", pod(containers=[privileged]), "rbac.pods.privileged"),
            ("privileged at first", pod(initContainers=[{**privileged, "name": "first"}]), "rbac.pods.privileged"),
            ("token", pod(automountServiceAccountToken=True), "rbac.pods.serviceAccountToken"),
            ("token by default", pod(automountServiceAccountToken=None), "rbac.pods.serviceAccountToken"),
            ("projected token", pod(volumes=[token]), "rbac.pods.serviceAccountToken"),
            ("opaque", secret("Opaque"), ""),
            ("account", secret("kubernetes.io/service-account-token"), "only Secrets of type Opaque"),
            ("a Secret of nobody", secret("Opaque", ()), "only Secrets that a TrainingJob controls"),
            ("the operator's own Secret", secret("Opaque", (), NAMESPACE), ""),
        ]
        for name, made, refusal in cases:
            with self.subTest(name):
                done = self.cluster.kubectl(f"--as={USER}", "create", "--dry-run=server", "--filename", "-",
                                            stdin=json.dumps(made), check=False)
                self.assertEqual(done.returncode == 0, not refusal, done.stdout + done.stderr)
                self.assertIn(refusal, done.stderr)

    def test_6_secrets_of_users_cannot_be_read(self):
        """Whatever verb the operator's token has: none shows what a Secret of a user holds."""
        self.cluster.make_namespace("jobs")
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "jobs"},
                            "stringData": {"password": "hidden-from-the-operator"}})
        again = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "jobs"}}
        tries = [("get", "secret", "theirs", "--output=yaml"), ("get", "secrets", "--output=yaml"),
                 ("get", "secrets", "--watch", "--request-timeout=5s", "--output=yaml"),
                 ("create", "--filename", "-", "--output=yaml"), ("replace", "--filename", "-", "--output=yaml"),
                 ("apply", "--server-side", "--force-conflicts", "--filename", "-", "--output=yaml"),
                 ("patch", "secret", "theirs", "--patch", "{}", "--output=yaml"),
                 ("delete", "secret", "theirs", "--cascade=foreground", "--wait=false"),
                 ("delete", "secrets", "--all", "--wait=false")]
        for attempt in tries:
            with self.subTest(attempt):
                done = self.cluster.kubectl(f"--as={USER}", "--namespace", "jobs", *attempt, check=False,
                                            stdin=json.dumps(again) if "-" in attempt else None)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                for text in ("hidden-from-the-operator", base64.b64encode(b"hidden-from-the-operator").decode()):
                    self.assertNotIn(text, done.stdout + done.stderr)
        self.assertIn("password", self.cluster.get("--namespace", "jobs", "secret", "theirs")["data"])

    def test_7_deleting_a_pool_in_use_is_warned_of(self):
        self.cluster.apply_crds()
        for name, used in (("busy", 3), ("idle", 0)):
            self.cluster.apply({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": name},
                                "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}},
                                         "price": {"usdPerUnitHour": "0.04"}}})
            self.cluster.kubectl("patch", "resourcepool", name, "--subresource=status", "--type=merge", "--patch",
                                 json.dumps({"status": {"units": {"limit": 4, "capacity": 4, "used": used, "free": 1}}}))
            done = self.cluster.kubectl("delete", "resourcepool", name)
            self.assertEqual(f"units of ResourcePool {name} that jobs hold: {used}" in done.stderr, used > 0, done.stderr)
            self.assertEqual("Warning" in done.stderr, used > 0, done.stderr)

    @contextlib.contextmanager
    def world(self, namespace):
        """Creates a node, a pool and a job until the end of the block."""
        self.cluster.apply_crds()
        self.cluster.make_namespace(namespace)
        self.cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        self.cluster.kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "--patch", json.dumps(
            {"status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "50"},
                        "conditions": [{"type": "Ready", "status": "True"}]}}))
        self.cluster.apply({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "cpu"},
                            "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}},
                                     "price": {"usdPerUnitHour": "0.04"}}})
        self.cluster.apply({
            "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
            "metadata": {"name": "adult", "namespace": namespace},
            "spec": {"model": {"name": "ctrdnn"}, "training": {"epochs": 1}, "resources": {"pools": ["cpu"]},
                     "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                              "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}}}})
        try:
            yield
        except BaseException:
            print(self.cluster.kubectl("get", "--all-namespaces", "--output=yaml", "nodes,resourcepools,trainingjobs,pods").stdout)
            raise
        self.cluster.kubectl("delete", "node", "n1")
        self.cluster.kubectl("delete", "resourcepool", "cpu")

    @contextlib.contextmanager
    def scheduler(self):
        """Runs the scheduling service with the release's token and CA until the end of the block."""
        paths = self.paths
        ports = os.path.join(self.folder, "scheduler-ports")
        with running(self.folder, "medley-scheduler", "--grpc-listen", "127.0.0.1:0", "--rest-listen", "127.0.0.1:0",
                     "--port-file", ports, "--token-file", paths["/etc/medley/scheduler-token/token"],
                     "--operator-token-file", paths["/etc/medley/scheduler-token/operator-token"],
                     "--tls-ca-cert", paths["/etc/medley/scheduler-ca/ca.crt"],
                     "--tls-ca-key", paths["/etc/medley/scheduler-ca/ca.key"], "--tls-name", "localhost"):
            wait_for("ports of the scheduling service", lambda: os.path.exists(ports))
            with open(ports, encoding="utf-8") as file:
                found = json.load(file)
            self.grpc, self.rest = found["grpc"], found["rest"]
            yield
        os.remove(ports)

    def local(self, arguments, port=0):
        """The flags of a pod, with the addresses and files of this machine."""
        here = {"--scheduler": f"localhost:{self.grpc}", "--check-rest": f"https://localhost:{self.rest}",
                "--check-operator": f"http://127.0.0.1:{port}", "--http-address": "127.0.0.1", "--http-port": str(port)}
        found = []
        for argument in arguments:
            flag, _, value = argument.partition("=")
            value = here.get(flag, self.paths.get(value, value))
            found.append(f"{flag}={value}" if value else flag)
        return found

    def flags(self, name, namespace=NAMESPACE, account=None):
        deployment = self.cluster.get("--namespace", namespace, "deployment", name)
        return ["--kubeconfig", account or self.kubeconfig, *self.local(container(deployment)["args"])]

    def check(self, port, *more, without=()):
        """Runs what `helm test` runs, for an operator at this port."""
        arguments = [a for a in self.local(self.check_pod["spec"]["containers"][0]["args"], port)
                     if a.split("=")[0] not in without]
        return run(os.path.join(BIN, "medley-operator"), "--kubeconfig", self.kubeconfig, *arguments, *more, check=False)

    def checks(self, port):
        done = self.check(port)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for said in ("trainingjobs: readable", f"localhost:{self.grpc}: a plan of 2 units", "prices: 0, revision",
                     f"https://localhost:{self.rest}: a plan of 2 units", ": ready", f"leader: {self.leader()}, term"):
            self.assertIn(said, done.stdout)
        wrong = os.path.join(self.folder, "wrong-token")
        with open(wrong, "w", encoding="ascii") as file:
            file.write("x" * 48)
        self.check_says(port, "token", f"--scheduler-token-file={wrong}")
        with refusing_port() as nobody:
            self.check_says(port, "connection refused", f"--check-rest=https://localhost:{nobody}")
            self.check_says(port, "connection refused", f"--check-operator=http://localhost:{nobody}")

    def check_says(self, port, sentence, flag):
        """Runs the check without this flag of the pod, or with this value of it: it fails and prints `sentence`."""
        name = flag.split("=")[0]
        done = self.check(port, "--check-patience=0.5", *([flag] if "=" in flag else []), without=[name])
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(sentence, done.stderr)

    def port(self, program):
        """Waits until the operator is ready; returns its HTTP port."""
        found = wait_for("the operator's port", lambda: re.search(r"http port (\d+)\n", program.log()))
        wait_for("the operator to be ready", lambda: run(
            "curl", "--silent", "--fail", f"http://127.0.0.1:{found[1]}/readyz", check=False).returncode == 0)
        return int(found[1])

    def leader(self):
        """The holder of the Lease, or an empty string."""
        lease = self.cluster.get("--namespace", NAMESPACE, "lease", "medley-operator")
        return lease["spec"].get("holderIdentity", "") if lease else ""

    def profiler(self, namespace):
        pod = self.cluster.get("--namespace", namespace, "pod", POD)
        return pod if pod and pod["metadata"].get("ownerReferences") else None

    def finish_deletion(self, namespace):
        """Finishes the deletion of the pod, as a kubelet would."""
        self.cluster.kubectl("--namespace", namespace, "delete", "pod", POD, "--grace-period=0", "--force",
                             "--ignore-not-found")

    def fail_profilers(self):
        """A foreign pod has the profiler's name, which an Event reports. Then two profilers fail: one Event with a count."""
        def reported(reason, count):
            return any(e["reason"] == reason and e.get("count", 1) >= count
                       for e in self.cluster.get("--namespace", "jobs", "events")["items"])
        wait_for("an event about the name that is taken", lambda: reported("FailedCreatePod", 1))
        self.finish_deletion("jobs")
        failed = set()

        def fail_one():
            pod = self.profiler("jobs")
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self.finish_deletion("jobs")
            elif pod is not None and pod["metadata"]["uid"] not in failed:
                failed.add(pod["metadata"]["uid"])
                ended = {"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                         "state": {"terminated": {"exitCode": 1}}}
                self.cluster.kubectl("--namespace", "jobs", "patch", "pod", POD, "--subresource=status", "--type=merge",
                                     "--patch", json.dumps({"status": {"phase": "Failed", "containerStatuses": [ended]}}))
            return len(failed) == 2
        wait_for("two profilers that failed", fail_one)
        wait_for("one event of both", lambda: reported("ProfilerFailed", 2))

    def delete_job(self, namespace):
        self.cluster.kubectl("--namespace", namespace, "delete", "trainingjob", "adult", "--wait=false")

        def deleted():
            pod = self.profiler(namespace)
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self.finish_deletion(namespace)
            return self.cluster.get("--namespace", namespace, "trainingjob", "adult") is None
        wait_for("the job to be deleted", deleted)


if __name__ == "__main__":
    need(*CONTROL_PLANE)
    harness.main()
