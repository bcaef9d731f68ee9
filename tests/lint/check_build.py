#!/usr/bin/env python3
"""Checks that a build compiles no more than tests/lint/build_costs.txt allows: objects, and MB of text that the compiler reads.

  check_build.py BUILD            exit status 1 if a goal grew past its line
  check_build.py BUILD --show     prints what each goal has now

Both follow from what ninja knows of a build, so they are the same on every machine, unlike seconds, which `./dev bench build`
prints: on one machine they go with the text, at about 2.7 s of one core a MB. A goal that was not built whole is not checked.
Precompiled headers count nothing. `reproductions` counts only what `everything` has not, and `everything` must have nothing of it.
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


def texts(build):
    """Object -> MB of the files that it was compiled from."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    sizes, found, current = {}, {}, None
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
    return found


def objects(build, targets):
    listed = subprocess.run(["ninja", "-C", build, "-t", "inputs", *targets], capture_output=True, text=True, check=True).stdout
    return {line for line in listed.split() if line.endswith(".o")}


def own_objects(build):
    """Goal -> its objects; of the wing those that no other goal has."""
    found = {goal: objects(build, targets) for goal, targets in GOALS.items()}
    found[WING] -= found["everything"]
    return found


def strayed(default):
    """Sentences about objects of the wing in the default target."""
    return [f"everything has {each}: nothing outside of {WING}/ may link it" for each in sorted(default) if each.startswith(WING + "/")]


def read_table(text):
    """goal -> (objects, MB)."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    rows = [[field.strip() for field in line.split("|")] for line in lines if line]
    return {goal: (int(count), int(mb)) for goal, count, mb in rows}


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
    read, costs, partly = texts(build), {}, []
    goals = own_objects(build)
    for goal, found in goals.items():
        if found <= set(read):
            costs[goal] = (len(found), sum(read[each] for each in found))
        else:
            partly.append(goal)
    if "--show" in sys.argv:
        print("\n".join(f"{goal} | {count} | {mb:.0f}" for goal, (count, mb) in costs.items()))
        return 0
    with open(TABLE, encoding="utf-8") as file:
        problems = grown(costs, read_table(file.read())) + strayed(goals["everything"])
    for problem in problems:
        print(f"tests/lint/build_costs.txt: {problem}")
    print(f"check_build: {len(costs)} goals, {len(problems)} problems" + (f"; NOT BUILT WHOLE, so not checked: {', '.join(partly)}"
                                                                           if partly else ""))
    return 1 if problems or not costs else 0


if __name__ == "__main__":
    sys.exit(main())
