#!/usr/bin/env python3
"""Base images are pinned: each FROM of a Dockerfile names scratch, an earlier stage, or an image with its digest, and an image
has the same digest everywhere. A digest names bytes; a tag names whatever the registry holds at the time.
"""
import os
import re
import sys

import tree

FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
PINNED = re.compile(r"^([\w./:-]+)@sha256:([0-9a-f]{64})$")


def check(files):
    """`files`: {name: text of a Dockerfile}. The problems, one sentence each."""
    problems, digests = [], {}
    for name, text in sorted(files.items()):
        stages = {"scratch"}
        for number, line in enumerate(text.split("\n"), 1):
            if not re.match(r"\s*FROM\b", line, re.IGNORECASE):
                continue
            found = FROM.match(line)
            image = found[1] if found else line.strip()
            pinned = PINNED.match(image)
            if found and image in stages:
                pass
            elif not pinned:
                problems.append(f"{name}:{number}: {image} has no digest: write NAME:TAG@sha256:DIGEST")
            elif digests.setdefault(pinned[1], pinned[2]) != pinned[2]:
                problems.append(f"{name}:{number}: another Dockerfile has {pinned[1]} with another digest")
            if found and found[2]:
                stages.add(found[2])
    return problems


def main():
    files = {}
    for path in tree.all_files():
        if os.path.basename(path) == "Dockerfile":
            files[path] = tree.read(path)
    problems = check(files)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"check_images: {len(files)} Dockerfiles, {len(problems)} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
