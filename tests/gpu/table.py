#!/usr/bin/env python3
"""Writes the table of docs/operate/gpus.md from the results of the GPU kit in tests/gpu/results.

  table.py            exit status 1 if the page's table is not that of the results
  table.py --write    writes it

A file there is the results.json of a run on a GPU, named CARD-COMMIT.json. One column a file, the newest first; a cell is empty
where a run did not get that far.
"""
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs/operate/gpus.md")
BEGIN, END = "<!-- tests/gpu/table.py writes from here -->\n", "<!-- to here -->\n"
MODELS = ("lenet", "mlp", "two-tower", "transformer", "resnet18", "bert", "resnet50")
# What a row says, the part, and what the names of its results begin with.
ROWS = (
    [("tests of devices passed", "device-tests", "worker_device_test: passed"), ("tests of models passed", "device-tests",
                                                                                   "worker_aten_test: passed"),
       ("tests of layers passed", "device-tests", "worker_aten_layers_test: passed")]
    + [(f"{model}: {words}", "models", rf"{model}{what}") for model in MODELS
       for words, what in (("a step", r", batch \d+: a step$"), ("a step of eager PyTorch", r", batch \d+: a step of eager"),
                           ("times PyTorch's step", ": times"), ("copied to the GPU a step", ": copied to"),
                           ("copied from the GPU a step", ": copied from"), ("gradients from float64", ": gradients"),
                           ("losses of ten steps from float64", ": losses of"))]
    + [(f"{model}: {words}", "models", rf"{model}{what}") for model in ("lenet", "mlp", "transformer")
       for words, what in (("a step without graphs", ": a step without"), ("calls done again", ": calls done"),
                           ("losses from those without graphs", ": losses from"))]
    + [(f"ctrdnn, batch {batch:,}: {words}", "click", f"ctrdnn, batch {batch}: {what}") for batch in (4096, 16384)
       for words, what in (("a step", "a step$"), ("a step of eager PyTorch", "a step of eager"), ("times PyTorch's step", "times"),
                           ("copied to the GPU a step", "copied to"), ("copied from the GPU a step", "copied from"),
                           ("losses from the CPU's", "losses"))]
    + [(f"ctrdnn, batch {batch:,}, {rows}: a step", "click", f"ctrdnn, batch {batch}, {rows}: a step")
       for rows in ("a tenth of the rows cached", "rows on the host") for batch in (4096, 16384)]
    + [(f"large tables, {pools}: {words}", "heterps", f"{pools}: {what}") for pools in ("mix", "GPU only", "CPUs only")
       for words, what in (("plan", "plan"), ("measured", "measured"), ("expected", "expected"), ("a million samples", "price"))]
    + [(f"{model}: growth of memory in 400 steps, {place}", "memory", f"{model}: growth of the {what}")
       for model in ("lenet", "transformer", "two-tower") for place, what in (("host", "host"), ("GPU", "GPU"))]
    + [("more memory than the GPU has", "faults", "more memory"), ("an index outside a table", "faults", "an index"),
       ("the same in a job", "faults", "a job"), ("moves from CPU to GPU and back", "switch", "moves"),
       ("pause of the first move", "switch", "pause of the move from generation 1"), ("samples, each once", "switch", "samples")]
)


def cell(results, part, pattern):
    for found in results["parts"]:
        for row in found["rows"] if found["part"] == part else []:
            if re.match(pattern, row["what"]) and "skipped" not in row:
                text = str(row["figure"]).replace("|", "/") + (" " + row["unit"] if row.get("unit") else "")
                return text + (" (**failed**)" if row.get("holds") is False else "")
    return ""


def table(runs):
    """runs: the contents of the files, the newest first."""
    if not runs:
        heads = ["no run on a GPU yet"]
        lines = [[name, ""] for name, _, _ in ROWS]
    else:
        heads = [f"{run['machine']}, {run['commit'][:8]}, {run['began'][:10]}" for run in runs]
        lines = [[name] + [cell(run, part, pattern) for run in runs] for name, part, pattern in ROWS]
    out = ["| what | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    return "\n".join(out + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def read_runs(folder):
    runs = []
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path, encoding="utf-8") as file:
            runs.append(json.load(file))
    return sorted(runs, key=lambda run: run["began"], reverse=True)


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    first, last = page.index(BEGIN) + len(BEGIN), page.index(END)
    wanted = page[:first] + "\n" + table(read_runs(os.path.join(ROOT, "tests/gpu/results"))) + "\n" + page[last:]
    if wanted == page:
        return 0
    if sys.argv[1:] != ["--write"]:
        print("docs/operate/gpus.md: its table is not that of tests/gpu/results: tests/gpu/table.py --write", file=sys.stderr)
        return 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
