#!/usr/bin/env python3
"""Writes the SHA-256 of each wheel behind its version, so that pip installs these bytes and no others.

  cmake/pin_wheels.py FILE...           asks the package index for the wheels of this Python and machine (3.11, x86-64)
  cmake/pin_wheels.py --check FILE...   exit status 1 if a line of a file has no hash

FILE has lines `name==version`; comments stay. Needs pip 23.1 or newer, which reads what it needs of a wheel without the wheel.
"""
import json
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: +--hash=sha256:[0-9a-f]{64})*$")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(path):
    """[(line, name, version)]; name is None for a comment or an empty line."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            match = LINE.match(line)
            if not match and line.strip() and not line.startswith("#"):
                sys.exit(f"pin_wheels: {path}: not a line `name==version`: {line}")
            found.append((line, *(match.groups() if match else (None, None))))
    return found


def hashes(wanted):
    """{name: SHA-256 of its wheel}"""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/wanted.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{name}=={version}\n" for name, version in wanted)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
                        "--only-binary=:all:", "--report", f"{folder}/report.json", "--requirement", f"{folder}/wanted.txt"],
                       check=True)
        with open(f"{folder}/report.json", encoding="utf-8") as file:
            installs = json.load(file)["install"]
    return {plain(each["metadata"]["name"]): each["download_info"]["archive_info"]["hashes"]["sha256"] for each in installs}


def pin(path):
    lines = requirements(path)
    known = hashes([(name, version) for _, name, version in lines if name])
    with open(path, "w", encoding="utf-8") as file:
        for line, name, version in lines:
            file.write(f"{name}=={version} --hash=sha256:{known[plain(name)]}\n" if name else line + "\n")


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments == ["--check"]:
        sys.exit(__doc__)
    if arguments[0] != "--check":
        for path in arguments:
            pin(path)
        return
    bare = [f"{path}: {line}" for path in arguments[1:] for line, name, _ in requirements(path)
            if name and "--hash=sha256:" not in line]
    if bare:
        sys.exit("without a hash (cmake/pin_wheels.py writes it):\n  " + "\n  ".join(bare))


if __name__ == "__main__":
    main()
