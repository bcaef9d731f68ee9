#!/usr/bin/env python3
"""docs/design/figures.md is made from tests/bench/bench.json: one figure a row, the newest only.

    tests/lint/check_figures.py               fails when the page is out of date or a record is incomplete
    tests/lint/check_figures.py --write       writes the page (./dev pages)
    tests/lint/check_figures.py --take FILE   first takes what `./dev bench` measured, from build/bench.json

A record has section, figure, measured, bar (may be empty), reached, command, machine and date. A figure that is taken replaces
the one of the same name, whose section stays; git has what was measured before. README's five answers may only have numbers that
a record or the output of the demo has.
"""
import datetime
import json
import os
import re
import sys

import tree

RECORDS, PAGE = "tests/bench/bench.json", "docs/design/figures.md"
BEGIN, END = "<!-- figures: made by ./dev pages -->", "<!-- end of figures -->"
TEXTS = ("section", "figure", "measured", "command", "machine", "date")
NEW_SECTION = "Other"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def problems_of(records):
    problems = []
    for record in records:
        name = record.get("figure", "?")
        missing = [key for key in TEXTS if not isinstance(record.get(key), str) or not record[key].strip()]
        if missing or not isinstance(record.get("bar"), str) or not isinstance(record.get("reached"), bool):
            problems.append(f"{RECORDS}: '{name}' lacks {', '.join(missing) or 'bar or reached'}")
            continue
        try:
            datetime.date.fromisoformat(record["date"])
        except ValueError:
            problems.append(f"{RECORDS}: '{name}': {record['date']} is no date")
    names = [record.get("figure") for record in records]
    problems += [f"{RECORDS}: '{name}' occurs twice: only the newest stays" for name in sorted({n for n in names if names.count(n) > 1})]
    return problems


def taken(records, bench):
    """The records with what `bench` (build/bench.json) measured; what it could not measure is left as it was."""
    out = [dict(record) for record in records]
    place = {record["figure"]: record for record in out}
    machine = f"{bench['machine']['processors']}, load {bench['machine']['load_before']:.1f} before"
    for figure in bench["figures"]:
        if figure["measured"].startswith("not measured"):
            continue
        new = {"measured": figure["measured"], "bar": figure["bar"], "reached": bool(figure["reached"]), "command": figure["command"],
               "machine": machine, "date": bench["at"][:10]}
        if figure["figure"] in place:
            place[figure["figure"]].update(new)
        else:
            out.append({"section": NEW_SECTION, "figure": figure["figure"], **new})
            place[figure["figure"]] = out[-1]
    return out


def unmeasured(readme, measured):
    """Numbers in README's measured answers that neither the texts `measured` nor the demo's output below have."""
    answers, rest = readme.split("| question | measured answer | where |")[1].split("\n\n", 1)
    known = " ".join([*measured, *re.findall(r"```text.*?```", rest, re.S)])
    numbers = {float(n.replace(",", "")) for n in NUMBER.findall(known)}
    return [f"README.md: the answer '{line.split('|')[1].strip()}' has {n}, which no record of {RECORDS} has"
            for line in answers.strip().split("\n")[1:] for n in NUMBER.findall(line.split("|")[2]) if float(n.replace(",", "")) not in numbers]


def cell(text):
    return text.replace("|", "\\|")


def section(records):
    out = []
    for title in dict.fromkeys(record["section"] for record in records):
        out += [f"### {title}", "", "| figure | measured | bar | command | machine | date |", "|---|---|---|---|---|---|"]
        for record in (r for r in records if r["section"] == title):
            measured = cell(record["measured"]) + ("" if record["reached"] else " (**bar missed**)")
            out.append(f"| {cell(record['figure'])} | {measured} | {cell(record['bar'])} | `{cell(record['command'])}` | "
                       f"{cell(record['machine'])} | {record['date']} |")
        out.append("")
    return "\n".join(out).rstrip()


def main():
    records = json.loads(tree.read(RECORDS))["figures"]
    if "--take" in sys.argv[1:]:
        with open(sys.argv[sys.argv.index("--take") + 1], encoding="utf-8") as file:
            records = taken(records, json.load(file))
        with open(RECORDS, "w", encoding="utf-8") as file:
            json.dump({"figures": records}, file, indent=1, ensure_ascii=False)
            file.write("\n")
    problems = problems_of(records)
    problems += unmeasured(tree.read("README.md"), [record["measured"] for record in records])
    if not problems:
        page = tree.read(PAGE)
        made = page.split(BEGIN)[0] + BEGIN + "\n" + section(records) + "\n" + END + page.split(END)[-1]
        if "--write" in sys.argv[1:] or "--take" in sys.argv[1:]:
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write(made)
        elif made != page:
            problems.append(f"{PAGE}: out of date: ./dev pages")
    print("\n".join([*problems, f"check_figures: {len(records)} figures, {len(problems)} problems"]))
    return 1 if problems or not records else 0


if __name__ == "__main__":
    where = os.getcwd()
    if "--take" in sys.argv[1:]:
        sys.argv[sys.argv.index("--take") + 1] = os.path.join(where, sys.argv[sys.argv.index("--take") + 1])
    os.chdir(tree.ROOT)
    sys.exit(main())
