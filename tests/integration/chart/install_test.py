"""The chart on a real API server: dry runs, install, upgrade, uninstall; rights of users; plain manifests.

There are no nodes: pods stay pending, which is as far as a control plane goes. What Pod Security says of them is real: the
namespace enforces `restricted`.
"""
import base64
import json
import os
import unittest

import harness
import yaml
from harness import CHART, CONTROL_PLANE, NAMESPACE, SOURCE, Cluster, need, render, run, values_files, wait_for

JOB = {
    "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "adult", "namespace": "team-a"},
    "spec": {"model": {"name": "ctrdnn"},
             "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                      "schema": {"label": {"column": 0}, "categorical": [1]}}}}
POOL = {
    "apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "cpu"},
    "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}}, "price": {"usdPerUnitHour": "0.04"}}}


def foreign_crd(group, version, kind, plural):
    """The CRD of another project's kind, which allows any fields. It is enough to apply objects of that kind."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": version, "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}}]}}


FOREIGN = [("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
           ("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
           ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
           ("cert-manager.io", "v1", "Certificate", "certificates"),
           ("cert-manager.io", "v1", "Issuer", "issuers")]


class InstallTest(unittest.TestCase):
    cluster = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.make_namespace()
        cls.cluster.make_namespace("team-a")
        for kind in FOREIGN:
            cls.cluster.apply(foreign_crd(*kind))
        cls.cluster.await_kinds(*(f"{plural}.{group}" for group, _, _, plural in FOREIGN))

    def helm(self, *arguments, **keywords):
        return self.cluster.helm("--namespace", NAMESPACE, *arguments, **keywords)

    def release(self, name="medley", *arguments):
        """Installs the chart until the end of the test."""
        self.helm("install", name, CHART, *arguments)
        self.addCleanup(lambda: self.helm("uninstall", name, "--ignore-not-found", "--wait", "--timeout", "60s"))

    def left(self, kind, *arguments):
        """The names of the release's objects of this kind."""
        return self.cluster.kubectl("get", kind, *arguments, "--selector", "app.kubernetes.io/instance=medley",
                                    "--output", "name").stdout.split()

    def secret(self, name):
        return self.cluster.get("--namespace", NAMESPACE, "secret", name)["data"]

    def test_a_dry_run_of_every_rendering_is_accepted(self):
        self.cluster.apply_crds()
        for values in values_files():
            with self.subTest(values=os.path.basename(values)):
                text, objects = render("--values", values)
                # The pod of `helm test` is accepted only if its ServiceAccount and PriorityClass exist.
                first = [o for o in objects if o["kind"] in ("ServiceAccount", "PriorityClass")]
                for item in first:
                    self.cluster.apply(item)
                    self.addCleanup(self.cluster.kubectl, "delete", "--ignore-not-found", "--filename", "-",
                                    stdin=json.dumps(item))
                done = self.cluster.apply(text, "--dry-run=server", "--validate=strict")
                self.assertEqual(len(done.stdout.splitlines()), len(objects))
                self.assertNotIn("Warning", done.stderr, "the API server warns of Pod Security or of a deprecated field")

    def test_plain_manifests(self):
        self.cluster.apply_crds()
        path = os.path.join(SOURCE, "deploy/medley.yaml")
        with open(path, encoding="utf-8") as file:
            objects = [o for o in yaml.safe_load_all(file) if o]
        # Everything but the namespace, whose deletion takes long.
        mine = yaml.safe_dump_all(o for o in objects if o["kind"] != "Namespace")
        self.addCleanup(lambda: self.cluster.kubectl("delete", "--ignore-not-found", "--timeout=60s", "--filename", "-",
                                                     stdin=mine))
        self.addCleanup(self.cluster.kubectl, "--namespace", NAMESPACE, "delete", "--timeout=60s",
                        "--ignore-not-found", "secret", "medley-scheduler-token", "medley-scheduler-ca")
        made = []
        for _ in range(2):
            run(os.path.join(SOURCE, "deploy/make-secrets"),
                env={**self.cluster.env,
                     "PATH": os.path.dirname(harness.tool("kubectl")) + ":" + os.environ["PATH"]})
            made.append((self.secret("medley-scheduler-token"), self.secret("medley-scheduler-ca")))
        self.assertEqual(made[0], made[1], "a second run of make-secrets changed the Secrets")
        token, ca = made[0]
        self.assertGreaterEqual(len(base64.b64decode(token["token"]).strip()), 16)
        certificate = base64.b64decode(ca["ca.crt"]).decode()
        self.assertIn("CA:TRUE", run("openssl", "x509", "-noout", "-ext", "basicConstraints", stdin=certificate).stdout)
        done = self.cluster.kubectl("apply", "--server-side", "--filename", path)
        self.assertEqual(len(done.stdout.splitlines()), len(objects))
        self.await_pods()

        # As docs/operate/upgrade.md says, the chart takes ownership of the objects and replaces none.
        before = [self.template(part) for part in ("operator", "scheduler")]
        self.release("medley", "--values", os.path.join(SOURCE, "deploy/values.yaml"), "--take-ownership")
        self.assertEqual([self.template(part) for part in ("operator", "scheduler")], before)

    def await_pods(self):
        """Waits until all pods of both Deployments exist, which shows that Pod Security admits them."""
        for name, replicas in (("medley-operator", 2), ("medley-scheduler", 1)):
            wait_for(f"pods of {name}", lambda name=name, replicas=replicas: self.cluster.get(
                "--namespace", NAMESPACE, "deployment", name)["status"].get("updatedReplicas") == replicas)

    def template(self, part):
        return self.cluster.get("--namespace", NAMESPACE, "deployment", f"medley-{part}")["spec"]["template"]

    def arguments(self, part):
        return self.template(part)["spec"]["containers"][0]["args"]

    def secrets(self):
        return [self.secret("medley-scheduler-token"), self.secret("medley-scheduler-ca")]

    def train(self):
        """Creates a pool and a job with a pod, which must outlive each upgrade and the release. Returns these objects."""
        self.cluster.apply_crds()
        self.cluster.apply(POOL)
        self.cluster.apply(JOB)
        owner = {"apiVersion": JOB["apiVersion"], "kind": "TrainingJob", "name": "adult", "controller": True,
                 "uid": self.cluster.get("--namespace", "team-a", "trainingjob", "adult")["metadata"]["uid"]}
        self.cluster.apply({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "adult-0-cpu-0", "namespace": "team-a", "ownerReferences": [owner]},
            "spec": {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                     "nodeSelector": {"no": "node"},  # no node matches, so that nothing writes to the pod
                     "containers": [{"name": "worker", "image": "i", "securityContext": {
                         "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}})
        wait_for("the pod to be looked at", lambda: self.cluster.get(
            "--namespace", "team-a", "pod", "adult-0-cpu-0")["status"].get("conditions"))
        return self.training()

    def training(self):
        return [self.cluster.get("--namespace", "team-a", "trainingjob", "adult"), self.cluster.get("resourcepool", "cpu"),
                self.cluster.get("--namespace", "team-a", "pod", "adult-0-cpu-0")]

    def test_upgrade_from_changed_values(self):
        # This cluster has the kinds of cert-manager, but nobody who makes certificates, so the service signs its own.
        self.release("medley", "--set", "operator.logLevel=debug,scheduler.limits.maxWaiting=32")
        self.await_pods()
        jobs, secrets, scheduler = self.train(), self.secrets(), self.template("scheduler")

        # As docs/operate/upgrade.md says: values that were set stay set, and no pod of a part that did not change is replaced.
        self.cluster.apply(self.helm("show", "crds", CHART).stdout)
        self.helm("upgrade", "medley", CHART, "--reset-then-reuse-values", "--set", "worker.pullPolicy=Always")
        self.assertIn("--log-level=debug", self.arguments("operator"))
        self.assertIn("--worker-image-pull-policy=Always", self.arguments("operator"))
        self.assertEqual(self.template("scheduler"), scheduler)
        self.assertIn("--max-waiting=32", self.arguments("scheduler"))
        self.assertEqual(self.secrets(), secrets)

        # Objects of a disabled feature are deleted, those of an enabled one created. Rights shrink to one namespace.
        self.assertEqual(len(self.left("networkpolicy", "--namespace", NAMESPACE)), 2)
        self.helm("upgrade", "medley", CHART, "--reset-then-reuse-values", "--set",
                  "networkPolicy.enabled=false,scheduler.pdb.enabled=false,watchNamespace=team-a")
        self.assertEqual(self.left("networkpolicy", "--namespace", NAMESPACE), [])
        self.assertEqual(len(self.left("poddisruptionbudget", "--namespace", NAMESPACE)), 1)
        self.assertEqual(len(self.left("role", "--namespace", "team-a")), 1)
        self.assertIsNone(self.cluster.get("clusterrole", "medley-operator-jobs"))
        self.assertIn("--namespace=team-a", self.arguments("operator"))
        self.assertEqual(self.arguments("scheduler"), scheduler["spec"]["containers"][0]["args"])

        # Another name in the certificate replaces the pods that sign it, and keeps the CA.
        self.helm("upgrade", "medley", CHART, "--reset-then-reuse-values", "--set",
                  "scheduler.tls.extraNames={medley.example.com}")
        self.assertEqual(self.secrets(), secrets)
        self.assertIn("--tls-name=medley.example.com", self.arguments("scheduler"))

        # Values that the schema refuses change nothing.
        before = self.template("operator")
        done = self.helm("upgrade", "medley", CHART, "--reset-then-reuse-values", "--set", "operator.replica=3", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("additional properties 'replica' not allowed", done.stderr)
        self.assertEqual(self.template("operator"), before)

        self.helm("rollback", "medley", "1")
        self.assertEqual(self.template("scheduler"), scheduler)
        self.assertEqual(self.secrets(), secrets)
        self.assertEqual(len(self.left("networkpolicy", "--namespace", NAMESPACE)), 2)
        self.assertIsNotNone(self.cluster.get("clusterrole", "medley-operator-jobs"))
        self.assertEqual(self.training(), jobs, "an upgrade touched a job, its pool or its pod")

    def test_a_release_with_everything_and_its_end(self):
        self.release("medley", "--values", os.path.join(harness.HERE, "values", "cloud.yaml"),
                     "--values", os.path.join(harness.HERE, "values", "cert-manager.yaml"))
        scheduler = self.cluster.get("--namespace", NAMESPACE, "deployment", "medley-scheduler")
        self.assertEqual(scheduler["spec"]["replicas"], 3)
        self.assertIsNotNone(self.cluster.get("--namespace", NAMESPACE, "certificate", "medley-scheduler"))
        self.assertIsNone(self.cluster.get("--namespace", NAMESPACE, "secret", "medley-scheduler-tls"))
        config = self.cluster.get("--namespace", NAMESPACE, "configmap", "medley-scheduler-catalog")
        self.assertEqual(len(yaml.safe_load(config["data"]["catalog.yaml"])["feeds"]), 3)
        self.assertIn("contract.yaml", json.dumps(
            self.cluster.get("--namespace", NAMESPACE, "configmap", "medley-scheduler-prices")["data"]))

        # Uninstalling deletes all these objects, and leaves the CRDs and their objects.
        jobs = self.train()
        self.helm("uninstall", "medley", "--wait", "--timeout", "60s")
        for kind in ("deployment", "service", "serviceaccount", "secret", "configmap", "networkpolicy",
                     "poddisruptionbudget", "role", "rolebinding", "servicemonitor", "podmonitor",
                     "prometheusrule", "certificate", "issuer"):
            self.assertEqual(self.left(kind, "--all-namespaces"), [])
        for kind in ("clusterrole", "clusterrolebinding", "priorityclass"):
            self.assertEqual(self.left(kind), [])
        for name in ("trainingjobs", "resourcepools"):
            self.assertIsNotNone(self.cluster.get("crd", f"{name}.medley.dev"))
        self.assertEqual(self.training(), jobs, "uninstalling touched a job, its pool or its pod")

        # A new release uses them.
        self.helm("install", "medley", CHART)
        self.await_pods()
        self.assertEqual(self.training(), jobs)

    def test_two_namespaced_releases_live_side_by_side(self):
        self.cluster.make_namespace("team-b")
        self.release("a", "--set", "watchNamespace=team-a,priorityClass.create=false,rbac.aggregate=false")
        self.release("b", "--set", "watchNamespace=team-b,priorityClass.create=false,rbac.aggregate=false")
        account = f"system:serviceaccount:{NAMESPACE}:a-medley-operator"
        can = lambda *what: self.cluster.kubectl("auth", "can-i", *what, "--as", account, check=False).stdout.strip()
        self.assertEqual(can("create", "pods", "--namespace", "team-a"), "yes")
        self.assertEqual(can("create", "pods", "--namespace", "team-b"), "no")
        self.assertEqual(can("get", "secrets", "--namespace", "team-b"), "no")
        self.assertEqual(can("list", "pods", "--all-namespaces"), "yes")

    def test_users_get_rights_with_the_roles_that_they_have(self):
        self.release("medley")
        for role in ("admin", "edit", "view"):
            self.cluster.kubectl("--namespace", "team-a", "create", "rolebinding", role, f"--clusterrole={role}",
                                 f"--user={role}er")
            self.addCleanup(self.cluster.kubectl, "--namespace", "team-a", "delete", "rolebinding", role)

        def can(user, *what):
            done = self.cluster.kubectl("--namespace", "team-a", "auth", "can-i", *what, "--as", user, check=False)
            return done.stdout.strip()
        # The controller-manager aggregates the roles.
        wait_for("aggregation", lambda: can("viewer", "list", "trainingjobs.medley.dev") == "yes")
        for user in ("adminer", "editer"):
            for verb in ("create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"):
                self.assertEqual(can(user, verb, "trainingjobs.medley.dev"), "yes", f"{user} {verb}")
            self.assertEqual(can(user, "patch", "trainingjobs.medley.dev", "--subresource=scale"), "yes")
            self.assertEqual(can(user, "patch", "trainingjobs.medley.dev", "--subresource=status"), "no")
        for verb in ("create", "update", "patch", "delete"):
            self.assertEqual(can("viewer", verb, "trainingjobs.medley.dev"), "no", verb)
        self.assertEqual(can("viewer", "get", "trainingjobs.medley.dev", "--subresource=status"), "yes")
        self.assertEqual(can("stranger", "list", "trainingjobs.medley.dev"), "no")


if __name__ == "__main__":
    need(*CONTROL_PLANE)
    harness.main()
