#!/usr/bin/env python3
"""clang-format would change nothing. Fails where clang-format is not installed: ./dev setup installs it.

build/formatted.txt has the digests of files that clang-format has read before and would not change, each with the version of
clang-format and its settings, so that only files that are new or changed are read again.
"""
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree

BATCH = 40  # files a process
KNOWN = os.path.join(tree.ROOT, "build", "formatted.txt")


def complaints(program, paths):
    ran = subprocess.run([program, "--dry-run", *paths], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return [ran.stderr.strip()]
    return [line for line in ran.stderr.splitlines() if "[-Wclang-format-violations]" in line]


def digests(version, settings, paths):
    """{path: digest of all that decides what clang-format says of the file}."""
    found = {}
    for path in paths:
        with open(os.path.join(tree.ROOT, path), "rb") as file:
            parts = (version.encode(), settings.encode(), os.path.splitext(path)[1].encode(), file.read())
        found[path] = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return found


def unknown(current, known_file):
    """The files whose digests the file `known_file` does not have."""
    try:
        with open(known_file, encoding="ascii") as file:
            known = set(file.read().split())
    except FileNotFoundError:
        known = set()
    return [path for path, digest in current.items() if digest not in known]


def remember(current, known_file):
    """Keeps the digests for the next run. Another run at the same time may replace them; a tree without a build keeps none."""
    if not os.path.isdir(os.path.dirname(known_file)):
        return
    scratch = f"{known_file}.{os.getpid()}"
    with open(scratch, "w", encoding="ascii") as file:
        file.write("".join(digest + "\n" for digest in sorted(current.values())))
    os.replace(scratch, known_file)


def main():
    program = shutil.which("clang-format")
    if program is None:
        print("check_format: clang-format is not installed; ./dev setup installs it")
        return 1
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    everything = tree.all_files()
    settings = "".join(f"{path}\n{tree.read(path)}" for path in everything if os.path.basename(path) == ".clang-format")
    current = digests(version, settings, [path for path in everything if path.endswith((".h", ".cc"))])
    paths = unknown(current, KNOWN)
    batches = [paths[i:i + BATCH] for i in range(0, len(paths), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(lambda batch: complaints(program, batch), batches) for line in lines]
    files = sorted({line.split(":")[0] for line in found})
    for path in files:
        first = next(line for line in found if line.startswith(path + ":"))
        print(f"{':'.join(first.split(':')[:2])}: clang-format would change this file: run ./dev format")
    if not found:
        remember(current, KNOWN)
    print(f"check_format: {len(current)} files, {len(paths)} of them new or changed, {len(files)} problems")
    return 1 if files or not current else 0


if __name__ == "__main__":
    sys.exit(main())
