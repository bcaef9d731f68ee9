#!/usr/bin/env python3
"""Functions that a header declares and no program calls: named in the header, where its source defines it, and in no other file but
tests. dead_allowed.txt lists those that stay, as `NAME | reason`; a row that is not needed any more is a problem too.

Names that several headers declare, operators and constructors are not seen.
"""
import collections
import os
import re
import sys

import check_layers
import tree

ALLOWED = "tests/lint/dead_allowed.txt"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DECLARED = re.compile(r"^[ \t]*(?!return\b|else\b|throw\b|new\b|using\b|#)(?:\[\[\w+\]\] )?(?:[\w:<>,*&]+[ \t]+)+[*&]*([A-Z]\w+)\(", re.M)
# Benches measure programs, so what they call is used.
TESTS = re.compile(r"^tests/(?!bench/)|^reproductions/\w+/tests/|/testing/")


def has_body(text, name):
    """Whether the declaration of `name` in a header is its definition."""
    at, depth = text.index("(", re.search(rf"\b{name}\(", text).start()), 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return re.match(r"[^;{]*\{", text[i:]) is not None
    return False


def dead(texts):
    """`texts`: {path: text} of headers and sources. [(header, name)] of what only tests call."""
    words = {path: collections.Counter(re.findall(r"[A-Za-z_]\w*", COMMENT.sub("", text))) for path, text in texts.items()}
    users = collections.defaultdict(set)
    for path, found in words.items():
        if not TESTS.search(path):
            for name in found:
                users[name].add(path)
    out = []
    for path, text in texts.items():
        if not path.endswith(".h") or TESTS.search(path) or not path.split("/")[0] in check_layers.TOP:
            continue
        source = path[:-2] + ".cc"
        code = COMMENT.sub("", text)
        for name in sorted(set(DECLARED.findall(code))):
            if words[path][name] == 1 and users[name] <= {path, source} and \
                    words.get(source, {}).get(name, 0) <= (0 if has_body(code, name) else 1):
                out.append((path, name))
    return out


def main():
    texts = {path: tree.read(path) for path in tree.all_files() if path.endswith((".h", ".cc", ".in"))}
    rows = [line.split(" | ") for line in tree.read(ALLOWED).splitlines() if line.strip() and not line.startswith("#")]
    problems = [f"{ALLOWED}: '{' | '.join(row)}' is not 'NAME | reason'" for row in rows if len(row) != 2 or not row[1].strip()]
    allowed = {row[0] for row in rows}
    found = dead(texts)
    problems += [f"{path}: no program calls {name}: delete it, with its test" for path, name in found if name not in allowed]
    problems += [f"{ALLOWED}: {name} is used now, or does not exist" for name in sorted(allowed - {name for _, name in found})]
    print("\n".join([*problems, f"check_dead: {len(texts)} files, {len(allowed)} allowed, {len(problems)} problems"]))
    return 1 if problems or not texts else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
