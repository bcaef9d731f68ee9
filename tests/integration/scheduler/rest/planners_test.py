"""Planners in processes of their own: the example in Python, alive and killed while it works. Tests of medley-planner are in
reproductions/app/tests."""
import os
import signal
import subprocess
import sys
import unittest

from harness import PATIENCE, PROGRAM, SOURCE, in_background, request, running, wait_for
from planner_processes import PlannerProcesses

EXAMPLE = os.path.join(SOURCE, "examples/planner-python/planner.py")


class PlannersTest(PlannerProcesses):
    def start_example(self, *options):
        process = self.start(sys.executable, EXAMPLE, "--listen", "unix:" + self.path("socket"), *options)
        wait_for("the planner", lambda: "ready at" in self.output() or process.poll() is not None)
        self.assertIsNone(process.poll(), self.output())
        return process

    def test_the_example_plans(self):
        self.start_example()
        with running(*self.config(address="unix:" + self.path("socket"), description="in Python")) as scheduler:
            listed = request(scheduler, "GET", "/v1/planners").json()["planners"]
            mine = [p["goals"] for p in listed if p["name"] == "mine"]
            self.assertEqual(len(mine), 1)
            self.assertEqual([(g["objective"], g["description"], g["otherOptions"]) for g in mine[0]],
                             [(o, "in Python", True) for o in ("OBJECTIVE_UNSPECIFIED", "OBJECTIVE_STEP_TIME")])
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

    def test_mistakes_end_the_start(self):
        for text, error in (("planners: [{name: exact, address: 'unix:/x'}]", "'exact' is the name of another planner"),
                            ("planners: [{name: a, address: 'unix:/x', port: 3}]", "planners[0].port: unknown field"),
                            ("planners: [{name: a, address: 'far:7072'}]", "--insecure"),
                            ("planners: [{name: a, address: 'far:7072', tls: {ca: /nowhere}}]", "/nowhere")):
            done = subprocess.run([PROGRAM, "--planners", self.path("bad.yaml", text)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)


if __name__ == "__main__":
    unittest.main()
