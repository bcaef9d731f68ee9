#!/usr/bin/env python3
"""The map of folders in docs/design/architecture.md: made from the READMEs' first sentences and the arrows of check_layers.py.

    tests/lint/check_maps.py           is the map up to date, and has every folder a README that begins with a sentence?
    tests/lint/check_maps.py --write   writes the map (./dev pages)

The first sentence of a README says what the folder is for: at most LONGEST characters, without "Purpose:". Folders that
tests and benches of one folder have for themselves (testing, tests, bench) belong to that folder.
"""
import os
import re
import sys

import check_layers
import tree

PAGE = "docs/design/architecture.md"
BEGIN, END = "<!-- folders: made by ./dev pages -->", "<!-- end of folders -->"
LONGEST = 200
# In the order of the data, with what a reader should know before the rows.
TOPS = {
    "proto": "", "common": "", "kube": "", "localcluster": "", "operator": "", "scheduler-service": "", "worker": "", "cli": "",
    "reproductions": "The default target builds nothing of it, and nothing else includes it "
                     "([ADR 61](../adr/0061-reproductions-are-a-wing.md)).",
}
WITHOUT_README = re.compile(r"/(testing|tests|bench)$")


def first_sentence(text):
    """Of a README, after its title, as plain text; None if it does not begin with a sentence that ends."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    title, _, rest = text.strip().partition("\n")
    paragraph = " ".join(rest.strip().split("\n\n")[0].split())
    paragraph = re.sub(r"^\**Purpose[:.]\**\s*", "", paragraph)
    found = re.match(r"(.+?\.)(?=\s+[A-Z`*\[]|\s*$)", paragraph)
    if not title.startswith("# ") or not found or paragraph.startswith(("|", "-", "**Data")):
        return None
    sentence = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found.group(1))
    return sentence[:1].upper() + sentence[1:]


def folders_of(paths):
    """Folders with sources, of the tops, without those of tests and benches; proto as one."""
    found = {os.path.dirname(path) for path in paths
             if path.endswith((".h", ".cc")) and path.split("/")[0] in check_layers.TOP}
    return sorted(folder for folder in found if not WITHOUT_README.search(folder)) + ["proto"]


def depth(folder, arrows, below=()):
    """How many folders lie under it in a row; circles (of cli) count once."""
    targets = [t for t in arrows.get(folder, ()) if t != folder and t not in below]
    return 1 + max((depth(t, arrows, (*below, folder)) for t in targets), default=0)


def section(sentences, arrows):
    """`sentences`: {folder: first sentence of its README}. The tables, one for each top, what others need first."""
    out = []
    for top, text in TOPS.items():
        rows = [folder for folder in sentences if folder.split("/")[0] == top]
        rows.sort(key=lambda folder: (depth(folder, arrows), folder))
        out += [f"### {top}", "", *([text, ""] if text else []), "| folder | purpose | includes |", "|---|---|---|"]
        for folder in rows:
            uses = ", ".join(f"`{target}`" for target in arrows.get(folder, ()) if target != "common/base")
            out.append(f"| [`{folder}`](../../{folder}/README.md) | {sentences[folder].replace('|', chr(92) + '|')} | {uses} |")
        out.append("")
    return "\n".join(out).rstrip()


def read_sentences(folders, read):
    """({folder: sentence}, problems). `read(path)` returns a text or None."""
    sentences, problems = {}, []
    for folder in folders:
        path = f"{folder}/README.md"
        text = read(path)
        sentence = first_sentence(text) if text is not None else None
        if text is None:
            problems.append(f"{folder}: no README.md, whose first sentence says what the folder is for")
        elif sentence is None:
            problems.append(f"{path}: does not begin with '# {folder}' and a sentence that ends with a full stop")
        elif len(sentence) > LONGEST:
            problems.append(f"{path}: the first sentence has {len(sentence)} characters, more than {LONGEST}")
        else:
            sentences[folder] = sentence
    return sentences, problems


def replaced(page, made):
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        return None
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END)[1]


def main():
    files = set(tree.all_files())
    folders = folders_of(files)
    sentences, problems = read_sentences(folders, lambda path: tree.read(path) if path in files else None)
    made = replaced(tree.read(PAGE), section(sentences, check_layers.ARROWS))
    if made is None:
        problems.append(f"{PAGE}: '{BEGIN}' and '{END}' must stand in it once")
    elif "--write" in sys.argv[1:]:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(made)
    elif made != tree.read(PAGE):
        problems.append(f"{PAGE}: the map of folders is out of date: ./dev pages")
    print("\n".join([*problems, f"check_maps: {len(folders)} folders, {len(problems)} problems"]))
    return 1 if problems or len(folders) < 10 else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
