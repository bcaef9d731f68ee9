#!/usr/bin/env python3
"""What pages, READMEs and comments point to must exist: files, folders, sections of pages, flags and names in backticks.

    tests/lint/check_references.py            every stale pointer
    tests/lint/check_references.py FOLDER...  only of files below these folders

- A path that begins with a top folder (`kube/cache`, docs/adr/0007, `charts/{a,b}.yaml`, tests/*/README.md) exists.
- A file name with the ending of a source or page (`plan.h`, metric_names.py) is the end of some path of the tree.
- docs/PAGE.md ("Section"), docs/PAGE.md, "Section" and PAGE.md#anchor name headings of that page.
- In pages, READMEs and comments of headers, a name in backticks that looks like an identifier (`FooBar`, `foo_bar`,
  `Foo::Bar`, `--flag`) occurs in some source. In UPPER CASE it stands for something that the reader puts there.

references_allowed.txt beside this file lists names of other projects: `name | reason`, where a `*` matches anything.
"""
import fnmatch
import os
import re
import sys

import check_status
import tree

ALLOWED = "tests/lint/references_allowed.txt"
SOURCE_ENDING = r"(?:h|cc|proto|py|md|lua)"
FILE_NAME = re.compile(rf"(?<![\w./<{{}}*@$-])((?:[\w-]+/)*[\w-]+\.{SOURCE_ENDING})(?![\w/.-]*[\w/])")
SECTION = re.compile(r'(docs/[\w/-]+\.md)`?,? \(?"([^"]+)"')
ANCHOR = re.compile(r"(docs/[\w/-]+\.md)#([\w-]+)")
TICKED = re.compile(r"`([^`\n]+)`")
IDENTIFIER = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*")
COMMENT = re.compile(r"(?m)(?:^|\s)(?://|#)(.*)$")


def braces(path):
    """'a/{b,c}' -> ['a/b', 'a/c']."""
    path = re.sub(r"\{[^{},]*\}?", "*", path) if not re.search(r"\{[^{}]*,[^{}]*\}", path) else path
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [full for part in found.group(1).split(",")
            for full in braces(path[:found.start()] + part.strip() + path[found.end():])]


