"""medley-planner as a planner of the scheduling service, alive and killed while it works, and as the program that `medley plan` asks."""
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/integration/scheduler/rest"))
from harness import PATIENCE, in_background, make_certificates, running, wait_for  # noqa: E402
from planner_processes import PlannerProcesses  # noqa: E402

BIN = os.environ["MEDLEY_BIN_DIR"]
PLANNER = os.path.join(BIN, "medley-planner")
TOKEN = "0123456789abcdef-token"


class PlannerProgramTest(PlannerProcesses):
    def start_planner(self, *options):
        process = self.start(PLANNER, "--listen", "127.0.0.1:0", "--port-file", self.path("port"), *options)
        wait_for("the port", lambda: os.path.exists(self.path("port")) or process.poll() is not None)
        self.assertIsNone(process.poll(), self.output())
        with open(self.path("port"), encoding="utf-8") as file:
            return process, f"127.0.0.1:{json.load(file)['grpc']}"

    def test_medley_planner(self):
        ca, certificate, key = make_certificates(self.folder)
        tokens = self.path("tokens", TOKEN + "\n")
        planner, address = self.start_planner("--tls-cert", certificate, "--tls-key", key, "--token-file", tokens)
        config = self.config(address=address, planner="exact", tls={"ca": ca}, tokenFile=tokens)
        with running(*config) as scheduler:
            own = self.plan(scheduler, planner="exact")
            answer = self.plan(scheduler)
            self.assertEqual((answer["planner"], answer["notes"]), ("mine", []))
            self.assertEqual(answer["plan"], own["plan"])
            self.path("tokens", "another-token-of-mine\n")
            self.assertIn("UNAUTHENTICATED", self.plan(scheduler)["notes"][0])
            self.path("tokens", TOKEN + "\n")
            planner.send_signal(signal.SIGTERM)
            self.assertEqual(planner.wait(PATIENCE), 0, self.output())
            answer = self.plan(scheduler)
            self.assertEqual((answer["planner"], answer["plan"]), ("exact", own["plan"]))
            self.assertIn("failed after 0 candidates (UNAVAILABLE", answer["notes"][0])

    def test_end_of_medley_planner_while_it_searches(self):
        planner, address = self.start_planner("--grace-seconds", "0")
        config = self.config(address=address, planner="genetic")
        with running(*config, "--max-planning-seconds", "600") as scheduler:
            answers = []
            thread = in_background(lambda: answers.append(
                self.plan(scheduler, name="matchnet-16", seconds=600, options={"population": 1000, "generations": 10000})))
            wait_for("a call", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
            planner.send_signal(signal.SIGTERM)
            self.assertEqual(planner.wait(PATIENCE), 0, self.output())
            thread.join(PATIENCE)
            self.assertTrue(answers[0]["feasible"])

    def test_medley_planner_killed_half_way(self):
        planner, address = self.start_planner("--log-level", "debug")
        config = self.config(address=address, planner="genetic")
        with running(*config, "--max-planning-seconds", "600") as scheduler:
            answers = []
            thread = in_background(lambda: answers.append(
                self.plan(scheduler, name="matchnet-16", seconds=600,
                          options={"population": 1000, "generations": 1000000})))
            wait_for("candidates", lambda: self.output().count("sent a candidate") >= 3)
            for _ in range(20):  # the service reads them meanwhile; what it has not read, the end of the connection takes along
                self.assertEqual(scheduler.metric("medley_scheduler_requests_in_flight"), 1)
            planner.send_signal(signal.SIGKILL)
            thread.join(PATIENCE)
            own = self.plan(scheduler, name="matchnet-16", planner="exact")
            self.assertRegex(answers[0]["notes"][0], r"failed after [1-9]\d* candidates \(UNAVAILABLE")
            self.assertEqual(answers[0]["plan"], own["plan"])

    def test_mistakes_end_the_start(self):
        for options, error in ((("--listen", "0.0.0.0:0"), "--listen: 0.0.0.0 is not a loopback address"),
                               (("--planner", "best"), "--planner: 'best' is unknown"),
                               (("--tls-cert", "x"), "--tls-cert and --tls-key must be given together")):
            done = subprocess.run([PLANNER, *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)

    def medley_plan(self, medley, file, *options):
        return subprocess.run([medley, "plan", os.path.join(SOURCE, "examples", file), *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def test_medley_plan_asks_it_for_planners_of_papers(self):
        cluster = os.path.join(SOURCE, "examples/clusters/tapp.yaml")
        for planner, question in (("tapp", ("tapp/alexnet.yaml", "--devices", cluster)),
                                  ("graph-agent", ("plan/two-branches.yaml",))):
            done = self.medley_plan(os.path.join(BIN, "medley"), *question, "--planner", planner, "--output", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["executionPlan"]["provenance"]["planner"], planner)

    def test_medley_plan_says_what_is_missing_without_it(self):
        alone = self.path("medley")
        shutil.copy(os.path.join(BIN, "medley"), alone)
        done = self.medley_plan(alone, "plan/two-branches.yaml", "--planner", "graph-agent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'graph-agent' is unknown. On the devices of a cluster there are: auto, ", done.stderr)
        self.assertIn("More planners, those of papers, are in the program medley-planner, which is not in "
                      f"{self.folder}: ./dev programs reproductions builds it", done.stderr)

    def test_medley_plan_lists_its_planners(self):
        cost = ("plan/nce-5.yaml", "--planner", "genetic", "--option", "population=50", "-o", "json")
        done = self.medley_plan(os.path.join(BIN, "medley"), *cost)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["planner"], "genetic")
        wrong = self.medley_plan(os.path.join(BIN, "medley"), "plan/nce-5.yaml", "--planner", "genetic", "--option", "popluation=5")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("planner genetic has no such option; did you mean `population`?", wrong.stderr)
        done = subprocess.run([os.path.join(BIN, "medley"), "plan", "--planners", "-o", "json"], capture_output=True, text=True,
                              timeout=PATIENCE, check=True)
        names = [p["name"] for p in json.loads(done.stdout)["planners"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"auto", "exact", "tapp", "graph-agent", "genetic"}, set(names))


if __name__ == "__main__":
    unittest.main()
