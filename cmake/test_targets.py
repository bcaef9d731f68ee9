#!/usr/bin/env python3
"""What to build for some tests, and which tests took longest.

  test_targets.py needed BUILD [ctest arguments...]    prints the targets that the tests need, a line each
  test_targets.py slowest BUILD REPORT                 prints the ten slowest tests of a JUnit report of ctest
  test_targets.py seconds BUILD                        lets a build that has run no test begin with the longest ones

A test that is a program of BUILD needs that program, which has what it starts as dependencies (medley_test's BINARIES). Any other
test, such as a script, needs all programs, or if it is a wing's (cmake/MedleyTargets.cmake) what the wing builds, unless it is
a lint, which needs nothing that is built. Setups of fixtures count too.

ctest begins with the tests that took longest in earlier runs of the same build, as its CTestCostData.txt says. A build without
that file gets the seconds of tests/lint/test_seconds.txt, which were measured, and for other tests a twentieth of their timeouts.
"""
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

MEASURED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/lint/test_seconds.txt")
NOTHING = {"lint", "script"}  # labels of tests that need nothing built
WINGS = {"reproductions"}  # labels of the tests of a wing: names of targets


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
        if not found and labels & WINGS:
            targets |= labels & WINGS
        elif not found and not labels & NOTHING:
            programs = True
    return sorted(targets), programs


def programs_of(text):
    """{test: its program} of the text of a CTestTestfile.cmake."""
    return {name: program for name, program in re.findall(r'^add_test\((?:\[=*\[)?([^\s"\]]+)(?:\]=*\])? "([^"]+)"', text, re.M)}


def all_programs(folder):
    """{test: its program} of a build's folder and those below it."""
    try:
        with open(os.path.join(folder, "CTestTestfile.cmake"), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    found = programs_of(text)
    for below in re.findall(r'^subdirs\("([^"]+)"\)', text, re.M):
        found.update(all_programs(os.path.join(folder, below)))
    return found


def listed(build, arguments):
    out = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *arguments], capture_output=True, text=True,
                         check=False)
    if out.returncode:
        sys.exit(f"test_targets: ctest: {out.stderr.strip()}")
    tests = json.loads(out.stdout)["tests"]
    if any("command" not in test for test in tests):  # ctest leaves out the command of a program that is not built yet
        programs = all_programs(build)
        for test in tests:
            if test["name"] in programs:
                test.setdefault("command", [programs[test["name"]]])
    return tests


def slowest(report, most=10):
    """[(seconds, name)], the slowest first."""
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return sorted(((float(case.get("time")), case.get("name")) for case in cases), reverse=True)[:most]


def seconds_of(text):
    """{test: seconds} of a table of tests: a name and a number a line, and comments."""
    lines = (line.split("#")[0].split() for line in text.splitlines())
    return {name: float(seconds) for name, seconds in filter(None, lines)}


def cost_data(tests, measured):
    """What ctest writes after a run: the name, how often it has run, its mean seconds; then the tests that failed."""
    seconds = {test["name"]: float(properties(test).get("TIMEOUT", 0)) / 20 for test in tests}
    seconds.update({name: value for name, value in measured.items() if name in seconds})
    return "".join(f"{name} 1 {mean:g}\n" for name, mean in sorted(seconds.items())) + "---\n"


def give_seconds(build):
    known = os.path.join(build, "Testing", "Temporary", "CTestCostData.txt")
    if os.path.exists(known):
        return
    os.makedirs(os.path.dirname(known), exist_ok=True)
    with open(MEASURED, encoding="utf-8") as table:
        measured = seconds_of(table.read())
    with open(known, "w", encoding="utf-8") as file:
        file.write(cost_data(listed(build, []), measured))


def main():
    what, build = sys.argv[1], os.path.realpath(sys.argv[2])
    if what == "needed":
        targets, programs = needed(build, listed(build, sys.argv[3:]))
        print("\n".join(targets + (["programs"] if programs else [])))
    elif what == "seconds":
        give_seconds(build)
    else:
        rows = slowest(sys.argv[3])
        print("the slowest tests, in seconds: " + ", ".join(f"{name} {seconds:.0f}" for seconds, name in rows))


if __name__ == "__main__":
    main()
