"""The programs know every flag that the chart gives them. Needs helm only."""
import os
import re
import subprocess
import unittest

import harness
from harness import BIN, need, pod_specs, render, values_files


def flags_of(program):
    """Every flag in the program's help."""
    said = subprocess.run([os.path.join(BIN, program), "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z][a-z0-9-]*", said))


class FlagsTest(unittest.TestCase):
    def test_programs_know_every_flag(self):
        known = {"operator": flags_of("medley-operator"), "scheduler": flags_of("medley-scheduler"),
                 "check": flags_of("medley-operator")}
        for values in values_files():
            _, objects = render("--values", values)
            seen = 0
            for name, spec in pod_specs(objects):
                for part in spec["containers"]:
                    for argument in part["args"]:
                        seen += 1
                        flag = argument.split("=")[0]
                        self.assertIn(flag, known[part["name"]], f"{values}: {name}: {argument}")
            self.assertGreater(seen, 5)


if __name__ == "__main__":
    need("helm")
    harness.main()
