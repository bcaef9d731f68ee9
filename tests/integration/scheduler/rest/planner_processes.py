"""Shared by tests of planners that are processes of their own: starts them, and asks a service that has them."""
import os
import shutil
import subprocess
import tempfile
import unittest

import yaml

from harness import PATIENCE, example, request


class PlannerProcesses(unittest.TestCase):
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

    def config(self, **fields):
        """The option --planners with one planner, `mine`."""
        text = yaml.safe_dump({"planners": [{"name": "mine", **fields}]})
        return "--planners", self.path("planners.yaml", text)

    def plan(self, scheduler, name="nce-5", planner="mine", seconds=60, **changes):
        body = example(name, planner={"name": planner, "seed": 1, "timeBudgetSeconds": seconds, **changes})
        answer = request(scheduler, "POST", "/v1/plan", body)
        self.assertEqual(answer.code, 200, answer.text)
        return answer.json()
