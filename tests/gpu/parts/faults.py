"""What happens when the GPU cannot: too little memory, and an index outside a table, after which a GPU can do nothing more.

Each must end with one sentence that names the cause, in a bench and in a job.
"""
import json
import os

import numpy
import torch
from torch import nn

import jobs
import kit
import zoo


class Wide(nn.Module):
    """Few parameters, and 4 MiB a sample between its layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 1 << 20), nn.ReLU(), nn.Linear(1 << 20, 2))

    def forward(self, x):
        return self.layers(x)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.words(x).mean(1))


def sentence(text):
    """Whether it is one: not empty, no line breaks, no backtrace."""
    text = text.strip()
    return bool(text) and "\n" not in text and "frame #" not in text and len(text) < 600


def bench(what, model, folder, words, break_data=None):
    os.makedirs(folder)
    _, data, _ = zoo.export(model, folder)
    if break_data is not None:
        break_data(folder, data)
    code, _, err = kit.call([kit.program("exported_bench"), zoo.write_spec(model, folder), "--device", kit.DEVICE, "--steps", "8"],
                            seconds=40)
    lines = [line for line in err.strip().splitlines() if line.startswith("exported_bench: ")]
    said = lines[0] if lines else kit.last_line(err)
    good = code not in (0, None) and code > 0 and sentence("\n".join(lines)) and any(word in said for word in words)
    kit.row(what, said if code else f"exit status {code}", "", f"one sentence with '{words[0]}', and no crash", good)


WORDS = ("device-side assert",) if kit.ON_GPU else ("index out of range",)


def outside(folder, data):
    values = data["x"].copy()
    values[-1, 0] = 12345
    numpy.save(os.path.join(folder, "x.npy"), values)


def job(folder):
    """The same in a job: it ends, or goes on after its process was replaced, and says why."""
    with open(os.path.join(folder, "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    # Not a multiple of the batch: a profiler, which takes batches here and there, seldom meets the last row.
    for name in ("x", "labels"):
        numpy.save(os.path.join(folder, f"last-{name}.npy"), numpy.load(os.path.join(folder, f"{name}.npy"))[6:])
    spec["data"]["train"]["files"] = {"x": "file:///data/last-x.npy"}
    spec["data"]["train"]["labels"] = "file:///data/last-labels.npy"
    spec["data"]["volume"] = {"hostPath": {"path": folder}, "mountPath": "/data"}
    spec["model"]["exported"]["uri"] = "file:///data/model.pt2"
    spec["training"]["epochs"] = 50
    spec.update(objective={"minThroughput": 1}, resources={"pools": ["gpu"]}, planner={"name": "exact", "timeBudget": "1s"})
    manifest = {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bad-ids"}, "spec": spec}
    path = jobs.write(folder, manifest, jobs.pools(["gpu"]))
    code, out, err = jobs.run(path, folder, min(25, kit.left() - 5))
    said = " ".join((out + err).split())
    by = "a profiler" if "ProfilerFailed" in said else "a trainer"
    kit.row("a job with an index outside a table", f"{by} met it: {kit.last_line(err)}", "", f"says '{WORDS[0]}', and does not complete",
            code != 0 and WORDS[0] in said)


def main():
    torch.set_num_threads(1)
    if kit.ON_GPU:
        bench("more memory than the GPU has", zoo.Model(Wide, {"x": [1]}, 65536, 2), os.path.join(kit.SCRATCH, "wide"),
              ("out of memory",))
    else:
        kit.skip("more memory than the GPU has", "--cpu")
    folder = os.path.join(kit.SCRATCH, "table")
    bench("an index outside a table", zoo.Model(Table, {"x": ([4], 100)}, 64, 2), folder,
          WORDS, outside)
    job(folder)


if __name__ == "__main__":
    main()
