#!/usr/bin/env python3
"""Subjects of commits: `area[/sub][, area]: imperative words`, at most 72 characters, no trailing dot.

    tests/lint/check_commits.py              commits since origin/main; without it, all that the rule applies to
    tests/lint/check_commits.py FROM..TO     these

Commits up to FIRST were made before the rule. In a shallow clone FIRST may be missing; then its date decides.
"""
import re
import subprocess
import sys

import tree

FIRST = "b17c93c"
FIRST_TIME = 1795328395  # when FIRST was committed, seconds since 1970
LONGEST = 72
AREA = r"[\w.][\w.-]*(?:/[\w.-]+)*"
SUBJECT = re.compile(rf"^({AREA}(?:, {AREA})*): (.+)$")
# What a subject in the imperative cannot begin with.
NOT_VERBS = {"a", "an", "the", "this", "that", "these", "those", "what", "which", "who", "whose", "how", "why", "where",
             "when", "while", "no", "not", "nothing", "none", "every", "each", "all", "any", "some", "one", "two", "three",
             "it", "its", "they", "their", "there", "he", "she", "we", "our", "you", "your", "i", "my", "is", "are", "was",
             "were", "has", "have", "had", "can", "may", "must", "will", "would", "for", "from", "of", "with", "without",
             "to", "in", "on", "at", "by", "if", "and", "or", "but", "now", "also", "more", "less"}
# Verbs that end like a past form or a present form and are imperatives all the same.
VERBS = {"access", "address", "assess", "bypass", "compress", "cross", "discuss", "dismiss", "embed", "exceed", "express",
         "feed", "focus", "guess", "miss", "need", "pass", "press", "proceed", "process", "progress", "seed", "shed",
         "speed", "stress", "suppress", "toss", "bring", "ping", "string", "swing", "spring", "ring", "sing", "bus"}


def problems_of(subject):
    found = SUBJECT.match(subject)
    if not found:
        return ["not 'area: what it does'; an area is a folder such as kube/cache, several are separated by ', '"]
    problems = []
    if len(subject) > LONGEST:
        problems.append(f"{len(subject)} characters; at most {LONGEST}")
    if subject.endswith("."):
        problems.append("ends in a dot")
    word = re.match(r"[^\s,:;]*", found.group(2)).group().lower()
    if not re.fullmatch(r"[a-z][a-z-]*", word) or word in NOT_VERBS or (
            word not in VERBS and re.search(r"(?:[^e]ed|ing|[^s]s)$", word)):
        problems.append(f"'{word}' is no verb in the imperative: write what the commit does, such as 'keep', 'add', 'fix'")
    return problems


def git(*arguments):
    ran = subprocess.run(["git", *arguments], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode == 0 else None


def commits(wanted):
    """[(short hash, seconds since 1970, subject)] without merges, newest first."""
    out = git("log", "--no-merges", "--format=%h%x09%ct%x09%s", *wanted)
    rows = [line.split("\t", 2) for line in (out or "").splitlines()]
    return [(name, int(time), subject) for name, time, subject in rows]


def chosen(arguments):
    if arguments:
        return commits(arguments)
    if git("rev-parse", "--is-inside-work-tree") is None:
        return None
    known = git("merge-base", "--is-ancestor", FIRST, "HEAD") is not None
    since = [f"^{FIRST}"] if known else []
    # On main itself, and right after a push, origin/main..HEAD is empty: then all commits under the rule are read.
    if git("rev-parse", "--verify", "--quiet", "origin/main") is not None:
        own = commits(["HEAD", "^origin/main", *since])
        if own:
            return [row for row in own if known or row[1] > FIRST_TIME]
    return [row for row in commits(["HEAD", *since]) if known or row[1] > FIRST_TIME]


def main():
    found = chosen(sys.argv[1:])
    if found is None:
        print("check_commits: not a git work tree, so there are no commits to read")
        return 0
    problems = [f"{name}: {problem}: {subject}" for name, _, subject in found for problem in problems_of(subject)
                if not re.match(r'Revert "', subject)]
    print("\n".join(problems + [f"check_commits: {len(found)} commits, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
