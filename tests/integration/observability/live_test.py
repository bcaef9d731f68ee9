"""A real Prometheus scrapes a real run: every query of every dashboard has data, alerts fire when they are provoked,
and docs/operate/metrics.md lists exactly what the processes export. Needs Debian's prometheus, kubernetes-client and python3-yaml.

One scenario of a minute or two runs once, and every test checks what was recorded. Alerts that cannot be provoked here
without disturbing the others are in UNIT_ONLY; alerts_test.py in this folder tests them.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import yaml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["MEDLEY_SOURCE_DIR"], "tests", "lint"))
import check_dashboards
import metric_names
from cluster import (BIN, PROMETHEUS, PROMTOOL, SOURCE, Cluster, Prometheus, families, get, read, wait_for, write)

RULES = os.path.join(SOURCE, "charts/medley/alerts/medley.yaml")
# These need failures of the API server, of many requests or of a volume, with which the other alerts could not be
# provoked, or hours (MedleyJobGoodputLow). tests/attack/jobs.py fills a volume.
UNIT_ONLY = {"MedleyReconcileErrors", "MedleyReconcilePanics", "MedleyQueueBacklog", "MedleyKubernetesApiErrors",
             "MedleySchedulerErrors", "MedleyPlanningSlow", "MedleyJobRestarting", "MedleyJobCheckpointFailing",
             "MedleyJobGoodputLow"}
# Exported only after rare events, which do not happen here.
RARE = {"medley_price_rejected_total", "medley_rest_connections_ended_total", "medley_state_write_errors_total",
        "medley_operator_prediction_ratio", "medley_operator_prediction_error_ratio",
        "medley_job_saved_usd",  # after a job's first move
        # of a job whose replicas differ: tests/unit/worker/coordinator/server/metrics_page_test.cc
        "medley_coordinator_agreement_fraction", "medley_coordinator_synchronisation_ratio",
        # the same, as the operator says it: tests/unit/operator/telemetry/job_metrics_test.cc
        "medley_job_agreement_fraction", "medley_job_synchronisation_ratio",
        # of trainers with tables that compute on a GPU, which is not at hand: the same two tests
        "medley_coordinator_embedding_device_rows_total", "medley_coordinator_embedding_device_bytes_total",
        "medley_job_embedding_device_rows_total", "medley_job_embedding_device_bytes_total"}

PRICES = """entries:
- {offering: {provider: example, region: west, instanceType: new-1, capacityType: spot}, pricePerInstanceHour: %s}
"""
POOLS = """
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: local, annotations: {run.medley.dev/simulate: "true"}}
spec:
  class: CPU
  unit: {resources: {cpu: 200m, memory: 1Gi}, env: [{name: MEDLEY_PROFILE_TIME, value: 1s}]}
  limit: 8
  price: {offering: {provider: example, region: west, instanceType: new-1, capacityType: spot}}
