#!/usr/bin/env python3
"""Every row of docs/status.md that says what works names a test or a bench, and each of them exists.

A name in backticks in the last column is a test of ctest (`NAME_test`), a test of GoogleTest (`Suite.Test`), `./dev bench NAME`, or
the path of a script below tests/bench.
"""
import os
import re
import sys

import tree

PAGE = "docs/status.md"
HEADING = "## Works"
EACH = re.compile(r"foreach\((\w+)((?:\s+[\w/.-]+)+)\)(.*?)endforeach\(", re.S)
TEST = re.compile(r"\b(?:add_test|medley_test|medley_real_api_test)\(\s*(?:NAME\s+)?([\w${}]+)")


def tests_of(cmake):
    """Names of the tests that a CMakeLists.txt adds, loops unrolled."""
    unrolled = EACH.sub(lambda m: "".join(m.group(3).replace("${" + m.group(1) + "}", value) for value in m.group(2).split()), cmake)
    return {name for name in TEST.findall(unrolled) if "$" not in name}


def benches_of(dev, run):
    """What `./dev bench` takes: words of the `case` in dev, and the sections of tests/bench/run."""
    text = dev[dev.index("\n  bench)") + len("\n  bench)"):]
    text = text[:text.index(";;\n  lint)")]
    found = set(re.findall(r'"\$\{2:-\}" [!=]*= (\w+)', text))
    for words in re.findall(r"(?:^|in)\s+([a-z]+(?: ?\| ?[a-z]+)*)\)", text, re.M):
        found |= set(re.split(r" ?\| ?", words))
    for table in ("SECTIONS", "GROUPS"):
        body = run[run.index(f"\n{table} = {{"):]
        found |= set(re.findall(r'"(\w+)":', body[:body.index("}")]))
    return found


def rows_of(page):
    """[(line number, cells)] of the table below HEADING."""
    start = page.index(HEADING)
    before = page[:start].count("\n")
    part = page[start:].split("\n## ", 1)[0] if page[start:].count("\n## ") else page[start:]
    return [(before + number, [cell.strip() for cell in line.strip().strip("|").split(" | ")])
            for number, line in enumerate(part.split("\n"), 1) if line.startswith("|") and not line.startswith("|--")][1:]


def problems_of(rows, known):
    """`known(name)`: is this a test or a bench?"""
    problems = []
    for number, cells in rows:
        names = re.findall(r"`([^`]+)`", cells[-1]) if len(cells) == 2 else []
        if not names:
            problems.append(f"{PAGE}:{number}: a row that names no test and no bench in its second cell")
        problems += [f"{PAGE}:{number}: there is no test and no bench {name}" for name in names if not known(name)]
    return problems


def main():
    files = set(tree.all_files())
    tests = {name for path in files if os.path.basename(path) == "CMakeLists.txt" for name in tests_of(tree.read(path))}
    benches = benches_of(tree.read("dev"), tree.read("tests/bench/run"))
    cases = {".".join(case) for path in files if path.endswith("_test.cc")
             for case in re.findall(r"\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)", tree.read(path))}

    def known(name):
        if name.startswith("./dev bench "):
            return name.split()[2] in benches
        return name in tests or name in cases or (name in files and name.startswith(("tests/bench/", "reproductions/")))

    rows = rows_of(tree.read(PAGE))
    problems = problems_of(rows, known)
    print("\n".join([*problems, f"check_status: {len(rows)} rows, {len(tests)} tests, {len(benches)} benches, {len(problems)} problems"]))
    return 1 if problems or len(rows) < 10 else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
