"""Tests with promtool that every alert fires exactly when it should (alert_cases.yaml), and that each has a summary, a
description, a severity and a section in docs/operate/runbook.md. Needs Debian's prometheus and python3-yaml."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
RULES = os.path.join(SOURCE, "charts/medley/alerts/medley.yaml")
CASES = os.path.join(SOURCE, "tests/integration/observability/alert_cases.yaml")
RUNBOOK = os.path.join(SOURCE, "docs/operate/runbook.md")
PROMTOOL = "/usr/bin/promtool"


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def alerts():
    return [rule for group in load(RULES)["groups"] for rule in group["rules"]]


def promtool(*arguments):
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)


class RulesTest(unittest.TestCase):
    def test_they_are_valid(self):
        done = promtool("check", "rules", "--lint-fatal", RULES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_is_complete(self):
        with open(RUNBOOK, encoding="utf-8") as file:
            headings = {re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").strip().lower()).replace(" ", "-")
                        for line in file if line.startswith("#")}
        names = [rule["alert"] for rule in alerts()]
        self.assertEqual(len(names), len(set(names)), "two alerts have the same name")
        for rule in alerts():
            with self.subTest(rule["alert"]):
                self.assertTrue(rule["alert"].startswith("Medley"))
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                for annotation in ("summary", "description", "runbook_url"):
                    self.assertTrue(rule["annotations"].get(annotation), annotation)
                page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
                self.assertTrue(page.endswith("/docs/operate/runbook.md"), page)
                self.assertEqual(anchor, rule["alert"].lower())
                self.assertIn(anchor, headings, "docs/operate/runbook.md does not have this section")


class CasesTest(unittest.TestCase):
    """The rules without annotations, because promtool compares these word by word; live_test.py checks them."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="medley-alerts-test-")
        self.addCleanup(self.folder.cleanup)
        rules = load(RULES)
        for group in rules["groups"]:
            for rule in group["rules"]:
                del rule["annotations"]
        self.severity = {rule["alert"]: rule["labels"]["severity"] for rule in alerts()}
        self.write("rules.yaml", rules)

    def write(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(content, file)
        return path

    def run_all(self, expect):
        """Runs promtool on all cases and returns its exit status and output. `expect` returns the labels expected in a case."""
        tests = []
        for case in load(CASES):
            for kind in ("fires", "silent"):
                for one in case[kind]:
                    wanted = [{**labels, "severity": self.severity[case["alert"]]} for labels in expect(kind, one)]
                    tests.append({
                        "interval": "1m",
                        "input_series": [{"series": name, "values": str(values)}
                                         for name, values in one["series"].items()],
                        "alert_rule_test": [{
                            "eval_time": one.get("at", case["at"]),
                            "alertname": case["alert"],
                            "exp_alerts": [{"exp_labels": labels} for labels in wanted],
                        }],
                    })
        path = self.write("test.yaml", {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
        done = promtool("test", "rules", path)
        return len(tests), done.returncode, done.stdout + done.stderr

    def test_every_alert_has_both_kinds_of_cases(self):
        cases = load(CASES)
        self.assertEqual([case["alert"] for case in cases], [rule["alert"] for rule in alerts()])
        for case in cases:
            self.assertTrue(case["fires"] and case["silent"], case["alert"])

    def test_cases(self):
        _, status, words = self.run_all(lambda kind, one: [one["labels"]] if kind == "fires" else [])
        self.assertEqual(status, 0, words)

    def test_the_comparison_can_fail(self):
        count, status, words = self.run_all(lambda kind, one: [] if kind == "fires" else [{"not": "there"}])
        self.assertNotEqual(status, 0)
        self.assertEqual(len(re.findall(r"alertname:", words)), count, words)


if __name__ == "__main__":
    if not os.access(PROMTOOL, os.X_OK):
        sys.exit(f"{PROMTOOL} is missing: install Debian's package prometheus (./dev does). Nothing was tested.")
    unittest.main(verbosity=1)
