"""Planners in processes of their own: the example in Python and medley-planner, alive and killed while they work."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import yaml

from harness import PATIENCE, PROGRAM, SOURCE, example, in_background, make_certificates, request, running, wait_for

EXAMPLE = os.path.join(SOURCE, "examples/planner-python/planner.py")
PLANNER = os.path.join(os.environ["MEDLEY_BIN_DIR"], "medley-planner")
TOKEN = "0123456789abcdef-token"


class PlannersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="medley-planners-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def start(self, *arguments):
        """A process that this test kills at its end; its output is in `output`."""
        with open(self.path("output"), "w", encoding="utf-8") as file:
            process = subprocess.Popen(arguments, stdout=file, stderr=file)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        return process

    def output(self):
        with open(self.path("output"), encoding="utf-8") as file:
            return file.read()

    def start_example(self, *options):
        process = self.start(sys.executable, EXAMPLE, "--listen", "unix:" + self.path("socket"), *options)
        wait_for("the planner", lambda: "ready at" in self.output() or process.poll() is not None)
        self.assertIsNone(process.poll(), self.output())
        return process

    def start_planner(self, *options):
        process = self.start(PLANNER, "--listen", "127.0.0.1:0", "--port-file", self.path("port"), *options)
        wait_for("the port", lambda: os.path.exists(self.path("port")) or process.poll() is not None)
        self.assertIsNone(process.poll(), self.output())
        with open(self.path("port"), encoding="utf-8") as file:
            return process, f"127.0.0.1:{json.load(file)['grpc']}"

    def config(self, **fields):
        """The option --planners with one planner, `mine`."""
        text = yaml.safe_dump({"planners": [{"name": "mine", **fields}]})
        return "--planners", self.path("planners.yaml", text)

    def plan(self, scheduler, name="nce-5", planner="mine", seconds=60, **changes):
        body = example(name, planner={"name": planner, "seed": 1, "timeBudgetSeconds": seconds, **changes})
        answer = request(scheduler, "POST", "/v1/plan", body)
        self.assertEqual(answer.code, 200, answer.text)
        return answer.json()

    def test_the_example_plans(self):
        self.start_example()
        with running(*self.config(address="unix:" + self.path("socket"), description="in Python")) as scheduler:
            listed = request(scheduler, "GET", "/v1/planners").json()["planners"]
            self.assertIn({"name": "mine", "description": "in Python", "provesOptimality": False,
                           "objective": "OBJECTIVE_UNSPECIFIED"}, listed)
            own = self.plan(scheduler, planner="exact")
            answer = self.plan(scheduler)
            self.assertEqual((answer["planner"], answer["notes"]), ("mine", []))
            self.assertAlmostEqual(answer["plan"]["costUsd"], own["plan"]["costUsd"], places=9)
            self.assertEqual(answer["executionPlan"]["provenance"]["planner"], "mine")
            self.plan(scheduler)
            self.assertEqual(self.output().count("solving nce-5 with seed 1"), 2)  # not from the cache

    def test_killed_half_way(self):
        planner = self.start_example("--starts", "1000000000")  # it would search until it is killed
        with running(*self.config(address="unix:" + self.path("socket")), "--max-planning-seconds", "600") as scheduler:
            answers = []
            thread = in_background(lambda: answers.append(self.plan(scheduler, seconds=600)))
            wait_for("a call", lambda: "solving nce-5" in self.output())
            planner.send_signal(signal.SIGKILL)
            thread.join(PATIENCE)
            own = self.plan(scheduler, planner="exact")
            self.assertEqual(answers[0]["planner"], "exact")
            self.assertEqual(answers[0]["plan"], own["plan"])
            self.assertEqual(answers[0]["lowerBoundUsd"], own["lowerBoundUsd"])
            self.assertRegex(answers[0]["notes"][0], r"^planner mine at unix:.*/socket failed after \d+ candidates "
                                                     r"\(UNAVAILABLE: .*\); the answer is the service's own$")
            # It is asked again once it is back.
            os.remove(self.path("socket"))
            self.start_example()
            wait_for("its plan", lambda: self.plan(scheduler)["planner"] == "mine")

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
                self.plan(scheduler, name="matchnet-16", seconds=600, genetic={"population": 1000, "generations": 10000})))
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
                          genetic={"population": 1000, "generations": 1000000})))
            wait_for("candidates", lambda: self.output().count("sent a candidate") >= 3)
            for _ in range(20):  # the service reads them meanwhile; what it has not read, the end of the connection takes along
                self.assertEqual(scheduler.metric("medley_scheduler_requests_in_flight"), 1)
            planner.send_signal(signal.SIGKILL)
            thread.join(PATIENCE)
            own = self.plan(scheduler, name="matchnet-16", planner="exact")
            self.assertRegex(answers[0]["notes"][0], r"failed after [1-9]\d* candidates \(UNAVAILABLE")
            self.assertEqual(answers[0]["plan"], own["plan"])

    def test_mistakes_end_the_start(self):
        for text, error in (("planners: [{name: exact, address: 'unix:/x'}]", "'exact' is the name of another planner"),
                            ("planners: [{name: a, address: 'unix:/x', port: 3}]", "planners[0].port: unknown field"),
                            ("planners: [{name: a, address: 'far:7072'}]", "--insecure"),
                            ("planners: [{name: a, address: 'far:7072', tls: {ca: /nowhere}}]", "/nowhere")):
            done = subprocess.run([PROGRAM, "--planners", self.path("bad.yaml", text)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)
        for options, error in ((("--listen", "0.0.0.0:0"), "--listen: 0.0.0.0 is not a loopback address"),
                               (("--planner", "best"), "--planner: 'best' is unknown"),
                               (("--tls-cert", "x"), "--tls-cert and --tls-key must be given together")):
            done = subprocess.run([PLANNER, *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)


if __name__ == "__main__":
    unittest.main()
