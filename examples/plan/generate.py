#!/usr/bin/env python3
"""Writes the requests ctrdnn-16, matchnet-16, 2emb-10 and nce-5 in this folder.

  examples/plan/generate.py [--medley build/bin/medley] [--check]

The layer tables come from examples/models. `medley profile --analytic` estimates the profiles from the datasheets `cpu`
and `v100`. Limits and prices are those of HeterPS (section 6: 480 cores, 32 V100; 0.04 and 2.42 USD per hour), but for the cores of
ctrdnn-16: three stages of some 31 cores would be cheaper than a mix. Micro-batches are not given, because the paper's cost model
has no filling and draining of a pipeline.
--check writes nothing and fails if a file differs from the generated one.
"""
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
sys.dont_write_bytecode = True
import generated  # noqa: E402

BATCH = 4096
# The required throughput: high enough that a mix of types is cheaper than each type alone.
MODELS = {"ctrdnn-16": 500000, "matchnet-16": 100000, "2emb-10": 10000000, "nce-5": 4000000}
CORES = {"ctrdnn-16": 28}  # 480: the others
NUMBERS = ("computeSeconds", "computeParallel", "syncSeconds", "transferSeconds", "commParallel", "serverSeconds",
           "activationBytes")


def number(value):
    value = float(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.7g}"


def text(value):
    return json.dumps(value) if value[:1].isdigit() else value


def layer(table):
    lines = [f"    - name: {table['name']}", f"      kind: {table['kind']}"]
    lines += [f"      {name}: {number(table[name])}" for name in ("inputBytes", "outputBytes", "weightBytes")]
    if table.get("sparse"):
        lines.append("      sparse: true")
    if table.get("inputs"):
        lines.append(f"      inputs: {json.dumps(table['inputs'])}")
    attributes = ", ".join(f"{name}: {text(value)}" for name, value in sorted(table["attributes"].items()))
    if attributes:
        lines.append(f"      attributes: {{{attributes}}}")
    lines.append("      profiles:")
    for profile in table["profiles"]:
        values = ", ".join(f"{name}: {number(profile[name])}" for name in NUMBERS)
        lines.append(f"        - {{resourceType: {profile['resourceType']}, {values}, origin: {profile['origin']}}}")
    return "\n".join(lines)


def request(medley, name, throughput):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "profile.json")
        subprocess.run([medley, "profile", "--analytic", os.path.join(FOLDER, "..", "models", name + ".yaml"),
                        "--types", "cpu,v100", "--batch", str(BATCH), "-o", out], check=True)
        with open(out, encoding="utf-8") as file:
            model = json.load(file)["model"]
    layers = "\n".join(layer(table) for table in model["layers"])
    return f"""# {name} on CPU cores and V100s, written by generate.py. The profile is ANALYTIC, estimated from datasheets and not measured;
# the layer widths are our reconstruction (examples/models/{name}.yaml).
model:
  name: {name}
  layers:
{layers}
training: {{profileBatchSize: {BATCH}, samplesPerEpoch: 45000000, epochs: 1, stateFactor: 3}}
constraints: {{minThroughput: {throughput}}}
resources:
  - {{name: cpu,  class: CPU, pricePerUnitHour: 0.04, limit: {CORES.get(name, 480)}}}
  - {{name: v100, class: GPU, pricePerUnitHour: 2.42, limit: 32, memoryBytes: 17179869184}}
serverType: cpu
planner: {{name: exact, seed: 1, timeBudgetSeconds: 10}}
"""


def main():
    parser = generated.parser(__doc__)
    parser.add_argument("--medley", default=os.path.join(FOLDER, "..", "..", "build", "bin", "medley"))
    options = parser.parse_args()
    requests = ((name, request(options.medley, name, throughput)) for name, throughput in MODELS.items())
    return generated.write_or_check(FOLDER, requests, options.check)


if __name__ == "__main__":
    sys.exit(main())
