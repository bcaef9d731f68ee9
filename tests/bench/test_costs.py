#!/usr/bin/env python3
"""Runs tests of a build and prints what processor time each one took, with that of all processes that it started.

  test_costs.py [--build FOLDER] [--jobs N] [ctest arguments...]

Runs ctest in FOLDER/costs, where each test of FOLDER has the same properties and its command below this program. Prints
a row for each test, the most expensive first: user and system time, and how long it took. A process that outlives its
test, as the control plane of the fixture real_api does, counts with what it had used when its test ended. Exit status:
that of ctest.
"""
import argparse
import ctypes
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cmake"))
import test_targets  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def alive():
    """Ticks of the processes below this one that still run."""
    total, below = 0, [os.getpid()]
    while below:
        pid = below.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
            for child in children:
                with open(f"/proc/{child}/stat", encoding="ascii") as file:
                    fields = file.read().rpartition(")")[2].split()
                total += sum(int(field) for field in fields[11:15])  # its own, and its children's that it has reaped
            below += children
        except OSError:
            continue
    return total


def run_one(name, report, command):
    """Runs the command, adds a line to the report and ends as the command did."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("prctl(PR_SET_CHILD_SUBREAPER) failed")
    began = time.monotonic()
    code = subprocess.call(command)
    wall = time.monotonic() - began
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(report, "a", encoding="utf-8") as file:
        file.write(f"{used.ru_utime + used.ru_stime + alive() / TICKS:.2f} {wall:.1f} {code} {name}\n")
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def quoted(text):
    return "[==[" + str(text) + "]==]"


def write_tests(tests, folder, report):
    """CTestTestfile.cmake with the tests, each below this program."""
    lines = []
    for test in tests:
        if "command" not in test:
            raise SystemExit(f"test_costs: {test['name']} is not built")
        command = [sys.executable, os.path.abspath(__file__), "--one", test["name"], report, *test["command"]]
        lines.append(f"add_test({quoted(test['name'])} " + " ".join(map(quoted, command)) + ")")
        for name, value in test_targets.properties(test).items():
            if isinstance(value, list):
                value = ";".join(map(str, value))
            if isinstance(value, bool):
                value = "TRUE" if value else "FALSE"
            lines.append(f"set_tests_properties({quoted(test['name'])} PROPERTIES {name} {quoted(value)})")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    if sys.argv[1:2] == ["--one"]:
        sys.exit(run_one(sys.argv[2], sys.argv[3], sys.argv[4:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 3)
    arguments, rest = parser.parse_known_args()
    folder = os.path.join(os.path.realpath(arguments.build), "costs")
    report = os.path.join(folder, "report.txt")
    write_tests(test_targets.listed(arguments.build, rest), folder, report)
    open(report, "w", encoding="utf-8").close()
    began = time.monotonic()
    code = subprocess.call(["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-j",
                            str(arguments.jobs)])
    took = time.monotonic() - began
    with open(report, encoding="utf-8") as file:
        rows = sorted(((float(line.split()[0]), *line.split()[1:]) for line in file), reverse=True)
    print("| test | processor time, s | took, s |\n|---|---|---|")
    for used, wall, status, name in rows:
        print(f"| {name}{'' if status == '0' else ' (exit status ' + status + ')'} | {used:.1f} | {wall} |")
    print(f"{len(rows)} tests: {sum(row[0] for row in rows):.0f} s of processor time in {took:.0f} s")
    sys.exit(code)


if __name__ == "__main__":
    main()
