#!/usr/bin/env python3
"""A source has at most 400 lines and a header 200, but for the files in sizes.txt, which only become smaller.

    tests/lint/check_sizes.py           files that are too long, longer than listed, or listed although they need not be
    tests/lint/check_sizes.py --write   writes smaller sizes into the list and takes out what fits; never adds or raises

Tests are lists of cases and may have 600 lines (check_style.py).
"""
import os
import re
import sys

import tree

LIST = "tests/lint/sizes.txt"
LIMITS = {".cc": 400, ".h": 200}
TESTS = re.compile(r"^tests/|^reproductions/\w+/(tests|bench)/|/testing/")


def limit_of(path):
    """The most lines of a file, or None if it has no limit here."""
    ending = os.path.splitext(path)[1]
    return None if TESTS.search(path) else LIMITS.get(ending)


def read_list(text):
    """{path: lines} of rows 'LINES PATH'."""
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {path: int(lines) for lines, path in rows}


def problems_of(sizes, listed):
    """`sizes`: {path: lines} of all files with a limit."""
    problems = []
    for path, lines in sorted(sizes.items()):
        limit = limit_of(path)
        if path not in listed and lines > limit:
            problems.append(f"{path}: {lines} lines, more than {limit}: split it, one idea a file")
        elif path in listed and lines > listed[path]:
            problems.append(f"{path}: {lines} lines, and {LIST} says {listed[path]}: a file that is too long may not grow; split it")
        elif path in listed and lines <= limit:
            problems.append(f"{LIST}: {path} has {lines} lines, so it need not be listed: check_sizes.py --write")
        elif path in listed and lines < listed[path]:
            problems.append(f"{LIST}: {path} has only {lines} lines now: check_sizes.py --write")
    return problems + [f"{LIST}: {path} does not exist: check_sizes.py --write" for path in sorted(listed) if path not in sizes]


def shrunk(sizes, listed):
    return {path: min(lines, sizes[path]) for path, lines in listed.items() if path in sizes and sizes[path] > limit_of(path)}


def main():
    sizes = {path: tree.read(path).count("\n") for path in tree.all_files() if limit_of(path) is not None}
    text = tree.read(LIST)
    listed = read_list(text)
    if "--write" in sys.argv[1:]:
        listed = shrunk(sizes, listed)
        head = [line for line in text.splitlines() if line.startswith("#")]
        with open(LIST, "w", encoding="utf-8") as file:
            file.write("\n".join([*head, *(f"{lines} {path}" for path, lines in sorted(listed.items()))]) + "\n")
    problems = problems_of(sizes, listed)
    print("\n".join([*problems, f"check_sizes: {len(sizes)} files, {len(listed)} too long, {len(problems)} problems"]))
    return 1 if problems or not sizes else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