def anchor_of(heading):
    """As GitHub and MkDocs make it."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip()
    return text.replace(" ", "-")


def headings(page):
    page = re.sub(r"(?ms)^```.*?^```", "", page)
    return re.findall(r"(?m)^#+ (.+?)\s*$", page)


class Tree:
    def __init__(self):
        files = tree.all_files()
        self.files = set(files)
        self.folders = {path[:i] for path in files for i, c in enumerate(path) if c == "/"}
        # A link counts as what it points to, and so does what lies below it.
        self.folders.add("charts/medley/crds")
        self.tops = sorted({path.split("/")[0] for path in files if "/" in path and not path.startswith(".")})
        self.endings = {}
        for path in files:
            parts = path.split("/")
            for i in range(len(parts)):
                self.endings.setdefault("/".join(parts[i:]), path)
        self.path = re.compile(r"(?<![\w./:$<@-])((?:" + "|".join(map(re.escape, self.tops)) +
                               r")/[\w.{},*/+-]*[\w*}/])")
        self.words, self.flags = set(), set()
        for path in files:
            if path.endswith(".md") or path == ALLOWED:
                continue
            try:
                text = tree.read(path)
            except UnicodeDecodeError:
                continue
            self.words.update(re.findall(r"[A-Za-z_]\w*", text))
            if os.path.basename(path) == "CMakeLists.txt":  # names that loops put together
                self.words.update(check_status.tests_of(text))
            flags = set(re.findall(r"--(?<![\w-]--)[a-z][a-z0-9-]*", text))
            self.flags |= flags | {"--no-" + flag[2:] for flag in flags}
        self.flags.update("--" + m for path in files if path.endswith(".py")
                          for m in re.findall(r'"--([a-z-]+)"', tree.read(path)))

    def exists(self, path):
        path = path.rstrip("/")
        path = re.sub(r"(?<![A-Za-z])[A-Z]{3,}(?![a-z])", "*", path) if path not in self.files else path
        if path in self.files or path in self.folders:
            return True
        if "*" in path:
            return any(fnmatch.fnmatch(p, path) for p in self.files | self.folders)
        if path.startswith("docs/adr/"):
            return any(p.startswith(path + "-") for p in self.files)
        # A file without its ending: `cli/cluster/advice` is advice.h and advice.cc.
        return any(path + ending in self.files for ending in (".h", ".cc", ".py", ".proto"))


def prose(path, text):
    """What people read in a file: of pages all, of others the comments."""
    if path.endswith((".md", "NOTICE", ".txt")):
        return text
    if path.endswith((".h", ".cc", ".proto")):
        return "\n".join(re.sub(r"^.*?(//.*)$", r"\1", line) if "//" in line else "" for line in text.split("\n"))
    if path.endswith(".py"):
        return text
    return "\n".join(line if "#" in line or "docs/" in line else "" for line in text.split("\n"))


def joined(text):
    """Lines as one, without the marks of comments, so that a pointer may break over lines."""
    return re.sub(r"\s*\n\s*(?://+|#+)?\s*", " ", text)


class Problems:
    def __init__(self, allowed):
        self.allowed, self.used, self.found = allowed, set(), []

    def add(self, path, text, name, sentence):
        for pattern in self.allowed:
            if fnmatch.fnmatchcase(name, pattern):
                self.used.add(pattern)
                return
        line = text[:text.find(name)].count("\n") + 1 if name in text else 1
        entry = f"{path}:{line}: {sentence}"
        if entry not in self.found:
            self.found.append(entry)


def check_file(path, world, problems):
    text = tree.read(path)
    read = prose(path, text)
    whole = text if path.endswith((".h", ".cc")) else read
    for match in world.path.finditer(read):
        for full in braces(match.group(1).rstrip(".,")):
            if not world.exists(full):
                problems.add(path, text, match.group(1), f"{full} does not exist")
    for match in re.finditer(r"docs/(?<![\w/]docs/)[\w./-]+\w(?![\w{-])", whole):
        if not world.exists(match.group()):
            problems.add(path, text, match.group(), f"{match.group()} does not exist")
    for match in FILE_NAME.finditer(read):
        name = match.group(1)
        own = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if name not in world.endings and own not in world.files:
            problems.add(path, text, name, f"no file of the tree is named {name}")
    flat = joined(read) if "docs/" in read else ""
    for page, section in SECTION.findall(flat):
        if page in world.files and section not in [h.strip("`") for h in headings(tree.read(page))]:
            problems.add(path, text, section, f"{page} has no section '{section}'")
    for page, anchor in ANCHOR.findall(flat):
        if page in world.files and anchor not in map(anchor_of, headings(tree.read(page))):
            problems.add(path, text, anchor, f"{page} has no section #{anchor}")
    if path.endswith((".md", ".h")):
        check_names(path, text, re.sub(r"(?ms)^```.*?^```", "", read), world, problems)


def check_names(path, text, read, world, problems):
    for ticked in TICKED.findall(read):
        for flag in re.findall(r"^(--[a-z][a-z0-9-]*)", ticked):
            if flag not in world.flags:
                problems.add(path, text, flag, f"no program of the tree has the flag {flag}")
        name = re.sub(r"\(.*\)$", "", ticked)
        if not IDENTIFIER.fullmatch(name):
            continue
        for part in name.split("::"):
            looks = re.search(r"[a-z0-9][A-Z]", part) or "_" in part.strip("_")
            if looks and not part.isupper() and part not in world.words:
                problems.add(path, text, part, f"no source has the name {part}")


def allowed_names():
    rows = [line.split(" | ", 1) for line in tree.read(ALLOWED).splitlines() if line and not line.startswith("#")]
    return {row[0].strip(): row[1] for row in rows if len(row) == 2}


def main():
    world, problems = Tree(), Problems(allowed_names())
    folders = tuple(sys.argv[1:])
    count = 0
    for path in tree.text_files():
        if path.startswith(("tests/lint/", "docs/adr/template")) or (folders and not path.startswith(folders)):
            continue
        count += 1
        check_file(path, world, problems)
    if not folders:
        problems.found += [f"{ALLOWED}: nothing needs '{name}' any more" for name in problems.allowed
                           if name not in problems.used]
    print("\n".join(problems.found + [f"check_references: {count} files, {len(problems.found)} problems"]))
    return 1 if problems.found else 0


if __name__ == "__main__":
    sys.exit(main())
