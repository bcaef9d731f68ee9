#!/usr/bin/env python3
"""medley simulate --traces: the course of a job on recorded capacity, and what it says about files that are wrong."""
import gzip
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.environ["MEDLEY_SOURCE_DIR"]
MEDLEY = os.path.join(os.environ["MEDLEY_BIN_DIR"], "medley")
JOB = os.path.join(ROOT, "examples/traces/weekend.yaml")
RECORD = os.path.join(ROOT, "examples/traces/spot")


def simulate(*arguments, traces=RECORD, job=JOB):
    return subprocess.run([MEDLEY, "simulate", "--traces", traces, job, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False)


def write_job(folder, find, replace):
    with open(JOB, encoding="utf-8") as file:
        text = file.read()
    assert find in text
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(find, replace))
    return path


class TracesTest(unittest.TestCase):
    def refuses(self, message, *arguments, **keywords):
        done = simulate(*arguments, **keywords)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(message, done.stderr)

    def test_prints_the_course_and_the_total(self):
        done = simulate("--work", "39h56m", "--checkpoint-size", "50G")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("39.93 h of work on 1 unit of v100-aws-2023", "spot units were lost", "the work is done", "total  ",
                     "before the deadline", "the optimum, which knows the future", "on-demand units only"):
            self.assertIn(part, done.stdout)

    def test_json_is_the_same_each_time_and_adds_up(self):
        first, second = (simulate("--work", "39h56m", "-o", "json") for _ in range(2))
        self.assertEqual(first.stdout, second.stdout)
        out = json.loads(first.stdout)
        self.assertTrue(out["total"]["inTime"])
        self.assertEqual(out["timeline"][-1]["usd"], out["total"]["usd"])
        usd = {row["policy"]: row["usd"] for row in out["compared"]}
        self.assertLess(usd["the optimum, which knows the future"], usd["on-demand units only"])
        self.assertLess(out["total"]["usd"], usd["on-demand units only"])

    def test_work_that_only_on_demand_units_can_do_in_time_is_done_in_time(self):
        out = json.loads(simulate("--work", "59h40m", "--start", "12m", "-o", "json").stdout)
        self.assertTrue(out["total"]["inTime"], out)

    def test_a_record_that_never_has_so_many_units_is_named(self):
        done = simulate("--work", "20h", "--units", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no zone of the record v100-aws-2023 ever has 3 units", done.stderr)

    def test_flags_and_files_that_are_wrong_are_named(self):
        self.refuses("no such folder", "--work", "40h", traces="/nowhere")
        self.refuses("--work forty: must be a duration", "--work", "forty")
        self.refuses("--checkpoint-size big: must be a number of bytes", "--work", "40h", "--checkpoint-size", "big")
        self.refuses("--at noon: must be a time", "--work", "40h", "--at", "noon")
        self.refuses("the record v100-aws-2023 begins at", "--work", "40h", "--at", "2031-01-01T00:00:00Z")
        self.refuses("the record ends 30.", "--work", "4h", "--at", "2023-02-24T16:00:00Z")

    def test_a_job_without_what_it_needs_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuses("needs a deadline", "--work", "40h", job=write_job(folder, "{deadline: 59h54m}", "{minThroughput: 1}"))
            self.refuses("no pool has a record", "--work", "40h", traces=folder,
                         job=write_job(folder, ", annotations: {run.medley.dev/trace: v100-aws-2023}", ""))
            self.refuses("without on-demand units no deadline can be kept", "--work", "40h",
                         job=write_job(folder, "pools: [v100-spot, v100-on-demand]", "pools: [v100-spot]"))
            self.refuses("missing.csv: no such file", "--work", "40h", job=write_job(folder, "trace: v100-aws-2023", "trace: missing"))

    def test_a_damaged_record_is_refused_with_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            with gzip.open(os.path.join(RECORD, "v100-aws-2023.csv.gz"), "rb") as file:
                lines = file.read().split(b"\n")
            path = os.path.join(folder, "v100-aws-2023.csv")
            for change, message in ((lambda all: all[:5] + all[9:], "line 6: the record has a hole"),
                                    (lambda all: all[:5] + [all[2]] + all[5:], "line 6: the time"),
                                    (lambda all: all[:5] + [b"caf\xe9"] + all[5:], "line 6 is not UTF-8"),
                                    (lambda all: all[:1], "fewer than two records")):
                with open(path, "wb") as file:
                    file.write(b"\n".join(change(lines)))
                self.refuses(message, "--work", "40h", traces=folder)
            with open(path, "wb") as file:
                file.truncate(1 << 27)
            self.refuses("v100-aws-2023.csv", "--work", "40h", traces=folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
