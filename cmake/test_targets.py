#!/usr/bin/env python3
"""What to build for some tests, and which tests took longest.

  test_targets.py needed BUILD [ctest arguments...]    prints the targets that the tests need, a line each
  test_targets.py slowest BUILD REPORT                 prints the ten slowest tests of a JUnit report of ctest

A test that is a program of BUILD needs that program, which has what it starts as dependencies (medley_test's BINARIES). Any other
test, such as a script, needs all programs, unless it is a lint, which needs nothing that is built. Setups of fixtures count too.
"""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree

NOTHING = {"lint", "script"}  # labels of tests that need nothing built


def properties(test):
    return {each["name"]: each["value"] for each in test.get("properties", [])}


def target_of(word, build):
    """The target of a word of a test's command; None if it is no program of the build."""
    path = os.path.realpath(word)
    if os.path.dirname(path) in (os.path.join(build, "tests"), os.path.join(build, "bin")):
        return os.path.basename(path)
    return None


def needed(build, tests):
    """(targets, whether all programs are needed)."""
    targets, programs = set(), False
    for test in tests:
        known = properties(test)
        labels = set(known.get("LABELS", []))
        found = {target_of(word, build) for word in test.get("command", [])} - {None}
        targets |= found
        programs |= not found and not labels & NOTHING
    return sorted(targets), programs


def listed(build, arguments):
    out = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *arguments], capture_output=True, text=True,
                         check=False)
    if out.returncode:
        sys.exit(f"test_targets: ctest: {out.stderr.strip()}")
    return json.loads(out.stdout)["tests"]


def slowest(report, most=10):
    """[(seconds, name)], the slowest first."""
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return sorted(((float(case.get("time")), case.get("name")) for case in cases), reverse=True)[:most]


def main():
    what, build = sys.argv[1], os.path.realpath(sys.argv[2])
    if what == "needed":
        targets, programs = needed(build, listed(build, sys.argv[3:]))
        print("\n".join(targets + (["programs"] if programs else [])))
    else:
        rows = slowest(sys.argv[3])
        print("the slowest tests, in seconds: " + ", ".join(f"{name} {seconds:.0f}" for seconds, name in rows))


if __name__ == "__main__":
    main()
