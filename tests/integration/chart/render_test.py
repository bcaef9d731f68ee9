"""What the chart renders. Needs helm only, and no cluster."""
import base64
import json
import os
import re
import unittest

import harness
import yaml
from harness import CHART, NAMESPACE, SOURCE, container, find, need, pod_specs, render, run, tool, values_files


class RenderTest(unittest.TestCase):
    def refused(self, *arguments):
        done = render(*arguments, check=False)
        self.assertNotIsInstance(done, tuple, f"helm accepted {arguments}")
        return done.stderr

    def test_lint_finds_nothing(self):
        for values in values_files():
            with self.subTest(values=values):
                said = run(tool("helm"), "lint", "--strict", CHART, "--values", values, "--kube-version",
                           harness.KUBE_VERSION).stdout
                self.assertIn("0 chart(s) failed", said)

    def test_a_package_holds_the_definitions(self):
        shown = list(yaml.safe_load_all(run(tool("helm"), "show", "crds", CHART).stdout))
        folder = os.path.join(SOURCE, "deploy/crds")
        wanted = []
        for name in sorted(os.listdir(folder)):
            if name.endswith(".yaml"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    wanted += [o for o in yaml.safe_load_all(file) if o]
        self.assertEqual([o["metadata"]["name"] for o in shown if o], [o["metadata"]["name"] for o in wanted])
        self.assertTrue([o for o in shown if o] == wanted, "the package's CRDs differ from deploy/crds")

    def test_pods_are_restricted_and_bounded(self):
        for values in values_files():
            _, objects = render("--values", values)
            for name, spec in pod_specs(objects):
                with self.subTest(values=values, pod=name):
                    self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
                    self.assertEqual(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
                    self.assertIs(spec["automountServiceAccountToken"], "scheduler" not in name)
                    for part in spec["containers"]:
                        self.assertEqual(part["securityContext"], {
                            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]}})
                        self.assertIn("memory", part["resources"]["limits"])
                        self.assertTrue({"cpu", "memory"} <= set(part["resources"]["requests"]))
                        if part["name"] != "check":
                            self.assertIn("readinessProbe", part)
                            self.assertIn("livenessProbe", part)

    def test_files_named_by_flags_are_mounted(self):
        for values in values_files():
            _, objects = render("--values", values)
            for name, spec in pod_specs(objects):
                volumes = {v["name"]: v for v in spec.get("volumes", [])}
                for part in spec["containers"]:
                    for flag in part.get("args", []):
                        for path in re.findall(r"=(/etc/medley/[^,=]+)", flag):
                            with self.subTest(values=values, pod=name, flag=flag):
                                self.assertTrue(self.mounted(path, part, volumes, objects))

    @staticmethod
    def mounted(path, part, volumes, objects):
        """Whether a volume of the container has the path; of a Secret or ConfigMap that the chart writes, its data too."""
        for mount in part["volumeMounts"]:
            folder = mount["mountPath"]
            if not (path + "/").startswith(folder + "/"):
                continue
            volume, inside = volumes[mount["name"]], path[len(folder) + 1:]
            source = volume.get("secret") or volume.get("configMap")
            if not source or not inside:
                return True
            keys = {i["path"]: i["key"] for i in source["items"]} if "items" in source else None
            if keys is not None and inside not in keys:
                return False
            kind = "Secret" if "secret" in volume else "ConfigMap"
            written = [o for o in objects
                       if o["kind"] == kind and o["metadata"]["name"] == source.get("secretName", source.get("name"))]
            key = keys[inside] if keys else inside
            return not written or key in {**written[0].get("data", {}), **written[0].get("stringData", {})}
        return False

    def test_selectors_select_the_pods(self):
        _, objects = render()
        for part in ("operator", "scheduler"):
            name = f"medley-{part}"
            labels = find(objects, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
            selectors = [find(objects, "Deployment", name)["spec"]["selector"]["matchLabels"],
                         find(objects, "Service", name)["spec"]["selector"],
                         find(objects, "PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"],
                         find(objects, "NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"]]
            for selector in selectors:
                self.assertTrue(selector.items() <= labels.items(), f"{name}: {selector}")
            check = find(objects, "Pod", "medley-check")["metadata"]["labels"]
            self.assertFalse(selectors[0].items() <= check.items())
        # A job's NetworkPolicy admits the operator by this label (operator/builders/objects.cc).
        labels = find(objects, "Deployment", "medley-operator")["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(labels["app.kubernetes.io/name"], "medley-operator")

    def test_one_rendering_has_one_token_and_certificate(self):
        _, objects = render()
        secret = find(objects, "Secret", "medley-scheduler-token")
        token = base64.b64decode(secret["data"]["token"]).decode()
        self.assertRegex(token, r"^[A-Za-z0-9]{48}$")
        sums = {find(objects, "Deployment", name)["spec"]["template"]["metadata"]["annotations"]["checksum/secrets"]
                for name in ("medley-operator", "medley-scheduler")}
        self.assertEqual(len(sums), 1)
        again = find(render()[1], "Secret", "medley-scheduler-token")
        self.assertNotEqual(again["data"]["token"], secret["data"]["token"])

    def test_the_operator_has_a_token_of_its_own(self):
        for arguments, key in (([], "operator-token"), (["--set", "scheduler.token.existingSecret=mine"], None),
                               (["--set", "scheduler.token.existingSecret=mine,scheduler.token.operatorKey=own"], "own")):
            with self.subTest(arguments=arguments):
                _, objects = render(*arguments)
                scheduler = find(objects, "Deployment", "medley-scheduler")
                flag = f"--operator-token-file=/etc/medley/token/{key}"
                self.assertEqual(flag in container(scheduler)["args"], key is not None)
                volume = next(v for v in scheduler["spec"]["template"]["spec"]["volumes"] if v["name"] == "token")
                self.assertEqual({item["key"] for item in volume["secret"]["items"]}, {"token", key} - {None})
                sent = f"--scheduler-token-file=/etc/medley/scheduler-token/{key or 'token'}"
                self.assertIn(sent, container(find(objects, "Deployment", "medley-operator"))["args"])
        data = find(render()[1], "Secret", "medley-scheduler-token")["data"]
        self.assertEqual(len({data["token"], data["operator-token"]}), 2)

    def test_the_certificate_is_for_the_name_that_the_operator_calls(self):
        _, objects = render("--set", "scheduler.tls.extraNames={medley.example.com}")
        arguments = container(find(objects, "Deployment", "medley-operator"))["args"]
        address = [a.split("=")[1] for a in arguments if a.startswith("--scheduler=")][0]
        self.assertEqual(address, "medley-scheduler.medley-system.svc:7100")
        names = container(find(objects, "Deployment", "medley-scheduler"))["args"]
        for name in ("medley-scheduler.medley-system.svc", "localhost", "medley.example.com", "127.0.0.1"):
            self.assertIn(f"--tls-name={name}", names)

    def test_only_the_scheduler_gets_the_key_of_the_ca(self):
        _, objects = render()
        secret = find(objects, "Secret", "medley-scheduler-ca")
        pem = base64.b64decode(secret["data"]["ca.crt"]).decode()
        self.assertIn("CA:TRUE", run("openssl", "x509", "-noout", "-ext", "basicConstraints", stdin=pem).stdout)
        for name, keys in (("medley-scheduler", {"ca.crt", "ca.key"}), ("medley-operator", {"ca.crt"})):
            mounted = {item["key"] for volume in find(objects, "Deployment", name)["spec"]["template"]["spec"]["volumes"]
                       if volume.get("secret", {}).get("secretName") == "medley-scheduler-ca"
                       for item in volume["secret"]["items"]}
            self.assertEqual(mounted, keys)
        _, objects = render("--set", "scheduler.tls.caSecret=mine,scheduler.tls.mode=generated")
        self.assertNotIn("medley-scheduler-ca", [o["metadata"]["name"] for o in objects if o["kind"] == "Secret"])

    def test_cert_manager_is_used_where_it_runs(self):
        installed = ["--api-versions", "cert-manager.io/v1"]
        # Without a cluster, nobody can tell whether its controller runs.
        for arguments, kind in (([], "Secret"), (installed, "Secret"),
                                (installed + ["--set", "scheduler.tls.mode=certManager"], "Certificate")):
            with self.subTest(arguments=arguments):
                _, objects = render(*arguments)
                made = {o["kind"] for o in objects if o["metadata"]["name"] in ("medley-scheduler", "medley-scheduler-ca")}
                self.assertEqual(made & {"Secret", "Certificate"}, {kind})

    def test_jobs_are_encrypted_unless_turned_off(self):
        for enabled in (True, False):
            _, objects = render("--set", f"worker.tls.enabled={str(enabled).lower()}")
            arguments = container(find(objects, "Deployment", "medley-operator"))["args"]
            self.assertEqual("--no-job-tls" in arguments, not enabled)

    def test_images(self):
        _, objects = render("--set", "image.registry=medley.local,image.tag=test")
        operator = container(find(objects, "Deployment", "medley-operator"))
        self.assertEqual(operator["image"], "medley.local/operator:test")
        self.assertIn("--worker-image=medley.local/worker:test", operator["args"])
        self.assertFalse([a for a in operator["args"] if a.startswith("--worker-gpu-image")])
        _, gpus = render("--set", "image.registry=medley.local,worker.gpuImage.name=worker-cuda,worker.gpuImage.tag=g")
        self.assertIn("--worker-gpu-image=medley.local/worker-cuda:g",
                      container(find(gpus, "Deployment", "medley-operator"))["args"])
        self.assertEqual(container(find(objects, "Deployment", "medley-scheduler"))["image"], "medley.local/scheduler:test")
        self.assertEqual(find(objects, "Pod", "medley-check")["spec"]["containers"][0]["image"], "medley.local/operator:test")

    def test_one_namespace_means_no_rights_on_jobs_elsewhere(self):
        _, objects = render("--set", "watchNamespace=team-a")
        cluster = [o for o in objects if o["kind"] == "ClusterRole" and o["metadata"]["name"].endswith("-operator")]
        self.assertEqual(len(cluster), 1)
        for rule in cluster[0]["rules"]:
            self.assertTrue(set(rule["resources"]) <= {"nodes", "pods", "priorityclasses", "resourcepools",
                                                       "resourcepools/status"}, rule)
            self.assertTrue(set(rule["verbs"]) <= {"list", "watch", "patch"}, rule)
        jobs = find(objects, "Role", "medley-medley-system-operator-jobs")
        self.assertEqual(jobs["metadata"]["namespace"], "team-a")
        self.assertIn("--namespace=team-a", container(find(objects, "Deployment", "medley-operator"))["args"])

    def test_prices_reach_the_program(self):
        entry = {"resourceType": "v100", "class": "GPU", "limit": 32, "pricePerUnitHour": 2.42}
        _, objects = render("--set-json", "scheduler.prices.entries=" + json.dumps([entry]))
        scheduler = find(objects, "Deployment", "medley-scheduler")
        self.assertIn("--prices=/etc/medley/prices/prices.yaml", container(scheduler)["args"])
        held = yaml.safe_load(find(objects, "ConfigMap", "medley-scheduler-prices")["data"]["prices.yaml"])
        self.assertEqual(held, {"entries": [entry]})
        annotations = scheduler["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(set(annotations), {"checksum/secrets"}, "a new price must not restart the service")

    def test_planners_reach_the_program(self):
        planners = [{"name": "mine", "address": "planner.team-a:7072", "timeoutSeconds": 2.5,
                     "tls": {"ca": "/etc/medley/secrets/planner/ca.crt"}, "tokenFile": "/etc/medley/secrets/planner/token"}]
        _, objects = render("--set-json", "scheduler.planners=" + json.dumps(planners),
                            "--set-json", 'scheduler.prices.secrets=["planner"]')
        scheduler = find(objects, "Deployment", "medley-scheduler")
        part = container(scheduler)
        self.assertIn("--planners=/etc/medley/planners/planners.yaml", part["args"])
        mounts = {m["name"]: m["mountPath"] for m in part["volumeMounts"]}
        self.assertEqual((mounts["planners"], mounts["secret-planner"]),
                         ("/etc/medley/planners", "/etc/medley/secrets/planner"))
        held = yaml.safe_load(find(objects, "ConfigMap", "medley-scheduler-planners")["data"]["planners.yaml"])
        self.assertEqual(held, {"planners": planners})
        annotations = scheduler["spec"]["template"]["metadata"]["annotations"]
        self.assertIn("checksum/planners", annotations, "the file is read only at the start")

    def test_contradictions_are_refused_with_a_sentence(self):
        for arguments, sentence in (
                (["--set", "scheduler.tls.mode=maybe"], "value must be one of"),
                (["--set", "operator.replica=3"], "additional properties 'replica' not allowed"),
                (["--set", "worker.port=0"], "minimum"),
                (["--set", "operator.leaderElection.enabled=false"], "operator.leaderElection.enabled is needed"),
                (["--set", "operator.leaderElection.renewDeadlineSeconds=20"], "leaseDurationSeconds must be more"),
                (["--set", "scheduler.enabled=false,scheduler.token.existingSecret=t,scheduler.tls.mode=disabled"],
                 "scheduler.address is needed"),
                (["--set", "scheduler.enabled=false,scheduler.address=a:1"], "scheduler.token.existingSecret is needed"),
                (["--set", "scheduler.tls.mode=existingSecret"], "scheduler.tls.existingSecret is needed"),
                (["--set", "scheduler.persistence.enabled=true,scheduler.replicas=2"], "persistence is for one replica"),
                (["--set-json", 'scheduler.prices={"catalog":{"tick":"5s"},"existingConfigMap":"x"}'],
                 "catalog and existingConfigMap exclude each other"),
                (["--set-json", 'scheduler.prices.files={"a.csv":"x"}'], "no feed reads them"),
                (["--set-json", 'scheduler.planners=[{"name":"Mine","address":"a:1"}]'], "does not match pattern"),
                (["--set-json", 'scheduler.planners=[{"name":"mine"}]'], "missing property 'address'"),
                (["--set", "metrics.token.enabled=true,metrics.token.jobsKey=token"], "key and jobsKey must differ"),
                (["--set", "operator.serviceAccount.create=false"], "operator.serviceAccount.name is needed")):
            with self.subTest(arguments=arguments):
                self.assertIn(sentence, self.refused(*arguments))

    def test_metrics_are_read_from_one_namespace(self):
        """Of the operator, of the scheduling service and of jobs, unless another one or all are named."""
        def selector(name):
            return [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}]

        peers = '[{"podSelector":{"matchLabels":{"app":"prometheus"}}}]'
        for arguments, wanted, of_jobs in (
                ([], selector(NAMESPACE), NAMESPACE),
                (["--set", "metrics.namespace=monitoring"], selector("monitoring"), "monitoring"),
                (["--set", "metrics.namespace=monitoring,worker.metricsNamespace=team"], selector("monitoring"), "team"),
                (["--set-json", f"networkPolicy.metricsFrom={peers}"], json.loads(peers), NAMESPACE),
                (["--set", "metrics.namespace=*"], None, None)):
            with self.subTest(arguments=arguments):
                _, objects = render(*arguments)
                rules = find(objects, "NetworkPolicy", "medley-operator")["spec"]["ingress"]
                self.assertEqual(len(rules), 1)
                self.assertEqual(rules[0]["ports"], [{"port": "metrics", "protocol": "TCP"}])
                check = find(objects, "Pod", "medley-check")["metadata"]["labels"]
                if wanted is None:
                    self.assertNotIn("from", rules[0])
                else:
                    self.assertTrue(rules[0]["from"][0]["podSelector"]["matchLabels"].items() <= check.items())
                    self.assertEqual(rules[0]["from"][1:], wanted)
                of_service = find(objects, "NetworkPolicy", "medley-scheduler")["spec"]["ingress"]
                self.assertEqual([rule.get("from") for rule in of_service if len(rule["ports"]) == 1], [wanted])
                flags = container(find(objects, "Deployment", "medley-operator"))["args"]
                self.assertEqual([f.split("=")[1] for f in flags if f.startswith("--metrics-namespace=")],
                                 [of_jobs] if of_jobs else [])

    def test_readers_of_metrics_send_tokens_where_they_are_enabled(self):
        """Pods of users are sent another token than the operator; without tokens there is neither Secret nor flag."""
        monitors = "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true"
        for arguments, secret, keys in (
                ("metrics.token.enabled=true", "medley-operator-metrics-token", ("token", "jobs-token")),
                ("metrics.token.enabled=true,metrics.token.existingSecret=mine,metrics.token.jobsKey=jobs", "mine", ("token", "jobs")),
                ("metrics.token.enabled=false", None, None)):
            with self.subTest(arguments=arguments):
                _, objects = render("--set", monitors + "," + arguments)
                made = [o for o in objects if o["kind"] == "Secret" and o["metadata"]["name"].endswith("metrics-token")]
                self.assertEqual(len(made), int(secret == "medley-operator-metrics-token"))
                if made:
                    self.assertEqual(len({made[0]["data"][key] for key in keys}), 2)
                flags = [f for f in container(find(objects, "Deployment", "medley-operator"))["args"] if "metrics-token-file" in f]
                sent = [find(objects, "ServiceMonitor", "medley-operator")["spec"]["endpoints"][0].get("authorization"),
                        find(objects, "PodMonitor", "medley-worker")["spec"]["podMetricsEndpoints"][0].get("authorization")]
                self.assertEqual(sent, [{"credentials": {"name": secret, "key": key}} for key in keys] if secret else [None, None])
                self.assertEqual(flags, [f"--metrics-token-file=/etc/medley/metrics-token/{keys[0]}",
                                         f"--worker-metrics-token-file=/etc/medley/metrics-token/{keys[1]}"] if secret else [])
                service = find(objects, "ServiceMonitor", "medley-scheduler")["spec"]["endpoints"][0]
                self.assertIn("authorization", service)

    def test_alerts_and_dashboards_are_what_the_files_say(self):
        _, objects = render("--set", "metrics.prometheusRule.enabled=true,metrics.dashboards.enabled=true")
        alerts = [n for n in os.listdir(os.path.join(CHART, "alerts")) if n.endswith(".yaml")]
        for name in alerts:
            with open(os.path.join(CHART, "alerts", name), encoding="utf-8") as file:
                wanted = yaml.safe_load(file)
            self.assertEqual(find(objects, "PrometheusRule", f"medley-{name[:-5]}")["spec"], wanted)
        dashboards = [n for n in os.listdir(os.path.join(CHART, "dashboards")) if n.endswith(".json")]
        for name in dashboards:
            with open(os.path.join(CHART, "dashboards", name), encoding="utf-8") as file:
                wanted = json.load(file)
            made = find(objects, "ConfigMap", f"medley-dashboard-{name[:-5]}")
            self.assertEqual(json.loads(made["data"][name]), wanted)
            self.assertEqual(made["metadata"]["labels"]["grafana_dashboard"], "1")


if __name__ == "__main__":
    need("helm")
    harness.main()
