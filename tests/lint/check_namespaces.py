#!/usr/bin/env python3
"""Namespaces equal folders: a file below TOP is in `medley::TOP`, or in `medley::TOP::FOLDER` for what only that folder means.

The folders of common/ stand for themselves (common/base is medley::base), and two names differ because C++ does not have them
(ABBREVIATED). namespaces.txt lists the folders that still have another name, as `FOLDER NAMESPACE`; it only shrinks: a row that is
not needed any more is a problem too. Declarations of classes of other folders do not count.
"""
import os
import re
import sys

import check_layers
import tree

EXCEPTIONS = "tests/lint/namespaces.txt"
# `operator` is a keyword, and `scheduler-service` no name.
ABBREVIATED = {"operator": "ops", "scheduler-service": "sched"}
NAMESPACE = re.compile(r"^namespace (medley(?:::\w+)*) \{$", re.M)
FORWARD = re.compile(r"^namespace medley[\w:]* \{\n(?:(?:template <[^>]*>\n)?(?:class|struct|enum class) \w+(?: : \w+)?;\n)+\}.*$", re.M)


def expected(folder):
    """The namespaces that a file of this folder may be in, without what may follow them."""
    parts = check_layers.owner(folder).split("/")
    if parts[0] == "common":
        return "medley::" + parts[1]
    return "medley::" + ABBREVIATED.get(parts[0], parts[0])


def is_of(namespace, folder):
    """Whether it is the folder's: that of the top, with folders on the way or one concern of the folder behind it."""
    head = expected(folder)
    return namespace == head or namespace.startswith(head + "::")


def check(files, exceptions):
    """files: text by path; exceptions: set of (folder, namespace). Returns the problems."""
    problems, used = [], set()
    for path, text in sorted(files.items()):
        folder = os.path.dirname(path)
        for name in sorted(set(NAMESPACE.findall(FORWARD.sub("", text)))):
            row = (folder, name)
            if is_of(name, folder):
                continue
            used.add(row)
            if row not in exceptions:
                problems.append(f"{path}: namespace {name}, in a folder of {expected(folder)}")
    problems += [f"{EXCEPTIONS}: {folder} has no file in {name} any more: delete the row"
                 for folder, name in sorted(exceptions - used)]
    return problems


def main():
    rows = [line.split() for line in tree.read(EXCEPTIONS).splitlines() if line and not line.startswith("#")]
    files = {path: tree.read(path) for path in tree.all_files()
             if path.endswith((".h", ".cc")) and path.startswith(tuple(top + "/" for top in check_layers.TOP))}
    problems = check(files, {tuple(row) for row in rows})
    for problem in problems:
        print(problem)
    print(f"check_namespaces: {len(files)} files, {len(rows)} exceptions, {len(problems)} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
