"""What HeterPS claims: a model with large embedding tables is cheaper on a mix of CPUs and GPUs than on either alone.

Three runs of one job: with both pools, with the GPU only, with CPUs only; parameter servers are always on CPUs. Each asks for 60 %
of what its pools reach at most, is planned as cheaply as that allows, runs for some time, and tells what its plan expected and
what it reached.

What a GPU's plan expects is too low: a profile measures each operation with its copies to and from the GPU, which a stage does only at
its ends.
"""
import os
import sys

import numpy
import torch
from torch import nn

import jobs
import kit

STARTING = 6  # seconds of a run beside those of the job


class TwoTower(nn.Module):
    """Two towers over large tables, of which a step uses few rows."""

    def __init__(self, rows, width, hidden):
        super().__init__()
        self.traits = nn.Embedding(rows, width, sparse=True)
        self.person = nn.Sequential(nn.Linear(4 + 4 * width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                    nn.Linear(hidden, 64))
        self.trades = nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
        self.job = nn.Sequential(nn.Linear(2 + width, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, numbers, traits, terms, trades):
        person = self.person(torch.cat([numbers, self.traits(traits).flatten(1)], 1))
        job = self.job(torch.cat([terms, self.trades(trades)], 1))
        return (person * job).sum(1, keepdim=True)


def write_model(folder, rows, width, hidden, samples):
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    some = (torch.randn(4, 4), torch.randint(0, rows, (4, 4)), torch.randn(4, 2), torch.randint(0, rows, (4, 4)))
    program = torch.export.export(TwoTower(rows, width, hidden).train(), some, dynamic_shapes=tuple({0: batch} for _ in some))
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    random = numpy.random.default_rng(5)
    # As with real identifiers, few of them are most of the data.
    keys = lambda: ((random.zipf(1.2, (samples, 4)) * 2654435761) % rows).astype("<i8")  # noqa: E731
    numpy.save(os.path.join(folder, "numbers.npy"), random.standard_normal((samples, 4), dtype=numpy.float32))
    numpy.save(os.path.join(folder, "terms.npy"), random.standard_normal((samples, 2), dtype=numpy.float32))
    numpy.save(os.path.join(folder, "traits.npy"), keys())
    numpy.save(os.path.join(folder, "trades.npy"), keys())
    numpy.save(os.path.join(folder, "labels.npy"), random.integers(0, 2, samples).astype("<i8"))


def job(folder, rows, batch, epochs, names):
    files = {name: f"file:///data/{name}.npy" for name in ("numbers", "traits", "terms", "trades")}
    return {
        "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "towers"},
        "spec": {
            "model": {"exported": {"uri": "file:///data/model.pt2"}, "cut": {"depth": 2}, "task": "binary",
                      "parameters": {"embeddingRows": rows}},
            "data": {"train": {"format": "npy", "files": files, "labels": "file:///data/labels.npy"},
                     "inputs": [{"name": "numbers", "type": "float32", "shape": [4]}, {"name": "traits", "type": "int64", "shape": [4]},
                                {"name": "terms", "type": "float32", "shape": [2]}, {"name": "trades", "type": "int64", "shape": [4]}],
                     "volume": {"hostPath": {"path": folder}, "mountPath": "/data"}},
            "training": {"epochs": epochs, "batchSize": batch, "microBatches": 4, "optimizer": {"name": "adagrad", "learningRate": 0.01}},
            "objective": {"minThroughput": 1}, "planner": {"name": "exact", "timeBudget": "2s"},
            "resources": {"pools": names, "serverPool": names[-1]},
        },
    }


def main():
    torch.set_num_threads(1)
    rows, width, hidden, samples, batch, epochs = (
        (1_000_000, 32, 512, 1_000_000, 8192, 1000) if kit.ON_GPU else (20_000, 8, 64, 50_000, 1024, 20))
    write_model(kit.SCRATCH, rows, width, hidden, samples)
    cost = {}
    runs = (("mix", ["gpu", "cpu"]), ("GPU only", ["gpu", "host"]), ("CPUs only", ["cpu"]))
    for number, (what, names) in enumerate(runs):
        folder = os.path.join(kit.SCRATCH, what.replace(" ", "-"))
        os.makedirs(folder)
        path = jobs.write(folder, job(kit.SCRATCH, rows, batch, epochs, names), jobs.pools(names), {"goalPercent": 60})
        code, out, err = jobs.run(path, folder, min(60, kit.left() / (len(runs) - number) - STARTING))
        plans, measured, simulated = jobs.plans(out), jobs.MEASURED.findall(out), jobs.SIMULATED.findall(out)
        if code == 0 and not measured and not kit.ON_GPU:
            kit.row(f"{what}: trains", "to its end, too quickly to measure", holds=True)
            continue
        if not plans or not measured:
            kit.row(f"{what}: trains", kit.last_line(err) if code else "no throughput was measured", holds=False)
            continue
        generation, expected, reached = (jobs.number(text) for text in measured[-1])
        plan = plans[generation]
        cost[what] = plan["usd"] / 3600 / reached * 1e6
        kit.row(f"{what}: plan", f"{plan['stages']} ({plan['usd']:g} USD/h)")
        kit.row(f"{what}: measured", reached, "samples/s")
        kit.row(f"{what}: expected by the plan", expected, "samples/s")
        if simulated:
            kit.row(f"{what}: predicted by the simulator", jobs.number(simulated[-1][1]), "samples/s")
        kit.row(f"{what}: price of a million samples", float(f"{cost[what]:.4g}"), "USD")
    if len(cost) == 3:
        kit.row("the mix against the cheaper of the two", round(cost["mix"] / min(cost["GPU only"], cost["CPUs only"]), 3))


if __name__ == "__main__":
    sys.exit(main())
