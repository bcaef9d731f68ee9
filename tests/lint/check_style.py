#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md that a program can check: sizes, forbidden calls, READMEs, names."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP = ("common/", "kube/", "localcluster/", "operator/", "scheduler-service/", "worker/", "cli/", "reproductions/")
MAX_LINES = 600
MAX_COLUMNS = 120

# pattern, why, folders and files where it is allowed
FORBIDDEN = [
    (r"system_clock::now|steady_clock::now", "inject base::Clock", ["common/base", "tests"]),
    (r"\bsleep_for\b|\bsleep_until\b|\busleep\(|[^_\w.]sleep\(", "wait for a condition, or base::Clock::SleepFor",
     ["common/base"]),
    (r"random_device|\bsrand\(|[^_\w]rand\(\)", "inject base::Rng or a seed", ["common/base"]),
    (r"absl::Mutex|absl/synchronization", "use base::Mutex (false races under TSan)", []),
    # A thread that a volume holds in the kernel cannot be joined.
    (r"\.detach\(\)", "join every thread (std::jthread)", ["worker/checkpoint/volume_thread.cc"]),
    (r"\busing namespace\b", "name what you use", []),
    # Others check and pass on which schedule a user wants.
    (r"\bk(Sync1F1B|Gpipe|Async1F1B)\b|\bSCHEDULE_KIND_", "only common/program knows what a schedule means",
     ["common/program", "common/model", "operator/api", "tests"]),
    (r"GTEST_SKIP|DISABLED_", "a test runs or fails, or needs a GPU: MEDLEY_NEEDS_GPU()", ["worker/device/testing"]),
    (r"for \([^;]*: [\w:]*directory_iterator\(", "the next entry may throw: increment the iterator with an error_code", ["tests"]),
    (r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", "a TODO names an issue: TODO(#5)", []),
]
TESTS = ("tests/unit/", "tests/integration/")
# A paper's tests and benches lie beside what they test; the rules of tests hold for them.
BESIDE = re.compile(r"reproductions/\w+/(tests|bench)/")
# pattern, why: in tests only
FORBIDDEN_IN_TESTS = [
    (r"\bremove_all\(", "base::RemoveTempDir, which does not throw when an abandoned thread still writes"),
    (r"(EXPECT|ASSERT)_L[TE]\([^;]*(Steady\(\)|_clock::now\(\))\s*-",
     "how long it takes depends on the machine's other work: let it wait longer than a test may last instead"),
]


def may_match(pattern, text):
    """False where no line of the text can match, because it has no word of the pattern: much faster than the search."""
    return any(word in text for word in re.findall(r"[A-Za-z_]{3,}", re.sub(r"\\.", " ", pattern)))


def rules_for(place, text):
    """(pattern, why) of the rules that a file with this text could break."""
    rules = [(pattern, why) for pattern, why, allowed in FORBIDDEN
             if not any((place + "/").startswith(a + "/") for a in allowed)]
    rules += FORBIDDEN_IN_TESTS if place.startswith(TESTS) else []
    return [(pattern, why) for pattern, why in rules if may_match(pattern, text)]


def main():
    problems = []
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=False)
    names = [n for n in listed.stdout.splitlines() if os.path.exists(os.path.join(ROOT, n))]
    folders = set()
    checked = 0
    for path in names:
        if path.startswith("tests/lint/"):
            continue
        if path.startswith(TOP):
            folders.add(os.path.dirname(path))
        if not path.endswith((".h", ".cc")):
            continue
        checked += 1
        beside = BESIDE.match(path)
        place = path if not beside else ("tests/unit/" if beside.group(1) == "tests" else "tests/bench/") + path
        text = open(os.path.join(ROOT, path), encoding="utf-8").read()
        lines = text.split("\n")
        if len(lines) - 1 > MAX_LINES:
            problems.append(f"{path}: {len(lines) - 1} lines, more than {MAX_LINES}: split the file")
        if path.endswith(".h") and "#pragma once" not in text:
            problems.append(f"{path}: no #pragma once")
        rules = rules_for(place, text)
        raw_end = None  # the end of the raw string that the line is in: its content is data, not code
        for number, line in enumerate(lines, 1):
            if raw_end is None:
                opened = re.search(r'R"([^(\s"]*)\(', line)
                if opened:
                    raw_end = ")" + opened.group(1) + '"'
            in_raw = raw_end is not None
            if in_raw and raw_end in line:
                raw_end = None
            if len(line) > MAX_COLUMNS and "http" not in line and not in_raw:
                problems.append(f"{path}:{number}: {len(line)} columns, more than {MAX_COLUMNS}")
            code = line.split("//")[0] if "TODO" not in line else line
            for pattern, why in rules:
                if re.search(pattern, code):
                    problems.append(f"{path}:{number}: {why}: {line.strip()[:80]}")
    for folder in sorted(folders):
        if "testing" in folder or BESIDE.match(folder + "/") or not any(n.startswith(folder + "/") and n.endswith((".cc", ".h")) and
                                          os.path.dirname(n) == folder for n in names):
            continue
        readme = os.path.join(ROOT, folder, "README.md")
        if not os.path.exists(readme):
            problems.append(f"{folder}: no README.md (purpose, data in, data out, what it must not know)")
        elif len(open(readme, encoding="utf-8").read().split("\n")) > 90:
            problems.append(f"{folder}/README.md: more than a page")
    for problem in problems:
        print(problem)
    print(f"check_style: {checked} files, {len(problems)} problems")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
