#!/usr/bin/env python3
"""Checks that a build compiles no more than tests/lint/build_costs.txt allows: objects, and MB of text that the compiler reads,
and how much of the text is read again when a header of values changes.

  check_build.py BUILD            exit status 1 if a goal grew past its line
  check_build.py BUILD --show     prints what each goal has now

Both follow from what ninja knows of a build, so they are the same on every machine, unlike seconds, which `./dev bench build`
prints: on one machine they go with the text, at about 2.7 s of one core a MB. A goal that was not built whole is not checked.
Precompiled headers count nothing. A header of values (VALUES) may be in at most MOST_PERCENT of the text of `everything`, or in as much
as its own line allows, which must go when it is no longer needed. `reproductions` counts only what `everything` has not, and `everything` must have nothing of it;
`parquet` is what `./dev setup parquet` adds.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(ROOT, "tests/lint/build_costs.txt")
# What a line of the table stands for, in targets of the build.
GOALS = {"demo": ["medley", "medley-operator", "medley-scheduler", "medley-worker"], "everything": ["all"], "reproductions": ["reproductions"]}
WING = "reproductions"  # its goal, and its folder
# The goal `parquet`: what the default target has besides where ./dev setup parquet was run.
PARQUET = ("worker/arrow/", "tests/unit/worker/arrow/", "tests/fuzz/CMakeFiles/columns_fuzz_test.dir/")
VALUES = "common/model/"
MOST_PERCENT = 20


def texts(build):
    """Object -> MB of the files that it was compiled from, and header of values -> the objects that read it."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    sizes, found, readers, current = {}, {}, {}, None
    values = os.path.join(ROOT, VALUES)
    for line in listed.splitlines():
        named = re.match(r"(\S+): #deps", line)
        if named:
            current = named.group(1)
            found[current] = 0.0
        elif current is not None and line.startswith("    ") and not line.endswith(".gch"):
            path = os.path.join(build, line.strip())
            if path not in sizes:
                sizes[path] = os.path.getsize(path) / 1e6 if os.path.exists(path) else 0.0
            found[current] += sizes[path]
            if VALUES in path and path.endswith(".h") and os.path.realpath(path).startswith(values):
                readers.setdefault(os.path.relpath(os.path.realpath(path), ROOT), set()).add(current)
    return found, readers


def rebuilt(read, readers, default):
    """Header of values -> percent of the text of the default target's objects that is read again when it changes."""
    whole = sum(read[each] for each in default)
    return {header: 100 * sum(read[each] for each in objects & default) / whole for header, objects in readers.items()}


def spread(shares, bars):
    """Sentences about headers of values that rebuild more than they may, and about lines that are not needed."""
    problems = []
    for header, percent in sorted(shares.items()):
        most = bars.get(header, MOST_PERCENT)
        if percent > most:
            problems.append(f"a change of {header} rebuilds {percent:.0f} % of everything, more than {most}: which header began to "
                            "include it? common/model/forward.h declares what is only named")
        elif header in bars and percent <= MOST_PERCENT:
            problems.append(f"{header} needs no line: a change rebuilds {percent:.0f} %")
    return problems + [f"{header} has a line and is read by nothing" for header in bars if header not in shares]


def objects(build, targets):
    listed = subprocess.run(["ninja", "-C", build, "-t", "inputs", *targets], capture_output=True, text=True, check=True).stdout
    return {line for line in listed.split() if line.endswith(".o")}


def own_objects(build):
    """Goal -> its objects; of the wing those that no other goal has. `parquet` only if the build has it."""
    found = {goal: objects(build, targets) for goal, targets in GOALS.items()}
    found[WING] -= found["everything"]
    parquet = {each for each in found["everything"] if each.startswith(PARQUET)}
    if parquet:
        found["everything"] -= parquet
        found["parquet"] = parquet
    return found


def strayed(default):
    """Sentences about objects of the wing in the default target."""
    return [f"everything has {each}: nothing outside of {WING}/ may link it" for each in sorted(default) if each.startswith(WING + "/")]


def read_table(text):
    """goal -> (objects, MB), and header -> percent."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    rows = [[field.strip() for field in line.split("|")] for line in lines if line]
    return ({row[0]: (int(row[1]), int(row[2])) for row in rows if len(row) == 3}, {row[0]: int(row[1]) for row in rows if len(row) == 2})


def grown(costs, bars):
    """Sentences about goals that cost more than their line."""
    problems = []
    for goal, (count, mb) in costs.items():
        if goal not in bars:
            problems.append(f"{goal} has no line")
            continue
        most_objects, most_mb = bars[goal]
        if count > most_objects:
            problems.append(f"{goal} has {count} objects, more than {most_objects}")
        if mb > most_mb:
            problems.append(f"{goal} reads {mb:.0f} MB of text, more than {most_mb}: which header did a header begin to include?")
    return problems


def main():
    build = sys.argv[1]
    (read, readers), costs, partly = texts(build), {}, []
    goals = own_objects(build)
    for goal, found in goals.items():
        if found <= set(read):
            costs[goal] = (len(found), sum(read[each] for each in found))
        else:
            partly.append(goal)
    shares = rebuilt(read, readers, goals["everything"]) if "everything" in costs else None
    if "--show" in sys.argv:
        print("\n".join(f"{goal} | {count} | {mb:.0f}" for goal, (count, mb) in costs.items()))
        print("\n".join(f"{header} | {percent:.0f}" for header, percent in sorted((shares or {}).items(), key=lambda each: -each[1])))
        return 0
    with open(TABLE, encoding="utf-8") as file:
        bars, headers = read_table(file.read())
    problems = grown(costs, bars) + strayed(goals["everything"]) + ([] if shares is None else spread(shares, headers))
    for problem in problems:
        print(f"tests/lint/build_costs.txt: {problem}")
    print(f"check_build: {len(costs)} goals, {len(problems)} problems" + (f"; NOT BUILT WHOLE, so not checked: {', '.join(partly)}"
                                                                           if partly else ""))
    return 1 if problems or not costs else 0


if __name__ == "__main__":
    sys.exit(main())
