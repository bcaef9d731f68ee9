#!/usr/bin/env python3
"""Checks docs/design/kube-client.md: every item of the checklist has a row, and every test that it names exists."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ITEMS = {"A": range(1, 6), "B": range(1, 9), "C": range(1, 11), "D": range(1, 6), "E": (3, 4)}


def tests_of_tree():
    names = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        for name in files:
            if name.endswith(".cc"):
                text = open(os.path.join(folder, name), encoding="utf-8").read()
                names.update(re.findall(r"^TEST(?:_[FP])?\(\w+,\s*(\w+)\)", text, re.M))
    return names


def main():
    doc = open(os.path.join(ROOT, "docs/design/kube-client.md"), encoding="utf-8").read()
    tree = tests_of_tree()
    problems = []
    for letter, numbers in ITEMS.items():
        for number in numbers:
            row = re.search(rf"^\| {letter}{number} .*$", doc, re.M)
            if row is None:
                problems.append(f"docs/design/kube-client.md: no row for {letter}{number}")
            elif not re.search(r"`\w*_\w+`|`Test\w+`|`[A-Z]\w{12,}`", row.group(0).split("|")[3]):
                problems.append(f"docs/design/kube-client.md: {letter}{number} does not name a test")
    named = set()
    for row in re.findall(r"^\|.*$", doc, re.M):
        last = row.rstrip("|").split("|")[-1]
        named.update(re.findall(r"`(\w+)`", last))
    named.update(re.findall(r"`((?:Test|[A-H]\d+_)\w+)`", doc))
    for name in sorted(named):
        if name not in tree:
            problems.append(f"docs/design/kube-client.md: no test is named {name}")
    for problem in problems:
        print(problem)
    print(f"check_kube_client: {len(named)} tests, {len(problems)} problems")
    return 1 if problems or not named else 0


if __name__ == "__main__":
    sys.exit(main())
