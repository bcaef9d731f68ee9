#!/usr/bin/env python3
"""clang-format would change nothing. Fails where clang-format is not installed: ./dev setup installs it."""
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree

BATCH = 40  # files a process


def complaints(program, paths):
    ran = subprocess.run([program, "--dry-run", *paths], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return [ran.stderr.strip()]
    return [line for line in ran.stderr.splitlines() if "[-Wclang-format-violations]" in line]


def main():
    program = shutil.which("clang-format")
    if program is None:
        print("check_format: clang-format is not installed; ./dev setup installs it")
        return 1
    paths = [path for path in tree.all_files() if path.endswith((".h", ".cc"))]
    batches = [paths[i:i + BATCH] for i in range(0, len(paths), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(lambda batch: complaints(program, batch), batches) for line in lines]
    files = sorted({line.split(":")[0] for line in found})
    for path in files:
        first = next(line for line in found if line.startswith(path + ":"))
        print(f"{':'.join(first.split(':')[:2])}: clang-format would change this file: run ./dev format")
    print(f"check_format: {len(paths)} files, {len(files)} problems")
    return 1 if files or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
