"""How the service shuts down, and which state it restores afterwards."""
import os
import shutil
import signal
import sys
import tempfile
import threading
import unittest

from harness import PATIENCE, Scheduler, example, in_background, request, running, wait_for
from limits_test import asking


class EndTest(unittest.TestCase):
    def test_running_requests_finish(self):
        scheduler = Scheduler("--grace-seconds", "60")
        answers = []
        # Long enough that the service is still running it when it says that it is not ready, also on a busy machine.
        plan = asking(scheduler, seconds=15)
        thread = in_background(lambda: answers.append(request(scheduler, "POST", "/v1/plan", plan)))
        wait_for("it runs", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
        scheduler.process.send_signal(signal.SIGTERM)
        wait_for("not ready", lambda: request(scheduler, "GET", "/readyz").code == 503)
        late = request(scheduler, "POST", "/v1/plan", example())
        self.assertEqual((late.code, late.json()["code"]), (503, "UNAVAILABLE"))
        thread.join(PATIENCE)
        self.assertIn(answers[0].code, (200, 504), answers[0].text)  # 504: its budget was too short
        self.assertEqual(scheduler.close(), 0)

    def test_after_the_grace_period_they_are_stopped(self):
        scheduler = Scheduler("--grace-seconds", "0.2", "--max-planning-seconds", "600")
        answers = []
        plan = asking(scheduler, seconds=600)
        thread = in_background(lambda: answers.append(request(scheduler, "POST", "/v1/plan", plan)))
        wait_for("it runs", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
        self.assertEqual(scheduler.close(), 0)
        thread.join(PATIENCE)
        self.assertIn(answers[0].code, (200, 504), answers[0].text)  # the best plan found so far, or none

    def test_under_load(self):
        scheduler = Scheduler()
        codes, stop = [], threading.Event()

        def load(offset):
            n = 0
            while not stop.is_set():
                n += 1
                plan = example()
                plan["constraints"]["minThroughput"] = 10000 + offset + n
                try:
                    codes.append(request(scheduler, "POST", "/v1/plan", plan).code)
                except OSError:
                    codes.append(0)  # the service has exited
        threads = [in_background(lambda i=i: load(i * 0.001)) for i in range(6)]
        wait_for("load", lambda: len(codes) > 30)
        status = scheduler.close()
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(status, 0)
        self.assertLessEqual(set(codes), {200, 429, 503, 0})
        self.assertEqual(set(codes[:30]), {200})

    def test_learned_state_is_kept(self):
        folder = tempfile.mkdtemp(prefix="medley-state-test-")
        self.addCleanup(shutil.rmtree, folder)
        plan = example()

        def prediction(scheduler):
            return request(scheduler, "POST", "/v1/plan", plan).json().get("prediction", {}).get("observations", 0)
        with running("--state-dir", folder) as scheduler:
            made = request(scheduler, "POST", "/v1/plan", plan).json()["plan"]
            stages = [{k: s[k] for k in ("firstLayer", "lastLayer", "resourceType", "units")} |
                      {"computeSeconds": s["computeSeconds"] * 1.2, "commSeconds": s["commSeconds"] * 1.2} for s in made["stages"]]
            for epoch in range(4):
                body = {"request": plan, "stages": stages, "throughput": made["throughput"] / 1.2,
                        "batchSize": plan["training"]["profileBatchSize"], "jobUid": "j", "generation": epoch}
                answer = request(scheduler, "POST", "/v1/observations", body)
                self.assertEqual(answer.code, 200, answer.text)
            # The cached response from before is not used any more.
            self.assertEqual(prediction(scheduler), 4)
        with running("--state-dir", folder) as scheduler:
            self.assertEqual(prediction(scheduler), 4)
        state = os.path.join(folder, "calibration")
        with open(state, "r+b") as file:
            file.seek(40)
            byte = file.read(1)
            file.seek(40)
            file.write(bytes([byte[0] ^ 1]))
        with running("--state-dir", folder) as scheduler:
            self.assertEqual(prediction(scheduler), 0)
            self.assertEqual(scheduler.metric('medley_state_damaged_total{file="calibration"}'), 1)
            self.assertIn("damaged", scheduler.log())

    def test_policies_are_trained_on_observations(self):
        folder = tempfile.mkdtemp(prefix="medley-state-test-")
        self.addCleanup(shutil.rmtree, folder)
        plan = example(planner={"name": "rl-lstm"})
        online = {**plan, "planner": {"name": "rl-lstm", "policy": {"name": "online", "inferenceOnly": True}}}
        with running("--state-dir", folder, "--learn-online") as scheduler:
            unknown = request(scheduler, "POST", "/v1/plan", online)
            self.assertEqual((unknown.code, unknown.json()["field"]), (400, "planner.policy.name"))
            made = request(scheduler, "POST", "/v1/plan", example()).json()["plan"]
            stages = [{k: s[k] for k in ("firstLayer", "lastLayer", "resourceType", "units", "computeSeconds", "commSeconds")}
                      for s in made["stages"]]
            body = {"request": plan, "stages": stages, "throughput": made["throughput"], "usdPerHour": made["costPerHour"],
                    "batchSize": plan["training"]["profileBatchSize"], "serverUnits": made["serverUnits"], "jobUid": "j", "generation": 1}
            self.assertEqual(request(scheduler, "POST", "/v1/observations", body).code, 200)
            wait_for("trained", lambda: scheduler.metric('medley_policy_training_observations_total{result="trained"}') == 1)
            self.assertEqual(request(scheduler, "POST", "/v1/plan", online).code, 200)
        with running("--state-dir", folder, "--learn-online") as scheduler:
            self.assertEqual(request(scheduler, "POST", "/v1/plan", online).code, 200)

    def test_a_killed_service_starts_again(self):
        folder = tempfile.mkdtemp(prefix="medley-state-test-")
        self.addCleanup(shutil.rmtree, folder)
        scheduler = Scheduler("--state-dir", folder)
        thread = in_background(lambda: request(scheduler, "POST", "/v1/plan", example()))
        scheduler.process.kill()
        self.assertEqual(scheduler.close(), -signal.SIGKILL)
        thread.join(PATIENCE)
        with running("--state-dir", folder) as again:
            self.assertEqual(request(again, "POST", "/v1/plan", example()).code, 200)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
