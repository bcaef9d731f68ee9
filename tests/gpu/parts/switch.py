"""A running job moves from the CPUs to the GPU and back, because prices change: the pause, and whether every sample counts once."""
import json
import os
import sys

import jobs
import kit

JOB = "examples/two-tower"
CPU_OFFER = {"provider": "example", "region": "west", "instanceType": "cpu-1", "capacityType": "spot"}
GPU_OFFER = {"provider": "example", "region": "west", "instanceType": "gpu-1", "capacityType": "spot"}


def prices(path, gpu, cpu):
    entries = [{"offering": offer, "pricePerInstanceHour": price} for offer, price in ((GPU_OFFER, gpu), (CPU_OFFER, cpu))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"entries": entries}, file)


def job(epochs):
    data = os.path.join(kit.SOURCE, "examples")
    categories = (("traits", [5, 7, 8, 9]), ("trades", [1, 3, 6, 13]))
    numbers = (("numbers", [0, 4, 10, 11]), ("terms", [2, 12]))
    inputs = {name: {"name": name, "type": kind, "columns": columns} for kind, group in (("category", categories), ("float32", numbers))
              for name, columns in group}
    return {
        "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "moves"},
        "spec": {
            "model": {"exported": {"uri": "file:///data/two-tower/two-tower.pt2"}, "task": "binary", "cut": {"finest": False},
                      "parameters": {"embeddingRows": 512}},
            "data": {"train": {"uri": "file:///data/data/adult.train.csv", "format": "csv"},
                     "inputs": [inputs[name] for name in ("numbers", "traits", "terms", "trades")],
                     "schema": {"label": {"column": 14, "positive": ">50K"}},
                     "volume": {"hostPath": {"path": data}, "mountPath": "/data"}},
            "training": {"epochs": epochs, "batchSize": 512, "microBatches": 1, "optimizer": {"name": "adam", "learningRate": 0.003}},
            "objective": {"minThroughput": 100}, "planner": {"name": "exact", "timeBudget": "2s"},
            "resources": {"pools": ["cpu", "gpu"], "serverPool": "cpu"},
            "elasticity": {"minUnits": 1, "maxUnits": 1, "replan": {"onPriceChange": True, "minSaving": "10%", "cooldown": "3s"}},
        },
    }


def main():
    for name, gpu, cpu in (("cheap-cpu", 6.88, 0.04), ("cheap-gpu", 0.01, 4.0)):
        prices(os.path.join(kit.SCRATCH, name + ".yaml"), gpu, cpu)
    scenario = {"prices": "cheap-cpu.yaml", "steps": [{"atPercent": 12, "say": "the GPU is cheap", "prices": "cheap-gpu.yaml"},
                                                      {"atPercent": 40, "say": "the CPUs are cheap", "prices": "cheap-cpu.yaml"}],
                "expect": {"rescales": 2}}
    pools = jobs.pools(("gpu", "cpu"), GPU_OFFER, CPU_OFFER)
    for pool in pools:
        # The trainer of one plan and the servers of the next exist together: a GPU may need two where the CPU needs one.
        if pool["metadata"]["name"] == "cpu":
            pool["spec"]["limit"] = max(3, pool["spec"]["limit"])
    path = jobs.write(kit.SCRATCH, job(epochs=90 if kit.ON_GPU else 130), pools, scenario)
    code, out, err = jobs.run(path, kit.SCRATCH, kit.left() - 12)
    plans, moves, trained = jobs.plans(out), jobs.SWITCH.findall(out), jobs.TRAINED.search(out)
    for generation, plan in sorted(plans.items()):
        kit.row(f"plan of generation {generation}", f"{plan['stages']} ({plan['usd']:g} USD/h)")
    for before, after, why, pause in moves:
        kit.row(f"pause of the move from generation {before} to {after} ({why})", int(pause), "ms")
    kit.row("moves", len(moves), "", "CPU to GPU and back", len(moves) >= 2)
    if trained is None:
        kit.row("samples trained", kit.last_line(err), holds=False)
    else:
        done, wanted = (jobs.number(text) for text in trained.groups())
        kit.row("samples trained", done, "", f"{wanted}, each once", done == wanted)
    kit.row("the job", "complete" if code == 0 else kit.last_line(err), holds=code == 0)


if __name__ == "__main__":
    sys.exit(main())
