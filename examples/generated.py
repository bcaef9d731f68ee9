"""Files of a folder of examples that a generate.py writes, or compares with what it would write."""
import argparse
import os
import sys


def parser(description):
    """Of the arguments that each generate.py has."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    return arguments


def write_or_check(folder, texts, check):
    """texts: pairs of a name and its text, for NAME.yaml in the folder. Returns the exit status: with `check`, 1 if a file differs,
    and no file is written."""
    stale = []
    for name, wanted in texts:
        path = os.path.join(folder, name + ".yaml")
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wanted)
            continue
        with open(path, encoding="utf-8") as file:
            if file.read() != wanted:
                stale.append(path)
    for path in stale:
        print(f"{path}: not what generate.py writes; run it", file=sys.stderr)
    return 1 if stale else 0
