#!/usr/bin/python3
"""all.py runs every part, leaves out what is complete when it runs again, and runs a part again whose file is missing or of another program."""
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

    def test_resumes(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.bench(folder)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertNotIn("complete", first.stderr)
            for name in parts.PARTS:
                self.assertGreater(os.path.getsize(os.path.join(folder, name + ".small.txt")), 100, name)
            with open(os.path.join(folder, "speed.small.txt"), "w", encoding="utf-8") as file:
                file.write("of another program\n")
            brute = os.path.join(folder, "brute.small.txt")
            os.rename(brute, brute + ".part")  # as after an interruption
            again = self.bench(folder)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(again.stderr.count("complete"), len(parts.PARTS) - 2, again.stderr)
            self.assertRegex(again.stderr, "speed: [0-9]+ s")
            self.assertRegex(again.stderr, "brute: [0-9]+ s")
            self.assertNotIn("another program", again.stdout)
            self.assertIn("milliseconds of a simulation", again.stdout)


if __name__ == "__main__":
    unittest.main()
