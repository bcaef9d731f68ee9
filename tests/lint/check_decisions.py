#!/usr/bin/env python3
"""The decisions in docs/adr: each says when it was made and whether it still holds, and docs/adr/README.md lists them.

    tests/lint/check_decisions.py           heads that are wrong, and whether the list is up to date
    tests/lint/check_decisions.py --write   writes the list (./dev pages)

A decision begins with `# NUMBER. TITLE` and a line `*YYYY-MM-DD. STATUS.*`, where STATUS is "Accepted",
"Accepted, changed by [N](FILE)[ and [M](FILE)]" or "Superseded by [N](FILE)". N is larger than the decision's own number.
"""
import datetime
import os
import re
import sys

import tree

FOLDER = "docs/adr"
LIST = f"{FOLDER}/README.md"
BEGIN, END = "<!-- decisions: made by ./dev pages -->", "<!-- end of decisions -->"
HEAD = re.compile(r"# (\d+)\. (.+)\n\n\*(\d{4}-\d\d-\d\d)\. (.+)\.\*\n")
STATUS = re.compile(r"Accepted|(?:Accepted, changed|Superseded) by \[\d+\]\([\w-]+\.md\)(?: and \[\d+\]\([\w-]+\.md\))*")


def read_head(name, text, names):
    """((number, title, date, status), problems) of the file `name`; `names` are all files of the folder."""
    match = HEAD.match(text)
    if not match:
        return None, [f"{FOLDER}/{name}: does not begin with '# NUMBER. TITLE', an empty line and '*YYYY-MM-DD. STATUS.*'"]
    number, title, date, status = int(match.group(1)), match.group(2), match.group(3), match.group(4)
    problems = []
    if not name.startswith(f"{number:04d}-"):
        problems.append(f"{FOLDER}/{name}: its title has the number {number}")
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        problems.append(f"{FOLDER}/{name}: {date} is no date")
    if not STATUS.fullmatch(status):
        problems.append(f"{FOLDER}/{name}: the status '{status}' has none of the forms that tests/lint/check_decisions.py names")
    for other, file in re.findall(r"\[(\d+)\]\(([\w-]+\.md)\)", status):
        if file not in names or not file.startswith(f"{int(other):04d}-"):
            problems.append(f"{FOLDER}/{name}: there is no decision {other} in {file}")
        elif int(other) <= number:
            problems.append(f"{FOLDER}/{name}: {other} is no later decision")
    return (number, title, date, status), problems


def table(heads):
    """`heads`: {file: (number, title, date, status)}."""
    rows = ["| | decision | date | status |", "|---|---|---|---|"]
    for name, (number, title, date, status) in sorted(heads.items()):
        rows.append(f"| {number} | [{title}]({name}) | {date} | {status} |")
    return "\n".join(rows)


def main():
    names = sorted(os.path.basename(path) for path in tree.all_files() if re.match(FOLDER + r"/\d{4}-[\w-]+\.md$", path))
    heads, problems = {}, []
    for name in names:
        head, wrong = read_head(name, tree.read(f"{FOLDER}/{name}"), names)
        problems += wrong
        if head:
            heads[name] = head
    numbers = [name[:4] for name in names]
    problems += [f"{FOLDER}: two decisions have the number {n}" for n in sorted({n for n in numbers if numbers.count(n) > 1})]
    page = tree.read(LIST)
    made = page.split(BEGIN)[0] + BEGIN + "\n" + table(heads) + "\n" + END + page.split(END)[-1]
    if "--write" in sys.argv[1:]:
        with open(LIST, "w", encoding="utf-8") as file:
            file.write(made)
    elif made != page:
        problems.append(f"{LIST}: out of date: ./dev pages")
    print("\n".join([*problems, f"check_decisions: {len(names)} decisions, {len(problems)} problems"]))
    return 1 if problems or not names else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
