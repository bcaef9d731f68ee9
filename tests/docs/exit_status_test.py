#!/usr/bin/env python3
"""The exit statuses: one table, in docs/use/cli.md, the same as cli/exit_status.h, and no other in the code or the pages."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.environ.get("MEDLEY_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MEDLEY = os.path.join(os.environ["MEDLEY_BIN_DIR"], "medley")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def declared():
    """{status: meaning} of the header."""
    lines = re.findall(r"inline constexpr int k\w+ = (\d+);\s*// (.*)", read("cli", "exit_status.h"))
    return {("above " + number if meaning.startswith("above: ") else number): meaning.removeprefix("above: ") for number, meaning in lines}


def documented():
    section = read("docs", "use", "cli.md").split("## Exit status", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"^\| ((?:above )?\d+) \| (.*) \|$", section, re.MULTILINE))


def status(*arguments, folder):
    return subprocess.run([MEDLEY, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False).returncode


class ExitStatusTest(unittest.TestCase):
    def test_the_page_has_the_table_of_the_code(self):
        self.assertEqual(documented(), declared())
        self.assertGreaterEqual(len(declared()), 6)

    def test_no_other_page_has_a_table_of_its_own(self):
        for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
            for name in names:
                if not name.endswith(".md") or os.path.join(folder, name).endswith(os.path.join("use", "cli.md")):
                    continue
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                self.assertNotRegex(text, r"exit status is 0 for", os.path.join(folder, name))

    def test_the_code_returns_no_other(self):
        known = {int(key) for key in declared() if key.isdigit()}
        for folder, _, names in os.walk(os.path.join(ROOT, "cli")):
            for name in (n for n in names if n.endswith(".cc")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                for line in re.findall(r"^.*exit_status\s*=[^=].*$|^.*\bFail\(.*, \d+.*$|^int Run.*\{$(?:\n.*?)*?^\}$", text, re.MULTILINE):
                    for number in re.findall(r"exit_status = (\d+);|[?:] (\d+)(?=[;:])|Fail\(.*, (\d+)(?:, result)?\)|return (\d+);", line):
                        value = int(next(part for part in number if part))
                        self.assertIn(value, known, f"{name}: {line[:200]}")

    def test_commands_end_as_the_table_says(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(status("version", folder=folder), 0)
            self.assertEqual(status("data", "head", "missing.csv", folder=folder), 1)
            self.assertEqual(status("run", "missing.yaml", folder=folder), 2)
            self.assertEqual(status("explain", os.path.join(ROOT, "examples/plan/infeasible.yaml"), folder=folder), 2)
            self.assertEqual(status("plan", os.path.join(ROOT, "examples/plan/infeasible.yaml"), folder=folder), 2)
            for wrong in (["plan", "--nothing"], ["data"], ["tpo"], ["logs"]):
                self.assertGreater(status(*wrong, folder=folder), 100, wrong)


if __name__ == "__main__":
    unittest.main(verbosity=2)
