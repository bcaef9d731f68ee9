#!/usr/bin/python3
"""Runs all parts of graph_bench, and keeps what each printed: ./dev bench graph all [--folder build/graph-bench] [--small]

A part that is complete is not run again, so the command goes on after an interruption; a part is run again when the program or its
arguments have changed. --small: some models and few simulations, minutes instead of hours. Exit status: 0 if every part ran.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import time

BIN = os.environ.get("MEDLEY_BIN_DIR", "build/bin")
DATASHEETS = "--efficiency 1 --launch 1e-5 --links 1"
PARTS = {  # name: arguments, and those of --small
    "fit": ("graph_bench fit --rounds 300", "graph_bench fit --rounds 3 --models vgg19,inception_v3"),
    "tables": ("graph_bench tables --calls 1000", "graph_bench tables --calls 60 --models vgg19"),
    "tables-datasheets": (f"graph_bench tables --calls 1000 {DATASHEETS}", f"graph_bench tables --calls 60 --models vgg19 {DATASHEETS}"),
    "large": ("graph_bench large --calls 600", "graph_bench large --calls 40 --models bert-24"),
    "others": (f"graph_bench others --calls 400 {DATASHEETS}", f"graph_bench others --calls 60 --models vgg19 {DATASHEETS}"),
    "ablation": (f"graph_bench ablation --calls 400 {DATASHEETS}", f"graph_bench ablation --calls 40 --models vgg19 {DATASHEETS}"),
    "overlap": (f"graph_bench overlap --calls 1000 {DATASHEETS}", f"graph_bench overlap --calls 60 --models vgg19 {DATASHEETS}"),
    "order": (f"graph_bench order --calls 1000 {DATASHEETS}", f"graph_bench order --calls 60 --models vgg19 {DATASHEETS}"),
    "brute": ("graph_bench brute --brute-groups 6 --instances 200", "graph_bench brute --brute-groups 3 --instances 10"),
    "speed": ("graph_bench speed", "graph_bench speed --models vgg19"),
}


def key_of(command):
    digest = hashlib.sha256(command.encode())
    with open(os.path.join(BIN, command.split()[0]), "rb") as program:
        digest.update(program.read())
    return digest.hexdigest()


def is_complete(path, key):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip() == key
    except FileNotFoundError:
        return False


def run(name, command, path, key):
    """Writes the file only when the part has ended well. Returns whether it has."""
    begin = time.monotonic()
    words = command.split()
    done = subprocess.run([os.path.join(BIN, words[0]), *words[1:]], stdout=subprocess.PIPE, text=True, check=False)
    print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    if done.returncode != 0:
        return False
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(f"{key}\n{command}\n\n{done.stdout}")
    os.replace(path + ".part", path)
    return True


def main(parts, folder):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=folder)
    parser.add_argument("--small", action="store_true")
    flags = parser.parse_args()
    os.makedirs(flags.folder, exist_ok=True)
    good = True
    for name, commands in parts.items():
        command = commands[1 if flags.small else 0].format(folder=flags.folder)
        path = os.path.join(flags.folder, name + (".small" if flags.small else "") + ".txt")
        key = key_of(command)
        if is_complete(path, key):
            print(f"{name}: complete", file=sys.stderr)
        elif not run(name, command, path, key):
            print(f"{name}: failed", file=sys.stderr)
            good = False
            continue
        with open(path, encoding="utf-8") as file:
            print(file.read().partition("\n")[2])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(PARTS, "build/graph-bench")
