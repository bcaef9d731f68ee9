"""Jobs of the kit: `medley run` with two pools, one of CPUs and one of the GPU, and what its output says.

Prices: on-demand in us-east-1 on 2026-07-20, as the provider published them: 6.88 USD/h for p5.4xlarge (an H100 and 16 vCPUs),
0.08925 USD/h for c7i.large (two vCPUs), of which a unit is half.
"""
import json
import os
import re

import kit

GPU_USD, CPU_USD = 6.88, 0.044625
PLAN = re.compile(r"plan of generation (\d+) from planner (\S+): ([\d,]+)(?: \+- \S+ %)? samples/s expected, ([\d.]+) USD/h")
STAGE = re.compile(r"^\s+(\d+|servers)\s+(\S*)\s+(cpu|gpu|host)\s+(\d+)\s+\S+\s*$", re.M)
MEASURED = re.compile(r"^throughput\s+generation (\d+): ([\d,]+) samples/s expected, ([\d,]+) measured", re.M)
SIMULATED = re.compile(r"^simulator\s+generation (\d+): ([\d,]+) samples/s predicted, ([\d,]+) measured", re.M)
SWITCH = re.compile(r"^(?:rescale|recovery|return)\s+generation (\d+) -> (\d+) \((\w+)\), paused for (\d+) ms", re.M)
TRAINED = re.compile(r"^samples trained\s+([\d,]+) of ([\d,]+)", re.M)


def number(text):
    return int(text.replace(",", ""))


def pool(name, on_gpu, cpus, limit, price, memory="8Gi"):
    """`price`: an offering of the scenario's price file, or USD an hour."""
    resources = {"cpu": str(cpus), "memory": memory}
    if on_gpu:
        resources["nvidia.com/gpu"] = 1
    spec = {"class": "GPU" if on_gpu else "CPU", "unit": {"resources": resources},
            "nodeSelector": {f"medley.dev/{name}": "here"}, "limit": limit,
            "price": {"usdPerUnitHour": f"{price:g}"} if isinstance(price, float) else {"offering": price}}
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": name}, "spec": spec}


def pools(names, gpu_price=GPU_USD, cpu_price=CPU_USD):
    """gpu: the GPU with some of the machine's CPUs; cpu: one CPU a unit; host: one such unit, which has room for a parameter server
    only. On the CPU a unit of gpu is a larger share of the machine."""
    cpus = os.cpu_count() or 1
    if kit.ON_GPU:
        kept = max(1, min(4, cpus // 4))
        made = [pool("gpu", True, kept, 1, gpu_price, "32Gi"), pool("cpu", False, 0.9, max(1, cpus - kept - 1), cpu_price),
                pool("host", False, 0.9, 1, cpu_price)]
    else:
        share = cpus / 10
        made = [pool("gpu", False, round(4 * share, 2), 1, gpu_price, "2Gi"),
                pool("cpu", False, round(2 * share, 2), 2, cpu_price, "2Gi"), pool("host", False, round(2 * share, 2), 1, cpu_price, "2Gi")]
    return [each for each in made if each["metadata"]["name"] in names]


def write(folder, job, all_pools, scenario=None):
    """Writes the manifests and returns their file."""
    if scenario is not None:
        job["metadata"]["annotations"] = {"run.medley.dev/scenario": "scenario.yaml"}
        with open(os.path.join(folder, "scenario.yaml"), "w", encoding="utf-8") as file:
            json.dump(scenario, file)
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n---\n".join(json.dumps(each, indent=1) for each in all_pools + [job]))
    return path


def run(path, folder, seconds):
    """(exit status, output, errors) of `medley run`, which ends the job after `seconds`."""
    return kit.call([kit.program("medley"), "run", path, "--plain", "--timeout", str(int(seconds)), "--export",
                     os.path.join(folder, "model"), "--folder", os.path.join(folder, "run")], seconds=seconds + 30)


def plans(output):
    """Of each generation: planner, samples/s that it expects, USD/h, and where the stages are."""
    found = {}
    for match in PLAN.finditer(output):
        end = output.find("plan of generation", match.end())
        table = output[match.end():end if end > 0 else len(output)]
        stages = [f"{where} on {units} {pool}" for where, _, pool, units in STAGE.findall(table)]
        found[int(match.group(1))] = {"planner": match.group(2), "expected": number(match.group(3)), "usd": float(match.group(4)),
                                      "stages": ", ".join(stages)}
    return found
