#!/usr/bin/python3
"""Every part of all.py runs, and the weights that one writes are those that another reads."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import all as parts  # noqa: E402


class AllTest(unittest.TestCase):
    def bench(self, folder):
        return subprocess.run([sys.executable, os.path.join(HERE, "all.py"), "--small", "--folder", folder], cwd=os.environ["MEDLEY_SOURCE_DIR"],
                              capture_output=True, text=True, check=False)

    def test_every_part_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.bench(folder)
            self.assertEqual(first.returncode, 0, first.stderr)
            for name in parts.PARTS:
                self.assertGreater(os.path.getsize(os.path.join(folder, name + ".small.txt")), 100, name)
            self.assertGreater(os.path.getsize(os.path.join(folder, "unseen.small.pt")), 1000)
            again = self.bench(folder)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(again.stderr.count("complete"), len(parts.PARTS), again.stderr)


if __name__ == "__main__":
    unittest.main()
