#!/usr/bin/env python3
"""Checks that the controllers set only reasons that operator/api/reasons.h lists, and that docs/use/troubleshooting.md has
a section for each of them and for no other."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REASON = r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"'
# Calls that set a condition's reason, or hand one on.
CALLS = re.compile(r"\b(?:SetCondition|conditions\.Set|Finish|Restart|Unplanned|Accept|Consider)\s*\(")
ASSIGNED = re.compile(r"\breason\s*=\s*" + REASON + r'|return\s+' + REASON + ";")
# Strings in those calls that are not reasons of conditions.
NOT_REASONS = {"ReplanConsidered"}


def listed():
    text = open(os.path.join(ROOT, "operator/api/reasons.h"), encoding="utf-8").read()
    return re.findall(REASON, text[text.index("kReasons[]"):])


def arguments(text, start):
    """The text from the opening parenthesis at `start` to the matching one; parentheses in strings do not count."""
    depth, i, quoted = 0, start, False
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "\\":
                i += 1
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return text[start:i]
        i += 1
    return text[start:]


def used():
    found = {}
    files = []
    for part in ("operator/controllers", "operator/lifecycle", "operator/profiling"):
        folder = os.path.join(ROOT, part)
        files += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".cc")]
    files.append(os.path.join(ROOT, "operator/records/notices.cc"))  # whose reasons the controllers hand on
    for file in files:
        name = os.path.relpath(file, ROOT)
        text = open(file, encoding="utf-8").read()
        text = re.sub(r"//[^\n]*", "", text)
        for call in CALLS.finditer(text):
            for reason in re.findall(REASON, arguments(text, call.end() - 1)):
                found.setdefault(reason, name)
        for pair in ASSIGNED.findall(text):
            for reason in pair:
                if reason:
                    found.setdefault(reason, name)
    return {r: n for r, n in found.items() if r not in NOT_REASONS}


def documented():
    text = open(os.path.join(ROOT, "docs/use/troubleshooting.md"), encoding="utf-8").read()
    return re.findall(r"^### ([A-Z]\w+)$", text, re.M)


def main():
    problems = []
    reasons = listed()
    for reason in sorted({r for r in reasons if reasons.count(r) > 1}):
        problems.append(f"operator/api/reasons.h: {reason} is listed twice")
    for reason, name in sorted(used().items()):
        if reason not in reasons:
            problems.append(f"{name}: reason {reason} is not in operator/api/reasons.h")
    sections = documented()
    for reason in sorted(set(reasons) - set(sections)):
        problems.append(f"docs/use/troubleshooting.md: no section '### {reason}'")
    for reason in sorted(set(sections) - set(reasons)):
        problems.append(f"docs/use/troubleshooting.md: {reason} is not in operator/api/reasons.h")
    for problem in problems:
        print(problem)
    print(f"check_reasons: {len(reasons)} reasons, {len(problems)} problems")
    return 1 if problems or not reasons else 0


if __name__ == "__main__":
    sys.exit(main())
