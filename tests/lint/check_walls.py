#!/usr/bin/env python3
"""Checks what the compiler cannot: that a concern's state is changed by the functions of its own header alone.

In the folders below the state is a struct for each concern, `XState`, in the concern's header. The compiler refuses a write
through the const view that functions have of the other concerns, and in operator/lifecycle a call of Pass::Own outside of the
concern's source, which `XState::kOwner` names. This lint refuses the ways around it: a function that takes another concern's
state, or the whole state, to change; a kOwner that is not the concern; and a write to a field by the code that calls the concerns.

It also keeps papers out of the service, its protos and what they share: their sources cite papers in comments and in sentences for
users, and have no name, field or option of one. What only a paper needs is in reproductions/.
"""
import os
import re
import sys

import tree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# folder -> the struct of the whole state, and how the code that calls the concerns reaches it
FOLDERS = {"worker/coordinator/core": ("CoreState", r"state_"), "operator/lifecycle": ("Memory", r"memory_")}
# The name of the source that Pass::Own lets change a state.
OWNER = re.compile(r'^struct (\w+State) \{\n  static constexpr char kOwner\[\] = "(\w+)";', re.M)

COMMENT = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
STRUCT = re.compile(r"^(?:struct|class) (\w+State)\b(?!;)", re.M)
WRITE = (r"(?:\.|->)\w+(?:(?:\.|->)\w+(?:\[[^\]\n]*\])?)+(?:\s*(?:=(?!=)|[-+|]=|\+\+|--)"
         r"|(?:\.|->)(?:reset|emplace|clear|erase|insert|push_back|emplace_back|assign|swap|(?:set|mutable)_\w+)\()")

# Where no name may be that of a paper. PipeDream and Pipe-torch are planners of the service: `local` starts from them.
NO_PAPERS = ("common/", "operator/", "proto/", "scheduler-service/")
PAPER = re.compile(r"heter_?ps|\btapp|[a-z_]tapp\b|Tapp|thesis|hetero_?g(?!en)|hetpipe|horovod|equation_?\d", re.I)
TEXT = re.compile(r'//[^\n]*|"((?:[^"\\\n]|\\.)*)"')


def papers(path, text):
    """Names of papers in the code of a file, and in literals that are one word, as names and values of options are."""
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#include"):
            continue
        code = TEXT.sub(lambda match: match.group(1) if match.group(1) and " " not in match.group(1) else " ", line)
        found = PAPER.search(code)
        if found:
            problems.append(f"{path}:{number}: '{found.group()}' names a paper: what only a paper needs is in reproductions/")
    return problems


def owners(files, whole):
    """The concern of each state: the base name of the header that defines it."""
    found = {}
    for path, text in files.items():
        if not path.endswith(".h"):
            continue
        for name in STRUCT.findall(text):
            if name != whole:
                found[name] = os.path.splitext(os.path.basename(path))[0]
    return found


def check(files, whole, reached):
    """files: text by path, of one folder. Returns the problems."""
    problems = []
    concern_of = owners(files, whole)
    for path, text in sorted(files.items()):
        base = os.path.splitext(os.path.basename(path))[0]
        for name, owner in OWNER.findall(text):
            if owner != base:
                problems.append(f"{path}: {name}::kOwner is {owner}, and its concern is {base}")
        for number, line in enumerate(text.split("\n"), 1):
            code = COMMENT.sub("", line)
            for match in re.finditer(r"(const )?\b(\w+State)&", code):
                const, name = match.groups()
                if const or (name != whole and (name not in concern_of or concern_of[name] == base)):
                    continue
                problems.append(f"{path}:{number}: {name} is not this concern's to change: take it const, or ask for a Request")
            if re.search(rf"\b{reached}{WRITE}|(?:\+\+|--)\*?{reached}\.", code):
                problems.append(f"{path}:{number}: call a function of the concern instead of writing its field: {code.strip()[:80]}")
    return problems


def main():
    problems, states = [], 0
    for folder, (whole, reached) in FOLDERS.items():
        files = {}
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith((".h", ".cc")):
                with open(os.path.join(ROOT, folder, name), encoding="utf-8") as file:
                    files[f"{folder}/{name}"] = file.read()
        states += len(owners(files, whole))
        problems += check(files, whole, reached)
    for path in tree.all_files():
        if path.startswith(NO_PAPERS) and path.endswith((".h", ".cc", ".proto")):
            problems += papers(path, tree.read(path))
    for problem in problems:
        print(problem)
    print(f"check_walls: {states} concerns, {len(problems)} problems")
    return 1 if problems or states == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