---
"""
DATA = {
    "train": {"uri": "file:///data/adult.train.csv", "format": "csv"},
    "test": {"uri": "file:///data/adult.test.csv", "format": "csv"},
    "schema": {"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
               "numeric": [0, 2, 4, 10, 11, 12]},
    "volume": {"hostPath": {"path": os.path.join(SOURCE, "examples", "data")}, "mountPath": "/data"},
}


def job(name, objective, epochs=1, data=None, **spec):
    return {
        "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "model": {"name": "logistic"}, "data": data or DATA,
            "training": {"epochs": epochs, "batchSize": 512, "microBatches": 1},
            "objective": objective, "planner": {"name": "exact", "timeBudget": "1s"},
            "checkpoint": {"interval": "5s", "keep": 2,
                           "volume": {"persistentVolumeClaim": {"claimName": "checkpoints-" + name}, "mountPath": "/checkpoints"}},
            "runPolicy": {"backoffLimit": 50, "cleanPodPolicy": "All"}, **spec},
    }


def quick(text):
    """The rules with all minutes replaced by seconds."""
    rules = yaml.safe_load(text)
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
            rule["expr"] = re.sub(r"\[\d+[mh]\]", "[20s]", rule["expr"]).replace("> 600", "> 5")
    return yaml.safe_dump(rules)


class Story:
    """The scenario and its record: metrics pages by process, alerts that fired, times of its begin and end."""

    def __init__(self):
        first = job("small", {"maxUsdPerHour": "5"})
        first["metadata"]["annotations"] = {"run.medley.dev/scenario": "scenario.yaml"}
        self.cluster = Cluster({"job.yaml": POOLS + yaml.safe_dump(first), "prices.yaml": PRICES % "0.10",
                                "prices-2.yaml": PRICES % "0.05",
                                "scenario.yaml": "prices: prices.yaml\nsteps: []\nexpect: {}\n"}, "job.yaml")
        self.pages = {}
        self.fired = {}

    def live(self):
        cluster = self.cluster
        operator = cluster.operator()
        self.prometheus = Prometheus(cluster.processes, cluster.folder, quick(read(RULES)))
        self.start = time.time()
        self.prometheus.scrape(operator, "operator")
        self.prometheus.scrape(cluster.scheduler(), "scheduler")
        wait_for("the first job is done", lambda: cluster.processes.alive("medley") and cluster.phase("small") == "Complete")
        self.look("operator", operator)
        self.train()
        self.look("operator", operator)
        self.look("scheduler", cluster.scheduler())
        self.lose_a_trainer()
        self.change_the_price()
        self.ask_too_much()
        self.stop_the_prices()
        self.start_a_second_operator()
        self.bring_jobs_that_cannot_run()
        self.stand_still()
        self.look("operator", operator)
        self.look("scheduler", cluster.scheduler())
        self.end = time.time()
        self.delete(operator)
        self.stop_the_operators(operator)

    def look(self, process, address):
        self.pages.setdefault(process, []).append(get(f"http://{address}/metrics"))

    def fires(self, *names):
        for name in names:
            self.fired[name] = wait_for(f"{name} fires", lambda name=name: self.prometheus.now(
                f'ALERTS{{alertname="{name}", alertstate="firing"}}'))
        for alert in self.prometheus.api("alerts")["alerts"]:
            self.fired.setdefault("annotations", {})[alert["labels"]["alertname"]] = alert["annotations"]

    def train(self):
        objective = {"minThroughput": 100, "maxUsdPerHour": "5", "budgetUsd": "50", "deadline": "200h"}
        long = job("long", objective, epochs=100000, resources={"serverPool": "local"})  # the dashboards show servers
        long["spec"]["training"].update(evaluation={"everySteps": 100}, embeddings={"memoryBudget": "1Mi"})  # rows on disk
        self.cluster.apply(long)
        wait_for("the long job trains", lambda: self.prometheus.now(
            'medley_job_stage_throughput_samples_per_second{job="long"} and on (job) medley_job_loss{job="long"}'))
        coordinator = self.cluster.pods("long", "coordinator")[0]
        self.coordinator = f"{coordinator['status']['podIP']}:7201"
        self.prometheus.scrape(self.coordinator, "coordinator")
        # Before a trainer is lost: the training loss is not known of the steps around a recovery.
        wait_for("the first evaluation", lambda: self.prometheus.now("medley_coordinator_evaluation_training_loss"))
        self.look("coordinator", self.coordinator)

    def lose_a_trainer(self):
        trainer = self.cluster.pods("long", "trainer")[0]
        os.kill(wait_for("the trainer's process", lambda: self.cluster.process_of(trainer)), signal.SIGKILL)
        wait_for("the loss is counted", lambda: self.prometheus.now(
            'medley_job_pause_seconds_count{job="long", kind="recovery"} > 0'))
        self.look("coordinator", self.coordinator)

    def change_the_price(self):
        shutil.copy(os.path.join(self.cluster.folder, "prices-2.yaml"), os.path.join(self.cluster.run, "prices.yaml"))
        wait_for("another plan is considered", lambda: self.prometheus.now("sum(medley_operator_replans_total) > 0"))

    def ask_too_much(self):
        """Sets goals that neither the plan in force nor any other plan reaches."""
        self.cluster.kubectl("patch", "trainingjob", "long", "--type=merge", "-p",
                             '{"spec": {"objective": {"minThroughput": 1000000000, "budgetUsd": "0.000001", "deadline": "1s"}}}')
        self.fires("MedleyJobThroughputBelowGoal", "MedleyJobBudgetNearlySpent", "MedleyJobMissesDeadline")

    def stop_the_prices(self):
        """Starts a second scheduling service with a damaged state file, and removes its only source of prices."""
        folder, processes = self.cluster.folder, self.cluster.processes
        prices = write(os.path.join(folder, "list.yaml"), PRICES % "0.20")
        state = os.path.join(folder, "state")
        os.mkdir(state)
        write(os.path.join(state, "calibration"), "not what was written")
        ports = os.path.join(folder, "second.ports")
        config = write(os.path.join(folder, "catalog.yaml"), "tick: 1s\nfeeds:\n- {name: list, type: file, path: " + prices +
                       ", period: 500ms, ttl: 2s, onDemandTtl: 2s, authoritative: false}\n")
        processes.start("second-scheduler", os.path.join(BIN, "medley-scheduler"), "--grpc-listen", "127.0.0.1:0",
                        "--rest-listen", "127.0.0.1:0", "--port-file", ports, "--catalog-config", config, "--state-dir", state)
        wait_for("the second scheduler", lambda: processes.alive("second-scheduler") and read(ports))
        address = "127.0.0.1:" + re.search(r'"rest": (\d+)', read(ports)).group(1)
        self.prometheus.scrape(address, "scheduler")
        wait_for("its prices", lambda: self.prometheus.now('medley_price_age_seconds{source="list"}'))
        self.look("scheduler", address)
        os.remove(prices)
        self.fires("MedleyPriceStale", "MedleyPriceSourceFailing", "MedleyStateDamaged")
        self.look("scheduler", address)

    def start_a_second_operator(self):
        """Starts a second operator for a namespace without jobs, without election and without a scheduling service."""
        processes = self.cluster.processes
        processes.start("second-operator", os.path.join(BIN, "medley-operator"), "--kubeconfig", self.cluster.kubeconfig,
                        "--namespace", "nowhere", "--scheduler", "127.0.0.1:1")
        found = wait_for("the second operator", lambda: processes.alive("second-operator") and re.search(
            r"http port (\d+)", processes.log("second-operator")))
        self.second = f"127.0.0.1:{found.group(1)}"
        self.prometheus.scrape(self.second, "operator")
        self.fires("MedleyOperatorTwoLeaders", "MedleySchedulerUnreachable")

    def bring_jobs_that_cannot_run(self):
        nowhere = {"provider": "example", "region": "moon", "instanceType": "new-1", "capacityType": "spot"}
        absent = {**DATA, "train": {"uri": "file:///data/absent.csv", "format": "csv"}}
        self.cluster.apply(
            {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "unpriced"},
             "spec": {"class": "CPU", "unit": {"resources": {"cpu": "1"}}, "limit": 2, "price": {"offering": nowhere}}},
            job("expensive", {"maxUsdPerHour": "0.000001"}, resources={"pools": ["local"]}),
            job("lost", {"maxUsdPerHour": "5"}, resources={"pools": ["atlantis"]}),
            job("bad", {"maxUsdPerHour": "5"}, data=absent, resources={"pools": ["local"]}))
        self.fires("MedleyPoolWithoutPrice", "MedleyPlanInfeasible", "MedleyJobNotPlanned", "MedleyJobFailed")
        self.cluster.apply(job("homeless", {"maxUsdPerHour": "5"}, resources={"pools": ["local"]},
                               runPolicy={"schedulingPolicy": {"schedulerName": "nobody"}}))
        self.fires("MedleyJobWaitsForPods")

    def stand_still(self):
        """Suspends the trainers' processes: the job is Running, but does not train."""
        stopped = [self.cluster.process_of(pod) for pod in self.cluster.pods("long", "trainer")]
        stopped = [pid for pid in stopped if pid]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            self.fires("MedleyJobNotProgressing", "MedleyJobSlowerThanPredicted")
        finally:
            for pid in stopped:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass  # the job has replaced this trainer

    def delete(self, operator):
        self.before_deletion = get(f"http://{operator}/metrics")
        for name in ("long", "small", "expensive", "lost", "bad", "homeless"):
            self.cluster.kubectl("delete", "trainingjob", name, "--wait=false")
        self.cluster.kubectl("delete", "resourcepool", "unpriced", "--wait=false")
        self.after_deletion = wait_for("no series of a job is left", lambda: (
            lambda page: page if 'job="' not in page and 'pool="unpriced"' not in page else "")(
                get(f"http://{operator}/metrics")))

    def stop_the_operators(self, operator):
        self.prometheus.forget(self.second)
        pid = self.cluster.children("medley-operator")[0]
        os.kill(pid, signal.SIGSTOP)
        try:
            self.fires("MedleyOperatorNotLeading")
        finally:
            os.kill(pid, signal.SIGCONT)


class LiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.story = Story()
        cls.addClassCleanup(cls.story.cluster.close)
        try:
            cls.story.live()
        except BaseException:
            for log in ("medley", "prometheus", "run/operator", "run/scheduler", "second-scheduler", "second-operator"):
                text = read(os.path.join(cls.story.cluster.folder, log + ".log"))
                print(f"--- {log}\n{text[-3000:]}", file=sys.stderr)
            raise

    def test_every_query_of_every_dashboard_has_data(self):
        asked = 0
        for file, dashboard in check_dashboards.dashboards().items():
            for panel, target in check_dashboards.targets(dashboard):
                if any(name in target["expr"] for name in RARE):
                    continue
                with self.subTest(file, panel=panel["title"], query=target["refId"]):
                    asked += 1
                    samples = [value for name in ("long", "small") for value in self.ask(target["expr"], name)]
                    self.assertTrue(samples, target["expr"])
        print(f"{asked} queries of dashboards asked of Prometheus", file=sys.stderr)

    def ask(self, query, name):
        for variable, value in (("$__rate_interval", "20s"), ("$__range", "20m"), ("$job", name)):
            query = query.replace(variable, value)
        query = query.replace('namespace="$namespace"', 'namespace="default"')
        query = re.sub(r"\$(namespace|pool|method)\b", ".*", query)
        return self.story.prometheus.over(query, self.story.start, self.story.end)

    def test_variables_have_values(self):
        for file, dashboard in check_dashboards.dashboards().items():
            for variable in dashboard["templating"]["list"]:
                if variable["type"] != "query":
                    continue
                with self.subTest(file, variable=variable["name"]):
                    inner = re.fullmatch(r"label_values\((.+), ([a-z_]+)\)", variable["definition"])
                    selector = inner.group(1).replace("$namespace", "default")
                    found = self.story.prometheus.api("series", **{"match[]": selector, "start": self.story.start})
                    self.assertTrue({one[inner.group(2)] for one in found if one.get(inner.group(2))})

    def test_alerts_fire_when_they_are_provoked(self):
        names = {rule["alert"] for group in yaml.safe_load(read(RULES))["groups"] for rule in group["rules"]}
        self.assertTrue(UNIT_ONLY <= names)
        for name in sorted(names - UNIT_ONLY):
            with self.subTest(name):
                self.assertTrue(self.story.fired.get(name))

    def test_rules_have_no_errors_and_complete_texts(self):
        for group in self.story.prometheus.api("rules")["groups"]:
            for rule in group["rules"]:
                with self.subTest(rule["name"]):
                    self.assertEqual(rule["health"], "ok", rule.get("lastError"))
        self.assertTrue(self.story.fired["annotations"])
        for name, words in self.story.fired["annotations"].items():
            with self.subTest(name):
                self.assertNotRegex(" ".join(words.values()), r"error expanding|<no value>|%!|\{\{")

    def test_the_documentation_lists_what_is_exported(self):
        documented = metric_names.documented()
        seen = {}
        for pages in self.story.pages.values():
            for page in pages:
                for name, (kind, words, labels) in families(page).items():
                    self.assertTrue(words, f"{name} has no HELP")
                    seen.setdefault(name, (kind, set()))[1].update(labels)
                    self.assertEqual(seen[name][0], kind, name)
        for name, (kind, labels) in seen.items():
            with self.subTest(name):
                self.assertIn(name, documented, "not in docs/operate/metrics.md")
                self.assertEqual(kind, documented[name].kind)
                if labels or name not in RARE:
                    self.assertEqual(labels, documented[name].labels)
        self.assertEqual(set(documented) - set(seen) - RARE, set(), "documented but not exported")

    def test_pages_pass_the_linter_of_prometheus(self):
        for process, pages in self.story.pages.items():
            with self.subTest(process):
                done = subprocess.run([PROMTOOL, "check", "metrics"], input=pages[-1], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_series_end_with_their_job(self):
        self.assertIn('job="long"', self.story.before_deletion)
        self.assertNotIn('job="', self.story.after_deletion)
        self.assertNotIn('pool="unpriced"', self.story.after_deletion)
        self.assertIn('medley_operator_jobs{phase="Running"} 0', self.story.after_deletion)


if __name__ == "__main__":
    for program in (PROMETHEUS, PROMTOOL, shutil.which("kubectl") or "kubectl"):
        if not os.access(program, os.X_OK):
            sys.exit(f"{program} is missing: install Debian's packages prometheus and kubernetes-client (./dev does). "
                     "NOTHING WAS TESTED: dashboards and alerts were not held against a live run.")
    unittest.main(verbosity=1)
